"Every model can be pickled, copied and saved whole: for worker processes, for sweeps, and for `torch.save`."

import copy
import importlib
import io
import pickle

import pytest
import torch
from project import PACKAGE, modules, public, tree
from torch import nn

from annotated_transformer.layers import ACTIVATIONS
from annotated_transformer.transformer import POSITIONS


def models() -> dict[str, type]:
    "All public modules that are built from a configuration, by name."
    found = {}
    for name in modules():
        if name in ("plotting", "cli"):
            continue
        module = importlib.import_module(f"{PACKAGE.name}.{name}")
        for member in map(module.__dict__.get, public(tree(modules()[name]))):
            if (
                isinstance(member, type)
                and issubclass(member, nn.Module)
                and hasattr(member, "config_class")
            ):
                found[member.__name__] = member
    return found


def build(kind: type, **options) -> nn.Module:
    "The smallest preset."
    torch.manual_seed(0)
    return kind(kind.config_class.preset("tiny", **options)).eval()


def through_torch(model: nn.Module) -> nn.Module:
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


WAYS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "torch": through_torch,
}


def same(model: nn.Module, back: nn.Module) -> bool:
    old, new = model.state_dict(), back.state_dict()
    return (
        type(back) is type(model)
        and back.config == model.config
        and old.keys() == new.keys()
        and all(torch.equal(old[name], new[name]) for name in old)
        and [name for name, _ in model.named_parameters()]
        == [name for name, _ in back.named_parameters()]  # tied alike
    )


def test_the_models_are_found():
    assert {"Transformer", "GPT", "ImageClassifier", "Captioner"} <= models().keys()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", models())
def test_a_model_comes_back(name, way):
    model = build(models()[name])
    assert same(model, WAYS[way](model))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_variant_answers_alike(norm, positions, activation):
    model = build(
        models()["Transformer"], norm=norm, positions=positions, activation=activation
    )
    src, tgt = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 3]])
    for way in WAYS.values():
        back = way(model)
        assert same(model, back) and torch.equal(back(src, tgt), model(src, tgt))
