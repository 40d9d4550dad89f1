"""Models under PyTorch's own tools: built without memory, differentiated for each example, traced, and adapted by a
few weights."""

import copy

import pytest
import torch
from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.decoding.greedy import UncachedDecoder, greedy_decode
from annotated_transformer.models.bert import BERTConfig, MaskedLanguageModel
from annotated_transformer.models.captioner import Captioner, CaptionerConfig
from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.models.llama import Llama, LlamaConfig
from annotated_transformer.models.vit import ImageClassifier, ViTConfig
from annotated_transformer.core.static_cache import StaticStep, make_room
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig
from torch import nn
from torch.func import functional_call, grad, vmap

SIZES = dict(d_model=16, d_ff=32, n_heads=2, n_layers=2)
IDS = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 10], [11, 12, 3, 5]])
PICTURES = torch.linspace(0, 1, 3 * 64).view(3, 1, 8, 8)
STRIPS = PICTURES.tile(1, 1, 1, 5)

MODELS = {
    "transformer": (Transformer, TransformerConfig, dict(vocab_size=13), (IDS, IDS)),
    "learned": (
        Transformer,
        TransformerConfig,
        dict(vocab_size=13, positions="learned", norm="pre"),
        (IDS, IDS),
    ),
    "rotary": (
        Transformer,
        TransformerConfig,
        dict(vocab_size=13, positions="rotary"),
        (IDS, IDS),
    ),
    "gpt": (GPT, GPTConfig, dict(vocab_size=13), (IDS,)),
    "llama": (Llama, LlamaConfig, dict(vocab_size=13, n_kv_heads=1), (IDS,)),
    "stretched": (
        Llama,
        LlamaConfig,
        dict(vocab_size=13, n_kv_heads=1, rope_factor=8.0, tie_weights=False),
        (IDS,),
    ),
    "window": (Llama, LlamaConfig, dict(vocab_size=13, n_kv_heads=1, window=2), (IDS,)),
    "experts": (Llama, LlamaConfig, dict(vocab_size=13, n_kv_heads=1, n_experts=3), (IDS,)),
    "bert": (MaskedLanguageModel, BERTConfig, dict(vocab_size=13), (IDS,)),
    "vit": (ImageClassifier, ViTConfig, {}, (PICTURES,)),
    "captioner": (Captioner, CaptionerConfig, dict(vocab_size=13), (STRIPS, IDS)),
}
each_model = pytest.mark.parametrize("name", MODELS)


def built(name):
    "A model, and a batch of three for it."
    model_class, config_class, options, inputs = MODELS[name]
    torch.manual_seed(0)
    model = model_class(config_class.preset("tiny", **SIZES, **options)).eval()
    return model, inputs


# ---- Without memory, then filled ----


@each_model
@pytest.mark.parametrize("way", ["assign", "to_empty"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_built_on_meta_gives_the_same_when_it_is_filled(name, way, dtype):
    model, inputs = built(name)
    model.to(dtype)
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    with torch.device("meta"):
        empty = type(model)(model.config).eval()
    if way == "to_empty":
        empty = empty.to(dtype).to_empty(device="cpu")
    empty.load_state_dict(model.state_dict(), assign=way == "assign")
    assert torch.equal(empty(*inputs), model(*inputs))


def test_a_model_that_was_filled_decodes_and_converts():
    model, _ = built("stretched")
    with torch.device("meta"):
        empty = Llama(model.config).eval()
    empty.load_state_dict(model.state_dict(), assign=True)
    special = SpecialTokens(None, None, None)
    expected = greedy_decode(model, IDS, 9, special=special).ids
    assert torch.equal(greedy_decode(empty, IDS, 9, special=special).ids, expected)
    both = (copy.deepcopy(m).double()(IDS) for m in (model, empty))
    assert torch.equal(*both)


# ---- Gradients of each example ----


# which expert gets which token can't be asked under vmap
@pytest.mark.parametrize("name", [name for name in MODELS if name != "experts"])
def test_gradients_of_each_example(name):
    model, inputs = built(name)
    weights = {name: weight.detach() for name, weight in model.named_parameters()}

    def loss(weights, *example):
        batch = tuple(x[None] for x in example)
        # a tied embedding is one module with several names: PyTorch need not tie it
        out = functional_call(model, weights, batch, tie_weights=False)
        return out.square().mean()

    axes = (None, *[0] * len(inputs))
    found = vmap(grad(loss), in_dims=axes)(weights, *inputs)
    for i in range(3):
        model.zero_grad()
        model(*(x[i : i + 1] for x in inputs)).square().mean().backward()
        for name, weight in model.named_parameters():
            expected = torch.zeros_like(weight) if weight.grad is None else weight.grad
            torch.testing.assert_close(found[name][i], expected, rtol=1e-4, atol=1e-5)


# ---- Traced ----


@each_model
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_traced_model_gives_the_same_for_other_inputs(name):
    model, inputs = built(name)
    with torch.no_grad():
        traced = torch.jit.trace(model, inputs, check_trace=False)
        for others in (
            [x.flip(0)[:2] for x in inputs],
            [x if x.ndim > 2 else torch.cat([x, x], 1) for x in inputs],
        ):
            torch.testing.assert_close(traced(*others), model(*others))


# ---- Adapted by a few weights (LoRA) ----


class LowRankLayer(nn.Module):
    "A wrapper around a linear layer, without its attributes."

    def __init__(self, inside):
        super().__init__()
        self.inside = inside
        self.down = nn.Linear(inside.in_features, 2, bias=False)
        self.up = nn.Linear(2, inside.out_features, bias=False)

    def forward(self, x):
        return self.inside(x) + self.up(self.down(x))


class LowRankWeight(nn.Module):
    "The same as a parametrization of the weight."

    def __init__(self, rows, columns):
        super().__init__()
        self.up = nn.Parameter(torch.randn(rows, 2) * 0.1)
        self.down = nn.Parameter(torch.randn(2, columns) * 0.1)

    def forward(self, weight):
        return weight + self.up @ self.down


@each_model
def test_linear_layers_may_be_wrapped(name):
    model, inputs = built(name)
    layers = {
        layer_name: layer
        for layer_name, layer in model.named_modules()
        if isinstance(layer, nn.Linear)
    }
    for layer_name, layer in layers.items():
        model.set_submodule(layer_name, LowRankLayer(layer))
    model(*inputs).square().mean().backward()
    for layer_name, layer in layers.items():
        if layer.weight.grad is None:
            continue  # BERT's pooler, which this loss does not use
        assert model.get_submodule(layer_name).up.weight.grad.any(), layer_name


@pytest.mark.parametrize("name", ["transformer", "rotary", "gpt", "llama"])
def test_the_cache_uses_wrapped_layers(name):
    model, _ = built(name)
    for layer_name, layer in list(model.named_modules()):
        if isinstance(layer, nn.Linear):
            model.set_submodule(layer_name, LowRankLayer(layer))
    cached, uncached = (
        greedy_decode(way, IDS, 5, special=SpecialTokens(0, 1, None))
        for way in (model, UncachedDecoder(model))
    )
    assert torch.equal(cached.ids, uncached.ids)
    torch.testing.assert_close(cached.log_probs, uncached.log_probs)


@pytest.mark.parametrize("name", ["transformer", "rotary", "gpt", "llama"])
def test_projections_may_be_adapted_by_their_weight(name):
    model, inputs = built(name)
    before = model(*inputs)
    for part_name, part in list(model.named_modules()):
        if part_name.endswith(("q_proj", "k_proj", "v_proj")):
            low_rank = LowRankWeight(*part.weight.shape)
            nn.utils.parametrize.register_parametrization(part, "weight", low_rank)
    after = model(*inputs)
    assert not torch.allclose(before, after)
    after.square().mean().backward()
    for part_name, part in model.named_modules():
        if isinstance(part, LowRankWeight):
            assert part.up.grad.any(), part_name

    # the cache reads the adapted weights, too
    cached, uncached = (
        greedy_decode(way, IDS, 5, special=SpecialTokens(0, 1, None))
        for way in (model, UncachedDecoder(model))
    )
    assert torch.equal(cached.ids, uncached.ids)
    torch.testing.assert_close(cached.log_probs, uncached.log_probs)


# ---- Exported and quantized ----


@pytest.mark.parametrize(
    "name", ["transformer", "rotary", "gpt", "llama", "window", "bert"]
)
def test_an_exported_model_reads_texts_of_any_length(name):
    model, inputs = built(name)
    length = torch.export.Dim("length", min=2, max=32)
    axes = tuple({1: length} for _ in inputs)
    exported = torch.export.export(model, inputs, dynamic_shapes=axes).module()
    others = [torch.cat([x, x], 1)[:, :7] for x in inputs]
    torch.testing.assert_close(exported(*others), model(*others))


@pytest.mark.parametrize(
    "name", ["transformer", "learned", "rotary", "gpt", "llama", "captioner"]
)
@torch.no_grad()
def test_an_exported_step_goes_on_where_the_model_would(name):
    model, inputs = built(name)
    more = torch.randint(3, 13, (3, 4))

    (first, cache), (_, static) = model.start(inputs[0]), model.start(inputs[0])
    model.step(first, cache)
    model.step(first, static)
    length = static.length
    keys, values = make_room(static, length + 4)
    source = [(m.key, m.value) for m in static.memory], static.memory_mask

    example = more[:, :1], torch.tensor(length), keys, values, *source
    exported = torch.export.export(StaticStep(model), example).module()
    for t in range(4):
        ids = more[:, t : t + 1]
        found = exported(ids, torch.tensor(length + t), keys, values, *source)
        torch.testing.assert_close(found, model.step(ids, cache))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@each_model
def test_a_quantized_model_gives_nearly_the_same(name):
    model, inputs = built(name)
    if not {"onednn", "fbgemm", "x86"} & {*torch.backends.quantized.supported_engines}:
        pytest.skip("no quantized kernels here")
    quantized = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    with torch.no_grad():
        both = quantized(*inputs).flatten(), model(*inputs).flatten()
    assert torch.cosine_similarity(*both, dim=0) > 0.99
