"""Loss and batches obey the special tokens of the model, whichever they are: of ours, of Marian and of GPT-2."""

import copy
from dataclasses import replace

import pytest
import torch
from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.training.data import Batch, batch_pairs
from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.models.bert import BERTConfig, MaskedLanguageModel
from annotated_transformer.training.loss import (
    classification_loss,
    evaluate,
    sequence_loss,
)
from annotated_transformer.training.loop import TrainConfig, train
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig
from torch import nn

SHORT, LONG = ([8, 9], [9, 8]), ([7] * 9, [8] * 9)


def by_hand(model, batch, pad_id):
    "The cost of every target but `pad_id`, one by one."
    with torch.no_grad():
        log_probs = model(*batch.inputs).log_softmax(-1)
    log_probs, targets = log_probs.flatten(0, -2), batch.targets.flatten().tolist()
    return [
        -log_probs[place, token].item()
        for place, token in enumerate(targets)
        if token != pad_id
    ]


def agree(model, batch, pad_id):
    "Loss, count and evaluation are those of the targets that count."
    costs = by_hand(model, batch, pad_id)
    loss, n = sequence_loss(model, batch)
    assert batch.n_tokens == n == len(costs)
    assert loss.item() == pytest.approx(sum(costs), rel=1e-5)
    found = evaluate(model, [batch])
    assert found["loss"] == pytest.approx(sum(costs) / len(costs), rel=1e-5)


def random(model):
    for weight in model.parameters():
        nn.init.normal_(weight, mean=weight.mean().item(), std=0.2)
    return model.eval()


def marian():
    transformers = pytest.importorskip("transformers", reason="Marian is Hugging Face's")
    from annotated_transformer.interop.huggingface import from_huggingface

    sizes = {
        f"{side}_{name}": n
        for side in ("encoder", "decoder")
        for name, n in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 40))
    }
    ids = dict(
        pad_token_id=49, eos_token_id=0, decoder_start_token_id=49, forced_eos_token_id=None
    )
    config = transformers.MarianConfig(
        vocab_size=50,
        d_model=24,
        max_position_embeddings=32,
        scale_embedding=True,
        **sizes,
        **ids,
    )
    return from_huggingface(transformers.MarianMTModel(config))


def gpt2():
    transformers = pytest.importorskip("transformers", reason="GPT-2 is Hugging Face's")
    from annotated_transformer.interop.huggingface import from_huggingface

    sizes = dict(
        n_embd=24,
        n_layer=2,
        n_head=4,
        vocab_size=50,
        n_positions=32,
        bos_token_id=49,
        eos_token_id=49,
    )
    return from_huggingface(
        random(transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)))
    )


def gpt(**options):
    return random(
        GPT(GPTConfig(d_model=24, d_ff=40, n_heads=4, n_layers=2, max_len=16, **options))
    )


def transformer(**special):
    return Transformer(
        TransformerConfig.preset(
            "tiny", vocab_size=13, d_model=24, d_ff=40, n_layers=1, **special
        )
    ).eval()


def next_ids(model, rows, **other):
    "The next token of each, with the special tokens of the model, or with others."
    ids = torch.tensor(rows)
    special = replace(SpecialTokens.of(model), **other)
    return Batch((ids[:, :-1],), ids[:, 1:], special)


def learnt(model, batch, token):
    "The probability of a token at the first place, before and after training on it."
    model = copy.deepcopy(model)
    found = []
    for steps in (0, 60):
        if steps:
            train(
                model,
                [batch] * steps,
                TrainConfig(steps=steps, lr=1e-2, warmup_steps=5),
            )
        found.append(model(*batch.inputs)[0, 0].softmax(-1)[token].item())
    return found


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.slow
def test_marian_is_asked_for_its_end():
    model = marian()
    special = SpecialTokens.of(model)
    assert special == SpecialTokens(pad_id=49, bos_id=50, eos_id=0)
    batch = Batch.from_pairs([([7, 8], [8, 9]), ([9], [5, 6, 7])], special)
    assert batch.targets.tolist() == [[8, 9, 0, 49], [5, 6, 7, 0]]
    agree(model, batch, 49)
    before, after = learnt(model, Batch.from_pairs([([7, 8], [])], special), 0)
    assert before < 0.5 < 0.9 < after


def test_a_language_model_with_its_padding_at_the_end_of_the_vocabulary():
    model = gpt(vocab_size=137, pad_id=136)
    batch = next_ids(model, [[4, 0, 0, 0, 7, 8], [4, 0, 9, 136, 136, 136]])
    agree(model, batch, 136)
    assert batch.n_tokens == 5 + 2
    others = [dict(pad_id=0), dict(pad_id=None), dict(bos_id=1), dict(eos_id=1)]
    for other in others:
        batch = next_ids(model, [[4, 0, 7]], **other)
        for loss in (sequence_loss, lambda model, batch: evaluate(model, [batch])):
            with pytest.raises(ValueError, match="special of the batch: got .*=136"):
                loss(model, batch)
    classes = Batch(batch.inputs, batch.targets)  # of no tokens at all
    with pytest.raises(ValueError, match="special of the batch: got None"):
        sequence_loss(model, classes)
    with pytest.raises(ValueError, match="special of the batch.* expected None"):
        classification_loss(model, batch)


def test_a_masked_language_model_leaves_out_its_padding_whatever_its_id():
    config = BERTConfig.preset("tiny", vocab_size=50, pad_id=2, separator_id=0)
    model = random(MaskedLanguageModel(config))
    ids, targets = torch.tensor([[1, 7, 2]]), torch.tensor([[2, 0, 2]])
    batch = Batch((ids,), targets, SpecialTokens.of(model))
    agree(model, batch, 2)
    assert batch.n_tokens == 1


@pytest.mark.parametrize(
    "make",
    [
        gpt2,
        lambda: gpt(vocab_size=50, pad_id=None),
        lambda: gpt(vocab_size=50, pad_id=49, eos_id=49),
    ],
)
def test_a_language_model_without_padding_is_trained_on_every_token(make):
    model = make()
    batch = next_ids(model, [[5, 0, 7, 0, 0, 49]])
    agree(model, batch, None)
    assert batch.n_tokens == 5
    for token in (0, 49):  # a word, and the end
        before, after = learnt(model, next_ids(model, [[5, token]]), token)
        assert before < 0.5 < 0.9 < after
    with pytest.raises(ValueError, match=r"special of the batch: got .*pad_id=0"):
        sequence_loss(model, next_ids(model, [[5, 0, 7]], pad_id=0))


def test_neighbours_in_a_batch_do_not_matter():
    model = transformer(pad_id=3, bos_id=4, eos_id=5)
    special = SpecialTokens.of(model)
    alone, both = (Batch.from_pairs(pairs, special) for pairs in ([SHORT], [SHORT, LONG]))
    with torch.no_grad():
        assert torch.allclose(
            model(*alone.inputs)[0], model(*both.inputs)[0, :3], atol=1e-5
        )
    agree(model, both, 3)


@pytest.mark.parametrize("special", [dict(pad_id=3), dict(bos_id=3), dict(eos_id=3)])
def test_a_batch_with_other_ids_than_the_model_is_refused_before_anything_is_learnt(
    special,
):
    model = transformer(**special)
    start = copy.deepcopy(model.state_dict())
    both = r"special of the batch: got SpecialTokens\(pad_id=0, bos_id=1, eos_id=2\), expected SpecialTokens\(.*=3"
    with pytest.raises(ValueError, match=both):
        train(
            model,
            batch_pairs([SHORT, LONG], 2),
            TrainConfig(steps=1, warmup_steps=1),
        )
    assert all(
        torch.equal(weight, start[name]) for name, weight in model.state_dict().items()
    )
    right = batch_pairs([SHORT, LONG], 2, SpecialTokens.of(model))
    train(model, right, TrainConfig(steps=1, warmup_steps=1))
    assert not all(
        torch.equal(weight, start[name]) for name, weight in model.state_dict().items()
    )


@pytest.mark.slow
def test_a_compiled_model_answers_as_the_plain_one():
    model = transformer(pad_id=3, bos_id=4, eos_id=5)
    compiled, batch = (
        torch.compile(model, backend="eager"),
        Batch.from_pairs([SHORT, LONG], SpecialTokens.of(model)),
    )
    assert sequence_loss(compiled, batch)[0].item() == pytest.approx(
        sequence_loss(model, batch)[0].item(), rel=1e-5
    )
    assert evaluate(compiled, [batch])["loss"] == pytest.approx(
        evaluate(model, [batch])["loss"], rel=1e-5
    )
    with pytest.raises(ValueError, match="special of the batch"):
        sequence_loss(compiled, Batch.from_pairs([SHORT]))


def test_labels_all_count():
    batch = Batch((torch.eye(3),), torch.tensor([0, 0, 2]))
    classifier = nn.Linear(3, 3)
    loss, n = classification_loss(classifier, batch)
    assert n == 3
    assert loss.item() == pytest.approx(sum(by_hand(classifier, batch, None)), rel=1e-5)
    assert evaluate(classifier, [batch], classification_loss)["loss"] * 3 == pytest.approx(
        loss.item(), rel=1e-5
    )
