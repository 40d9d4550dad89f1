"Each probe of `check_transformer` by itself: what it must not miss, and what it must not mistake for a fault."

from types import SimpleNamespace

import pytest

pytest.importorskip(
    "transformers",
    reason="its models are those with planted faults: pip install -e '.[dev]'",
)
import torch
from planted_faults import CONFIG, LanguageModel, sound, stepwise_logits
from torch import nn
from torch.nn import functional as F

from annotated_transformer.core.multi_head_attention import MultiHeadAttention
from annotated_transformer.core.positions import POSITIONS
from annotated_transformer.core.rotary import RotaryAttention
from annotated_transformer.core.transformer import TransformerConfig
from annotated_transformer.debugging import calling, position_probes
from annotated_transformer.debugging.attention_trace import (
    expected_scale,
    probe_attention,
    probe_scale,
    record_attention,
    token_tables,
)
from annotated_transformer.debugging.mask_probes import (
    probe_batch,
    probe_leak,
    probe_padding,
    probe_reach,
)
from annotated_transformer.debugging.output_probes import probe_logits, probe_parts
from annotated_transformer.debugging.position_probes import probe_order, probe_rotary
from annotated_transformer.debugging.probes import (
    influence,
    is_coarse,
    prepare,
    probe_call,
    sample_ids,
    tolerance,
)
from annotated_transformer.debugging.weight_probes import (
    equal_matrices,
    probe_gradient,
    probe_memory,
    probe_residual,
    probe_sharing,
    two_roles,
)
from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.models.llama import Llama, LlamaConfig


def with_attend(attend, model=None):
    "A language model, or another, in which all attentions are computed by `attend`."
    model = model or LanguageModel()
    for module in model.modules():
        if hasattr(module, "attend"):
            module.attend = attend
    return model


def experts(seed):
    torch.manual_seed(seed)
    return Llama(LlamaConfig.preset("tiny", n_experts=4))


# ---- What a model says of itself ----


def test_configurations_are_read():
    gpt = GPT(GPTConfig.preset("tiny", vocab_size=30))
    assert calling.config_value(sound(), "pad_token_id", "pad_id") == 0
    assert calling.guess_architecture(sound()) == "encoder-decoder"
    assert calling.guess_architecture(gpt) == "language model"
    assert calling.usable_ids(sound(), None, 0) == list(range(3, 30))
    assert calling.usable_ids(sound(tgt_vocab_size=9), 30, 8) == [3, 4, 5, 6, 7]
    assert [prepare(sound(), pad_id=n).pad_id for n in (None, 0, False)] == [0, 0, None]


@pytest.mark.parametrize(
    "call, architecture",
    [
        (lambda idx, targets=None: 0, "language model"),
        (lambda ids, mask: 0, "language model"),
        (lambda src, tgt, src_mask=None: 0, "encoder-decoder"),
    ],
)
def test_the_example_fits_the_signature(call, architecture):
    assert calling.likely_architecture(call) == architecture


def test_ids_of_a_row_are_all_different():
    ids, others = sample_ids(list(range(3, 13)), 6, 2, torch.Generator().manual_seed(0))
    for row, other in zip(ids.tolist(), others.tolist()):
        assert len({*row, other}) == 7
    with pytest.raises(ValueError, match="got '6 ordinary ids', expected at least 7"):
        sample_ids(list(range(6)), 6, 2, torch.Generator())
    assert all(ids.is_contiguous() for ids in prepare(sound()).inputs)


@pytest.mark.parametrize(
    "answer, words",
    [
        (
            lambda x: (x, None),
            "returns a tuple (a tensor (2, 6, 30), None); say which part",
        ),
        (lambda x: x.transpose(0, 1), "add .transpose(0, 1)"),
        (lambda x: x.transpose(1, 2), "add .transpose(1, 2)"),
        (lambda x: x.flatten(0, 1), "add .unflatten(0, ids.shape)"),
        (lambda x: x[:, -1:], "only the last position is there"),
        (lambda x: x[:, -1], "one row for a whole text"),
        (lambda x: x[:, 1:], "another length"),
        (lambda x: x.mean(), "one number is a loss"),
        (lambda x: x.argmax(-1)[..., None], "is there an argmax in it?"),
        (lambda x: x if x else x, "write `if mask is not None:`"),
        (lambda x: x.masked_fill(len, 0), "call it, with brackets"),
        (lambda x: x + x[..., :4], "two sizes don't fit"),
        (lambda x: nn.Embedding(2, 2)(torch.tensor(2)), "beyond the end of its table"),
        (lambda x, mask: x, "say how to call the model"),
        (lambda x: None, "returns NoneType, no tensor"),
    ],
)
def test_what_a_wrong_answer_needs(answer, words):
    found = probe_call(prepare(LanguageModel(), lambda model, ids: answer(model(ids))))
    assert found.passed is False and words in found.message, found.message
    assert ("with brackets" in found.message) == ("with brackets" in words)


def test_logits_may_be_in_a_dict():
    subject = prepare(LanguageModel(), lambda model, ids: {"logits": model(ids)})
    assert probe_call(subject).passed


# ---- Rounding ----


def test_rounding_is_told_from_faults():
    def unmasked(model, src, tgt):  # the source's padding is not hidden
        return model.output.logits(model.decode(tgt, model.encoder(model.src_embed(src))))

    for dtype in (torch.float32, torch.bfloat16):
        for n_layers in (1, 8):
            apart = []
            for forward in (None, unmasked):
                subject = prepare(sound(n_layers=n_layers).to(dtype), forward)
                padded = F.pad(subject.inputs[0], (0, 2)), subject.inputs[1]
                moved = subject.logits(*padded) - subject.logits(*subject.inputs)
                apart.append(moved.abs().max().item() / tolerance(subject))
            assert apart[0] < 1 < apart[1]
        assert is_coarse(subject) == (dtype == torch.bfloat16)


def test_influence_of_a_causal_model_is_a_triangle():
    for training in (False, True):
        moved = influence(prepare(LanguageModel()), training=training)
        assert torch.equal(moved > 0, torch.ones(6, 6).tril().bool())


# ---- Masks ----


def test_leaks_are_found_in_the_second_layer():
    def leak_of(change):
        model = LanguageModel()
        change(model.decoder.layers[1])
        return probe_leak(prepare(model)).message

    def shift_mask(layer):
        def see_ahead(module, args, kwargs):
            return args, {**kwargs, "mask": torch.ones(6, 6).tril(1).bool()}

        layer.register_forward_pre_hook(see_ahead, with_kwargs=True)

    def softmax_twice(layer):
        def attend(query, key, value, mask=None, is_causal=False):
            scores = (query @ key.mT / 4).masked_fill(~mask, -torch.inf)
            return scores.softmax(-1).softmax(-1) @ value

        layer.self_attention.attend = attend

    def mix_after(layer):
        layer.register_forward_hook(lambda _, args, out: out + out.mean(1, keepdim=True))

    assert "a token sees 1 ahead, in layer 1" in leak_of(shift_mask)
    assert "softmax, in layer 1: is it taken twice?" in leak_of(softmax_twice)
    assert "in order in all layers; something later" in leak_of(mix_after)


def test_reach_counts_what_is_cut():
    def blind(model, src, tgt):
        return model(torch.full_like(src, 5), tgt)

    assert probe_leak(prepare(sound(), blind)).passed
    found = probe_reach(prepare(sound(), blind))
    assert (found.passed, found.measured) == (False, 6 * 7)


def test_influences_below_the_rounding_of_bfloat16_are_not_judged():
    faint = sound()
    for layer in faint.decoder.layers:
        layer.cross_attention.out_proj.weight.data *= 1e-5
    assert probe_reach(prepare(faint)).passed
    assert probe_reach(prepare(faint.bfloat16())).passed is None

    faint = sound()
    for layer in faint.decoder.layers:
        layer.cross_attention.out_proj.weight.data *= 1e-3
    assert probe_memory(prepare(faint)).passed
    assert probe_memory(prepare(faint.bfloat16())).passed is None
    assert probe_order(prepare(sound().bfloat16())).passed is None


def test_padding_needs_room():
    found = probe_padding(prepare(sound(positions="learned", max_len=7)))
    assert found.passed is None and "takes no source of 9 tokens" in found.message


@pytest.mark.parametrize("seed", range(4))
def test_a_mixture_of_experts_is_sound(seed):
    "Its products have other sizes with other tokens, and some experts are never chosen."
    subject = prepare(experts(seed))
    for probe in (probe_leak, probe_batch, probe_gradient):
        assert probe(subject).passed, probe(subject)


# ---- Attention ----


def test_records_are_those_of_the_softmaxes():
    subject = prepare(sound())
    records = record_attention(subject, *subject.inputs)
    # per layer, the encoder has one attention and the decoder two
    shapes = [(7, 7)] * 2 + [(6, 6), (6, 7)] * 2
    assert [tuple(record.scores.shape[-2:]) for record in records] == shapes
    for record in records:
        assert record.scale == pytest.approx(record.queries.shape[-1] ** -0.5)
        assert torch.allclose(record.weights, record.scores.softmax(-1), atol=1e-6)
        assert torch.allclose(record.row_sums, torch.ones(()), atol=1e-5)
    assert [tuple(table.shape) for table in token_tables(subject, 0)] == [(30, 64)]


@pytest.mark.parametrize("positions", POSITIONS)
def test_each_kind_of_positions(positions):
    subject = prepare(sound(positions=positions))
    assert probe_scale(subject).passed and probe_attention(subject).passed
    assert probe_order(subject).passed == (positions != "none")
    assert probe_rotary(subject).passed == (True if positions == "rotary" else None)
    effects = [position_probes.swap_effect(subject, 0, j).max().item() for j in range(6)]
    limit = tolerance(subject, steps=128)
    assert max(effects) < limit if positions == "none" else min(effects) > 100 * limit


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda q, k, v: (q / 4, k, v), "divided twice"),
        (lambda q, k, v: (4 * q, k, v), "no scale"),
        (
            lambda q, k, v: (
                4 * F.rms_norm(q, q.shape[-1:]),
                F.rms_norm(k, k.shape[-1:]),
                v,
            ),
            "norms its queries and keys",
        ),
    ],
)
def test_scales(change, words):
    def attend(query, key, value, mask=None, is_causal=False):
        query, key, value = change(query, key, value)
        return F.scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal)

    found = probe_scale(prepare(with_attend(attend)))
    assert words in found.message and not found.passed


def test_the_scale_of_deberta_is_expected():
    config = SimpleNamespace(model_type="deberta-v2", pos_att_type=["c2p", "p2c"])
    scale = expected_scale(SimpleNamespace(config=config), 8)
    assert scale == pytest.approx(24**-0.5)


@pytest.mark.parametrize("factor, sink", [(1.0, False), (1.0, True), (0.5, False)])
def test_weights_that_sum_to_less_than_one(factor, sink):
    def attend(query, key, value, mask=None, is_causal=False):
        scores = (query @ key.mT / 4).masked_fill(~mask, -torch.inf)
        if sink:
            scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1)
        return scores.softmax(-1)[..., : key.shape[-2]] * factor @ value

    found = probe_attention(prepare(with_attend(attend)))
    if factor == 1:
        assert found.passed
    else:
        assert found.note and "sum to 0.5" in found.message


# ---- Positions ----


def test_a_causal_mask_alone_tells_of_the_order():
    for n_layers in (1, 2):
        model = LanguageModel(CONFIG.replace(positions="none", n_layers=n_layers))
        assert probe_order(prepare(model)).passed is False
        assert position_probes.ignores_positions(prepare(model)) is True
    assert position_probes.ignores_positions(prepare(LanguageModel())) is False


def test_positions_that_matter_less_than_rounding_are_not_judged():
    faint = sound(positions="rotary")
    for layer in faint.encoder.layers:
        layer.self_attention.q_proj.weight.data *= 1e-6
    assert probe_order(prepare(faint)).passed is None


@pytest.mark.parametrize("layout", ["halves", "neighbours"])
@pytest.mark.parametrize("base", [10_000, 500_000])
def test_angles_tell_layout_and_base(base, layout):
    angles = torch.tensor([base ** (-k / 4) for k in range(4)])
    turned = torch.polar(torch.ones(5, 4), torch.arange(5)[:, None] * angles)
    turned = turned * torch.polar(torch.ones(4), torch.rand(4))
    parts = [turned.real, turned.imag]
    rows = torch.cat(parts, -1)
    if layout == "neighbours":
        rows = torch.stack(parts, -1).flatten(1)
    found = position_probes.rotary_angles(rows[None])
    assert list(found) == [layout]
    bases = position_probes.rotary_bases(found[layout], 8)
    assert any(abs(b / base - 1) < 0.05 for b in bases)


class PairedInTwoWays(RotaryAttention):  # queries as neighbours, keys as halves
    def key_value(self, memory, start=0):
        key, value = MultiHeadAttention.key_value(self, memory)
        order = torch.arange(key.shape[-1]).unflatten(0, (2, -1)).T.flatten()
        return self.rotate(key[..., order], start)[..., order.argsort()], value


class InTwoWays(TransformerConfig):
    def attention(self, i):
        return self.attention_of_kind(PairedInTwoWays)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rotary_pairs_in_lower_precision(dtype):
    rotary = CONFIG.replace(positions="rotary")
    assert probe_rotary(prepare(LanguageModel(rotary).to(dtype))).passed
    mixed = LanguageModel(InTwoWays(**vars(rotary))).to(dtype)
    found = probe_rotary(prepare(mixed))
    assert found.passed is False and "paired" in found.message
    if dtype == torch.float32:
        assert "as neighbours, and keys as halves" in found.message


def test_each_kind_of_layer_may_have_a_base():
    by_layer = {
        "full_attention": {"rope_theta": 160_000},
        "sliding_attention": {"rope_theta": 10_000},
    }
    modern_bert = SimpleNamespace(config=SimpleNamespace(rope_parameters=by_layer))
    assert position_probes.configured_bases(modern_bert) == [160_000, 10_000]
    assert not position_probes.has_stretched_angles(modern_bert)


# ---- Outputs and weights ----


def test_log_probabilities_do_no_harm():
    subject = prepare(LanguageModel(), lambda model, ids: model(ids).log_softmax(-1))
    found = probe_logits(subject)
    assert found.passed and "log-probabilities" in found.message


def test_dropout_is_no_activation():
    class Wide(LanguageModel):
        def __init__(self, between):
            super().__init__()
            self.wide, self.narrow = nn.Linear(64, 96), nn.Linear(96, 64)
            self.between, self.norm = between, nn.LayerNorm(64)

        def forward(self, ids):
            hidden = self.decoder(self.tgt_embed(ids), mask=self.mask(ids))
            hidden = self.narrow(self.between(self.wide(hidden)))
            return self.embedding.logits(self.norm(hidden))

    assert probe_parts(prepare(Wide(nn.ReLU()))).passed
    found = probe_parts(prepare(Wide(nn.Dropout())))
    assert found.passed is False and "64 to 96 to 64" in found.message


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_sound_weights(norm):
    subject = prepare(sound(norm=norm))
    before = [p.clone() for p in subject.module.parameters()]
    for probe in (probe_gradient, probe_residual, probe_memory, probe_sharing):
        assert probe(subject).passed, probe(subject)
    for p, kept in zip(subject.module.parameters(), before):
        assert torch.equal(p, kept)


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_roles_are_told_by_lengths(length):
    "One linear layer for source and target is no attention in two roles."

    class SharedLinear(nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.shared = sound(), nn.Linear(64, 64)
            self.config = self.model.config
            for side in (self.model.src_embed, self.model.tgt_embed):
                side.register_forward_hook(lambda module, ids, out: self.shared(out))

        def forward(self, src, tgt):
            return self.model(src, tgt)

    asked = dict(architecture="encoder-decoder", length=length)
    assert two_roles(prepare(SharedLinear(), **asked)) == []
    assert probe_residual(prepare(sound(), length=length)).passed

    broken = sound()
    broken.decoder.layers[0].cross_attention = broken.decoder.layers[0].self_attention
    assert any("self_attention" in x for x in two_roles(prepare(broken, length=length)))


def test_parts_in_several_layers_are_named():
    broken = LanguageModel()
    broken.decoder.layers[1].norm1 = broken.decoder.layers[0].norm1
    found = probe_sharing(prepare(broken))
    assert found.note and "layers.1.norm1" in found.message


def test_a_start_by_a_rule_is_no_copy():
    alike = nn.ModuleList(nn.Linear(4, 3) for _ in range(2))
    for layer in alike:
        layer.weight.data = torch.arange(4.0).expand(3, 4).contiguous()
    assert equal_matrices(alike) == []


def test_steps_with_a_cache_give_the_same_logits():
    model, ids = sound().eval(), torch.tensor([[3, 4, 5], [6, 7, 8]])
    with torch.no_grad():
        assert torch.allclose(stepwise_logits(model, ids, ids), model(ids, ids), atol=1e-4)
    assert calling.cached_steps_of(model) is stepwise_logits
    assert calling.cached_steps_of(LanguageModel()) is None
