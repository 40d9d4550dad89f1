"The GPU command: rehearsed whole on a CPU; failed, stopped and stale jobs come again; results are what their commit measured."

import argparse
import json
import os
import re
import subprocess
import sys

import pytest
import torch
from project import ROOT, chapters, only_thorough

sys.path.insert(0, str(ROOT / "benchmarks"))
from support import gpu, machine
from support.stages import STAGES, Job, Stage

pytestmark = pytest.mark.slow

HERE = dict(device="a GPU", torch="2", date="2026-01-01", commit="abc", code="new")


def command(*words):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "support" / "gpu.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@only_thorough
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


# ---- Jobs that fail, and jobs that come again ----


def succeed(context, value):
    return dict(value=value)


def fail(context):
    raise ValueError("as planned")


def end_the_process(context):
    os._exit(7)


def planned(folder) -> list[str]:
    return [job.name for _, job in gpu.plan(folder, HERE, None)]


def row_of(job, code="new", device="a GPU", **content):
    origin = HERE | dict(code=code, device=device)
    return dict(stage="toys", job=job, origin=origin, **content or dict(result={}))


@pytest.fixture
def toys(monkeypatch):
    "Puts these jobs in place of all stages."

    def replace(*jobs: Job):
        monkeypatch.setattr(gpu, "STAGES", (Stage("toys", "for the test", jobs),))

    return replace


def test_a_failure_is_recorded_and_the_others_go_on(toys, tmp_path):
    toys(
        Job("bad", fail, 0),
        Job("dies", end_the_process, 0),
        Job("elsewhere", succeed, 0, dict(value=1), needs=("no_such_package",)),
        Job("good", succeed, 0, dict(value=3)),
    )
    options = argparse.Namespace(device="cpu", minutes=60.0, out=tmp_path, rehearse=False)
    said = []

    gpu.run_all(gpu.plan(tmp_path, HERE, None), options, HERE, said.append)

    rows = {row["job"]: row for row in gpu.read_rows(tmp_path, "toys")}
    assert rows.keys() == {"bad", "dies", "good"}
    assert "as planned" in rows["bad"]["error"]
    assert "Traceback" in rows["bad"]["error"]
    assert rows["dies"]["error"] == "the process ended with exit code 7"
    assert rows["good"]["result"] == rows["good"]["settings"] == dict(value=3)
    assert "skipped, needs no_such_package" in "\n".join(said)
    assert planned(tmp_path) == ["bad", "dies", "elsewhere"]


def test_what_is_not_measured_by_this_code_here_to_its_end_comes_again(toys, tmp_path):
    names = ("stale", "stopped", "fresh", "done", "other")
    toys(*[Job(name, succeed, 0) for name in names])

    for row in (
        row_of("stale", code="old"),
        row_of("stopped", result=dict(metrics=dict(interrupted=True))),
        row_of("done"),
        row_of("other", device="another GPU"),
    ):
        gpu.keep_row(tmp_path, row)

    assert set(planned(tmp_path)) == {"stale", "stopped", "fresh", "other"}
    assert planned(tmp_path)[-1] == "stale", "there is an older result of it"
    assert "the code has changed since" in gpu.listing(tmp_path)


def test_a_failure_does_not_replace_an_older_result(tmp_path):
    good = row_of("a", code="old")
    bad = row_of("a", error="no")

    for row in (good, bad, bad):
        gpu.keep_row(tmp_path, row)
    assert gpu.read_rows(tmp_path, "toys") == [good, bad]
    assert gpu.best_row(gpu.read_rows(tmp_path, "toys"), "a") == good

    gpu.keep_row(tmp_path, row_of("a"))
    assert gpu.read_rows(tmp_path, "toys") == [row_of("a")]


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


def test_a_copy_without_history_needs_its_commit_named(repository):
    folder, _ = repository
    head = machine.commit()

    with pytest.raises(SystemExit, match="but the tree is"):
        machine.commit(said="abc")
    assert machine.commit(said=head) == head

    (folder / ".git").rename(folder / "away")
    with pytest.raises(SystemExit, match="name the commit with --commit"):
        machine.commit()
    assert machine.commit(said="abc") == "abc"


def test_the_code_on_disk_is_compared_with_the_commit(repository, tmp_path_factory):
    folder, _ = repository
    made = tmp_path_factory.mktemp("made")
    head = machine.commit()
    assert machine.code() == machine.code_at(head)

    def measured() -> dict:
        origin = HERE | dict(commit=head, code=machine.code())
        return row_of("ceilings") | dict(stage="device", origin=origin)

    row = measured()
    gpu.keep_row(made, row)
    gpu.take(made)
    assert gpu.read_rows(gpu.RESULTS, "device") == [row]

    (folder / "annotated_transformer" / "code.py").write_text("x = 2\n")
    assert machine.code() != machine.code_at(head)
    gpu.keep_row(made, measured())
    with pytest.raises(SystemExit, match="its code is not that of commit"):
        gpu.take(made)

    with pytest.raises(SystemExit, match="holds no file"):
        gpu.take(folder)


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


def test_runs_of_other_seeds_stay_and_say_where_they_come_from(results):
    results.origin = dict(device="one")
    results.save(runs=[dict(seed=0), dict(seed=2)])  # as older files have them

    found = saved(results, [dict(seed=2), dict(seed=1)], device="another")
    devices = {run["seed"]: run["origin"]["device"] for run in found}
    assert devices == {0: "one", 1: "another", 2: "another"}

    found = saved(results, [dict(seed=1)], device="a third")
    devices = {run["seed"]: run["origin"]["device"] for run in found}
    assert devices == {0: "one", 1: "a third", 2: "another"}


def test_runs_of_another_recipe_do_not_stay(results):
    "A chapter could not take the mean of both."

    def run(seed, **more):
        return dict(seed=seed, config=dict(epochs=5, seed=seed), **more)

    saved(results, [dict(seed=0)])
    assert [run["seed"] for run in saved(results, [run(3)])] == [3]
    assert [run["seed"] for run in saved(results, [run(4, stopped_early=1.0)])] == [4]


def test_the_memory_of_a_first_step_is_that_of_any():
    from speed.base_step import measure

    with torch.compiler.set_stance("force_eager"):
        found = measure(
            "cpu",
            rounds=1,
            max_tokens=200,
            n_batches=2,
            product_size=64,
            lengths=[16, 16, 32],
            rows=2,
            model="tiny",
            vocab_size=100,
            compiled=True,
        )

    first, again, longer = found["memory"]["bytes"]
    assert first == again < longer
    assert found["compiled"]
