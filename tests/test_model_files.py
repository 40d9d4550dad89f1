"Models of somebody's own, saved and loaded: what is shared stays shared, and types stay as they are."

import copy
import json
import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from annotated_transformer import Transformer, TransformerConfig, load_model, save_model
from annotated_transformer.base.atomic_folders import read_manifest, write_folder
from annotated_transformer.base.config import Config
from annotated_transformer.base.model_files import CONFIG, WEIGHTS, write_model


@dataclass(frozen=True)
class TinyConfig(Config):
    d_model: int = 4
    embed_first: bool = True


class Tied(nn.Module):
    "The embedding makes the logits, as an attribute of another module."

    config_class = TinyConfig

    def __init__(self, config=TinyConfig()):
        super().__init__()
        self.config = config
        if config.embed_first:
            self.embed = nn.Embedding(7, config.d_model)
        self.out = nn.Linear(config.d_model, 7, bias=False)
        if not config.embed_first:
            self.embed = nn.Embedding(7, config.d_model)
        self.out.weight = self.embed.weight
        self.register_buffer("seen", torch.tensor(2**24 + 1))
        self.register_buffer("mask", torch.tensor([True, False]))

    def forward(self, ids):
        return self.out(self.embed(ids))


@pytest.mark.parametrize("embed_first", [True, False])
def test_a_weight_with_two_names_is_one_weight_again(tmp_path, embed_first):
    torch.manual_seed(0)
    model = Tied(TinyConfig(embed_first=embed_first))
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model", Tied)

    ids = torch.arange(7)[None]
    assert again.out.weight is again.embed.weight
    assert torch.equal(again(ids), model(ids))
    assert not any(x.is_meta for x in (*again.parameters(), *again.buffers()))


def test_counters_and_masks_keep_their_types(tmp_path):
    model = Tied().half()
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model", Tied)
    assert again.embed.weight.dtype == torch.float16
    assert again.seen.item() == 2**24 + 1 and again.seen.dtype == torch.int64
    assert again.mask.tolist() == [True, False] and again.mask.dtype == torch.bool


TWO_LAYERS = TransformerConfig.preset("tiny", vocab_size=13)


def more_tokens(model):
    grown = torch.zeros(len(model.output.weight) + 1, model.config.d_model)
    model.output.weight = nn.Parameter(grown)


def new_head(model):
    model.head = nn.Linear(3, 3)


def fewer_layers(model):
    del model.decoder.layers[1]


def adapted(model):
    layer = model.encoder.layers[0].feed_forward
    layer.linear2 = nn.Sequential(layer.linear2, nn.Linear(64, 64, bias=False))


def weight_norm(model):
    nn.utils.parametrizations.weight_norm(model.encoder.layers[0].feed_forward.linear2)


def pruned(model):
    linear = model.encoder.layers[0].feed_forward.linear2
    prune.l1_unstructured(linear, "weight", amount=0.5)


def untied(model):
    model.src_embed.read = copy.deepcopy(model.src_embed.read)


class Wrapper(nn.Module):
    "It looks like the model inside."

    def __init__(self, model):
        super().__init__()
        self.model = model

    def __getattr__(self, name):
        if name == "model":
            return super().__getattr__(name)
        return getattr(self.model, name)


@pytest.fixture
def folder(tmp_path):
    return save_model(Transformer(TWO_LAYERS), tmp_path / "model")


@pytest.mark.parametrize(
    "change",
    [more_tokens, new_head, fewer_layers, adapted, weight_norm, pruned, untied, Wrapper],
)
def test_a_model_that_cannot_be_read_back_is_not_saved(change, folder):
    before = read_manifest(folder)
    model = Transformer(TWO_LAYERS)
    changed = change(model) or model
    with pytest.raises(ValueError, match="^(weights|model): got"):
        save_model(changed, folder)
    assert read_manifest(folder) == before


def edited(folder, change: dict, without: str = ""):
    "The folder of a model whose configuration was changed, and its manifest is right."
    with write_folder(folder) as new:
        write_model(Transformer(TWO_LAYERS), new)
        options = json.loads((new / CONFIG).read_text()) | change
        options.pop(without, None)
        (new / CONFIG).write_text(json.dumps(options))
    return folder


@pytest.mark.parametrize(
    "change, why",
    [
        (dict(d_ff=100), "of another shape"),
        (dict(n_layers=10**9), "n_layers: got 1000000000, expected at most"),
        (dict(format=2), "an older version of this library saved it"),
        (dict(format=99), "a newer version of this library saved it"),
        (dict(d_modell=3), "did you mean 'd_model'?"),
        (dict(model="GPT"), "model: got 'GPT', expected Transformer"),
        (dict(d_model=10_000), "holds no readable model"),
        (dict(max_len=10**30), "holds no readable model"),
        (dict(vocab_size=10**12), "holds no readable model"),
        (dict(n_layers=-1), "n_layers: got -1"),
        (dict(n_layers=3), "missing"),
        (dict(n_layers=1), "left over"),
    ],
    ids=str,
)
def test_an_edited_configuration_is_refused(change, why, tmp_path):
    with pytest.raises(ValueError) as refused:
        load_model(edited(tmp_path / "edited", change), Transformer)
    assert why in str(refused.value)


@pytest.mark.parametrize("name", ["n_heads", "norm", "pad_id"])
def test_a_missing_option_is_not_guessed(name, tmp_path):
    "A default could be another model: four heads, or eight of half the width."
    with pytest.raises(ValueError, match=f"config.json: got 'no {name}', expected all"):
        load_model(edited(tmp_path / "edited", {}, without=name), Transformer)


def test_damaged_files_are_named(folder):
    modes = [(folder / name).stat().st_mode & 0o777 for name in (WEIGHTS, CONFIG)]
    assert modes[0] == modes[1]  # whoever may read the one may read the other

    for name in (WEIGHTS, CONFIG):  # one bit anywhere, or the end cut off
        content = (folder / name).read_bytes()
        flipped = content[:100] + bytes([content[100] ^ 1]) + content[101:]
        for wrong in (content[:-1], flipped):
            (folder / name).write_bytes(wrong)
            with pytest.raises(ValueError, match="is damaged"):
                load_model(folder, Transformer)
        (folder / name).write_bytes(content)

    (folder / CONFIG).unlink()
    with pytest.raises(FileNotFoundError, match="config.json is missing"):
        load_model(folder, Transformer)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load_model("nowhere", Transformer)


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(tgt_vocab_size=20),
        dict(output_bias=True),
        dict(tie_weights=False, positions="learned", norm="pre"),
    ],
    ids=str,
)
def test_a_model_comes_back_as_it_was(options, folder):
    src, tgt = torch.randint(3, 13, (2, 5)), torch.randint(3, 13, (2, 7))
    model = Transformer(TWO_LAYERS.replace(**options)).eval()
    compiled = torch.compile(model, backend="eager")  # is saved as what it wraps
    for saved in (model, compiled):
        save_model(saved, folder)
        before = torch.get_rng_state()
        back = load_model(folder, Transformer)
        assert torch.equal(torch.get_rng_state(), before)  # it draws no random numbers
        assert torch.equal(back(src, tgt), model(src, tgt)) and not back.training
        assert back.config == model.config

    double = load_model(save_model(model.double(), folder), Transformer)
    assert double.output.weight.dtype == torch.float64


class Mixing(Transformer):
    "It starts from numbers, which the device `meta` doesn't have."

    def __init__(self, config):
        super().__init__(config)
        self.mix = nn.Parameter(torch.eye(4) + 0.1 * torch.randn(4, 4))
        self.scale = nn.Parameter(torch.tensor(torch.randn(5).max().item()))
        future = torch.empty(4, 4).fill_(-math.inf).triu(1)
        self.register_buffer("future", future, persistent=False)


class TableOnly(Transformer):
    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("table", torch.empty(3).fill_(2.0), persistent=False)


@pytest.mark.parametrize("kind", [Mixing, TableOnly])
def test_weights_and_tables_that_are_computed_come_back(kind, folder):
    model = kind(TWO_LAYERS).eval()
    before = torch.get_rng_state()
    back = load_model(save_model(model, folder), kind)
    assert torch.equal(torch.get_rng_state(), before)
    for part, expected in zip(back.state_dict().values(), model.state_dict().values()):
        assert torch.equal(part, expected)
    for part, expected in zip(back.buffers(), model.buffers(), strict=True):
        assert torch.equal(part, expected)
