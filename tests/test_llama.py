"Llama: cached decoding equals uncached with every option, in bfloat16 and beyond `max_len`; shared heads under every mask."

from functools import partial

import pytest
import torch

from annotated_transformer import beam_search, greedy_decode
from annotated_transformer.core.kv_cache import ProjectedMemory
from annotated_transformer.core.masks import causal_mask
from annotated_transformer.core.recording import record_attention
from annotated_transformer.decoding.greedy import UncachedDecoder
from annotated_transformer.models.llama import Llama, LlamaConfig
from annotated_transformer.models.modern_layers import GroupedQueryAttention, repeat_heads

TINY = LlamaConfig.preset("tiny")
IDS = torch.arange(18).view(2, 9) * 5 % 97 + 3


def untrained(**options) -> Llama:
    torch.manual_seed(0)
    return Llama(TINY.replace(**options)).eval()


@pytest.mark.parametrize("decode", [greedy_decode, partial(beam_search, n_best=3)])
@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(n_kv_heads=1),
        dict(qk_norm=True, d_k=10),
        dict(n_experts=4, d_ff=64),
        dict(window=4),
        dict(window=4, n_full_layers=2),
        dict(window=1),
        dict(window=12),  # full in the middle of an answer
        dict(qkv_bias=True, tie_weights=False, rope_base=1e6, rope_factor=8.0),
    ],
)
def test_cached_equals_uncached(options, decode):
    model = untrained(**options)
    for prompt in (IDS, IDS[:, :1]):
        cached = decode(model, prompt, 8)
        uncached = decode(UncachedDecoder(model), prompt, 8)
        assert cached.lists() == uncached.lists()
        assert torch.allclose(cached.log_probs, uncached.log_probs, atol=1e-4)


@pytest.mark.parametrize("window", [None, 3])
def test_a_prompt_in_pieces_is_the_same_as_in_one(window):
    model = untrained(window=window)
    cache = model.blocks.new_cache()
    for piece in IDS.split([4, 1, 4], 1):
        found = model.step(piece, cache)
    assert torch.allclose(found, model(IDS)[:, -1], atol=1e-5)


def test_a_window_of_one_layer_hides_what_is_further_back():
    model = untrained(window=3, n_layers=1)
    other = IDS.clone()
    other[:, 4] = IDS[:, 4] % 90 + 5
    seen_by = (model(other) - model(IDS)).abs().amax(-1) > 0
    assert seen_by.tolist() == [[False] * 4 + [True] * 3 + [False] * 2] * 2


@pytest.mark.parametrize("qk_norm", [False, True])
def test_bfloat16_and_texts_longer_than_max_len(qk_norm):
    model = untrained(max_len=8, qk_norm=qk_norm).bfloat16()
    _, cache = model.start(IDS)
    found = model.step(IDS, cache)
    assert found.dtype == cache.layers[0].key.dtype == torch.bfloat16
    assert torch.allclose(found.float(), model(IDS)[:, -1].float(), atol=0.05)
    step = model.step(IDS[:, :1], cache)
    longer = model(torch.cat([IDS, IDS[:, :1]], 1))[:, -1]
    assert torch.allclose(step.float(), longer.float(), atol=0.1)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_shared_heads_under_masks_of_every_shape(n_kv_heads):
    torch.manual_seed(0)
    D, H = 24, 6
    x = torch.randn(2, 7, D)
    memory = torch.randn(2, 4, D)
    grouped = GroupedQueryAttention(D, H, n_kv_heads=n_kv_heads).eval()

    def weights_and_output(**options):
        with record_attention(grouped) as records:
            out = grouped(x, **options)
        return records[""][0], out

    for mask in (
        None,
        causal_mask(7),
        causal_mask(7)[-1:],
        torch.rand(2, 1, 7, 7) > 0.4,
        torch.rand(2, H, 1, 7) > 0.4,
        torch.rand(2, H, 7, 7) > 0.4,
        torch.rand(H, 7, 7) > 0.4,
    ):
        weights, out = weights_and_output(mask=mask)
        value = repeat_heads(grouped.key_value(x)[1], H)
        heads = (weights @ value).transpose(1, 2).flatten(2)
        assert torch.allclose(grouped.out_proj(heads), out, atol=1e-5)

    weights, causal = weights_and_output(is_causal=True)
    same_weights, by_mask = weights_and_output(mask=causal_mask(7))
    assert torch.allclose(causal, by_mask, atol=1e-6)
    assert torch.allclose(weights, same_weights, atol=1e-6)
    shared = ProjectedMemory(*grouped.key_value(memory))
    assert torch.allclose(grouped(x, memory), grouped(x, shared), atol=1e-6)
