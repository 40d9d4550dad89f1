"What the folder of a run promises: an interruption loses nothing, and no other run is replaced by mistake."

import dataclasses
import json
import os
import signal
import subprocess
import sys
import warnings

import pytest
import torch
from project import ROOT

from annotated_transformer.base.atomic_folders import check_files, lock_folder
from annotated_transformer.base.model_files import load_model
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.tasks.runs import (
    Experiment,
    ExperimentConfig,
    count_parameters,
    describe_kept,
    run_and_save,
    save_result,
    stage_callbacks,
    stored_result,
    slow_cells_run,
    train_and_test,
    wrong_first,
)
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.training.checkpoint import Checkpoints
from annotated_transformer.training.data import batch_pairs
from annotated_transformer.training.loop import Callback, Interrupted, NotFinite

CONFIG = ExperimentConfig(steps=20, batch_size=2)


def run_toy(config, **options):
    torch.manual_seed(config.seed)
    return train_and_test(
        config,
        Transformer(TransformerConfig.preset("tiny", vocab_size=13, dropout=0.1)),
        batch_pairs(synthetic_pairs(), config.batch_size),
        task="toy",
        examples=[([3, 4], [3, 4]), ([5], [5]), ([6], [6])],
        answer=lambda model: [[3, 4], [5, 5], [6]],
        score=lambda model, answers: dict(right=2),
        summary="{right} of {n_heldout}",
        device="cpu",
        **options,
    )


def in_a_line(given, target, prediction):
    return f"{given} -> {prediction}"


TOY = Experiment("toy", ExperimentConfig, run_toy, in_a_line)


class CtrlC(Callback):
    def before_update(self, run):
        if run.step == 13:
            os.kill(os.getpid(), signal.SIGINT)


def stopped(config, callbacks=(), **options):
    return run_toy(config, callbacks=[*callbacks, CtrlC()], **options)


STOPPED = dataclasses.replace(TOY, run=stopped)


def names(place):  # without locks
    return sorted(path.name for path in place.iterdir() if path.suffix != ".lock")


def run(experiment, config, folder, **options):
    return run_and_save(experiment, config, folder, progress=False, **options)


@pytest.fixture
def folder(tmp_path, usual_signals):
    return tmp_path / "toy"


def test_a_report_shows_wrong_answers_first():
    result = run_toy(CONFIG)
    assert wrong_first(result) == [1, 0, 2]
    lines = TOY.format_report(result, count=2).splitlines()
    assert lines[:2] == ["[5] -> [5, 5]", "[3, 4] -> [3, 4]"]
    assert lines[-1] == result.summary == "2 of 3"
    assert json.loads(json.dumps(result.metrics)) == result.metrics


def test_weights_that_are_shared_count_once():
    layer = torch.nn.Linear(3, 3)
    frozen = torch.nn.LayerNorm(3).requires_grad_(False)
    assert count_parameters(torch.nn.ModuleList([layer, layer, frozen])) == 12


def test_a_picture_that_cannot_be_drawn_costs_only_itself(folder):
    def broken(result):
        raise RuntimeError("no such font")

    result = run_toy(CONFIG)
    with pytest.warns(UserWarning, match="no such font"):
        save_result(result, folder, plot=broken)
    load_model(folder, Transformer)
    assert {"loss.png", "metrics.json", "history.csv"} <= {*os.listdir(folder)}
    stored = json.loads((folder / "metrics.json").read_text())
    assert stored == dict(result.metrics, summary="2 of 3")


def test_a_stopped_run_is_resumed_with_the_same_options_alone(folder):
    with pytest.raises(Interrupted):
        run(STOPPED, CONFIG, folder)
    assert names(folder.parent) == ["toy.checkpoints"]
    [line] = describe_kept(folder)
    assert "--resume" in line
    load_model(folder.with_name("toy.checkpoints") / "step-00000013", Transformer)

    with pytest.raises(ValueError, match="no unfinished run there"):
        run(TOY, CONFIG, folder)
    with pytest.raises(ValueError, match=r"lr: got 0.1, expected 0.003, as in the run"):
        run(TOY, CONFIG.replace(lr=0.1), folder, resume=True)

    resumed = run(TOY, CONFIG, folder, resume=True).model
    assert names(folder.parent) == ["toy"] and describe_kept(folder) == []
    for ours, theirs in zip(resumed.parameters(), run_toy(CONFIG).model.parameters()):
        assert torch.equal(ours, theirs)


def test_a_finished_run_is_replaced_by_the_same_or_when_told(folder):
    run(TOY, CONFIG, folder)
    good = (folder / "model.safetensors").read_bytes()
    run(TOY, CONFIG, folder)
    other = CONFIG.replace(seed=1)
    with pytest.raises(
        ValueError, match="overwrite=True: it holds a run with seed 0, now 1"
    ):
        run(TOY, other, folder)
    assert names(folder.parent) == ["toy"]

    # not before the other one is finished
    with pytest.raises(Interrupted):
        run(STOPPED, other, folder, overwrite=True)
    assert (folder / "model.safetensors").read_bytes() == good
    run(TOY, other, folder, resume=True)
    assert (folder / "model.safetensors").read_bytes() != good

    (folder / "metrics.json").unlink()  # as `save_model` leaves it
    with pytest.raises(ValueError, match="it holds a model"):
        run(TOY, other, folder)


def test_a_folder_of_somebody_else_is_left_alone(folder):
    checkpoints = folder.with_name("toy.checkpoints")
    checkpoints.mkdir()
    (checkpoints / "notes.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="toy.checkpoints"):
            run(TOY, CONFIG, folder, overwrite=overwrite)
    assert (checkpoints / "notes.txt").read_text() == "mine"


def test_what_fails_after_the_training_trains_nothing_again(folder):
    def fails(config, **options):
        run_toy(config, **options)
        raise RuntimeError("while decoding")

    with pytest.raises(RuntimeError, match="while decoding"):
        run(dataclasses.replace(TOY, run=fails), CONFIG, folder)

    steps = []

    class Count(Callback):
        def after_step(self, run):
            steps.append(run.step)

    def counted(config, callbacks=(), **options):
        return run_toy(config, callbacks=[*callbacks, Count()], **options)

    result = run(dataclasses.replace(TOY, run=counted), CONFIG, folder, resume=True)
    assert result.history.steps == 20 and not steps


def test_a_loss_that_is_not_finite_ends_a_run_and_names_its_batches(folder):
    with pytest.raises(NotFinite) as failure:
        run(TOY, CONFIG.replace(lr=1e30), folder)
    assert len(failure.value.run.batches) == 1 and not folder.exists()


def test_a_second_writer_is_refused(folder):
    code = (
        "from annotated_transformer.tasks.runs import *\n"
        f"run_and_save(None, ExperimentConfig(), {str(folder)!r})"
    )
    with lock_folder(folder):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True
        )
    assert "one that no other process is writing to" in done.stderr, done.stderr


def test_curves_for_tensorboard_are_kept_with_the_result(folder):
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(TOY, CONFIG, folder, tensorboard=True)
    [events] = (folder / "tensorboard").iterdir()
    check_files(folder, [f"tensorboard/{events.name}"])
    run(TOY, CONFIG, folder)
    assert not (folder / "tensorboard").exists()


def test_each_stage_has_checkpoints_of_its_own():
    callbacks = [Callback(), Checkpoints("run.checkpoints")]
    same, checkpoints = stage_callbacks(callbacks, "first")
    assert same is callbacks[0] and checkpoints.folder.name == "first"


def test_stored_results_and_slow_cells(monkeypatch):
    assert stored_result("gpt_cpu.json")["runs"]
    assert stored_result("no_such_file.json", default=[]) == []
    with pytest.raises(FileNotFoundError, match="no_such_file.json"):
        stored_result("no_such_file.json")
    for value, runs in {"1": True, "0": False, "": False}.items():
        monkeypatch.setenv("ANNOTATED_TRANSFORMER_SLOW", value)
        assert slow_cells_run() == runs
