"Every model can be pickled, copied and saved whole: for worker processes, for sweeps, and for `torch.save`."

import copy
import functools
import importlib
import io
import pickle

import pytest
import torch
from project import PACKAGE, modules, public, tree
from torch import nn

from annotated_transformer.core.layers import ACTIVATIONS
from annotated_transformer.core.transformer import POSITIONS


@functools.cache
def models() -> dict[str, type]:
    "All public models that are built from a configuration, by name."
    found = {}
    for name, path in modules().items():
        if name in ("figures.plotting", "cli"):
            continue
        module = importlib.import_module(f"{PACKAGE.name}.{name}")
        for public_name in public(tree(path)):
            member = getattr(module, public_name)
            if (
                isinstance(member, type)
                and issubclass(member, nn.Module)
                and hasattr(member, "config_class")
            ):
                found[public_name] = member
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


def parameter_names(model: nn.Module) -> list[str]:
    "Of a shared parameter the first name alone."
    return [name for name, _ in model.named_parameters()]


def assert_same(model: nn.Module, back: nn.Module):
    assert type(back) is type(model)
    assert back.config == model.config
    assert parameter_names(back) == parameter_names(model), "not tied alike"

    old = model.state_dict()
    new = back.state_dict()
    assert old.keys() == new.keys()
    for name in old:
        assert torch.equal(old[name], new[name]), name


def test_the_models_are_found():
    assert {"Transformer", "GPT", "ImageClassifier", "Captioner"} <= models().keys()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", models())
def test_a_model_comes_back(name, way):
    model = build(models()[name])
    assert_same(model, WAYS[way](model))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_variant_answers_alike(norm, positions, activation):
    model = build(
        models()["Transformer"], norm=norm, positions=positions, activation=activation
    )
    src = torch.tensor([[3, 4, 5]])
    tgt = torch.tensor([[1, 3]])

    for way in WAYS.values():
        back = way(model)
        assert_same(model, back)
        assert torch.equal(back(src, tgt), model(src, tgt))
