"""Folders of Hugging Face and stacks of PyTorch: every weight is accounted for, and what does not fit is refused in words."""

import json
import os
import pickle
import random
import subprocess
import sys
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
from annotated_transformer.decoding.greedy import UncachedDecoder, greedy_decode
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
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.core.positions import SinusoidalPositions, sinusoids
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from project import PACKAGE, modules
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

transformers = pytest.importorskip(
    "transformers", reason="the models are Hugging Face's: pip install -e '.[dev]'"
)
from annotated_transformer.interop.huggingface import from_huggingface, to_huggingface

pytestmark = pytest.mark.slow

KINDS = [
    "GPT2LMHeadModel",
    "BertModel",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "ViTModel",
    "ViTForImageClassification",
    "MarianMTModel",
]
LLAMAS = ["LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"]
KINDS += LLAMAS
each_kind = pytest.mark.parametrize("kind", KINDS)
LONG = "slow" in os.environ.get("NBFLAGS", "")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()


def randomised(model, std=0.2):
    for name, weight in model.named_parameters():
        if not name.endswith("embed_positions.weight"):  # Marian's sinusoids
            nn.init.normal_(weight, mean=weight.mean().item(), std=std)
    return model.eval()


def theirs_of(kind, heads=4, width=24, hidden=40, layers=2, **options):
    "A small model of theirs, every weight random."
    if kind == "GPT2LMHeadModel":
        given = dict(
            n_embd=width,
            n_head=heads,
            n_inner=hidden,
            n_layer=layers,
            vocab_size=50,
            n_positions=32,
            bos_token_id=49,
            eos_token_id=49,
        )
    elif kind == "MarianMTModel":
        sizes = (("layers", layers), ("attention_heads", heads), ("ffn_dim", hidden))
        given = {
            f"{side}_{name}": size
            for side in ("encoder", "decoder")
            for name, size in sizes
        }
        given |= dict(
            vocab_size=50,
            d_model=width,
            max_position_embeddings=32,
            scale_embedding=True,
            pad_token_id=49,
            eos_token_id=0,
        )
        given |= dict(decoder_start_token_id=49, forced_eos_token_id=None)
    elif kind in LLAMAS:
        given = dict(
            hidden_size=width,
            num_attention_heads=heads,
            num_key_value_heads=heads // 2,
            intermediate_size=hidden,
            num_hidden_layers=layers,
        )
        given |= dict(
            vocab_size=50,
            max_position_embeddings=32,
            tie_word_embeddings=kind.startswith("Qwen"),
            bos_token_id=1,
            eos_token_id=2,
        )
        given |= dict(sliding_window=None) if kind.startswith("Mistral") else {}
    else:
        given = dict(
            hidden_size=width,
            num_attention_heads=heads,
            intermediate_size=hidden,
            num_hidden_layers=layers,
            num_labels=3,
        )
        given |= (
            dict(image_size=(8, 12), patch_size=4)
            if kind.startswith("ViT")
            else dict(vocab_size=50, max_position_embeddings=32)
        )
    found = getattr(transformers, kind)
    more = dict(add_pooling_layer=False) if kind == "ViTModel" else {}
    model = found(found.config_class(**{**given, **options}), **more)
    if kind == "MarianMTModel":
        nn.init.normal_(model.final_logits_bias)
    return randomised(model)


def inputs_of(kind):
    ids = torch.tensor([[7, 8, 9, 10, 11], [9, 8, 7, 6, 5]])
    return (
        (torch.linspace(0, 1, 2 * 3 * 8 * 12).view(2, 3, 8, 12),)
        if kind.startswith("ViT")
        else (ids, ids + 1)
        if kind == "MarianMTModel"
        else (ids,)
    )


@torch.no_grad()
def gap(ours, theirs):
    "The largest difference of what comes out, over the largest number."
    inputs = inputs_of(type(theirs).__name__)
    found, name = ours(*inputs), "decoder_input_ids" if len(inputs) == 2 else None
    expected = theirs(inputs[0], **({name: inputs[1]} if name else {}))[0]
    found = found[..., : expected.shape[-1]]
    if not expected.isfinite().all():  # numbers of 1e30 are weights, too
        return 0.0 if not found.isfinite().all() else float("inf")
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-6)).item()


class Folder:
    "A saved model of theirs whose tensors and configuration can be spoilt."

    def __init__(self, path, theirs):
        self.path, self.theirs = Path(path), theirs
        theirs.save_pretrained(path)
        self.file, self.config_file = (
            self.path / "model.safetensors",
            self.path / "config.json",
        )
        self.tensors = load_file(self.file)

    def write(self, tensors):
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()},
            self.file,
            metadata={"format": "pt"},
        )
        return self

    def change(self, drop=(), **more):
        return self.write(
            {
                name: tensor
                for name, tensor in {**self.tensors, **more}.items()
                if name not in drop
            }
        )

    def configure(self, **options):
        self.config_file.write_text(
            json.dumps({**json.loads(self.config_file.read_text()), **options})
        )
        return self

    def needed(self):
        "Names of tensors without which the model is another one, in the middle of the list first."
        names = sorted(self.tensors)
        return names[len(names) // 2 :] + names[: len(names) // 2]

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


# ---- What a folder may lack or hold ----


@each_kind
def test_a_whole_folder_is_read(folder, kind):
    assert gap(folder.read(), folder.theirs) < 1e-5


@each_kind
def test_each_tensor_of_a_folder_is_needed(folder, kind):
    for name in folder.tensors:
        folder.change(drop=[name]).refused("missing: ")


@each_kind
def test_what_is_missing_left_over_or_misshapen_is_named(folder, kind):
    gone, renamed, cut = folder.needed()[:3]
    folder.change(
        drop=[gone, renamed],
        **{f"{renamed}x": folder.tensors[renamed], cut: torch.ones(5, 5, 5)},
    )
    last = {name.split(".")[-1] for name in (gone, renamed, cut)}
    folder.refused(
        "missing: ",
        "left over: ",
        f"{renamed.split('.')[-1]}x",
        "of another shape: ",
        "got (5, 5, 5), expected (",
        *last,
    )


@each_kind
def test_a_folder_without_a_layer_is_refused(folder, kind):
    folder.change(drop=[name for name in folder.tensors if ".1." in name]).refused(
        "missing: "
    )


@each_kind
def test_weights_of_another_type_keep_their_meaning(folder, kind):
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        folder.write({name: tensor.to(dtype) for name, tensor in folder.tensors.items()})
        theirs = (
            getattr(transformers, kind)
            .from_pretrained(folder.path, dtype=torch.float32, **more(kind))
            .eval()
        )
        assert gap(folder.read(), theirs) < 1e-5
    name = folder.needed()[0]
    folder.change(**{name: folder.tensors[name] * float("nan")}).refused("not finite: ")
    folder.change(**{name: folder.tensors[name].to(torch.int8)}).refused(
        "not of floating-point numbers: ", "torch.int8"
    )


def more(kind):
    return dict(add_pooling_layer=False) if kind == "ViTModel" else {}


@each_kind
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


@pytest.mark.parametrize(
    "kind, changes",
    [
        ("GPT2LMHeadModel", dict(add={"lm_head.weight": "transformer.wte.weight"})),
        ("GPT2LMHeadModel", dict(rename={"transformer.wte.weight": "lm_head.weight"})),
        ("GPT2LMHeadModel", dict(replace=("transformer.", ""))),
        (
            "GPT2LMHeadModel",
            dict(
                noise={
                    "transformer.h.0.attn.bias": (1, 1, 32, 32),
                    "transformer.h.1.attn.masked_bias": (),
                }
            ),
        ),
        (
            "BertForMaskedLM",
            dict(
                noise={
                    "bert.pooler.dense.weight": (24, 24),
                    "cls.seq_relationship.bias": (2,),
                }
            ),
        ),
        (
            "BertForMaskedLM",
            dict(
                noise={"bert.embeddings.position_ids": (1, 32)},
                replace=("LayerNorm.weight", "LayerNorm.gamma"),
            ),
        ),
        (
            "BertForMaskedLM",
            dict(
                replace=("LayerNorm.bias", "LayerNorm.beta"),
                rename={"cls.predictions.bias": "cls.predictions.decoder.bias"},
            ),
        ),
        ("BertModel", dict(replace=("enc", "bert.enc"))),
        ("ViTForImageClassification", dict(replace=("encoder.layer.", "layers."))),
        (
            "MarianMTModel",
            dict(rename={"model.shared.weight": "model.decoder.embed_tokens.weight"}),
        ),
        ("MarianMTModel", dict(add={"lm_head.weight": "model.shared.weight"})),
    ],
)
def test_what_may_be_absent_or_present_is_not_refused(folder, kind, changes):
    "Either side of a tied pair, tables that only count, masks, the head of another task, names of older versions."
    tensors = {
        **folder.tensors,
        **{name: folder.tensors[of].clone() for name, of in changes.get("add", {}).items()},
    }
    tensors |= {
        name: torch.randn(shape) for name, shape in changes.get("noise", {}).items()
    }
    tensors = {
        changes.get("rename", {}).get(name, name): tensor
        for name, tensor in tensors.items()
    }
    tensors = {
        name.replace(*changes.get("replace", ("", ""))): tensor
        for name, tensor in tensors.items()
    }
    assert tensors.keys() != folder.tensors.keys()
    assert gap(folder.write(tensors).read(), folder.theirs) < 1e-5


def as_published(name, tensors):
    "The tensors of a small model under the names that the file on the Hub has, with its extras."
    if name == "openai-community/gpt2":
        found = {key.removeprefix("transformer."): x for key, x in tensors.items()}
        mask = torch.ones(1, 1, 32, 32).tril()
        return found | {f"h.{i}.attn.bias": mask.clone() for i in range(2)}

    found = {}
    for key, tensor in tensors.items():
        key = key.replace("LayerNorm.weight", "LayerNorm.gamma")
        found[key.replace("LayerNorm.bias", "LayerNorm.beta")] = tensor
    return found


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
@torch.no_grad()
def test_files_written_by_old_versions_are_read_as_they_are_on_the_hub(name, tmp_path):
    kind, options = PUBLISHED[name]
    theirs = theirs_of(kind)
    folder = Folder(tmp_path, theirs)
    tensors = as_published(name, folder.tensors)
    assert not tensors.keys() & folder.tensors.keys() or kind != "GPT2LMHeadModel"
    ours = folder.write(tensors).configure(**options).read()
    assert type(ours) is (GPT if kind == "GPT2LMHeadModel" else MaskedLanguageModel)
    assert gap(ours, theirs) < 1e-5

    # the pooler of such a file is left behind; a class that has one keeps it
    if kind == "BertForPreTraining":
        assert (
            "bert.pooler.dense.weight" in tensors and "cls.seq_relationship.bias" in tensors
        )
        pooler = theirs.bert.pooler.dense.weight
        assert not torch.equal(ours.bert.pooler.weight, pooler)
        whole = from_huggingface(transformers.BertModel.from_pretrained(tmp_path))
        assert torch.equal(whole.pooler.weight, pooler)


@pytest.mark.parametrize(
    "kind, name, of",
    [
        ("GPT2LMHeadModel", "lm_head.weight", "transformer.wte.weight"),
        ("GPT2LMHeadModel", "ln_f.weight", "transformer.ln_f.weight"),
        (
            "BertForMaskedLM",
            "cls.predictions.decoder.weight",
            "bert.embeddings.word_embeddings.weight",
        ),
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


@pytest.mark.parametrize("kind", ["ViTModel"])
def test_a_name_that_only_looks_like_an_old_one_is_refused(folder, kind):
    name = "encoder.layer.1.attention.attention.value.weight"
    folder.change(
        drop=[name], **{name.replace("value", "valud"): folder.tensors[name]}
    ).refused("missing: ", "left over: ", "valud")


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel"])
def test_no_pickle_is_read(folder, kind, tmp_path):
    "Neither alone, nor under the name of a safetensors file, nor through the index, nor by the configuration."

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    pickled, index = (
        folder.path / "pytorch_model.bin",
        folder.path / "model.safetensors.index.json",
    )
    folder.file.unlink()
    torch.save(folder.tensors, pickled)
    folder.refused(
        "a folder with model.safetensors; pytorch_model.bin can hold code, and is never read"
    )
    pickled.write_bytes(pickle.dumps(Bomb()))
    for name in (pickled.name, f"../{folder.path.name}/{folder.file.name}", "/etc/passwd"):
        index.write_text(
            json.dumps(dict(metadata={}, weight_map={"transformer.wte.weight": name}))
        )
        folder.refused("weight_map: got")
    for content in (
        "",
        "[]",
        "{}",
        '{"weight_map": 3}',
        '{"weight_map": {"a": 3}}',
        '{"weight_map": {}}',
    ):
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
        "3",
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
        (dict(is_decoder=True), "is_decoder: got True"),
    ]:
        folder.config_file.write_text(good)
        folder.configure(**options).refused(why)
    folder.config_file.write_text(good)
    (folder.path / "adapter_config.json").write_text("{}")
    folder.refused("got 'an adapter', expected the whole model")


@pytest.mark.parametrize(
    "given",
    [
        5,
        None,
        True,
        2.5,
        b"gpt2",
        ["gpt2"],
        "",
        "no/such/folder",
        "/nowhere",
        "./x",
        Path("nowhere"),
        "a" * 5000 + "/b/c",
        "x\0y",
    ],
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
    folder = Folder(tmp_path, theirs_of("GPT2LMHeadModel"))
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download",
        lambda name, revision, allow_patterns: (
            asked.append((name, allow_patterns, revision)) or tmp_path
        ),
    )
    assert (
        gap(from_huggingface("some-one/gpt2.small", revision="abc"), folder.theirs) < 1e-5
    )
    assert asked[0][2] == "abc"
    for no_name in (tmp_path, folder.theirs):  # which have no revisions
        with pytest.raises(ValueError, match="revision: got 'abc', expected None"):
            from_huggingface(no_name, revision="abc")
    assert asked[0][0] == "some-one/gpt2.small" and not any(
        pattern.endswith(("bin", "py")) for pattern in asked[0][1]
    )

    def fail(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(ValueError, match="model: got 'gpt2', expected .*: no network"):
        from_huggingface("gpt2")


# ---- Options, ids, and the way back ----


def test_options_are_applied_before_they_are_checked():
    theirs = theirs_of("BertModel", vocab_size=120, pad_token_id=3)
    ids = dict(cls_id=101, separator_id=102, mask_id=103, unknown_id=100)
    ours = from_huggingface(theirs, **ids)
    assert ours.config.pad_id == 3 and ours.config.cls_id == 101
    again = to_huggingface(ours)
    assert again.config.pad_token_id == 3 and gap(ours, again) < 1e-5


@pytest.mark.parametrize(
    "option",
    [
        dict(n_heads=2),
        dict(norm="post"),
        dict(activation="relu"),
        dict(norm_eps=0.1),
        dict(eos_id=3),
        dict(d_ff=41),
    ],
)
def test_an_option_that_changes_the_model_is_refused(option):
    (name,) = option
    with pytest.raises(ValueError, match=f"{name}: got .*as their model has it"):
        from_huggingface(theirs_of("GPT2LMHeadModel"), **option)
    assert (
        from_huggingface(
            theirs_of("GPT2LMHeadModel"), dropout=0.3, attention_dropout=0.2
        ).config.dropout
        == 0.3
    )


@pytest.mark.parametrize(
    "option",
    [
        dict(positions="rotary"),
        dict(bos_id=3),
        dict(tie_weights=False),
        dict(patch_size=2),
        dict(n_hedas=2),
    ],
)
def test_an_option_is_refused_by_each_model(option):
    for kind in KINDS:
        if (
            "tie_weights" in option and kind in LLAMAS
        ):  # some of them are tied, some are not
            option = dict(tie_weights=not kind.startswith("Qwen"))
            assert (
                from_huggingface(
                    theirs_of(kind), tie_weights=kind.startswith("Qwen")
                ).config.tie_weights
                != option["tie_weights"]
            )
        with pytest.raises(ValueError):
            from_huggingface(theirs_of(kind), **option)


def test_a_gpt_with_an_output_matrix_of_its_own_is_read_and_written(tmp_path):
    theirs = randomised(theirs_of("GPT2LMHeadModel", tie_word_embeddings=False))
    theirs.save_pretrained(tmp_path)
    ids = torch.randint(3, 49, (2, 9))

    for given in (theirs, tmp_path):
        ours = from_huggingface(given)
        assert not ours.config.tie_weights
        again = to_huggingface(ours)
        with torch.no_grad():
            expected = theirs(ids).logits
            assert (ours(ids) - expected).abs().max() < 1e-4 * expected.abs().max()
            assert torch.equal(again(ids).logits, expected)

    weights = load_file(tmp_path / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="missing: lm_head.weight"):
        from_huggingface(tmp_path)


@pytest.mark.parametrize(
    "ids",
    [
        dict(),
        dict(bos_token_id=None),
        dict(bos_token_id=50256),
        dict(bos_token_id=50256, pad_token_id=50257),
        dict(pad_token_id=0),
    ],
)
def test_a_language_model_without_an_end_writes_to_the_limit(ids, tmp_path):
    theirs = theirs_of("GPT2LMHeadModel", eos_token_id=None, **ids)
    theirs.save_pretrained(tmp_path)
    prompt = torch.tensor([[7, 8, 9], [5, 6, 7]])
    for ours in (from_huggingface(theirs), from_huggingface(tmp_path)):
        assert ours.config.eos_id is None
        found, uncached = (
            greedy_decode(ours, prompt, 8),
            greedy_decode(UncachedDecoder(ours), prompt, 8),
        )
        assert found.lengths.tolist() == [8, 8] and torch.equal(found.ids, uncached.ids)
        assert beam_search(ours, prompt, 8, beam_size=3).lengths.tolist() == [8, 8]
    if not {0, 49} & {ours.config.pad_id, ours.config.bos_id}:  # which ours never writes
        written = theirs.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=8,
            do_sample=False,
            pad_token_id=0,
        )
        assert written[:, 3:].tolist() == found.ids.tolist()
    several = theirs_of("GPT2LMHeadModel", eos_token_id=[1, 2])
    assert from_huggingface(several).config.eos_id == (1, 2)


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
    )
    yield from (
        captioner,
        captioner.vit,
        MaskedLanguageModel(bert).bert,
        ImageClassifier(vit).vit,
    )


@pytest.mark.parametrize(
    "model", list(models_of_ours()), ids=lambda model: type(model).__name__
)
def test_a_model_of_ours_goes_through_both_kinds_of_folder(model, tmp_path):
    "Every weight is the same to the last bit, but for the pooler that BertForMaskedLM has not."
    randomised(model)
    copies = [load_model(save_model(model, tmp_path / "ours"), type(model))]
    if type(model) is not Captioner:
        to_huggingface(torch.compile(model, backend="eager")).save_pretrained(
            tmp_path / "theirs"
        )
        copies.append(from_huggingface(tmp_path / "theirs"))
    for read in copies:
        assert type(read) is type(model) and not read.training
        state = read.state_dict()
        for name, weight in model.state_dict().items():
            assert torch.equal(weight, state[name]) or (
                "pooler" in name and type(model) is MaskedLanguageModel
            ), name


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
        # orders of rows have as many numbers as a matrix has rows; Marian has tables, too
        more = counted.n_copied - for_tables - n_numbers
        assert 0 <= more < 5000 + for_tables
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
    inputs = inputs_of("MarianMTModel")
    assert torch.equal(load_model(tmp_path / "old", Transformer)(*inputs), model(*inputs))


@torch.no_grad()
def test_peft_finds_the_projections_by_their_usual_names():
    "LoRA on queries and values, and then merged into their matrices."
    peft = pytest.importorskip("peft")
    model = randomised(Transformer(TransformerConfig.preset("tiny")))
    inputs = inputs_of("MarianMTModel")
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
    "Some tensors removed, renamed, exchanged, reshaped, retyped, added, or with other numbers in them."
    tensors = dict(folder.tensors)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name, other = rng.sample(sorted(tensors), 2)
        tensor = tensors[name]
        way = rng.choice(
            [
                "drop",
                "rename",
                "swap",
                "shape",
                "flat",
                "type",
                "add",
                "number",
                "nan",
                "layer",
                "move",
                "prefix",
                "transpose",
                "cut",
            ]
        )
        if way in ("drop", "rename"):
            del tensors[name]
        if way == "rename":
            tensors[
                rng.choice(
                    [
                        name + "x",
                        name[:-1],
                        name.upper(),
                        name.replace("1", "2"),
                        "model." + name,
                        name.partition(".")[2] or "x",
                        "",
                    ]
                )
            ] = tensor
        if way == "swap":
            tensors[name], tensors[other] = tensors[other], tensor
        if way == "shape":
            tensors[name] = torch.randn(
                [rng.randint(0, 5) for _ in range(rng.randint(0, 4))]
            )
        if way == "flat":
            tensors[name] = tensor.reshape(
                rng.choice([(-1,), (1, *tensor.shape), (*tensor.shape, 1)])
            )
        if way == "type":
            tensors[name] = tensor.to(
                rng.choice(
                    [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool]
                )
            )
        if way == "add":
            tensors[
                rng.choice(
                    [
                        "lm_head.weight",
                        "x",
                        name + ".1",
                        "pooler.dense.weight",
                        "bert.pooler.dense.bias",
                    ]
                )
            ] = torch.randn(rng.choice([(50, 24), (24, 24), (1,)]))
        if way in ("number", "nan"):
            tensors[name] = tensor.clone()
            tensors[name].view(-1)[
                rng.randrange(max(tensor.numel(), 1)) if tensor.numel() else slice(0)
            ] = float("nan") if way == "nan" else rng.gauss(0, 3)
        if way == "layer":
            tensors = {
                key: value
                for key, value in tensors.items()
                if f".{rng.choice('01')}." not in key
            } or tensors
        if way == "move":
            tensors = {key.replace(".0.", ".7."): value for key, value in tensors.items()}
        if way == "prefix":
            tensors = {
                rng.choice(["bert.", "transformer.", "vit.", "model.", "module."])
                + key: value
                for key, value in tensors.items()
            }
        if way == "transpose" and tensor.ndim == 2:
            tensors[name] = tensor.t()
        if way == "cut":
            tensors[name] = tensor[: max(len(tensor) - 1, 0)] if tensor.ndim else tensor
        if len(tensors) < 2:
            break
    folder.write({name: tensor.clone() for name, tensor in tensors.items()})


def spoil_bytes(rng, folder):
    "One file with bits flipped, bytes gone or repeated."
    file = rng.choice([folder.file, folder.file, folder.config_file])
    content = bytearray(file.read_bytes())
    header = (
        int.from_bytes(content[:8], "little") + 8 if file == folder.file else len(content)
    )
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
    "One option of the configuration changed, removed or added."
    options = json.loads(folder.config_file.read_text())
    name = rng.choice(sorted(options))
    value = options[name]
    wrong = [
        None,
        -1,
        0,
        1,
        2,
        3,
        2.5,
        10**9,
        10**30,
        "",
        "relu",
        "gelu",
        "tanh",
        [],
        [1, 2],
        {},
        True,
        False,
        float("nan"),
    ]
    options[name] = (
        value * 2
        if isinstance(value, (int, float)) and rng.random() < 0.2
        else rng.choice(wrong)
    )
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
    except (
        IndexError,
        OverflowError,
        ValueError,
    ):  # few positions, an id of 1e30, a dropout that ours does not have
        return "theirs"
    assert not info["missing_keys"] and not info["mismatched_keys"], info
    assert difference < 1e-4
    return "equal"


def fuzz(path, seed, tries):
    rng, counts = random.Random(seed), {}
    kind, sizes = (
        rng.choice(KINDS),
        rng.choice(
            [
                {},
                dict(heads=3, hidden=24),
                dict(heads=2, width=24, layers=1),
                dict(heads=6, width=48, layers=3),
            ]
        ),
    )
    folder = Folder(path, theirs_of(kind, **sizes))
    whole = {file: file.read_bytes() for file in (folder.file, folder.config_file)}
    for i in range(tries):
        for file, content in whole.items():
            file.write_bytes(content)
        state = rng.getstate()
        try:
            rng.choice([spoil_tensors, spoil_tensors, spoil_bytes, spoil_options])(
                rng, folder
            )
            found = outcome(folder, kind)
        except BaseException as error:
            keep = Path(os.environ.get("FUZZ_KEEP", path))
            raise AssertionError(
                f"{kind}, seed {seed}, try {i}, {sizes}: {type(error).__name__}: {error} ({keep}, {hash(state)})"
            ) from error
        counts[found] = counts.get(found, 0) + 1
    return counts


@pytest.mark.parametrize("number", range(200 if LONG else 8))
def test_a_spoilt_folder_is_refused_or_read_as_they_read_it(tmp_path, number):
    counts = fuzz(tmp_path, number, 60 if LONG else 15)
    assert counts.get("refused", 0) > 0


# ---- Classes that are only read ----

NARROW = dict(
    vocab_size=50,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
)
GROUPED = dict(NARROW, num_key_value_heads=2, pad_token_id=None)
ROBERTA = dict(NARROW, max_position_embeddings=34, type_vocab_size=1, pad_token_id=1)
DISTILBERT = dict(vocab_size=50, dim=24, hidden_dim=40, n_layers=2, n_heads=4)
QWEN_EXPERTS = dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12)
READ_ONLY = {
    "RobertaModel": ROBERTA,
    "RobertaForMaskedLM": ROBERTA,
    "RobertaForSequenceClassification": dict(ROBERTA, num_labels=3),
    "XLMRobertaModel": ROBERTA,
    "XLMRobertaForMaskedLM": ROBERTA,
    "XLMRobertaForSequenceClassification": dict(ROBERTA, num_labels=3),
    "DistilBertModel": DISTILBERT,
    "DistilBertForMaskedLM": DISTILBERT,
    "MixtralForCausalLM": dict(GROUPED, num_local_experts=4, num_experts_per_tok=2),
    "Phi3ForCausalLM": dict(GROUPED, sliding_window=4, eos_token_id=2),
    "Qwen3MoeForCausalLM": dict(
        GROUPED, **QWEN_EXPERTS, head_dim=8, norm_topk_prob=True, eos_token_id=2
    ),
}


def read_only(kind, **options):
    found = getattr(transformers, kind)
    return randomised(found(found.config_class(**{**READ_ONLY[kind], **options})))


@pytest.mark.filterwarnings("ignore:their model has no pooler")
@pytest.mark.parametrize("way", ["model", "folder"])
@pytest.mark.parametrize("kind", READ_ONLY)
@torch.no_grad()
def test_classes_that_are_only_read_give_the_same(kind, way, tmp_path):
    theirs = read_only(kind)
    theirs.save_pretrained(tmp_path)
    ours = from_huggingface(tmp_path if way == "folder" else theirs)
    ids = torch.tensor([[7, 8, 9, 10, 11, 12], [9, 8, 7, 6, 5, 4]])
    real = torch.ones_like(ids)
    if theirs.config.pad_token_id is not None:
        ids[1, 4:] = theirs.config.pad_token_id
        real[1, 4:] = 0
    found, expected = ours(ids), theirs(ids, attention_mask=real)[0]
    if found.ndim == 3:
        found, expected = found[real.bool()], expected[real.bool()]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kind, options",
    [
        ("MixtralForCausalLM", dict(num_experts_per_tok=3)),
        ("MixtralForCausalLM", dict(num_experts_per_tok=1, num_local_experts=1)),
        ("Qwen3MoeForCausalLM", dict(num_experts_per_tok=5)),
        ("Qwen3MoeForCausalLM", dict(num_experts_per_tok=1, norm_topk_prob=False)),
    ],
)
@torch.no_grad()
def test_any_number_of_experts_that_is_read_gives_the_same(kind, options):
    theirs = read_only(kind, **options)
    ids = torch.tensor([[7, 8, 9, 10, 11, 12]])
    found, expected = from_huggingface(theirs)(ids), theirs(ids).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", READ_ONLY)
def test_a_tensor_that_is_missing_or_left_over_is_named(kind, tmp_path):
    read_only(kind).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    for name in list(weights):
        if "pooler" in name:
            continue  # ours may be new
        without = {other: tensor for other, tensor in weights.items() if other != name}
        save_file(without, file)
        with pytest.raises(ValueError, match="missing|left over|of another shape"):
            from_huggingface(tmp_path)
    save_file({**weights, "strange": torch.zeros(2)}, file)
    with pytest.raises(ValueError, match="left over: strange"):
        from_huggingface(tmp_path)


@pytest.mark.filterwarnings("ignore:their model has no pooler")
@pytest.mark.parametrize("kind", READ_ONLY)
def test_a_bert_of_another_name_goes_out_as_a_bert(kind):
    ours = from_huggingface(read_only(kind))
    if "Moe" in kind or "Mixtral" in kind:
        with pytest.raises(ValueError, match="n_experts: got"):
            to_huggingface(ours)
        return
    back = to_huggingface(ours)
    head = kind.replace("XLM", "").replace("Roberta", "").replace("DistilBert", "")
    expected = "MistralForCausalLM" if kind.startswith("Phi3") else f"Bert{head}"
    assert type(back).__name__ == expected
    ids = torch.tensor([[7, 8, 9, 10, 11, 12]])
    with torch.no_grad():
        torch.testing.assert_close(back(ids)[0], ours(ids), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kind, options, words",
    [
        ("RobertaModel", dict(pad_token_id=0), "pad_token_id: got 0"),
        ("Qwen3MoeForCausalLM", dict(norm_topk_prob=False), "norm_topk_prob: got False"),
        ("Qwen3MoeForCausalLM", dict(num_experts_per_tok=1), "norm_topk_prob: got True"),
        ("MixtralForCausalLM", dict(num_experts_per_tok=1), "num_experts_per_tok: got 1"),
        ("Qwen3MoeForCausalLM", dict(mlp_only_layers=[0]), r"mlp_only_layers: got \[0\]"),
        (
            "Phi3ForCausalLM",
            dict(
                rope_parameters=dict(
                    rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5
                ),
                hidden_size=32,
            ),
            "partial_rotary_factor: got 0.5",
        ),
    ],
)
def test_what_would_compute_something_else_is_refused(kind, options, words):
    with pytest.raises(ValueError, match=words):
        from_huggingface(read_only(kind, **options))


# ---- Ids that only generation_config.json has ----


@torch.no_grad()
def test_an_answer_ends_where_generation_config_says(tmp_path):
    theirs = read_only("Phi3ForCausalLM", eos_token_id=1, sliding_window=None)
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


def test_a_translator_begins_as_generation_config_says(tmp_path):
    theirs = theirs_of("MarianMTModel")
    theirs.generation_config.decoder_start_token_id = 4
    theirs.save_pretrained(tmp_path)
    assert from_huggingface(theirs).config.bos_id == 4
    assert from_huggingface(tmp_path).config.bos_id == 4
