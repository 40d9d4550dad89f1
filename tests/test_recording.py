"Recording attention: what is kept is what ran, and what cannot be kept is said."

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from annotated_transformer.core.attention import attention_weights
from annotated_transformer.core.masks import causal_mask, padding_mask
from annotated_transformer.core.multi_head_attention import MultiHeadAttention
from annotated_transformer.core.recording import record_attention
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.inspection.attention_maps import trace_attention
from annotated_transformer.models.gpt import GPT, GPTConfig
from torch import nn
from torch.nn import functional as F

SRC = torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0]])
TGT = torch.tensor([[1, 5, 6, 7], [1, 9, 8, 3]])
SIZES = dict(vocab_size=13, d_model=16, d_ff=32)


def tiny(config_class=TransformerConfig, **changes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(config_class.preset("tiny", **SIZES, **changes)).eval()


def alibi_bias(module, query, key, mask, is_causal):  # B or 1, H, Q, K
    n_queries, n_keys = query.shape[2], key.shape[2]
    places = torch.arange(n_keys)
    distance = (places[-n_queries:, None] - places).abs()
    slopes = 2.0 ** -torch.arange(1, module.n_heads + 1)
    bias = (-slopes[:, None, None] * distance)[None]
    if is_causal:
        bias = bias.masked_fill(~causal_mask(n_queries, n_keys), -torch.inf)
    return bias if mask is None else bias.masked_fill(~mask, -torch.inf)


class HalfALiBi(MultiHeadAttention):
    "Forgets to say what it does."

    def attend(self, query, key, value, mask=None, is_causal=False):
        bias = alibi_bias(self, query, key, mask, is_causal)
        if self.training and self.dropout.p:
            scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
            return self.dropout((scores + bias).softmax(-1)) @ value
        return F.scaled_dot_product_attention(query, key, value, bias)


class ALiBi(HalfALiBi):
    def weights(self, query, key, mask=None, is_causal=False):
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        return (scores + alibi_bias(self, query, key, mask, is_causal)).softmax(-1)


class OnlyWeights(MultiHeadAttention):
    "Says what it doesn't do."

    weights = ALiBi.weights


class Fused(MultiHeadAttention):
    "Another way to compute the same."

    def attend(self, query, key, value, mask=None, is_causal=False):
        return attention_weights(query, key, *[mask] * (mask is not None)) @ value


class OneHead(nn.Module):
    "A stranger's: no class of ours, no heads, methods with other options."

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def attend(self, query, key, value, *, temperature):
        return self.weights(query, key, temperature=temperature) @ value

    def weights(self, query, key, *, temperature):
        return (query @ key.transpose(-2, -1) / temperature).softmax(-1)

    def forward(self, x):
        return self.attend(*self.qkv(x).chunk(3, -1), temperature=2.0)


class Average(nn.Module):
    def forward(self, x, memory=None, **options):
        return x.mean(1, keepdim=True).expand_as(x)


class Silent(MultiHeadAttention):
    def forward(self, x, memory=None, **options):
        return x


def with_parts(attention, **changes):
    "A model whose decoder looks back by another attention."

    class Config(TransformerConfig):
        def attention(self, i):
            return self.attention_of_kind(attention)

    return tiny(Config, **changes)


# ---- What is kept is what ran ----


def test_the_weights_are_those_that_mixed_the_values():
    model = tiny()
    kept = []

    def keep(module, args, options, out):
        memory = args[1] if len(args) > 1 else args[0]
        kept.append((module, args[0], memory, out))

    hooks = [
        m.register_forward_hook(keep, with_kwargs=True)
        for m in model.modules()
        if isinstance(m, MultiHeadAttention)
    ]
    with torch.no_grad(), record_attention(model) as records:
        model(SRC, TGT)
    for hook in hooks:
        hook.remove()

    assert len(kept) == len(records) == 6
    for (module, _, memory, out), [weights] in zip(kept, records.values()):
        _, value = module.key_value(memory)
        mixed = (weights @ value).transpose(1, 2).flatten(2)
        torch.testing.assert_close(module.out_proj(mixed), out)


@pytest.mark.parametrize("training", [False, True])
def test_an_attention_that_overrides_both_is_recorded_truly(training):
    model = with_parts(ALiBi, attention_dropout=0.3).train(training)
    with record_attention(model) as records:
        model(SRC, TGT)

    layer = model.decoder.layers[0].self_attention
    x = model.tgt_embed(TGT)
    query, (key, _) = layer.query(x), layer.key_value(x)
    scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
    distance = torch.arange(4)[:, None] - torch.arange(4)
    for head in range(4):
        row = scores[:, head, 3] - 2.0 ** -(head + 1) * distance[3]
        found = records["decoder.layers.0.self_attention"][0][:, head, 3]
        torch.testing.assert_close(found, row.softmax(-1))


@pytest.mark.parametrize("attention", [HalfALiBi, OnlyWeights])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_weights_of_another_attention_are_refused(attention, training, compiled):
    model = with_parts(attention, attention_dropout=0.3).train(training)
    run = torch.compile(model, backend="eager") if compiled else model
    name = attention.__name__
    with pytest.raises(ValueError, match=f"{name}: got 'weights of another attention'"):
        with record_attention(run):
            run(SRC, TGT)
    assert not any("attend" in vars(module) for module in model.modules())
    run(SRC, TGT)


def test_an_attention_that_somebody_changed_in_place_is_refused_and_stays():
    model = tiny()
    changed = model.encoder.layers[1].self_attention

    def twice(query, key, value, mask=None, is_causal=False):
        return F.scaled_dot_product_attention(2 * query, key, value, mask)

    changed.attend = twice
    expected = model(SRC, TGT)
    with pytest.raises(ValueError, match="weights of another attention"):
        with record_attention(model):
            model(SRC, TGT)
    assert changed.attend is twice
    assert torch.equal(model(SRC, TGT), expected)


def test_another_way_to_compute_the_same_is_recorded():
    fused, plain = Fused(16, 2), MultiHeadAttention(16, 2)
    plain.load_state_dict(fused.state_dict())
    x, mask = torch.randn(2, 5, 16), padding_mask(SRC)
    found = []
    for module in (fused, plain):
        with record_attention(module) as records:
            module(x, mask=mask)
        found.append(records[""][0])
    assert torch.equal(*found)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    model = with_parts(ALiBi) if dtype == torch.float64 else tiny()
    model.to(dtype)
    with record_attention(model) as records:
        model(SRC, TGT)
    assert len(records) == 6

    torch.manual_seed(0)
    half = HalfALiBi(16, 2).to(dtype)
    with pytest.raises(ValueError), record_attention(half):
        half(3 * torch.randn(2, 9, 16, dtype=dtype))


def test_rows_that_see_nothing_are_recorded():
    attention = MultiHeadAttention(16, 2)
    mask = padding_mask(torch.tensor([[3, 4], [0, 0]]))
    with record_attention(attention) as records:
        attention(torch.randn(2, 2, 16), mask=mask)
    assert not records[""][0][1].any()


def test_dropout_draws_the_same_numbers():
    torch.manual_seed(0)
    config = GPTConfig.preset("tiny", vocab_size=13).replace(attention_dropout=0.3)
    model = GPT(config).train()
    torch.manual_seed(1)
    expected = model(TGT)
    torch.manual_seed(1)
    with record_attention(model) as records:
        assert torch.equal(model(TGT), expected)
    # as they were before some were dropped
    for [weights] in records.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
        assert not weights.requires_grad
    assert all(module.training for module in model.modules())


def test_a_stranger_of_a_notebook():
    model = nn.Sequential(nn.Linear(8, 8), OneHead())
    x = torch.randn(2, 5, 8)
    with record_attention(model) as records:
        out = model(x)
    value = model[1].qkv(model[0](x)).chunk(3, -1)[2]
    torch.testing.assert_close(records["1"][0] @ value, out)


def test_recordings_within_each_other():
    model = tiny()
    layer = model.decoder.layers[0]
    with record_attention(model) as outer:
        with record_attention(layer) as inner, record_attention(model) as same:
            model(SRC, TGT)
        model(SRC, TGT)
    model(SRC, TGT)
    assert [*inner] == ["self_attention", "cross_attention"]
    assert {len(calls) for calls in inner.values()} == {1}
    assert {len(calls) for calls in outer.values()} == {2}
    for name, [weights] in same.items():
        assert torch.equal(weights, outer[name][0])
    assert not any("attend" in vars(module) for module in model.modules())


@pytest.mark.parametrize("way", ["wrapped", "in place", "one part"])
def test_a_compiled_model_is_recorded(way):
    torch._dynamo.reset()
    model = tiny()
    with torch.no_grad():
        with record_attention(model) as expected:
            before = model(SRC, TGT)

        run = model
        if way == "wrapped":
            run = torch.compile(model, backend="eager")
        elif way == "in place":
            model.compile(backend="eager")
        else:
            model.decoder = torch.compile(model.decoder, backend="eager")
        run(SRC, TGT)  # compiled before anybody listens
        for _ in range(2):
            with record_attention(run) as records:
                torch.testing.assert_close(run(SRC, TGT), before)
            found = [name.replace("_orig_mod.", "") for name in records]
            assert found == [*expected]
            for [one], [other] in zip(records.values(), expected.values()):
                torch.testing.assert_close(one, other)
        torch.testing.assert_close(run(SRC, TGT), before)
        assert len(records["encoder.layers.0.self_attention"]) == 1


def test_errors_stay_in_their_thread():
    "While one thread is refused, another one runs the same model undisturbed."
    model = with_parts(HalfALiBi)
    expected = model(SRC, TGT)
    start = threading.Barrier(2)

    def refused():
        start.wait()
        for _ in range(20):
            with pytest.raises(ValueError), record_attention(model):
                model(SRC, TGT)

    def undisturbed():
        start.wait()
        return [torch.equal(model(SRC, TGT), expected) for _ in range(60)]

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(refused), pool.submit(undisturbed)
        one.result()
        assert all(other.result())
    assert not any("attend" in vars(module) for module in model.modules())


# ---- What cannot be kept is said ----


def test_a_model_without_attention_is_refused():
    for model in (nn.Linear(2, 2), nn.MultiheadAttention(8, 2), nn.Sequential(Average())):
        with pytest.raises(ValueError, match="`attend` and `weights`"):
            with record_attention(model):
                pass


class Weighted(nn.Module):
    "With names that mean something else."

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(3))
        self.attend = nn.Linear(3, 3)


def test_other_things_of_these_names_are_no_attention():
    model = nn.ModuleDict(dict(one=Weighted(), two=MultiHeadAttention(8, 2)))
    attend = model["one"].attend
    with record_attention(model) as records:
        model["two"](torch.randn(1, 3, 8))
    assert [*records] == ["two"] and model["one"].attend is attend


@pytest.mark.parametrize("part", [Average(), nn.MultiheadAttention(16, 2)])
def test_an_attention_that_cannot_be_recorded_is_warned_of(part):
    model = tiny()
    model.decoder.layers[1].self_attention = part
    with pytest.warns(UserWarning, match="decoder.layers.1.self_attention is a") as caught:
        with record_attention(model):
            pass
    assert len(caught) == 1


def test_no_warning_of_parts_that_only_have_such_names(recwarn):
    model = tiny()
    layer = model.encoder.layers[0]
    layer.attention_norm = nn.LayerNorm(16)
    layer.attentions = nn.ModuleList([layer.self_attention])
    layer.self_attention.inner_attention = Average()
    with record_attention(model):
        model(SRC, TGT)
    assert not recwarn.list


def test_an_attention_that_goes_its_own_way_is_refused():
    model = with_parts(Silent)
    with pytest.raises(ValueError, match="encoder.layers.0.self_attention: got 'Silent"):
        with record_attention(model):
            model(SRC, TGT)


def test_maps_of_an_attention_of_ones_own():
    model = with_parts(ALiBi)
    maps = trace_attention(model, [3, 4, 5], [6, 7, 2])
    alone = trace_attention(tiny(), [3, 4, 5], [6, 7, 2])
    assert maps.weights.keys() == alone.weights.keys()
    assert not torch.allclose(maps.weights["decoder self"], alone.weights["decoder self"])
    with pytest.raises(ValueError, match="override both"):
        trace_attention(with_parts(HalfALiBi), [3, 4, 5], [6, 7, 2])
