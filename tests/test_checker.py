"What `check_transformer` says of our models, with attentions of one's own, and of strangers', and that it leaves them as they were."

import pytest
import torch
from annotated_transformer import check_transformer
from annotated_transformer.core.multi_head_attention import MultiHeadAttention
from annotated_transformer.core.positions import POSITIONS
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.models.bert import BERTConfig, MaskedLanguageModel
from annotated_transformer.models.gpt import GPT, GPTConfig
from torch import nn
from torch.nn import functional as F


class Backwards(MultiHeadAttention):
    "Of all words before, the first are the nearest: positions of its own, as ALiBi has."

    def attend(self, query, key, value, mask=None, is_causal=False):
        return self.weights(query, key, mask, is_causal) @ value

    def weights(self, query, key, mask=None, is_causal=False):
        n_queries, n_keys = query.shape[2], key.shape[2]
        places = torch.arange(n_keys)
        distance = (places[n_keys - n_queries :, None] - places).abs()
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5 - distance
        if is_causal:
            scores = scores.masked_fill(
                places > places[n_keys - n_queries :, None], -torch.inf
            )
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return scores.softmax(-1)


class ConfigOfOnesOwn(TransformerConfig):
    def attention(self, i):
        return self.attention_of_kind(Backwards)


def own(**changes):
    torch.manual_seed(0)
    config = ConfigOfOnesOwn.preset("tiny", vocab_size=30, positions="none", **changes)
    return Transformer(config)


class ForgetsThePosition(GPT):
    def step(self, ids, cache):
        hidden = self.blocks(self.embed(ids), is_causal=True, cache=cache)
        return self.output.logits(hidden[:, -1])


class ForgetsTheMask(Transformer):
    def start(self, src):
        ids, cache = super().start(src)
        cache.memory_mask = None
        return ids, cache


class Stranger(nn.Module):
    "Its `start` and `step` have nothing to do with a cache."

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.decoder = nn.TransformerEncoder(layer, 1)
        self.places, self.output = nn.Embedding(32, 16), nn.Linear(16, 30)

    def start(self):
        raise AssertionError

    def step(self, batch, optimizer, clip):
        raise AssertionError

    def forward(self, ids):
        n = ids.shape[1]
        x = self.embed(ids) + self.places(torch.arange(n))
        return self.output(self.decoder(x, mask=torch.ones(n, n).triu(1).bool()))


def test_our_caches_are_judged():
    gpt = GPTConfig.preset("tiny", vocab_size=30)
    torch.manual_seed(0)
    assert check_transformer(GPT(gpt))["cache"].passed is True
    found = check_transformer(ForgetsThePosition(gpt))["cache"]
    assert found.passed is False and "from step 1 on" in found.message

    config = TransformerConfig.preset("tiny", vocab_size=30)
    assert check_transformer(Transformer(config))["cache"].passed is True
    found = check_transformer(ForgetsTheMask(config))["cache"]
    assert found.passed is False and "padding of the source" in found.message


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_attention_of_ones_own_is_sound(norm):
    report = check_transformer(own(norm=norm, dropout=0.1))
    assert report.failed == [], report
    for name in ("scale", "attention", "order", "cache", "leak", "padding"):
        assert report[name].passed is True, (name, report[name])


def test_a_wrong_attention_of_ones_own_is_found():
    def unscaled(query, key, value, mask=None, is_causal=False):
        return F.scaled_dot_product_attention(
            query, key, value, mask, 0, is_causal, scale=1
        )

    model = own()
    for layer in model.encoder.layers:
        layer.self_attention.attend = unscaled
    found = check_transformer(model)["scale"]
    assert found.passed is False and "no scale" in found.message


def test_a_stranger_is_not_asked_for_our_cache():
    report = check_transformer(Stranger(), architecture="language model", vocab_size=30)
    assert report.failed == [], report
    assert report["cache"].message == "does not apply: no cached call is known"


# ---- Sound models ----


def sound(**changes):
    torch.manual_seed(0)
    config = TransformerConfig.preset("tiny", vocab_size=30, dropout=0.1)
    return Transformer(config.replace(**changes))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_ours_with_any_positions(norm, positions):
    report = check_transformer(sound(norm=norm, positions=positions))
    assert report.failed == (["order"] if positions == "none" else [])


@pytest.mark.parametrize(
    "changes",
    [
        dict(tie_weights=False),
        dict(tgt_vocab_size=20),
        dict(dropout=0.0),
        dict(activation="gelu"),
        dict(attention_dropout=0.2, dropout=0.0),
        dict(output_bias=True, d_k=8, d_v=24),
    ],
)
def test_ours_with_other_settings(changes):
    assert check_transformer(sound(**changes)).failed == []


def test_ours_in_lower_precision_and_frozen():
    assert check_transformer(sound().bfloat16()).failed == []
    frozen = check_transformer(sound().requires_grad_(False))
    assert frozen.failed == [] and frozen["gradient"].passed is None


def test_all_questions_apply_to_a_transformer_with_rotary_positions():
    report = check_transformer(sound(positions="rotary"))
    assert all(finding.passed for finding in report.findings.values()), report


def test_the_pooler_of_bert_gets_no_gradient():
    bert = MaskedLanguageModel(BERTConfig.preset("tiny", vocab_size=30))
    assert check_transformer(bert, architecture="encoder").failed == ["gradient"]


def test_ids_can_be_viewed():
    class Flat(GPT):  # as nanoGPT does with its targets
        def forward(self, ids):
            return super().forward(ids.view(-1).view(ids.shape))

    gpt = Flat(GPTConfig.preset("tiny", vocab_size=30))
    assert check_transformer(gpt).failed == []


def test_a_model_may_rule_out_padding_everywhere():
    gpt = GPT(GPTConfig.preset("tiny", vocab_size=30))

    def ruled_out(model, ids):
        logits = model(ids).clone()
        logits[..., 0] = -torch.inf
        return logits

    assert check_transformer(gpt, ruled_out).failed == []


def test_zeros_that_hide_what_comes_before_are_excused():
    gpt = GPT(GPTConfig.preset("tiny", vocab_size=30))
    for layer in gpt.blocks.layers:
        layer.self_attention.out_proj.weight.data.zero_()
        layer.feed_forward.linear2.weight.data.zero_()
    report = check_transformer(gpt)
    assert report.failed == []
    assert {"reach", "order", "gradient"} <= {*report.notes}
    assert "self_attention.out_proj.weight" in report["reach"].message


# ---- Calls that say too little ----


def test_what_is_missing_is_said():
    lazy = nn.Sequential(nn.Embedding(9, 4), nn.LazyLinear(9))
    known = dict(architecture="language model", vocab_size=9)
    assert "call the model once" in check_transformer(lazy, **known)["call"].message
    assert isinstance(lazy[1], nn.LazyLinear)  # and nobody did

    unknown = check_transformer(nn.Linear(2, 2))["call"].message
    assert "architecture: got None" in unknown and "vocab_size=" in unknown
    with pytest.raises(ValueError, match="did you mean 'encoder'"):
        check_transformer(sound(), architecture="encodr")
    with pytest.raises(ValueError, match="length: got 0"):
        check_transformer(sound(), length=0)


def test_lengths_that_do_not_fit():
    cut = check_transformer(sound(), lambda model, src, tgt: model(src, tgt)[:, 0])
    assert "expected (2, 6, V)" in cut["call"].message
    few = check_transformer(sound(vocab_size=13), length=20)
    assert "10 ordinary ids" in few["call"].message
    short = check_transformer(sound(positions="learned", max_len=7))
    assert short.failed == [] and short["padding"].passed is None


def test_after_a_crash_the_others_cannot_judge():
    crashed = check_transformer(sound(), lambda model, src, tgt: (model(src, tgt), None))
    assert crashed.failed == ["call"]
    assert crashed["leak"].message == "not judged, as the probe 'call' fails"
    lines = str(crashed).splitlines()
    assert lines[-1].strip() == "No other probe can judge before 'call' passes."
    assert len(lines) < 6 and max(map(len, lines)) <= 96


# ---- The model stays as it was ----


def test_a_check_leaves_no_trace():
    model = own(dropout=0.1).train()
    for layer in model.decoder.layers:
        layer.norm1 = nn.BatchNorm1d(6)  # over the positions
    model.decoder.layers[0].eval()  # modes may be mixed
    ids = torch.randint(3, 30, (2, 6))
    model(ids, ids).sum().backward()

    def state():
        return (
            [m.training for m in model.modules()],
            [x.clone() for x in model.state_dict().values()],
            [p.grad.clone() for p in model.parameters()],
            torch.get_rng_state(),
        )

    before = state()
    assert "batch" in check_transformer(model).failed
    for one, other in zip(before, state()):
        for a, b in zip(one, other):
            assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))
