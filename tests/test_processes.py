"Several processes that train together: the same steps as one, nothing twice, nothing lost. torchrun starts them on this machine, over gloo."

import csv
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import torch
from annotated_transformer.training.distributed import (
    all_reduce_any,
    gather_values,
    joined_processes,
    n_processes,
    process_rank,
    rows_of,
)
from annotated_transformer.training.loop import Interrupted
from project import ROOT
from safetensors.torch import load_file
from training_together import OPTIONS, batches, run

pytestmark = pytest.mark.slow

TRAINING = ROOT / "tests" / "training_together.py"
EQUAL = [
    "accumulate=2 tie=1 unused=1 ema=.5",
    "chunked=1",
    "plain=1",
]


def torchrun(
    *words, n: int = 2, restarts: int = 0, seconds: int = 120
) -> subprocess.CompletedProcess:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={n}",
        f"--max-restarts={restarts}",
        *map(str, words),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds, cwd=ROOT
    )


def given(words: str) -> dict:
    return {
        name: type(OPTIONS[name])(float(value))
        for name, _, value in (word.partition("=") for word in words.split())
    }


def difference(one: Path, other: Path) -> float:
    "The largest of any weight."
    left, right = (
        load_file(one / "model.safetensors"),
        load_file(other / "model.safetensors"),
    )
    assert left.keys() == right.keys()
    return max((left[name] - right[name]).abs().max().item() for name in left)


def losses(folder: Path) -> list[float]:
    return [
        float(row["loss"])
        for row in csv.DictReader((folder / "history.csv").open())
        if row["loss"]
    ]


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    "What two processes left of each of the trainings."
    folder = tmp_path_factory.mktemp("together")
    done = torchrun(TRAINING, folder, *" + ".join(EQUAL).split())
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("words", EQUAL)
def test_two_processes_end_where_one_ends(words, together, tmp_path):
    "In float64: in float32 Adam divides gradients that are nothing but rounding by their own size."
    run(tmp_path, **given(words))
    folder = together / str(EQUAL.index(words))
    assert difference(folder, tmp_path) < 1e-6
    assert losses(folder) == pytest.approx(losses(tmp_path), rel=1e-6)
    assert losses(folder)[-1] < losses(folder)[0]


def rows(folder: Path) -> list[list]:
    "The sources that each of two processes has computed with, one list each."
    return [
        [tuple(row) for row in torch.load(folder / f"rows-{rank}.pt", weights_only=True)]
        for rank in range(2)
    ]


def parts(first: int, last: int) -> list[list]:
    "Those that they should have, in the steps from one to another."
    chosen = list(islice(batches(7), first - 1, last))
    return [
        [tuple(row) for batch in chosen for row in batch.src[rank::2].tolist()]
        for rank in range(2)
    ]


@pytest.mark.parametrize("words", EQUAL)
def test_each_row_is_computed_with_once(words, together):
    found, expected = (
        rows(together / str(EQUAL.index(words))),
        parts(1, 12 * given(words).get("accumulate", 1)),
    )
    assert found == expected
    assert len(found[0]) != len(found[1]), "the parts should differ in size"
    assert [len(part) for part in parts(4, 4)] == [1, 0], (
        "and one of them should have no rows"
    )


def test_a_killed_process_is_named_and_the_restart_goes_on_exactly(tmp_path):
    "With dropout: the random numbers of both processes have to come back, too."
    killed, whole = "dropout=.1 ema=.5 every=4 kill=8", "dropout=.1 ema=.5"
    done = torchrun(TRAINING, tmp_path, *f"{killed} + {whole}".split(), restarts=1)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ConnectionError: another process of this run is lost" in done.stderr
    assert done.stderr.count("exitcode: -9") == 1, done.stderr[-3000:]
    assert (tmp_path / "0" / "killed").exists()
    assert rows(tmp_path / "0") == parts(5, 12), "it went on from step 4"
    assert rows(tmp_path / "1") == parts(1, 12)
    assert difference(tmp_path / "0", tmp_path / "1") == 0
    assert losses(tmp_path / "0") == losses(tmp_path / "1")
    assert len(losses(tmp_path / "0")) == 12


def steps_saved(folder: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in (folder / "checkpoints").glob("step-*"))


def test_what_one_is_told_all_do_and_one_goes_on_alone(tmp_path):
    "A signal that comes to one process stops all of them after the same step, saved; and what two have saved, a single process reads."
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "checkpoints").touch()  # a file: nothing can be written there
    done = torchrun(TRAINING, tmp_path, "rows=7", "+", "stop=7", "ema=.5")
    assert done.stderr.count("no checkpoint of step 12, and there is none before: ") == 1
    assert len(losses(tmp_path / "0")) == 12
    assert done.returncode == 1
    interrupted = done.stderr.count("Interrupted: SIGTERM after step 7")
    assert interrupted == 2, done.stderr[-3000:]
    assert steps_saved(tmp_path / "1") == [7]
    (tmp_path / "alone").mkdir()
    run(tmp_path / "1", ema=0.5)
    run(tmp_path / "alone", ema=0.5)
    assert difference(tmp_path / "1", tmp_path / "alone") < 1e-6
    assert losses(tmp_path / "1") == pytest.approx(losses(tmp_path / "alone"), rel=1e-6)


def test_what_one_has_saved_two_go_on_with(tmp_path):
    for name in ("0", "alone"):
        (tmp_path / name).mkdir()
    with pytest.raises(Interrupted):
        run(tmp_path / "0", ema=0.5, stop=7)
    done = torchrun(TRAINING, tmp_path, "ema=.5")
    assert done.returncode == 0, done.stderr[-3000:]
    run(tmp_path / "alone", ema=0.5)
    assert rows(tmp_path / "0") == parts(8, 12)
    assert difference(tmp_path / "0", tmp_path / "alone") < 1e-6
    assert losses(tmp_path / "0") == pytest.approx(losses(tmp_path / "alone"), rel=1e-6)


def test_all_lose_patience_and_save_in_the_same_step(tmp_path):
    "Evaluations differ: by the first process's, patience ends the run. And only the last process finds that it is time to save."
    done = torchrun(TRAINING, tmp_path, "patience=1", "+", "hurry=1")
    assert done.returncode == 0, done.stderr[-3000:]
    assert rows(tmp_path / "0") == parts(1, 6)
    assert steps_saved(tmp_path / "0") == [6]
    assert rows(tmp_path / "1") == parts(1, 12)
    assert steps_saved(tmp_path / "1") == [10, 11, 12]


def test_the_command_in_two_processes_speaks_once(tmp_path):
    words = ["copy-task", "--steps", 30, "--heldout", 50, "--device", "cpu", "--out"]
    done = torchrun("-m", "annotated_transformer", *words, tmp_path / "two")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("held-out answers") == done.stdout.count("written to") == 1
    files = {
        "attention.png",
        "config.json",
        "history.csv",
        "loss.png",
        "manifest.json",
        "metrics.json",
        "model.safetensors",
    }
    assert {path.name for path in (tmp_path / "two").iterdir()} == files
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["two"]


def test_alone_nothing_changes():
    assert (n_processes(), process_rank()) == (1, 0)
    assert all_reduce_any() == []
    assert all_reduce_any(0, "x") == [False, True]
    assert gather_values(None) == [None]
    with joined_processes():
        assert n_processes() == 1


def test_rows_of_batches_of_any_kind():
    x = torch.arange(5)
    found = [rows_of(dict(x=x, both=(x, [x])), rank, 3) for rank in range(3)]
    for rank, part in enumerate(found):
        expected = x[rank::3].tolist()
        assert part["x"].tolist() == part["both"][0].tolist() == expected
        assert part["both"][1][0].tolist() == expected
    assert [len(part["x"]) for part in found] == [2, 2, 1]


LATE = """
import sys, time
from annotated_transformer.tasks import translation as t
from annotated_transformer.training.distributed import joined_processes, process_rank
usual = t.candidate_models
def late(*given):
    time.sleep(process_rank())
    return usual(*given)
t.candidate_models = late
config = t.TranslationConfig(corpus=sys.argv[1], epochs=1, vocab_size=300, max_tokens=512)
with joined_processes(): t.run_translation(config, device='cpu')
"""


def test_a_late_process_still_finds_the_weights_of_a_translator(tmp_path):
    for package in ("tokenizers", "sacrebleu", "sacremoses"):
        pytest.importorskip(package)
    (tmp_path / "late.py").write_text(LATE)
    pairs = [f"{a} and {b}\t{b} und {a}\n" for a in "abcdefghij" for b in "klmnopqrst"]
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    done = torchrun(tmp_path / "late.py", tmp_path / "pairs.tsv")
    assert done.returncode == 0, done.stderr[-3000:]
