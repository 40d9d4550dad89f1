"The GPU command: rehearsed whole on a CPU; results are what their commit measured."

import argparse
import json
import re
import subprocess
import sys

import pytest
from project import ROOT, chapters

sys.path.insert(0, str(ROOT / "benchmarks"))
from support import gpu, machine
from support.stages import STAGES

pytestmark = pytest.mark.slow


def command(*words):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "support" / "gpu.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_rehearsal_runs_every_job_and_is_not_repeated(tmp_path):
    done = command("--rehearse", "--dirty", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr

    for stage in STAGES:
        rows = {row["job"]: row for row in gpu.read_rows(tmp_path, stage.name)}
        assert rows.keys() == {job.name for job in stage.jobs}
        assert all(row["result"] and row["origin"]["rehearsal"] for row in rows.values())

    tested = set()
    for row in gpu.read_rows(tmp_path, "cuda_tests"):
        tested |= row["result"]["cells"].keys()
    assert tested == {
        cell.id
        for chapter in chapters()
        for cell in chapter.cells
        if "cuda" in cell.directives
    }

    again = command("--rehearse", "--dirty", "--out", str(tmp_path))
    assert again.returncode == 0
    assert "0 jobs to do" in again.stdout

    taken = command("--take", str(tmp_path))
    assert taken.returncode
    assert "is a rehearsal" in taken.stderr


# ---- A result belongs to its commit ----


@pytest.fixture
def repository(tmp_path, monkeypatch):
    "A small project under version control, in place of this one."

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", *identity, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    for folder in machine.MEASURED:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "code.py").write_text("x = 1\n")
    (tmp_path / "README.md").write_text("words\n")

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "benchmarks" / "results")
    return tmp_path, git


def test_a_changed_tree_is_refused(repository):
    folder, git = repository
    head = machine.commit()
    assert git("rev-parse", "HEAD").startswith(head)

    (folder / "benchmarks" / "results").mkdir()
    (folder / "benchmarks" / "results" / "new.json").write_text("{}")
    assert machine.commit() == head, "results do not change what is measured"

    (folder / "README.md").write_text("other words\n")
    with pytest.raises(SystemExit, match="commit first, or say --dirty"):
        machine.commit()
    assert machine.commit(dirty=True) == f"{head}-dirty"


def test_stored_results_name_a_clean_commit():
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        content = json.loads(path.read_text())
        results = content if isinstance(content, list) else [content]

        for result in results:
            origin = result.get("origin")
            if origin is None:  # of the tables of faults, which a notebook makes
                continue
            assert not origin.get("rehearsal"), path.name
            assert re.fullmatch(r"[0-9a-f]{7,40}", origin["commit"]), path.name


# ---- Results of several seeds ----


@pytest.fixture
def results(tmp_path):
    options = argparse.Namespace(out=tmp_path, device="cpu", commit=None, dirty=True)
    return machine.Results("seeds", options)


def saved(results, runs: list[dict], device="one") -> list[dict]:
    "The runs that are in the file after these were saved."
    results.origin = dict(device=device)
    path = results.save_seeds(runs)
    return json.loads(path.read_text())["runs"]


def test_runs_of_another_recipe_do_not_stay(results):
    "A chapter could not take the mean of both."

    def run(seed, **more):
        return dict(seed=seed, config=dict(epochs=5, seed=seed), **more)

    saved(results, [dict(seed=0)])
    assert [run["seed"] for run in saved(results, [run(3)])] == [3]
    assert [run["seed"] for run in saved(results, [run(4, stopped_early=1.0)])] == [4]
