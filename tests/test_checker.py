"What `check_transformer` says of our models, with attentions of one's own, and of strangers'."

import pytest
import torch
from annotated_transformer import check_transformer
from annotated_transformer.core.multi_head_attention import MultiHeadAttention
from annotated_transformer.core.transformer import Transformer, TransformerConfig
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
