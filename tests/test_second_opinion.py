"""Decoding against Hugging Face's `generate`, on a model of ours and on Marian, or with norms first Pegasus, with the same weights."""

from itertools import islice

import pytest
import torch

pytest.importorskip(
    "transformers", reason="the second opinion is Hugging Face's: pip install -e '.[dev]'"
)
from annotated_transformer.training.data import EOS, PAD, Batch, batch_pairs
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.decoding.greedy import greedy_decode
from annotated_transformer.interop.huggingface import to_huggingface
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.training.loop import TrainConfig, train
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["post", "pre"])
def sides(request):
    "A model that has learnt a little, the same as theirs, and sources of different lengths."
    torch.manual_seed(1)
    ours = Transformer(
        TransformerConfig.preset(
            "tiny", vocab_size=13, attention_bias=True, norm=request.param
        )
    )
    task = dict(task="reverse", min_len=3, max_len=9)
    train(
        ours,
        batch_pairs(synthetic_pairs(**task), 64),
        TrainConfig(steps=60, lr=3e-3, warmup_steps=30),
    )
    return (
        ours.eval(),
        to_huggingface(ours),
        Batch.from_pairs(list(islice(synthetic_pairs(**task, held_out=True), 40))).src,
    )


def theirs(model, src, **options):
    "Their answers without BOS, and their scores."
    found = model.generate(
        src,
        attention_mask=(src != PAD).long(),
        max_new_tokens=15,
        suppress_tokens=[0, 1],
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
        **options,
    )
    lists = [ids[1 : (ids + [EOS]).index(EOS, 1)] for ids in found.sequences.tolist()]
    return lists, getattr(found, "sequences_scores", None)


def test_the_two_compute_the_same_logits(sides):
    ours, other, src = sides
    tgt = torch.randint(3, 13, (len(src), 7))
    with torch.no_grad():
        logits = other(
            input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt
        ).logits
        assert torch.allclose(ours(src, tgt), logits, atol=1e-4)


def test_greedy_decoding_is_the_same(sides):
    ours, other, src = sides
    assert greedy_decode(ours, src, 15).lists() == theirs(other, src)[0]


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("beam_size", [2, 5])
def test_beams_and_scores_are_the_same(sides, beam_size, early_stopping):
    ours, other, src = sides
    lists, scores = theirs(
        other,
        src,
        num_beams=beam_size,
        num_return_sequences=beam_size,
        length_penalty=0.0,
        early_stopping=early_stopping or "never",
    )
    found = beam_search(
        ours,
        src,
        15,
        beam_size=beam_size,
        length_penalty=0.0,
        n_best=beam_size,
        early_stopping=early_stopping,
    )
    assert sum(found.lists(), []) == lists
    assert torch.allclose(found.scores.flatten(), scores, atol=1e-4)
    assert len({len(ids) for ids in lists}) > 2, (
        "answers of one length would not try the rules for the end"
    )


def test_each_order_of_norms_has_its_class(sides):
    ours, other, _ = sides
    assert (
        type(other).__name__
        == dict(post="MarianMTModel", pre="PegasusForConditionalGeneration")[
            ours.config.norm
        ]
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_they_are_not_is_refused(norm):
    with pytest.raises(ValueError, match="attention_bias: got False, expected True"):
        to_huggingface(Transformer(TransformerConfig.preset("tiny", norm=norm)))
