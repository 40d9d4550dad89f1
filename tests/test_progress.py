"A run says how far it is, once, and writes its curves for TensorBoard without ending with them."

import io
import sys
import warnings
from itertools import islice

import pytest
import torch

from annotated_transformer import (
    Checkpoints,
    Evaluate,
    Progress,
    TrainConfig,
    Transformer,
    TransformerConfig,
    batch_pairs,
    synthetic_pairs,
    train,
)
from annotated_transformer.training import progress
from annotated_transformer.training.progress import TensorBoard

SIZES = TransformerConfig(
    vocab_size=13, d_model=32, d_ff=64, n_heads=2, n_layers=1, dropout=0.1
)
CONFIG = TrainConfig(steps=12, warmup_steps=3, log_every=1)
MEASURED = "eval_loss 2.5, eval_exact_match 0.125"


class Killed(Exception):
    pass


def run(*callbacks, until=None):
    "Train a new model, and fail after that many batches."

    def batches():
        yield from islice(batch_pairs(synthetic_pairs(seed=3), 8), until)
        raise Killed

    torch.manual_seed(1)
    return train(Transformer(SIZES), batches(), CONFIG, callbacks=callbacks)


def evaluate():
    return Evaluate(lambda model: dict(loss=2.5, exact_match=0.125), every=6)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_file_only_evaluations_are_lines(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    run(evaluate(), Progress(terminal_only=True))
    assert shown.getvalue() == f"step 6: {MEASURED}\nstep 12: {MEASURED}\n"


def test_only_the_first_process_speaks(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "process_rank", lambda: 1)
    run(evaluate(), Progress())
    assert shown.getvalue() == ""


def test_a_terminal_counts(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    history = run(evaluate(), Progress(terminal_only=True))

    # a line takes the place of the one before, and hides all of it
    lines = [line.split("\r")[-1].rstrip() for line in shown.getvalue().split("\n")]
    loss = history.column("loss")[1][-1]
    assert lines[:2] == [f"step 6: {MEASURED}", f"step 12: {MEASURED}"]
    assert lines[2] == f"step 12 of 12, 0 s left, loss {loss:.4f}"
    assert shown.getvalue().endswith("\n")


def test_a_resumed_run_counts_from_its_step(monkeypatch, tmp_path):
    counting, checkpoints = Progress(), Checkpoints(tmp_path, every_steps=4)
    with pytest.raises(Killed):
        run(checkpoints, counting, until=10)

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    run(checkpoints, counting)
    assert shown.getvalue().startswith("step 9 of 12, loss")


def test_curves_show_each_step_once(tmp_path):
    "A run fails after ten steps, and resumes from step 8."
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    callbacks = [
        Checkpoints(tmp_path / "run", every_steps=4),
        evaluate(),
        TensorBoard(tmp_path / "curves"),
    ]
    with pytest.raises(Killed):
        run(*callbacks, until=10)
    history = run(*callbacks)

    found = events.EventAccumulator(str(tmp_path / "curves")).Reload()
    names = {name for row in history.rows for name in row} - {"step"}
    assert {*found.Tags()["scalars"]} == names
    for name in ("loss", "lr", "eval_exact_match"):
        curve = found.Scalars(name)
        steps, values = history.column(name)
        assert [event.step for event in curve] == steps
        assert all(abs(event.value - x) < 1e-5 for event, x in zip(curve, values))


class Full:
    "A disk."

    def add_scalar(self, *row):
        raise OSError("no space left")

    close = add_scalar


def test_a_run_goes_on_without_its_curves(tmp_path):
    pytest.importorskip("tensorboard")
    curves = TensorBoard(tmp_path / "full")
    curves.writer = Full()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert run(curves).steps == 12
    shown = [str(w.message) for w in said if "TensorBoard" in str(w.message)]
    assert shown == ["no more curves for TensorBoard: no space left"]
    assert curves.part("pretraining").folder == tmp_path / "full" / "pretraining"
