"""Models of Hugging Face and stacks of PyTorch: equal outputs there and back, every weight accounted for, and what would compute something else is refused by name."""

import json
import os
import pickle
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from annotated_transformer.base.atomic_folders import write_folder
from annotated_transformer.base.model_files import (
    CONVERTED,
    build_empty,
    distinct_weights,
    load_model,
    save_model,
)
from annotated_transformer.core.positions import SinusoidalPositions, sinusoids
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.decoding.greedy import UncachedDecoder, greedy_decode
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.interop.torch_weights import from_torch, to_torch
from annotated_transformer.models.bert import (
    BERT,
    BERTConfig,
    MaskedLanguageModel,
    SentenceClassifier,
)
from annotated_transformer.models.captioner import Captioner, CaptionerConfig
from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.models.llama import Llama, LlamaConfig
from annotated_transformer.models.vit import ImageClassifier, ViT, ViTConfig
from project import PACKAGE, modules
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

transformers = pytest.importorskip(
    "transformers", reason="the models are Hugging Face's: pip install -e '.[dev]'"
)
from annotated_transformer.interop.families import CONVERSIONS
from annotated_transformer.interop.huggingface import (
    from_huggingface,
    from_pretrained,
    to_huggingface,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:their model has no pooler"),
    pytest.mark.filterwarnings("ignore:left out. the head that judges the next"),
]
LONG = "slow" in os.environ.get("NBFLAGS", "")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()


# ---- Small models of theirs ----

NARROW = dict(
    vocab_size=50,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
)
BERTS = NARROW | dict(max_position_embeddings=32, num_labels=3)
ROBERTAS = BERTS | dict(max_position_embeddings=34, type_vocab_size=1, pad_token_id=1)
DISTILBERTS = dict(vocab_size=50, dim=24, hidden_dim=40, n_layers=2, n_heads=4)
VITS = NARROW | dict(image_size=(8, 12), patch_size=4, num_labels=3)
LLAMAS = NARROW | dict(
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=None,
    bos_token_id=1,
    eos_token_id=2,
)
MARIANS = dict(
    vocab_size=50,
    d_model=24,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=40,
    decoder_ffn_dim=40,
    max_position_embeddings=32,
    scale_embedding=True,
    pad_token_id=49,
    eos_token_id=0,
    decoder_start_token_id=49,
    forced_eos_token_id=None,
)
SIZES = {
    "GPT2": dict(
        n_embd=24,
        n_head=4,
        n_inner=40,
        n_layer=2,
        vocab_size=50,
        n_positions=64,
        bos_token_id=49,
        eos_token_id=49,
    ),
    "Bert": BERTS,
    "Roberta": ROBERTAS,
    "XLMRoberta": ROBERTAS,
    "DistilBert": DISTILBERTS,
    "ViT": VITS,
    "Marian": MARIANS,
    "Pegasus": MARIANS,
    "Llama": LLAMAS,
    "Mistral": LLAMAS | dict(sliding_window=None),
    "Mixtral": LLAMAS | dict(num_local_experts=4, num_experts_per_tok=2),
    "Phi3": LLAMAS | dict(sliding_window=4),
    "Qwen2": LLAMAS | dict(tie_word_embeddings=True),
    "Qwen3": LLAMAS | dict(tie_word_embeddings=True),
    "Qwen3Moe": LLAMAS
    | dict(
        num_experts=5,
        num_experts_per_tok=2,
        moe_intermediate_size=12,
        head_dim=8,
        norm_topk_prob=True,
    ),
}
KINDS = list(CONVERSIONS)
WRITERS = [
    name for name in KINDS if name.endswith(("LM", "LMHeadModel")) and "Masked" not in name
]
TRANSLATORS = ["MarianMTModel", "PegasusForConditionalGeneration"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def family(kind):
    return max((name for name in SIZES if kind.startswith(name)), key=len)


def more(kind):
    return dict(add_pooling_layer=False) if kind == "ViTModel" else {}


def randomised(model, std=0.2):
    for name, weight in model.named_parameters():
        if not name.endswith("embed_positions.weight"):  # Marian's sinusoids
            nn.init.normal_(weight, mean=weight.mean().item(), std=std)
    return model.eval()


def theirs_of(kind, **options):
    "A small model of theirs, every weight random."
    found = getattr(transformers, kind)
    sizes = SIZES[family(kind)] | options
    model = found(found.config_class(**sizes), **more(kind))
    if hasattr(model, "final_logits_bias"):
        nn.init.normal_(model.final_logits_bias)
    return randomised(model)


@torch.no_grad()
def outputs(ours, theirs, length=12):
    "What both say about the same inputs, at the places that are not padding."
    kind = type(theirs).__name__
    if kind.startswith("ViT"):
        images = torch.linspace(0, 1, 2 * 3 * 8 * 12).view(2, 3, 8, 12)
        return ours(images), theirs(images)[0]

    pad = theirs.config.pad_token_id
    ids = torch.randint(3, 48, (2, length))
    if kind in TRANSLATORS:
        ids[1, 4:] = pad
        begun = torch.tensor([[49, 5, 6, 7], [49, 8, 9, 4]])
        begun[:, 0] = theirs.config.decoder_start_token_id
        expected = theirs(ids, attention_mask=ids != pad, decoder_input_ids=begun).logits
        begun[:, 0] = ours.config.bos_id
        found = ours(ids, begun)
        return found[..., : expected.shape[-1]], expected

    if kind in WRITERS:
        return ours(ids), theirs(ids).logits

    ids[1, 4:] = pad
    real = ids != pad
    if not kind.startswith("Bert") or theirs.config.type_vocab_size == 1:
        found, expected = ours(ids), theirs(ids, attention_mask=real.long())[0]
    else:
        segments = (torch.arange(length) % 5 > 2).long().expand_as(ids)
        found = ours(ids, segments)
        expected = theirs(ids, attention_mask=real, token_type_ids=segments)[0]
    return (found[real], expected[real]) if found.ndim == 3 else (found, expected)


def gap(ours, theirs, **options):
    "The largest difference of what comes out, over the largest number."
    found, expected = outputs(ours, theirs, **options)
    if not expected.isfinite().all():  # numbers of 1e30 are weights, too
        return 0.0 if not found.isfinite().all() else float("inf")
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-6)).item()


# ---- Equal outputs, there and back ----

LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=5e5,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=8192,
)
WINDOW = dict(use_sliding_window=True, sliding_window=5)
VARIANTS = [
    *((kind, {}) for kind in KINDS),
    ("GPT2LMHeadModel", dict(tie_word_embeddings=False)),
    ("MarianMTModel", dict(decoder_start_token_id=4)),
    ("ViTModel", dict(patch_size=(4, 4))),
    ("LlamaForCausalLM", dict(tie_word_embeddings=True)),
    ("LlamaForCausalLM", dict(head_dim=8)),
    ("LlamaForCausalLM", dict(rope_parameters=LLAMA3, max_position_embeddings=4096)),
    ("LlamaForCausalLM", dict(eos_token_id=[7, 8])),
    ("MistralForCausalLM", dict(sliding_window=5)),
    ("Phi3ForCausalLM", dict(sliding_window=None)),
    ("MixtralForCausalLM", dict(sliding_window=5, num_experts_per_tok=3)),
    ("MixtralForCausalLM", dict(num_experts_per_tok=1, num_local_experts=1)),
    ("Qwen3MoeForCausalLM", dict(num_experts_per_tok=5)),
    ("Qwen3MoeForCausalLM", dict(num_experts_per_tok=1, norm_topk_prob=False)),
    *(
        (kind, WINDOW | dict(max_window_layers=n_full))
        for kind in ("Qwen2ForCausalLM", "Qwen3ForCausalLM")
        for n_full in (0, 1, 2)
    ),
]
BACK = {  # theirs -> what computes the same, and has a class here of its own
    "BertForPreTraining": "BertForMaskedLM",
    "Phi3ForCausalLM": "MistralForCausalLM",
}


def goes_back_as(kind, options):
    if kind == "Phi3ForCausalLM" and not options.get("sliding_window", True):
        return "LlamaForCausalLM"
    if kind == "MistralForCausalLM" and not options:
        return "LlamaForCausalLM"
    for other in ("XLMRoberta", "Roberta", "DistilBert"):
        kind = kind.replace(other, "Bert")
    return BACK.get(kind, kind)


@pytest.mark.parametrize(
    "kind, options",
    VARIANTS,
    ids=lambda given: given if isinstance(given, str) else "-".join(given),
)
def test_a_model_computes_the_same_here_and_when_it_goes_back(kind, options, tmp_path):
    theirs = theirs_of(kind, **options)
    theirs.save_pretrained(tmp_path)
    length = 3000 if "rope_parameters" in options else 12
    for given in (theirs, tmp_path):
        ours = from_huggingface(given)
        assert not ours.training and gap(ours, theirs, length=length) < 1e-5

    back = to_huggingface(ours)
    assert type(back).__name__ == goes_back_as(kind, options)
    if kind in TRANSLATORS and not options:
        return  # its BOS is an id more now
    if type(back) is type(theirs):
        weights = theirs.state_dict()
        assert back.state_dict().keys() == weights.keys()
        for name, weight in back.state_dict().items():
            assert torch.equal(weight, weights[name]), name
    assert gap(ours, back, length=length) < 1e-5


@pytest.mark.parametrize("kind", WRITERS + TRANSLATORS)
def test_both_write_the_same(kind):
    if kind in WRITERS:
        theirs = theirs_of(kind, eos_token_id=None, bos_token_id=None)
        given, options = torch.randint(3, 48, (2, 5)), dict(pad_token_id=0)
    else:
        theirs = theirs_of(kind)
        given = torch.tensor([[7, 8, 9, 10, 0], [9, 8, 0, 49, 49]])
        options = dict(attention_mask=given != 49, num_beams=1, bad_words_ids=[[49]])
    written = theirs.generate(given, max_new_tokens=8, do_sample=False, **options)
    written = written[:, 5:] if kind in WRITERS else written[:, 1:]
    found = greedy_decode(from_huggingface(theirs), given, 8).ids
    for row, wanted in zip(found.tolist(), written.tolist()):
        assert row == (wanted + [49] * 8)[: len(row)]


@torch.no_grad()
def test_poolers_are_read_where_there_is_one():
    ids = torch.randint(5, 48, (2, 7))
    theirs = theirs_of("BertModel")
    ours = from_huggingface(theirs)
    torch.testing.assert_close(ours.pool(ours(ids)), theirs(ids).pooler_output)

    config = transformers.BertConfig(**BERTS)
    without = transformers.BertModel(config, add_pooling_layer=False).eval()
    with pytest.warns(match="their model has no pooler: this one is new"):
        ours = from_huggingface(without)
    assert ours.pool(ours(ids)).isfinite().all()


@torch.no_grad()
def test_an_extra_bos_is_read_as_pad_and_never_written():
    ours = from_huggingface(theirs_of("MarianMTModel"))
    assert (ours.config.bos_id, ours.config.vocab_size) == (50, 51)
    assert torch.equal(ours.output.weight[50], ours.output.weight[49])
    assert ours(torch.tensor([[7, 0]]), torch.tensor([[50]])).softmax(-1)[..., 50] == 0


def test_stretched_positions_matter():
    theirs = theirs_of("LlamaForCausalLM", rope_parameters=LLAMA3)
    ours = from_huggingface(theirs)
    plain = Llama(ours.config.replace(rope_factor=1.0)).eval()
    plain.load_state_dict(ours.state_dict())
    assert gap(plain, theirs, length=3000) > 0.01


# ---- What a folder may lack or hold ----


class Folder:
    "A saved model of theirs whose tensors and configuration can be spoilt."

    def __init__(self, path, theirs):
        self.path, self.theirs = Path(path), theirs
        theirs.save_pretrained(path)
        self.file = self.path / "model.safetensors"
        self.config_file = self.path / "config.json"
        self.tensors = load_file(self.file)

    def write(self, tensors):
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(tensors, self.file, metadata={"format": "pt"})
        return self

    def change(self, drop=(), **more):
        tensors = {**self.tensors, **more}
        return self.write({n: tensor for n, tensor in tensors.items() if n not in drop})

    def configure(self, **options):
        options = {**json.loads(self.config_file.read_text()), **options}
        self.config_file.write_text(json.dumps(options))
        return self

    def read(self):
        return from_huggingface(self.path)

    def refused(self, *words):
        with pytest.raises(ValueError) as error:
            self.read()
        assert type(error.value) is ValueError
        for word in words:
            assert word in str(error.value), str(error.value)


@pytest.fixture
def folder(tmp_path, kind):
    return Folder(tmp_path / "model", theirs_of(kind))


@each_kind
def test_each_tensor_is_needed_and_none_may_be_left_over(folder, kind):
    unused = "seq_relationship", "embed_positions"  # a head, and tables that are computed
    needed = [name for name in folder.tensors if not any(part in name for part in unused)]
    for name in needed:
        folder.change(drop=[name]).refused("missing: ")

    gone, renamed, cut = needed[len(needed) // 2 :][:3]
    more = {f"{renamed}x": folder.tensors[renamed], cut: torch.ones(5, 5, 5, 5)}
    folder.change(drop=[gone, renamed], **more).refused(
        "missing: ",
        "left over: ",
        f"{renamed.split('.')[-1]}x",
        "of another shape: ",
        "got (5, 5, 5, 5), expected (",
    )
    folder.change(drop=[n for n in needed if ".1." in n]).refused("missing: ")


@each_kind
def test_weights_of_another_type_keep_their_meaning(folder, kind):
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        tensors = {
            name: tensor if "embed_positions" in name else tensor.to(dtype)
            for name, tensor in folder.tensors.items()
        }
        folder.write(tensors)  # but for tables, which ours computes
        theirs = getattr(transformers, kind).from_pretrained(
            folder.path, dtype=torch.float32, **more(kind)
        )
        assert gap(folder.read(), theirs.eval()) < 1e-5
    name = next(n for n in tensors if n.endswith("weight") and "positions" not in n)
    folder.change(**{name: folder.tensors[name] * float("nan")}).refused("not finite: ")
    folder.change(**{name: folder.tensors[name].to(torch.int8)}).refused(
        "not of floating-point numbers: ", "torch.int8"
    )


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "MixtralForCausalLM"])
def test_shards_are_read_and_none_may_be_missing(folder, kind):
    folder.file.unlink()
    folder.theirs.save_pretrained(folder.path, max_shard_size="10KB")
    shards = sorted(folder.path.glob("model-*.safetensors"))
    assert len(shards) > 2 and gap(folder.read(), folder.theirs) < 1e-5
    content = shards[1].read_bytes()
    shards[1].write_bytes(content[:100])
    folder.refused("holds no readable model")
    shards[1].unlink()
    folder.refused("holds no readable model", shards[1].name)
    shards[1].write_bytes(shards[0].read_bytes())
    folder.refused("tensors: got")


def replaced(old, new):
    return lambda tensors: {n.replace(old, new): tensor for n, tensor in tensors.items()}


def with_noise(**shapes):
    noise = {name.replace("__", "."): torch.randn(shape) for name, shape in shapes.items()}
    return lambda tensors: {**tensors, **noise}


def with_copy(name, of):
    return lambda tensors: {**tensors, name: tensors[of].clone()}


EMBEDDING = "bert.embeddings.word_embeddings.weight"
PER_EXPERT = ".block_sparse_moe.experts.3.w1.weight"


@pytest.mark.parametrize(
    "kind, change",
    [
        ("GPT2LMHeadModel", with_copy("lm_head.weight", "transformer.wte.weight")),
        ("GPT2LMHeadModel", replaced("transformer.wte.weight", "lm_head.weight")),
        ("GPT2LMHeadModel", replaced("transformer.", "")),
        ("GPT2LMHeadModel", with_noise(transformer__h__0__attn__bias=(1, 1, 64, 64))),
        ("GPT2LMHeadModel", with_noise(transformer__h__1__attn__masked_bias=())),
        ("BertForMaskedLM", with_noise(cls__seq_relationship__bias=(2,))),
        ("BertForMaskedLM", with_noise(bert__embeddings__position_ids=(1, 32))),
        ("BertForMaskedLM", replaced("LayerNorm.weight", "LayerNorm.gamma")),
        ("BertForMaskedLM", replaced("LayerNorm.bias", "LayerNorm.beta")),
        ("BertForMaskedLM", replaced("predictions.bias", "predictions.decoder.bias")),
        ("BertForMaskedLM", with_copy("cls.predictions.decoder.weight", EMBEDDING)),
        ("BertModel", replaced("enc", "bert.enc")),
        ("ViTForImageClassification", replaced("encoder.layer.", "layers.")),
        ("MarianMTModel", replaced("model.shared", "model.decoder.embed_tokens")),
        ("MarianMTModel", with_copy("lm_head.weight", "model.shared.weight")),
        ("LlamaForCausalLM", with_noise(model__rotary_emb__inv_freq=(3,))),
    ],
)
def test_what_may_be_absent_or_present_is_not_refused(folder, kind, change):
    "Either side of a tied pair, tables that only count, masks, the head of another task, names of older versions."
    tensors = change(folder.tensors)
    assert tensors.keys() != folder.tensors.keys()
    assert gap(folder.write(tensors).read(), folder.theirs) < 1e-5


@pytest.mark.parametrize("kind", ["MixtralForCausalLM", "Qwen3MoeForCausalLM"])
def test_experts_are_read_as_files_have_them_and_as_memory_has_them(folder, kind):
    in_files = [name for name in folder.tensors if ".experts.0." in name]
    in_memory = [name for name in folder.theirs.state_dict() if ".experts." in name]
    assert in_files and not any(".experts.0." in name for name in in_memory)
    assert gap(folder.write(folder.theirs.state_dict()).read(), folder.theirs) < 1e-5


PUBLISHED = {  # name on the Hub: class that its file was written by, and what its config.json has
    "openai-community/gpt2": (
        "GPT2LMHeadModel",
        dict(
            architectures=["GPT2LMHeadModel"],
            n_ctx=1024,
            summary_activation=None,
            summary_first_dropout=0.1,
            summary_proj_to_labels=True,
            summary_type="cls_index",
            summary_use_proj=True,
            task_specific_params={"text-generation": {"do_sample": True, "max_length": 50}},
        ),
    ),
    "google-bert/bert-base-uncased": (  # trained with both heads, and named after one
        "BertForPreTraining",
        dict(
            architectures=["BertForMaskedLM"],
            gradient_checkpointing=False,
            position_embedding_type="absolute",
            transformers_version="4.6.0.dev0",
            use_cache=True,
        ),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_files_written_by_old_versions_are_read_as_they_are_on_the_hub(name, tmp_path):
    kind, options = PUBLISHED[name]
    folder = Folder(tmp_path, theirs_of(kind))
    if kind == "GPT2LMHeadModel":
        tensors = replaced("transformer.", "")(folder.tensors)
        tensors |= {f"h.{i}.attn.bias": torch.ones(1, 1, 32, 32).tril() for i in range(2)}
    else:
        tensors = replaced("LayerNorm.weight", "LayerNorm.gamma")(folder.tensors)
        tensors = replaced("LayerNorm.bias", "LayerNorm.beta")(tensors)
    ours = folder.write(tensors).configure(**options).read()
    assert gap(ours, folder.theirs) < 1e-5
    if kind == "BertForPreTraining":  # the pooler is kept
        pooler = folder.theirs.bert.pooler.dense.weight
        assert torch.equal(ours.bert.pooler.weight, pooler)


@pytest.mark.parametrize(
    "kind, name, of",
    [
        ("GPT2LMHeadModel", "lm_head.weight", "transformer.wte.weight"),
        ("GPT2LMHeadModel", "ln_f.weight", "transformer.ln_f.weight"),
        ("BertForMaskedLM", "cls.predictions.decoder.weight", EMBEDDING),
        (
            "BertForMaskedLM",
            "cls.predictions.transform.LayerNorm.gamma",
            "cls.predictions.transform.LayerNorm.weight",
        ),
        (
            "ViTForImageClassification",
            "vit.layers.0.attention.q_proj.bias",
            "vit.encoder.layer.0.attention.attention.query.bias",
        ),
        ("ViTForImageClassification", "vit.pooler.dense.bias", "classifier.bias"),
        ("MarianMTModel", "model.encoder.embed_tokens.weight", "model.shared.weight"),
        ("MarianMTModel", "model.encoder.embed_positions.weight", "model.shared.weight"),
    ],
)
def test_two_tensors_for_one_place_are_refused(folder, kind, name, of):
    folder.change(**{name: torch.randn_like(folder.tensors[of])}).refused()


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel"])
def test_no_pickle_is_read(folder, kind, tmp_path):
    "Neither alone, nor under the name of a safetensors file, nor through the index, nor by the configuration."

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    pickled = folder.path / "pytorch_model.bin"
    index = folder.path / "model.safetensors.index.json"
    folder.file.unlink()
    torch.save(folder.tensors, pickled)
    folder.refused(
        "a folder with model.safetensors; pytorch_model.bin can hold code, and is never read"
    )
    pickled.write_bytes(pickle.dumps(Bomb()))
    for name in (pickled.name, f"../{folder.path.name}/{folder.file.name}", "/etc/passwd"):
        weight_map = {"transformer.wte.weight": name}
        index.write_text(json.dumps(dict(metadata={}, weight_map=weight_map)))
        folder.refused("weight_map: got")
    for content in ("", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {}}'):
        index.write_text(content)
        folder.refused()
    index.unlink()
    folder.file.write_bytes(pickle.dumps(Bomb()))
    folder.refused("holds no readable model")
    folder.change().configure(transformers_weights="pytorch_model.bin").refused(
        "transformers_weights: got"
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["BertModel"])
def test_configurations_that_cannot_be_read_or_say_another_model(folder, kind):
    good = folder.config_file.read_text()
    for content in (
        "",
        "[]",
        "null",
        '{"architectures": 3}',
        '{"architectures": []}',
        '{"architectures": [["x"]]}',
        good[:40],
        "\udcff",
    ):
        folder.config_file.write_bytes(content.encode(errors="surrogateescape"))
        folder.refused("holds no readable model")
    for options, why in [
        (dict(model_type="gpt2"), "model_type: got 'gpt2', expected 'bert'"),
        (dict(architectures=["BertForMaskedLn"]), "did you mean 'BertForMaskedLM'"),
        (dict(num_hidden_layers=10**9), "n_layers: got 1000000000, expected at most 39"),
        (dict(hidden_size=24 * 10**17), "a tensor can have"),
        (dict(vocab_size=10**9), "got (50, 24), expected (1000000000, 24)"),
        (dict(num_hidden_layers=3), "missing: encoder.layer.2."),
        (dict(num_hidden_layers=1), "left over: encoder.layer.1."),
        (dict(quantization_config={"bits": 4}), "quantization_config: got"),
        (dict(hidden_size="24"), "hidden_size"),
    ]:
        folder.config_file.write_text(good)
        folder.configure(**options).refused(why)
    folder.config_file.write_text(good)
    (folder.path / "adapter_config.json").write_text("{}")
    folder.refused("got 'an adapter', expected the whole model")


@pytest.mark.parametrize(
    "given",
    [5, None, b"gpt2", ["gpt2"], "", "no/such/folder", "./x", Path("nowhere"), "x\0y"],
)
def test_what_is_no_folder_is_refused_before_the_hub_is_asked(given, monkeypatch):
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download",
        lambda *_, **__: pytest.fail("the hub was asked"),
    )
    with pytest.raises(
        ValueError,
        match="model: got .*expected a model, its folder, or its name on the Hub",
    ):
        from_huggingface(given)


def test_a_name_is_looked_up_and_only_plain_files_are_fetched(tmp_path, monkeypatch):
    asked = []

    def download(name, revision, allow_patterns):
        asked.append((name, revision))
        assert not any(pattern.endswith(("bin", "py")) for pattern in allow_patterns)
        return tmp_path / ("ours" if name == "some-one/ours" else "theirs")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    folder = Folder(tmp_path / "theirs", theirs_of("GPT2LMHeadModel"))
    found = from_huggingface("some-one/gpt2.small", revision="abc")
    assert gap(found, folder.theirs) < 1e-5
    ours = Transformer(TransformerConfig.preset("tiny"))
    save_model(ours, tmp_path / "ours")
    same_in_all(from_pretrained("some-one/ours", revision="def"), ours)
    assert asked == [("some-one/gpt2.small", "abc"), ("some-one/ours", "def")]
    for no_name in (tmp_path, folder.theirs):  # which have no revisions
        with pytest.raises(ValueError, match="revision: got 'abc', expected None"):
            from_huggingface(no_name, revision="abc")

    def fail(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(ValueError, match="model: got 'gpt2', expected .*: no network"):
        from_huggingface("gpt2")


# ---- Options and ids ----

LINEAR = dict(rope_type="linear", factor=2.0, rope_theta=1e4)
PARTIAL = dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)
MIXED = ["sliding_attention", "full_attention"]


@pytest.mark.parametrize(
    "kind, options, words",
    [
        (
            "GPT2LMHeadModel",
            dict(scale_attn_weights=False),
            "scale_attn_weights: got False",
        ),
        (
            "GPT2LMHeadModel",
            dict(scale_attn_by_inverse_layer_idx=True),
            "scale_attn_by_inverse_layer_idx: got True",
        ),
        ("GPT2LMHeadModel", dict(activation_function="tanh"), "activation: got 'tanh'"),
        ("BertModel", dict(is_decoder=True), "is_decoder: got True"),
        ("BertForMaskedLM", dict(tie_word_embeddings=False), "tie_word_embeddings: got"),
        ("RobertaModel", dict(pad_token_id=0), "pad_token_id: got 0"),
        ("DistilBertForMaskedLM", dict(tie_word_embeddings=False), "tie_word_embeddings"),
        ("ViTModel", dict(qkv_bias=False), "qkv_bias: got False"),
        ("MarianMTModel", dict(scale_embedding=False), "scale_embedding: got False"),
        ("MarianMTModel", dict(decoder_layers=3), "decoder_layers: got 3"),
        (
            "MarianMTModel",
            dict(eos_token_id=[1, 2]),
            r"eos_token_id: got \[1, 2\], expected",
        ),
        ("LlamaForCausalLM", dict(hidden_act="gelu"), "hidden_act: got 'gelu'"),
        ("LlamaForCausalLM", dict(mlp_bias=True), "mlp_bias: got True"),
        ("LlamaForCausalLM", dict(attention_bias=True), "attention_bias: got True"),
        ("LlamaForCausalLM", dict(rope_parameters=LINEAR), "rope_type: got 'linear'"),
        (
            "LlamaForCausalLM",
            dict(rope_parameters=LLAMA3 | dict(low_freq_factor=2.0)),
            "low_freq_factor: got 2.0",
        ),
        (
            "Phi3ForCausalLM",
            dict(rope_parameters=PARTIAL, hidden_size=32),
            "partial_rotary_factor: got 0.5",
        ),
        (
            "Qwen2ForCausalLM",
            WINDOW | dict(layer_types=MIXED),
            "layer_types: got .*full_attention in the first layers",
        ),
        (  # no Mistral of theirs looks at the kinds of its layers
            "MistralForCausalLM",
            dict(sliding_window=8, layer_types=["full_attention"] * 2),
            "layer_types: got .*expected sliding_attention in all",
        ),
        ("MixtralForCausalLM", dict(num_experts_per_tok=1), "num_experts_per_tok: got 1"),
        ("Qwen3MoeForCausalLM", dict(norm_topk_prob=False), "norm_topk_prob: got False"),
        ("Qwen3MoeForCausalLM", dict(num_experts_per_tok=1), "norm_topk_prob: got True"),
        ("Qwen3MoeForCausalLM", dict(mlp_only_layers=[0]), r"mlp_only_layers: got \[0\]"),
    ],
)
def test_what_would_compute_something_else_is_refused(kind, options, words):
    with pytest.raises(ValueError, match=words):
        from_huggingface(theirs_of(kind, **options))


@pytest.mark.parametrize(
    "kind, options, words",
    [
        ("GemmaForCausalLM", {}, r"norms that multiply by 1 \+ w"),
        ("Gemma2ForCausalLM", {}, r"norms that multiply by 1 \+ w"),
        ("T5Model", dict(d_model=8, num_layers=1), "relative positions"),
        ("GPT2ForSequenceClassification", dict(n_embd=8, n_head=2), "one of"),
    ],
)
def test_a_class_that_cannot_be_read_is_refused_with_the_reason(kind, options, words):
    found = getattr(transformers, kind)
    with torch.device("meta"):
        theirs = found(found.config_class(**options))
    with pytest.raises(ValueError, match=f"model: got '{kind}', expected .*{words}"):
        from_huggingface(theirs)


@pytest.mark.parametrize(
    "kind, options, words",
    [
        ("GPT2LMHeadModel", dict(embd_pdrop=0.3), "left out: embd_pdrop=0.3; ours is 0.1"),
        ("BertModel", dict(classifier_dropout=0.2), "left out: classifier_dropout=0.2"),
        (
            "LlamaForCausalLM",
            dict(attention_dropout=0.3),
            "left out: attention_dropout=0.3",
        ),
        ("MarianMTModel", dict(encoder_layerdrop=0.1), "left out: encoder_layerdrop=0.1"),
    ],
)
def test_what_matters_in_training_alone_is_left_out_with_a_warning(kind, options, words):
    with pytest.warns(match=words):
        from_huggingface(theirs_of(kind, **options))


def test_parts_of_a_vit_are_left_out_with_a_warning():
    config = transformers.ViTConfig(**VITS)
    theirs = randomised(transformers.ViTModel(config, use_mask_token=True))
    with pytest.warns() as caught:
        ours = from_huggingface(theirs)
    said = " ".join(str(warning.message) for warning in caught)
    assert "left out: the pooler (pooler.dense." in said and "mask_token" in said
    assert gap(ours, theirs) < 1e-5


@pytest.mark.parametrize(
    "option",
    [
        dict(n_heads=2),
        dict(norm="post"),
        dict(activation="relu"),
        dict(norm_eps=0.1),
        dict(eos_id=3),
        dict(tie_weights=False),
        dict(n_hedas=2),
    ],
)
def test_an_option_that_changes_the_model_is_refused(option):
    (name,) = option
    with pytest.raises(ValueError, match=name):
        from_huggingface(theirs_of("GPT2LMHeadModel"), **option)
    for kind in KINDS:  # whatever it would mean there
        if "tie_weights" not in option:
            with pytest.raises(ValueError):
                from_huggingface(theirs_of(kind), **{**option, "n_heads": 2})


def test_dropout_and_ids_that_theirs_leaves_open_can_be_given():
    ours = from_huggingface(theirs_of("GPT2LMHeadModel"), dropout=0.3)
    assert ours.config.dropout == 0.3
    ids = dict(cls_id=101, separator_id=102, mask_id=103, unknown_id=100)
    theirs = theirs_of("BertModel", vocab_size=120, pad_token_id=3)
    ours = from_huggingface(theirs, **ids)
    assert ours.config.pad_id == 3 and ours.config.cls_id == 101
    assert to_huggingface(ours).config.pad_token_id == 3


@pytest.mark.parametrize(
    "ids", [dict(), dict(bos_token_id=None), dict(bos_token_id=50256, pad_token_id=50257)]
)
def test_a_language_model_without_an_end_writes_to_the_limit(ids):
    ours = from_huggingface(theirs_of("GPT2LMHeadModel", eos_token_id=None, **ids))
    assert ours.config.eos_id is None
    prompt = torch.tensor([[7, 8, 9], [5, 6, 7]])
    found = greedy_decode(ours, prompt, 8)
    assert found.lengths.tolist() == [8, 8]
    assert torch.equal(found.ids, greedy_decode(UncachedDecoder(ours), prompt, 8).ids)
    assert beam_search(ours, prompt, 8, beam_size=3).lengths.tolist() == [8, 8]


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "LlamaForCausalLM"])
def test_several_ends_count_unless_one_is_chosen(kind):
    several = theirs_of(kind, eos_token_id=[7, 8, 99], pad_token_id=-1)  # 99: no token
    assert from_huggingface(several).config.eos_id == (7, 8)
    assert from_huggingface(several).config.pad_id is None
    assert from_huggingface(several, eos_id=8).config.eos_id == 8
    with pytest.raises(ValueError, match=r"eos_id: got 9, expected \(7, 8\)"):
        from_huggingface(several, eos_id=9)


@torch.no_grad()
def test_an_answer_ends_where_generation_config_says(tmp_path):
    theirs = theirs_of("Phi3ForCausalLM", eos_token_id=1, sliding_window=None)
    theirs.lm_head.weight.zero_()
    theirs.model.norm.weight.fill_(1.0)
    theirs.generation_config.eos_token_id = [1, 0]  # all logits are equal: always 0
    theirs.save_pretrained(tmp_path)
    prompt = torch.tensor([[5, 6]])
    expected = theirs.generate(prompt, do_sample=False, max_new_tokens=8)[0, 2:].tolist()
    assert expected == [0]
    for model in (theirs, tmp_path):
        ours = from_huggingface(model)
        assert ours.config.eos_id == (1, 0)
        assert greedy_decode(ours, prompt, 8).ids[0].tolist() == expected


def test_ids_of_generation_config_fill_in_what_config_leaves_open(tmp_path):
    theirs = theirs_of("MarianMTModel")
    theirs.generation_config.decoder_start_token_id = 4
    theirs.save_pretrained(tmp_path)
    assert from_huggingface(theirs).config.bos_id == 4
    assert from_huggingface(tmp_path).config.bos_id == 4

    gpt = theirs_of("GPT2LMHeadModel", bos_token_id=None, pad_token_id=3)
    gpt.generation_config.update(bos_token_id=4, pad_token_id=5, eos_token_id=[2])
    config = from_huggingface(gpt).config  # PAD also says what a model reads
    assert (config.bos_id, config.pad_id, config.eos_id) == (4, 3, 2)


@pytest.mark.parametrize(
    "model, words",
    [
        (Transformer(TransformerConfig.preset("tiny")), "attention_bias: got False"),
        (
            Transformer(TransformerConfig.preset("tiny", norm="pre")),
            "attention_bias: .*as PegasusForConditionalGeneration",
        ),
        (
            Llama(LlamaConfig.preset("tiny", qk_norm=True, qkv_bias=True)),
            "expected False, as Qwen2ForCausalLM has it",
        ),
        (Llama(LlamaConfig.preset("tiny", window=8, n_full_layers=1)), "n_full_layers"),
        (nn.Linear(2, 2), "model: got 'Linear', expected GPT or BERT"),
    ],
    ids=lambda given: "",
)
def test_what_theirs_cannot_be_is_refused(model, words):
    with pytest.raises(ValueError, match=words):
        to_huggingface(model)


# ---- Models of ours ----


def models_of_ours():
    sizes = dict(d_model=24, d_ff=40, n_heads=4, n_layers=2)
    bert = BERTConfig(**sizes, vocab_size=50, max_len=32)
    vit = ViTConfig(**sizes, height=8, width=12, patch_size=4)
    captioner = Captioner(CaptionerConfig(**sizes, norm="pre"))
    yield from (
        GPT(GPTConfig(**sizes, vocab_size=50, max_len=32)),
        GPT(GPTConfig(**sizes, vocab_size=50, max_len=32, tie_weights=False)),
        BERT(bert),
        MaskedLanguageModel(bert),
        SentenceClassifier(bert),
    )
    yield from (
        ViT(vit),
        ImageClassifier(vit),
        Transformer(
            TransformerConfig.preset("tiny", attention_bias=True, output_bias=True)
        ),
    )
    llama = LlamaConfig.preset("tiny", **sizes, n_kv_heads=2, pad_id=None, bos_id=1)
    yield from (
        Llama(llama),
        Llama(llama.replace(qk_norm=True, tie_weights=False)),
        Llama(llama.replace(qkv_bias=True, d_k=10, rope_factor=8.0)),
        Llama(llama.replace(n_experts=3, window=4)),
        Llama(llama.replace(n_experts=3, qk_norm=True)),
    )
    yield from (
        captioner,
        captioner.vit,
        MaskedLanguageModel(bert).bert,
        ImageClassifier(vit).vit,
    )


def source_and_target():
    ids = torch.tensor([[7, 8, 9, 10, 11], [9, 8, 7, 6, 5]])
    return ids, ids + 1


class CountCopies(TorchDispatchMode):
    "Which operators run on numbers that are really there, and how many numbers each kind of copy writes."

    COPIES = ("copy", "clone", "cat", "index_select", "stack", "contiguous", "empty_like")

    def __init__(self):
        super().__init__()
        self.operators, self.n_copied = set(), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = str(function)
        if isinstance(result, torch.Tensor) and not result.is_meta:
            self.operators.add(name)
            if any(word in name for word in self.COPIES):
                self.n_copied += result.numel()
        return result


def same_in_all(read, model):
    "Weights, buffers, tied weights, types and what must be trained are those of a model that was built as usual."
    assert {type(t) for t in read.parameters()} == {nn.Parameter}
    for kind in ("named_parameters", "named_buffers"):
        found, wanted = (
            dict(getattr(m, kind)(remove_duplicate=False)) for m in (read, model)
        )
        assert found.keys() == wanted.keys()
        for name, tensor in wanted.items():
            assert found[name].dtype == tensor.dtype and not found[name].is_meta, name
            assert found[name].requires_grad == tensor.requires_grad, name
            assert torch.equal(found[name], tensor) or "pooler" in name, name
            shared = [other for other in wanted if wanted[other] is tensor]
            assert shared == [other for other in found if found[other] is found[name]]
    for module in read.modules():  # tensors that are no buffers, as a table's frequencies
        for value in vars(module).values():
            assert not (isinstance(value, torch.Tensor) and value.is_meta)


@pytest.mark.parametrize(
    "model", list(models_of_ours()), ids=lambda model: type(model).__name__
)
def test_loading_draws_nothing_and_copies_each_number_once(model, tmp_path):
    randomised(model)
    ways = [(load_model, save_model(model, tmp_path / "ours"), type(model))]
    if type(model) not in (Captioner, MaskedLanguageModel):  # the pooler of the last is new
        to_huggingface(model).save_pretrained(tmp_path / "theirs")
        ways.append((from_huggingface, tmp_path / "theirs"))
    n_numbers = sum(weight.numel() for weight in model.parameters())
    with CountCopies() as counted:
        build_empty(model.config, type(model), n_tensors=n_numbers)
    for_tables = counted.n_copied  # of positions
    for load, *given in ways:
        before = torch.get_rng_state()
        with CountCopies() as counted:
            read = load(*given)
        assert torch.equal(torch.get_rng_state(), before)
        drawn = {
            name
            for name in counted.operators
            if any(word in name for word in ("normal", "uniform", "rand", "bernoulli"))
        }
        assert not drawn, drawn
        # orders have as many numbers as a matrix has rows, and what is put in order is copied twice
        more = counted.n_copied - for_tables - n_numbers
        reordered = n_numbers if type(model) in (Transformer, Llama) else 0
        in_order = reordered if load is from_huggingface else 0
        assert 0 <= more < 5000 + for_tables + in_order
        same_in_all(read, model)
        file = next(Path(given[0]).glob("model.safetensors"))
        file.write_bytes(bytes(len(file.read_bytes())))  # it has its own numbers
        same_in_all(read, model)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
def test_a_model_is_read_in_the_type_it_was_saved_in(positions, dtype, tmp_path):
    config = TransformerConfig.preset("tiny", positions=positions)
    model = randomised(Transformer(config)).to(dtype)
    same_in_all(load_model(save_model(model, tmp_path / "model"), Transformer), model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_table_of_positions_is_exact_again_in_single_precision(dtype):
    positions = SinusoidalPositions(8, 20).to(dtype)
    assert positions.table.dtype == dtype
    assert torch.equal(positions.float().table, sinusoids(20, 8))


def save_in_format_3(model, folder):
    "As it was until format 4: W^Q over W^K over W^V in one matrix, and some other names."
    weights = {}
    for name, tensor in distinct_weights(model).items():
        if ".q_proj." in name:
            three = [name.replace(".q_proj.", f".{letter}_proj.") for letter in "qkv"]
            parts = [model.get_parameter(part).detach() for part in three]
            weights[name.replace(".q_proj.", ".qkv_proj.")] = torch.cat(parts)
        elif ".k_proj." not in name and ".v_proj." not in name:
            name = name.replace("embed.read.", "embed.embedding.")
            if type(model) is Transformer:  # its shared matrix went by its first place
                name = name.replace("output.weight", "src_embed.embedding.weight")
            for letter, word in dict(q="query", k="key").items():
                name = name.replace(f".{letter}_norm.", f".{word}_norm.")
            weights[name] = tensor

    options = dict(model=type(model).__name__, format=CONVERTED, **model.config.to_dict())
    with write_folder(folder) as new:
        (new / "config.json").write_text(json.dumps(options))
        save_file(weights, new / "model.safetensors")
    return weights


@pytest.mark.parametrize(
    "model", list(models_of_ours()), ids=lambda model: type(model).__name__
)
def test_a_folder_of_format_3_is_read(model, tmp_path):
    "Every weight is the same to the last bit. A packed matrix of the wrong height is refused."
    randomised(model)
    weights = save_in_format_3(model, tmp_path / "old")
    packed = [name for name in weights if ".qkv_proj." in name]
    assert packed and not any(".q_proj." in name for name in weights)
    same_in_all(load_model(tmp_path / "old", type(model)), model)

    # saved again, it is a folder of today's
    again = save_model(load_model(tmp_path / "old", type(model)), tmp_path / "new")
    assert not any(".qkv_proj." in name for name in load_file(again / "model.safetensors"))

    weights[packed[0]] = weights[packed[0]][:-1].contiguous()
    with write_folder(tmp_path / "cut") as new:
        (new / "config.json").write_text((tmp_path / "old" / "config.json").read_text())
        save_file(weights, new / "model.safetensors")
    with pytest.raises(ValueError, match="left over: .*qkv_proj"):
        load_model(tmp_path / "cut", type(model))


@torch.no_grad()
def test_a_folder_of_format_3_gives_the_same_logits(tmp_path):
    model = randomised(Transformer(TransformerConfig.preset("tiny", attention_bias=True)))
    save_in_format_3(model, tmp_path / "old")
    inputs = source_and_target()
    assert torch.equal(load_model(tmp_path / "old", Transformer)(*inputs), model(*inputs))


@torch.no_grad()
def test_peft_finds_the_projections_by_their_usual_names():
    "LoRA on queries and values, and then merged into their matrices."
    peft = pytest.importorskip("peft")
    model = randomised(Transformer(TransformerConfig.preset("tiny")))
    inputs = source_and_target()
    before = model(*inputs)

    adapted = peft.get_peft_model(
        model, peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    ).eval()
    names = {name for name, weight in adapted.named_parameters() if weight.requires_grad}
    attentions = 3 * model.config.n_layers
    assert len(names) == attentions * 2 * 2 and all("_proj.lora_" in name for name in names)
    assert torch.equal(adapted(*inputs), before)

    for name, weight in adapted.named_parameters():
        if name in names:
            nn.init.normal_(weight, std=0.1)
    after = adapted(*inputs)
    assert not torch.allclose(after, before)
    cached = greedy_decode(model, inputs[0], 5)
    assert torch.equal(cached.ids, greedy_decode(UncachedDecoder(model), inputs[0], 5).ids)

    merged = adapted.merge_and_unload()
    torch.testing.assert_close(merged(*inputs), after)


def test_loading_imports_no_compiler(tmp_path):
    "Arithmetic on the device `meta` would import it, for a second."
    for model in (
        Transformer(TransformerConfig.preset("tiny")),
        Llama(LlamaConfig.preset("tiny", rope_factor=8.0)),
        ViT(
            ViTConfig(
                d_model=24, d_ff=40, n_heads=4, n_layers=2, height=8, width=8, patch_size=4
            )
        ),
    ):
        name = type(model).__name__
        folder = save_model(model, tmp_path / name)
        program = (
            f"import sys; from {type(model).__module__} import {name}; "
            f"from annotated_transformer.base.model_files import load_model; "
            f"load_model({str(folder)!r}, {name}); "
            f"sys.exit('torch._dynamo' in sys.modules or 'sympy' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", program]).returncode == 0, name


def test_every_class_of_ours_with_a_config_can_be_loaded(tmp_path):
    "A class that `save_model` takes and `load_model` cannot read would lose what was trained."
    import importlib
    import inspect

    found = {
        value
        for name in modules()
        for value in vars(
            importlib.import_module(f"{PACKAGE.name}.{name}" if name else PACKAGE.name)
        ).values()
        if inspect.isclass(value)
        and issubclass(value, nn.Module)
        and value.__module__.startswith(PACKAGE.name)
        and hasattr(value, "config_class")
    }
    models = list(models_of_ours())
    assert found == {type(model) for model in models}
    for wrapper in (
        UncachedDecoder(Transformer(TransformerConfig.preset("tiny"))),
        nn.Linear(2, 2),
    ):
        with pytest.raises(
            ValueError,
            match="model: got .* expected a model with a `config`, and its class as `config_class`",
        ):
            save_model(wrapper, "nowhere")
    assert not Path("nowhere").exists()
    with pytest.raises(
        ValueError,
        match="model_class: got 'Linear', expected a class with a `config_class`",
    ):
        load_model(save_model(models[0], tmp_path / "model"), nn.Linear)


# ---- PyTorch's stacks ----

PLAIN = dict(d_model=24, nhead=4, dim_feedforward=40, batch_first=True)


def torch_model(**options):
    sizes = dict(
        d_model=24,
        nhead=4,
        num_encoder_layers=3,
        num_decoder_layers=3,
        dim_feedforward=40,
        batch_first=True,
    )
    return randomised(nn.Transformer(**{**sizes, **options}))


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize(
    "options", [dict(activation="gelu"), dict(norm_first=True), dict(layer_norm_eps=0.1), dict(dropout=0.3), dict(nhead=3), dict(batch_first=False), dict(bias=False), dict(dim_feedforward=41)],
)  # fmt: skip
def test_a_layer_that_differs_is_named(side, options):
    model = torch_model()
    layer = dict(encoder=nn.TransformerEncoderLayer, decoder=nn.TransformerDecoderLayer)[
        side
    ]
    getattr(model, side).layers[1] = layer(**{**PLAIN, **options})
    with pytest.raises(ValueError, match=rf"{side}\.layers\.1"):
        from_torch(model)


@pytest.mark.parametrize(
    "path, name, value",
    [
        ("decoder.layers.2.norm3", "eps", 0.1),
        ("decoder.layers.0.multihead_attn", "dropout", 0.3),
        ("encoder.layers.2.dropout2", "p", 0.3),
        ("decoder.layers.1.self_attn", "add_zero_attn", True),
        ("encoder.layers.1", "activation", torch.tanh),
        ("encoder.layers.0", "activation", nn.GELU()),
        ("encoder.layers.0.norm1", None, nn.RMSNorm(24)),
        ("encoder.layers.0.norm1", None, nn.GroupNorm(1, 24)),
        (
            "encoder.layers.0.self_attn",
            None,
            nn.MultiheadAttention(24, 4, add_bias_kv=True),
        ),
        (
            "encoder.layers.0.self_attn",
            None,
            nn.MultiheadAttention(24, 4, kdim=12, vdim=12),
        ),
        ("decoder.layers.0.linear1", None, nn.Linear(24, 40, bias=False)),
        ("encoder.norm", None, nn.Identity()),
        ("encoder", None, nn.Identity()),
        ("encoder.layers", None, nn.ModuleList()),
        ("decoder.layers.0", None, nn.TransformerEncoderLayer(**PLAIN)),
    ],
)
def test_a_setting_in_one_place_is_seen(path, name, value):
    model = torch_model()
    if name is None:
        model.set_submodule(path, value)
    else:
        part = model.get_submodule(path)
        part._modules.pop(name, None)
        setattr(part, name, value)
    with pytest.raises(ValueError):
        from_torch(model)


def test_settings_that_are_the_same_everywhere_are_kept():
    model = torch_model(dropout=0.0)
    for layer in model.encoder.layers:
        layer.dropout.p, layer.self_attn.dropout = 0.2, 0.3
        layer.dropout1.p = layer.dropout2.p = 0.1
    config = from_torch(model)["encoder"].layers[0]
    assert [
        config.feed_forward.dropout.p,
        config.dropout.p,
    ] == [0.2, 0.1]


@pytest.mark.parametrize(
    "given",
    [
        None,
        3,
        nn.Identity(),
        nn.TransformerEncoder(nn.TransformerEncoderLayer(**PLAIN), 1),
        GPT(GPTConfig.preset("tiny", vocab_size=9)),
    ],
)
def test_another_model_is_refused_by_name(given):
    for function in (
        from_torch,
        to_torch,
        *[to_huggingface] * (not isinstance(given, GPT)),
    ):
        with pytest.raises(
            ValueError, match=f"model: got '{type(given).__name__}', expected"
        ):
            function(given)


def test_compiled_models_are_taken_as_what_they_wrap():
    theirs, ours = (
        torch_model(),
        randomised(Transformer(TransformerConfig.preset("tiny", attention_bias=True))),
    )
    for plain, function in (
        (theirs, from_torch),
        (ours, to_torch),
        (ours, to_huggingface),
        (theirs_of("BertModel"), from_huggingface),
    ):
        one, two = (
            function(model).state_dict()
            for model in (plain, torch.compile(plain, backend="eager"))
        )
        assert one.keys() == two.keys() and all(
            torch.equal(one[name], two[name]) for name in one
        )


# ---- A fuzz over folders ----


def spoil_tensors(rng, folder):
    "One to three tensors removed, renamed, exchanged, reshaped, retyped, added, or with another number in them."
    tensors = dict(folder.tensors)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name, other = rng.sample(sorted(tensors), 2)
        tensor = tensors[name]
        number = tensor.clone().view(-1)
        if len(number):
            number[rng.randrange(len(number))] = rng.choice([float("nan"), rng.gauss(0, 3)])
        new_name = rng.choice([f"{name}x", name.upper(), name.replace("1", "2"), "x", ""])
        shape = [rng.randint(0, 5) for _ in range(rng.randint(0, 4))]
        dtype = rng.choice([torch.float16, torch.float64, torch.int8, torch.bool])
        tensors |= rng.choice(
            [
                {name: None},
                {name: None, new_name: tensor},
                {name: tensors[other], other: tensor},
                {name: torch.randn(shape)},
                {name: tensor.flatten()},
                {name: tensor.t() if tensor.ndim == 2 else tensor[None]},
                {name: tensor[:-1] if tensor.ndim else tensor},
                {name: tensor.to(dtype)},
                {name: number.view(tensor.shape)},
                {new_name: torch.randn(24, 24)},
                {"lm_head.weight": torch.randn(50, 24)},
                {n: None for n in tensors if ".1." in n},
            ]
        )
        tensors = {n: tensor for n, tensor in tensors.items() if tensor is not None}
        if len(tensors) < 2:
            break
    folder.write({name: tensor.clone() for name, tensor in tensors.items()})


def spoil_bytes(rng, folder):
    "One file with bits flipped, bytes gone or repeated."
    file = rng.choice([folder.file, folder.file, folder.config_file])
    content = bytearray(file.read_bytes())
    header = len(content)
    if file == folder.file:
        header = int.from_bytes(content[:8], "little") + 8
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(rng.choice([min(header, len(content)), len(content)]))
        if rng.random() < 0.7:
            content[place] ^= 1 << rng.randrange(8)
        elif rng.random() < 0.5:
            del content[place : place + rng.randint(1, 50)]
        else:
            content[place:place] = content[place : place + rng.randint(1, 50)]
        if not content:
            break
    file.write_bytes(content)


def spoil_options(rng, folder):
    "One option of the configuration changed or removed."
    options = json.loads(folder.config_file.read_text())
    name = rng.choice(sorted(options))
    wrong = [None, -1, 0, 1, 3, 2.5, 10**9, 10**30, "", "relu", "gelu", [1, 2], {}, True]
    options[name] = rng.choice([*wrong, False, float("nan")])
    if rng.random() < 0.2:
        del options[name]
    folder.config_file.write_text(json.dumps(options))


def outcome(folder, kind):
    "'refused', 'equal', or 'theirs' where only theirs stumbles; anything else fails."
    try:
        ours = folder.read()
    except ValueError as error:
        assert type(error) is ValueError and len(str(error)) > 10
        return "refused"
    try:
        theirs, info = getattr(transformers, kind).from_pretrained(
            folder.path,
            dtype=torch.float32,
            output_loading_info=True,
            use_safetensors=True,
            attn_implementation="eager",
            **more(kind),
        )
        difference = gap(ours, theirs.eval())
    except (IndexError, OverflowError, ValueError):
        return "theirs"  # few positions, an id of 1e30, a dropout that ours does not have
    assert not info["missing_keys"] and not info["mismatched_keys"], info
    assert difference < 1e-4
    return "equal"


@pytest.mark.parametrize("number", range(200 if LONG else 8))
def test_a_spoilt_folder_is_refused_or_read_as_they_read_it(tmp_path, number):
    rng, counts = random.Random(number), {}
    kind = rng.choice(KINDS)
    folder = Folder(tmp_path, theirs_of(kind))
    whole = {file: file.read_bytes() for file in (folder.file, folder.config_file)}
    for i in range(60 if LONG else 15):
        for file, content in whole.items():
            file.write_bytes(content)
        spoil = rng.choice([spoil_tensors, spoil_tensors, spoil_bytes, spoil_options])
        try:
            spoil(rng, folder)
            found = outcome(folder, kind)
        except BaseException as error:
            raise AssertionError(f"{kind}, seed {number}, try {i}: {error}") from error
        counts[found] = counts.get(found, 0) + 1
    assert counts.get("refused", 0) > 0


def test_to_torch_refuses_a_model_with_a_part_of_its_own():
    from annotated_transformer.core.rotary import RotaryAttention

    @dataclass(frozen=True)
    class Turned(TransformerConfig):
        def attention(self, i):
            return self.attention_of_kind(RotaryAttention)

    model = Transformer(Turned.preset("tiny", vocab_size=20))
    with pytest.raises(ValueError, match="self_attention: got 'RotaryAttention'"):
        to_torch(model)
