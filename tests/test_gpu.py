"The GPU command: rehearsed whole on a CPU; stopped, failed and stale jobs come again; results are what their commit measured."

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from project import ROOT, chapters

sys.path.insert(0, str(ROOT / "benchmarks"))
import gpu  # noqa: E402
import machine  # noqa: E402
from stages import STAGES, Context, Job, Stage, none_exact  # noqa: E402

HERE = dict(device="a GPU", torch="2", date="2026-01-01", commit="abc", code="new")


def command(*words):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "gpu.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_rehearsal_runs_every_job_and_is_not_repeated(tmp_path):
    done = command("--rehearse", "--dirty", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for stage in STAGES:
        rows = {row["job"]: row for row in gpu.read_rows(tmp_path, stage.name)}
        assert rows.keys() == {job.name for job in stage.jobs}
        assert all(row["result"] and row["origin"]["rehearsal"] for row in rows.values())
    cells = {
        name
        for row in gpu.read_rows(tmp_path, "cuda_tests")
        for name in row["result"]["cells"]
    }
    assert cells == {
        cell.id
        for chapter in chapters()
        for cell in chapter.cells
        if "cuda" in cell.directives
    }
    assert len(list(tmp_path.iterdir())) <= 8
    again = command("--rehearse", "--dirty", "--out", str(tmp_path))
    assert again.returncode == 0 and "0 jobs to do" in again.stdout
    taken = command("--take", str(tmp_path))
    assert taken.returncode and "is a rehearsal" in taken.stderr


def succeed(context, value):
    return dict(value=value)


def fail(context):
    raise ValueError("as planned")


def end_the_process(context):
    os._exit(7)


def sleep(context, seconds):
    time.sleep(seconds)
    return dict(slept=seconds)


def train_until_told(context, seconds):
    from annotated_transformer.data import batch_pairs
    from annotated_transformer.datasets.synthetic import synthetic_pairs
    from annotated_transformer.training import TrainConfig, train
    from annotated_transformer.transformer import Transformer
    from annotated_transformer.transformer_config import TransformerConfig

    model = Transformer(TransformerConfig.preset("tiny", vocab_size=13))
    train(
        model, batch_pairs(synthetic_pairs(), 2), TrainConfig(steps=10**6), progress=False
    )


def options(folder, minutes=60.0):
    return argparse.Namespace(device="cpu", minutes=minutes, out=folder, rehearse=False)


def run(jobs, folder, monkeypatch, minutes=60.0):
    "Rows by job, and what was said."
    stage, said = Stage("toys", "for the test", tuple(jobs)), []
    monkeypatch.setattr(gpu, "STAGES", (stage,))
    monkeypatch.setattr(gpu, "LEFT_OVER", 0)
    gpu.run_all(gpu.plan(folder, HERE, None), options(folder, minutes), HERE, said.append)
    return {row["job"]: row for row in gpu.read_rows(folder, "toys")}, "\n".join(said)


def test_a_failure_is_recorded_and_the_others_go_on(tmp_path, monkeypatch):
    rows, said = run(
        [
            Job("bad", fail, 0),
            Job("dies", end_the_process, 0),
            Job("elsewhere", succeed, 0, dict(value=1), needs=("no_such_package",)),
            Job("unwanted", succeed, 0, dict(value=1), wanted=lambda context: False),
            Job("good", succeed, 0, dict(value=3)),
        ],
        tmp_path,
        monkeypatch,
    )
    assert "as planned" in rows["bad"]["error"] and "Traceback" in rows["bad"]["error"]
    assert rows["dies"]["error"] == "the process ended with exit code 7"
    assert rows["good"]["result"] == dict(value=3) and rows["good"]["settings"] == dict(
        value=3
    )
    assert rows.keys() == {"bad", "dies", "good"}
    assert "skipped, needs no_such_package" in said and "unwanted: not needed" in said
    again = [job.name for _, job in gpu.plan(tmp_path, HERE, None)]
    assert again == ["bad", "dies", "elsewhere", "unwanted"]


def test_stops_before_its_minutes_are_over_and_goes_on(tmp_path, monkeypatch):
    jobs = [
        Job("first", succeed, 0, dict(value=1)),
        Job("long", sleep, 5, dict(seconds=1)),
        Job("longer than thought", sleep, 0, dict(seconds=60)),
        Job("too late", succeed, 1, dict(value=1)),
    ]
    start = time.time()
    rows, said = run(jobs, tmp_path, monkeypatch, minutes=0.15)
    assert time.time() - start < 0.15 * 60 + gpu.GRACE + 10
    assert rows.keys() == {"first"}, "what was cut off is no result"
    assert (
        "long: put off, takes 5 minutes" in said
        and "longer than thought: no time left" in said
    )
    jobs[2] = replace(jobs[2], settings=dict(seconds=0))
    rows, said = run(jobs, tmp_path, monkeypatch)
    assert rows.keys() == {job.name for job in jobs} and "first" not in said


def test_a_training_that_was_stopped_is_kept_and_comes_again(tmp_path, monkeypatch):
    for minutes in (0.15, 1.5):  # on a busy machine the process may not have begun to train
        rows, _ = run(
            [Job("training", train_until_told, 0, dict(seconds=60))],
            tmp_path,
            monkeypatch,
            minutes=minutes,
        )
        if rows:
            break
    row = rows["training"]
    assert row["result"]["metrics"]["interrupted"] and row["result"]["metrics"]["steps"] > 0
    assert gpu.state(row, "new").startswith("stopped early") and not gpu.is_good(row)
    assert [job.name for _, job in gpu.plan(tmp_path, HERE, None)] == ["training"]


def row_of(job, code="new", device="a GPU", **content):
    return dict(
        stage="toys",
        job=job,
        origin=HERE | dict(code=code, device=device),
        **content or dict(result={}),
    )


def test_order_never_done_then_stale_then_last(tmp_path, monkeypatch):
    jobs = [
        Job(name, succeed, 0, last=name == "extra")
        for name in ("extra", "stale", "new", "fresh", "other")
    ]
    monkeypatch.setattr(gpu, "STAGES", (Stage("toys", "", tuple(jobs)),))
    for row in (
        row_of("stale", code="old"),
        row_of("new"),
        row_of("other", device="another GPU"),
    ):
        gpu.keep_row(tmp_path, row)
    assert [job.name for _, job in gpu.plan(tmp_path, HERE, None)] == [
        "fresh",
        "other",
        "stale",
        "extra",
    ]
    assert "the code has changed since" in gpu.listing(tmp_path)


def test_a_failure_does_not_replace_an_older_result(tmp_path):
    good, bad = row_of("a", code="old"), row_of("a", error="no")
    for row in (good, bad, bad):
        gpu.keep_row(tmp_path, row)
    assert gpu.read_rows(tmp_path, "toys") == [good, bad]
    assert gpu.best_row(gpu.read_rows(tmp_path, "toys"), "a") == good
    gpu.keep_row(tmp_path, row_of("a"))
    assert gpu.read_rows(tmp_path, "toys") == [row_of("a")]


def test_other_recipes_are_tried_until_one_is_exact():
    jobs = {
        job.name: job for stage in STAGES if stage.name == "copy_task" for job in stage.jobs
    }
    second, third = jobs["copy, longer warm-up"], jobs["copy, pre-norm"]

    def context(**found):
        return Context(
            "cuda",
            {
                ("copy_task", f"copy, {k}"): dict(metrics=dict(exact_match=v))
                for k, v in found.items()
            },
        )

    assert not second.wanted(context(**{"post-norm": 1.0})) and not third.wanted(
        context(**{"post-norm": 1.0})
    )
    nearly = {"post-norm": 0.9999}
    assert second.wanted(context(**nearly)) and third.wanted(context(**nearly))
    assert not third.wanted(context(**nearly, **{"longer warm-up": 1.0}))
    assert none_exact(Context("cuda"), "post-norm")


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
    folder, git = repository
    head = machine.commit()
    with pytest.raises(SystemExit, match="but the tree is"):
        machine.commit(said="abc")
    assert machine.commit(said=head) == head
    (folder / ".git").rename(folder / "away")
    with pytest.raises(SystemExit, match="name the commit with --commit"):
        machine.commit()
    assert machine.commit(said="abc") == "abc"


def test_the_code_on_disk_is_compared_with_the_commit(repository, tmp_path_factory):
    folder, git = repository
    head, made = machine.commit(), tmp_path_factory.mktemp("made")
    assert machine.code() == machine.code_at(head)
    row = row_of("ceilings") | dict(
        stage="device", origin=HERE | dict(commit=head, code=machine.code())
    )
    gpu.keep_row(made, row)
    gpu.take(made)
    assert gpu.read_rows(gpu.RESULTS, "device") == [row]
    (folder / "annotated_transformer" / "code.py").write_text("x = 2\n")
    assert machine.code() != machine.code_at(head)
    gpu.keep_row(made, row | dict(origin=HERE | dict(commit=head, code=machine.code())))
    with pytest.raises(SystemExit, match="its code is not that of commit"):
        gpu.take(made)
    with pytest.raises(SystemExit, match="holds no file"):
        gpu.take(folder)


def test_without_a_gpu_it_says_what_can_be_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "has_gpu", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="no GPU is to be had here"):
        gpu.main(gpu.parse())


def test_runs_owed_are_what_list_prints():
    "Up to a remark that comes and goes with every change of the code."
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    written = re.search(r"## Runs owed.*?```text\n(.*?)\n```", text, re.S)[1]
    assert written == re.sub(
        "; the code has changed since", "", gpu.listing(machine.RESULTS)
    )


def test_cells_for_a_gpu_stand_alone(tmp_path):
    "They run where there is no nbdev and nothing before them has run."
    cells = {
        f"{chapter.number}_{cell.id}": cell
        for chapter in chapters()
        for cell in chapter.cells
        if "cuda" in cell.directives
    }
    assert cells
    for name, cell in cells.items():
        (tmp_path / f"{name}.py").write_text(cell.source, encoding="utf-8")
        assert "'cuda'" in cell.source, (
            f"{name} does not say 'cuda', by which a rehearsal finds the device"
        )
        assert cell.tests, f"{name} checks nothing"
    ruff = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "E9,F",
    ]
    done = subprocess.run([*ruff, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_stored_results_name_a_clean_commit():
    "Except the table of faults, which its notebook writes."
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        content = json.loads(path.read_text())
        origins = (
            [row["origin"] for row in content]
            if isinstance(content, list)
            else [content.get("origin")]
        )
        for origin in filter(None, origins):
            assert not origin.get("rehearsal"), path.name
            assert re.fullmatch(r"[0-9a-f]{7,40}", origin["commit"]), (
                f"{path.name}: {origin['commit']}"
            )


def test_runs_of_other_seeds_stay_in_a_file_and_say_where_they_come_from(tmp_path):
    results = machine.Results(
        "seeds", argparse.Namespace(out=tmp_path, device="cpu", commit=None, dirty=True)
    )
    results.origin = dict(device="one")
    results.save(
        runs=[dict(seed=0, bleu=1.0), dict(seed=2, bleu=2.0)]
    )  # as older files have them
    results.origin = dict(device="another")
    found = json.loads(
        results.save_seeds([dict(seed=2, bleu=3.0), dict(seed=1, bleu=4.0)]).read_text()
    )
    assert [
        (run["seed"], run["bleu"], run["origin"]["device"]) for run in found["runs"]
    ] == [(0, 1.0, "one"), (1, 4.0, "another"), (2, 3.0, "another")]
    results.origin = dict(device="a third")
    again = json.loads(results.save_seeds([dict(seed=1, bleu=5.0)]).read_text())["runs"]
    assert [run["origin"]["device"] for run in again] == ["one", "a third", "another"]
    other = [
        dict(seed=3, config=dict(epochs=5, seed=3))
    ]  # another recipe: those of the last one go
    assert [
        run["seed"] for run in json.loads(results.save_seeds(other).read_text())["runs"]
    ] == [3]
    more = [
        dict(seed=4, config=dict(epochs=5, seed=4), stopped_early=1.0)
    ]  # a chapter could not take the mean of both
    assert [
        run["seed"] for run in json.loads(results.save_seeds(more).read_text())["runs"]
    ] == [4]


def test_the_memory_of_a_first_step_is_that_of_any():
    from base_step import measure

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
    assert first == again < longer and found["compiled"]


def test_what_a_machine_lacks_is_said(monkeypatch):
    lacking = {job.name: job.lacks for stage in STAGES for job in stage.jobs}
    monkeypatch.setenv("ANNOTATED_TRANSFORMER_DATA", "nowhere")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert {name for name, lacks in lacking.items() if lacks(Context("cuda"))} == {
        "processes",
        "shakespeare",
        "shakespeare, nanoGPT's settings",
        *(
            job.name
            for stage in STAGES
            if stage.name == "translation"
            for job in stage.jobs
        ),
    }
    assert not any(lacks(Context("cpu")) for lacks in lacking.values())
    job = Job("far", succeed, 0, lacks=lambda context: "there is no sea")
    assert gpu.why_not(job, Context("cuda"), 60) == "skipped, there is no sea"


def test_the_list_of_results_names_files_that_are_there():
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    found = text[text.index("## What was found") : text.index("## The base recipe")]
    there = {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")}
    parts = re.findall(r"\*\*([^*\n]+)\*\*[^\n]*\n\n(\|.*?)(?:\n\n|$)", found, re.S)
    assert [heading for heading, _ in parts] == [
        "The copy task",
        "A training step",
        "Decoding",
        "Other models",
        "Translation",
    ]
    for heading, part in parts:
        prefix = "translation_" if heading == "Translation" else ""
        for row in part.splitlines()[2:]:
            names = re.findall(r"`([\w-]+)`", row.rstrip(" |").rpartition("|")[2])
            assert names, row
            for name in names:
                assert {name, prefix + name} & there, name
