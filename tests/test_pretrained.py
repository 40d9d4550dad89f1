"The models that come with the package have the scores that their cards give, and can be trained again."

import json
import sys

import pytest
import torch
from project import ROOT, call

from annotated_transformer import load_pretrained
from annotated_transformer.translator import PRETRAINED, pretrained_names
from annotated_transformer.base.atomic_folders import check_files

sys.path.insert(0, str(ROOT / "benchmarks"))
from support import pretrain

NAMES = pretrained_names()
# to write out the numbers takes longer than to translate them
SCORED = [
    pytest.param(name, marks=[pytest.mark.long]) if name.startswith("numbers") else name
    for name in NAMES
]


def metrics(name: str) -> dict:
    return json.loads((PRETRAINED / name / "metrics.json").read_text(encoding="utf-8"))


def test_they_are_there():
    assert {"cat", "copier", "numbers-en-de", "numbers-en-zh"} <= set(NAMES)


@pytest.mark.parametrize("name", SCORED)
def test_stored_weights_have_the_scores_on_the_card(name):
    "On at most a thousand examples, which is all of those of the cat, and of the copier."
    if name.startswith("numbers"):
        pytest.importorskip("num2words")
    translator = load_pretrained(name, "cpu")
    held_out = pretrain.recipe(name).held_out()

    said = metrics(name)["scores"][pretrain.HELD_OUT]
    assert said["of"] == len(held_out)
    share = said["right"] / said["of"]
    assert share > 0.99

    some = held_out[:1000]
    found = pretrain.score(translator, {pretrain.HELD_OUT: some})[pretrain.HELD_OUT]
    assert found["right"] >= (share - 0.005) * len(some)


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_as_the_script_wrote_it(name):
    "Someone who edits a card edits the script that writes it."
    folder = PRETRAINED / name
    check_files(folder)

    # no pickles, which could run code and depend on the version
    assert {path.suffix for path in folder.iterdir()} <= {".json", ".md", ".safetensors"}

    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {name}\n")
    assert f"python benchmarks/support/pretrain.py {name}\n" in card


@pytest.mark.parametrize("name", NAMES)
def test_they_compute_in_single_precision(name):
    model = load_pretrained(name, "cpu").model
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert not model.training


def test_they_are_a_few_megabytes():
    sizes = [path.stat().st_size for path in PRETRAINED.rglob("*") if path.is_file()]
    assert sum(sizes) < 4_000_000


@pytest.mark.parametrize(
    "name, answer",
    [
        ("numbers-en-de", "zwölftausenddreihundertfünfundvierzig"),
        ("numbers-en-zh", "一万两千三百四十五"),
    ],
)
def test_the_command_translates_numbers(name, answer):
    "A line that it can't read costs no other line its answer."
    number = "twelve thousand three hundred and forty-five"
    lines = [number, "", "one " * 2500, number]
    typed = "\n".join(lines)
    done = call("translate", "--model", name, "--device", "cpu", typed=typed)
    assert done.stdout.splitlines() == [answer, "", "", answer]
    assert done.stderr == "line 3: 2,500 tokens, and the model takes 1,024 at most\n"
    assert done.status == 1


@pytest.mark.parametrize(
    "command", [("translate",), ("decode", "7 3"), ("generate", "The")]
)
def test_a_command_says_what_is_no_model(command, tmp_path):
    (tmp_path / "notes.txt").write_text("twelve\n")
    names = ", ".join(NAMES)
    wrong = {
        tmp_path: f"{tmp_path} holds no model: config.json is missing",
        tmp_path / "notes.txt": "notes.txt is a file; expected the folder of a model",
        "./nowhere": "there is no such folder",
    }
    for model, why in wrong.items():
        done = call(*command, "--model", model, typed="twelve\n")
        said = done.stderr.replace("\n", " ")
        assert done.status == 2 and "Traceback" not in said
        assert why in said
        if command[0] != "generate":
            assert f"the models that come with the package are {names}" in said


@pytest.mark.slow
def test_the_copier_can_be_trained_again(tmp_path):
    metrics = pretrain.main("copier", tmp_path / "copier")

    held_out = metrics["scores"][pretrain.HELD_OUT]
    assert held_out["right"] >= 0.99 * held_out["of"]
    written = {path.name for path in (tmp_path / "copier").iterdir()}
    assert written == {path.name for path in (PRETRAINED / "copier").iterdir()}
