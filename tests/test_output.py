"What the command says reaches every terminal: none of them ends a run for want of a sign, and none is told what to do by a name."

import os
import re
import subprocess
import sys

import pytest
from project import PACKAGE, ROOT

pytestmark = pytest.mark.slow

COMMAND = f"from {PACKAGE.name}.cli import main; main()"
# names of class folders: a formula to matplotlib, no UTF-8, a code that clears the screen, and a sign that few encodings have
NAMES = [b"$_$", b"caf\xe9", b"\x1b[2J", "Ω".encode()]
SHOWN = ["$_$", r"caf\udce9", r"\x1b[2J"]


def run(*words, way=("-c", COMMAND), encoding="utf-8", folder=ROOT):
    "The command as its own process, whose terminal has this encoding; bytes come back."
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": encoding,
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *way, *words], cwd=folder, env=environment, capture_output=True
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    "A folder of ten small pictures for each class."
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("pictures")
    for shade, name in enumerate(NAMES):
        place = os.fsdecode(os.path.join(os.fsencode(folder), name))
        try:
            os.mkdir(place)
        except OSError:
            pytest.skip("this file system takes no such names")
        for n in range(10):
            image.new("L", (8, 8), 60 * shade + n).save(os.path.join(place, f"{n}.png"))
    return folder


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_a_report_is_written_in_every_encoding(pictures, tmp_path, encoding):
    out = os.fsdecode(b"r\xe9sultats")
    options = ["--data", pictures, "--steps", "2", "--device", "cpu", "--out", out]
    done = run("vit", *options, encoding=encoding, folder=tmp_path)
    said = done.stdout.decode(encoding)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode(encoding)
    assert "accuracy on 8 held-out pictures" in said
    assert re.search(r"^written to r(\\udce9|\?)sultats: attention", said, re.M)
    lines = [line for line in said.splitlines() if "->" in line]
    assert len(lines) == 5 and all(line.isprintable() for line in lines)
    omega = "Ω" if encoding == "utf-8" else r"\u03a9"
    assert all(line.rpartition(" -> ")[2] in [*SHOWN, omega] for line in lines), lines
    assert {"attention.png", "loss.png", "metrics.json"} <= set(os.listdir(tmp_path / out))


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_an_error_is_written_in_every_encoding(encoding):
    done = run("decode", "Ω", "--model", "nowhere", encoding=encoding)
    assert (
        done.returncode == 2
        and b"nowhere" in done.stderr
        and b"Traceback" not in done.stderr
    )
    done = run("Ω", encoding=encoding)
    wanted = "Ω".encode(encoding, "backslashreplace")
    assert (
        done.returncode == 2 and wanted in done.stderr and b"Traceback" not in done.stderr
    )


@pytest.mark.parametrize("words", [["--help"], ["vit", "--steps", "x"]], ids=" ".join)
def test_the_package_runs_as_the_command_does(words):
    command, module = run(*words), run(*words, way=("-m", PACKAGE.name))
    assert (command.returncode, command.stdout, command.stderr) == (
        module.returncode,
        module.stdout,
        module.stderr,
    )
    assert b"annotated-transformer" in command.stdout + command.stderr


def test_importing_the_entry_point_runs_nothing():
    "Worker processes import the main module again."
    done = run(way=("-c", f"import {PACKAGE.name}.__main__"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_results_do_not_replace_the_pictures(pictures):
    before = sorted(os.listdir(pictures))
    done = run(
        "vit", "--data", pictures, "--steps", "1", "--device", "cpu", "--out", pictures
    )
    assert done.returncode == 2 and b"expected a new folder" in done.stderr, done.stderr
    assert b"\x1b" not in done.stderr  # nothing that a terminal would take for a command
    assert sorted(os.listdir(pictures)) == before


@pytest.mark.long
def test_curves_are_written_for_tensorboard(tmp_path):
    "For each of BERT's trainings; and whoever has no TensorBoard is told before anything is trained."
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    words = [
        "bert",
        "--tensorboard",
        "--steps",
        "20",
        "--heldout",
        "20",
        "--device",
        "cpu",
        "--out",
        tmp_path / "bert",
    ]
    done = run(*words)
    assert done.returncode == 0, done.stderr.decode()
    files = (tmp_path / "bert" / "tensorboard").rglob("events*")
    folders = sorted(file.parent for file in files)
    assert len(folders) > 1 and folders[-1].name == "pretraining"
    last = [
        events.EventAccumulator(str(folder)).Reload().Scalars("loss")[-1]
        for folder in folders
    ]
    assert last[-1].step == 20 and all(event.step > 0 and event.value > 0 for event in last)
    (tmp_path / "tensorboard.py").write_text("raise ImportError('not here')\n")
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {COMMAND}"
    done = run("copy-task", "--tensorboard", "--out", tmp_path / "copy", way=("-c", start))
    assert done.returncode == 2 and b".[tensorboard]" in done.stderr, done.stderr
    assert not (tmp_path / "copy").exists() and not (tmp_path / "copy.checkpoints").exists()
