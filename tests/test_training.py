"""What a training run promises: it resumes to the last bit, counts every token once, and stops before it spoils the weights.

Each run takes a moment: one small layer, 16 steps.
"""

import itertools
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from project import ROOT
from torch import nn
from torch.utils.data import DataLoader

from annotated_transformer.base.atomic_folders import write_folder
from annotated_transformer.base.model_files import load_model, write_model
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.training.callbacks import (
    Evaluate,
    StopOnSignal,
    WeightAverage,
)
from annotated_transformer.training.checkpoint import (
    Checkpoints,
    KeepEvaluated,
    read_checkpoint,
)
from annotated_transformer.training.data import Batch, forever
from annotated_transformer.training.loop import (
    Callback,
    Interrupted,
    NotFinite,
    TrainConfig,
    train,
)
from annotated_transformer.training.loss import sequence_loss

STEPS = 16
CONFIG = TrainConfig(
    steps=STEPS, lr=1e-2, warmup_steps=5, grad_accum_steps=2, log_every=4, seed=3
)
SIZES = TransformerConfig(
    d_model=16, n_heads=2, d_ff=32, n_layers=1, vocab_size=12, dropout=0.1
)

draw = random.Random(0)
PAIRS = []
for _ in range(22):  # of unequal length
    ids = [draw.randrange(3, 12) for _ in range(draw.randint(2, 7))]
    PAIRS.append((ids, ids[::-1]))


class Killed(Exception):
    pass


class Kill(Callback):
    "In a step: before (-2), among (0) or after (3) the other callbacks."

    def __init__(self, step, order, moment="after_step"):
        self.step, self.order, self.moment = step, order, moment

    def before_update(self, run):
        if (run.step, self.moment) == (self.step, "before_update"):
            raise Killed

    def after_step(self, run):
        if (run.step, self.moment) == (self.step, "after_step"):
            raise Killed


class Draw(Callback):
    "Somebody else uses random numbers, between the steps."

    def after_step(self, run):
        random.random()
        torch.rand(())


class Send(Callback):
    def __init__(self, step, number, moment="before_update"):
        self.step, self.number, self.moment = step, number, moment

    def before_update(self, run):
        if (run.step, self.moment) == (self.step, "before_update"):
            os.kill(os.getpid(), self.number)

    def end(self, run):
        if (run.step, self.moment) == (self.step, "end"):
            os.kill(os.getpid(), self.number)


class Count(Callback):
    "One's own callback, with a state."

    def begin(self, run):
        self.n = 0

    def after_step(self, run):
        self.n += 1

    def state_dict(self):
        return dict(n=self.n)

    def load_state_dict(self, state):
        self.n = state["n"]


class Lion(torch.optim.Optimizer):
    "One's own optimizer, with one state for each weight."

    def __init__(self, parameters, lr):
        super().__init__(parameters, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "mean" not in state:
                    state["mean"] = torch.zeros_like(p)
                p -= group["lr"] * state["mean"].lerp(p.grad, 0.1).sign()
                state["mean"].lerp_(p.grad, 0.01)


def shuffled_loader():
    return forever(DataLoader(PAIRS, 5, shuffle=True, collate_fn=Batch.from_pairs))


class FromPython:
    "Draws from Python's random numbers, where a `DataLoader` draws from PyTorch's."

    def __iter__(self):
        while True:
            yield Batch.from_pairs(random.sample(PAIRS, 5))


def new_model(seed=0, **changes):
    torch.manual_seed(seed)
    return Transformer(SIZES.replace(**changes))


def measure(model):
    torch.rand(3)  # an evaluation may draw
    random.random()
    loss, n = sequence_loss(model, Batch.from_pairs(PAIRS[:8]))
    return dict(loss=loss / n, score=-loss / n)


def usual_callbacks(folder=None, every=5, evaluate=measure):
    average = WeightAverage(0.9)
    found = [Evaluate(evaluate, 3, average=average), average, Draw()]
    if folder:
        found.append(Checkpoints(folder, every_steps=every))
    return found


def run(callbacks, batches=shuffled_loader, own=False, config=CONFIG, seed=0):
    "Train a new model, with random numbers around it that belong to the seed."
    model = new_model(seed)
    optimizer = Lion(model.parameters(), 3e-3) if own else None
    torch.manual_seed(seed + 100)
    random.seed(seed + 100)
    history = train(model, batches(), config, optimizer=optimizer, callbacks=callbacks)
    return model, history


def killed(callbacks, *arguments, **options):
    with pytest.raises(Killed):
        run(callbacks, *arguments, **options)


def rows(history):
    "Without what depends on the clock."
    return [
        {name: value for name, value in row.items() if name != "tokens_per_second"}
        for row in history.rows
    ]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters()))


def distance(a, b):
    pairs = zip(a.parameters(), b.parameters())
    return max((x - y).abs().max().item() for x, y in pairs)


@pytest.fixture(autouse=True)
def one_thread():
    "Sums of several threads aren't the same each time."
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---- four steps ----


def test_it_takes_the_steps_of_a_loop_written_by_hand():
    batches = [Batch.from_pairs(PAIRS[i : i + 5]) for i in range(0, 20, 5)]
    model, ours = new_model(dropout=0.0), new_model(dropout=0.0)

    for step, batch in enumerate(batches, 1):
        loss, n = sequence_loss(ours, batch)
        gradients = torch.autograd.grad(loss / n, list(ours.parameters()))
        with torch.no_grad():
            for p, gradient in zip(ours.parameters(), gradients):
                p -= 0.1 * step / 4 * gradient
    config = TrainConfig(steps=4, warmup_steps=4, max_grad_norm=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, batches, config, optimizer=optimizer)

    assert distance(model, ours) < 1e-6
    assert distance(model, new_model()) > 1e-2


def test_what_is_drawn_belongs_to_the_seed_of_the_run():
    "Dropout and shuffled batches, whatever the program has drawn before."
    first, _ = run([])
    model = new_model()
    torch.manual_seed(7)
    train(model, shuffled_loader(), CONFIG)
    assert same(first, model)

    other, _ = run([], config=CONFIG.replace(seed=4))
    assert not same(first, other)


# ---- a run that is killed resumes as if nothing had happened ----

BOUNDARIES = [
    (1, 3, "after_step"),
    (5, -2, "after_step"),  # a checkpoint is due, and not written yet
    (5, 0, "after_step"),
    (5, 3, "after_step"),
    (6, 0, "after_step"),  # measured or not, it is measured once
    (12, 0, "before_update"),
    (STEPS, 0, "after_step"),
    (STEPS, 3, "after_step"),
]


@pytest.mark.parametrize(
    ("own", "batches", "boundaries"),
    [
        (True, shuffled_loader, BOUNDARIES[::2]),
        (False, shuffled_loader, BOUNDARIES),
        (False, FromPython, BOUNDARIES[1::3]),
    ],
    ids=["own", "usual", "python"],
)
def test_a_killed_run_resumes_to_the_last_bit(tmp_path, own, batches, boundaries):
    whole, history = run(usual_callbacks(), batches, own)

    for number, kill in enumerate(boundaries):
        folder = tmp_path / str(number)
        killed([Kill(*kill), *usual_callbacks(folder)], batches, own)
        # other first weights, unless it begins again
        seed = 9 if Checkpoints(folder).steps() else 0
        resumed, again = run(usual_callbacks(folder), batches, own, seed=seed)
        assert same(whole, resumed), kill
        assert rows(again) == rows(history), kill

    # so it isn't the same anyway
    assert not same(whole, run(usual_callbacks(), batches, own, seed=9)[0])


def test_the_order_of_callbacks_makes_no_difference(tmp_path):
    whole, history = run(usual_callbacks())
    killed([*usual_callbacks(tmp_path / "saved"), Kill(14, 3)])  # saved at 10

    for number, order in enumerate(itertools.permutations(range(4))):
        folder = shutil.copytree(tmp_path / "saved", tmp_path / str(number))
        callbacks = usual_callbacks(folder)
        resumed, again = run([callbacks[i] for i in order], seed=9)
        assert same(whole, resumed), order
        assert rows(again) == rows(history), order


def test_a_process_that_is_killed_for_good_resumes(tmp_path):
    whole, _ = run(usual_callbacks())
    code = f"""
import signal, sys
sys.path.insert(0, "tests")
import torch
torch.set_num_threads(1)
from test_training import *
run([*usual_callbacks({str(tmp_path)!r}), Send(13, signal.SIGKILL)])
"""
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert Checkpoints(tmp_path).steps() == [10, 5]

    resumed, _ = run(usual_callbacks(tmp_path), seed=9)

    assert same(whole, resumed)


def test_a_callback_of_ones_own_goes_on_from_its_state(tmp_path):
    killed([Count(), Checkpoints(tmp_path, every_steps=5), Kill(8, 0)])
    count = Count()
    run([count, Checkpoints(tmp_path, every_steps=5)])

    assert count.n == STEPS


def test_a_finished_run_is_not_repeated(tmp_path):
    first, history = run(usual_callbacks(tmp_path))

    def never(model):
        raise AssertionError("measured again")

    again, more = run(usual_callbacks(tmp_path, evaluate=never), seed=9)

    assert same(first, again) and more == history


# ---- evaluations, patience and averages ----


def test_evaluations_are_free():
    "How often a model is measured doesn't change it."
    never, _ = run([])
    often, history = run([Evaluate(measure, 1)])

    assert same(never, often)
    assert history.column("eval_loss")[0] == list(range(1, STEPS + 1))


def test_a_model_is_measured_without_dropout_and_gradients():
    seen = []

    def look(model):
        seen.append((model.training, torch.is_grad_enabled()))
        return {}

    run([Evaluate(look, 12)])

    assert seen == [(False, False)] * 2


def scores(*values):
    "An evaluation that finds these, one after the other."
    values = iter(values)
    return lambda model: dict(f1=next(values))


def test_patience_counts_from_the_best_and_nan_is_never_better(tmp_path):
    def callbacks(*values):
        evaluate = Evaluate(
            scores(*values), 2, patience=3, metric="f1", higher_is_better=True
        )
        return [Checkpoints(tmp_path, every_steps=3), evaluate]

    # the last checkpoint is of step 6, after three of the values
    killed([*callbacks(0.1, 0.5, 0.3, 0.4), Kill(8, -2)])
    model, history = run(callbacks(0.4, math.nan))

    assert history.column("eval_f1")[0] == [2, 4, 6, 8, 10]
    assert Checkpoints(tmp_path).steps()[0] == 10  # saved, although 10 isn't due

    # it is over, and stays so
    again, more = run(callbacks(), seed=9)
    assert same(model, again) and str(more) == str(history)  # NaN isn't equal to NaN


def test_after_nan_a_number_is_better():
    values = [math.nan, 0.5, math.nan, 0.4, 0.6, math.nan, 0.5]
    _, history = run([Evaluate(scores(*values), 2, patience=3, metric="f1")])

    assert history.steps == 14


def test_a_run_that_ends_early_has_its_last_row_and_its_last_evaluation():
    stops = Evaluate(scores(3, 2, 2), 3, patience=1, metric="f1")
    at_the_end = Evaluate(measure, name="final")

    _, history = run([stops, at_the_end], config=CONFIG.replace(log_every=5))

    assert history.column("loss")[0] == [5, 9]
    assert history.column("final_loss")[0] == [9]


def test_without_a_first_number_patience_still_ends():
    _, history = run([Evaluate(scores(*9 * [math.nan]), 2, patience=3, metric="f1")])

    assert history.steps == 6


def test_a_callback_can_be_used_for_a_second_run():
    evaluate = Evaluate(scores(3, 2, 2, 3, 9, 9, 9), 2, patience=2, metric="f1")
    average = WeightAverage(0.9)
    _, first = run([evaluate, average])
    second, history = run([evaluate, average], seed=9)
    fresh, _ = run([Evaluate(scores(9, 9, 9), 2, patience=2, metric="f1")], seed=9)
    alone, _ = run(
        [Evaluate(scores(9, 9, 9), 2, patience=2, metric="f1"), WeightAverage(0.9)], seed=9
    )

    assert (first.steps, history.steps) == (8, 6)
    assert same(second, alone) and not same(second, fresh)


@pytest.mark.parametrize(
    ("evaluate", "words"),
    [
        (Evaluate(lambda m: dict(loss=torch.ones(2)), 1), "loss of an evaluation: got"),
        (Evaluate(lambda m: dict(loss=None), 1), "loss of an evaluation: got None"),
        (Evaluate(lambda m: dict(bleu=1.0), 1, patience=1), "metric: got 'loss'"),
    ],
)
def test_what_is_no_number_is_refused_by_name(evaluate, words):
    with pytest.raises(ValueError) as error:
        run([evaluate])

    assert words in str(error.value)


def test_an_average_is_the_mean_of_the_steps_and_training_does_not_notice():
    weights = []

    class Note(Callback):
        def after_step(self, run):
            weights.append([p.detach().clone() for p in run.model.parameters()])

    plain, _ = run([Note()])
    averaged, _ = run([WeightAverage(0.999)])  # so far, a plain mean

    for mean, *each in zip(averaged.parameters(), *weights):
        torch.testing.assert_close(mean, torch.stack(each).mean(0), atol=1e-6, rtol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), weights[-1]))


def test_an_error_in_an_evaluation_gives_the_weights_back():
    average = WeightAverage(0.9)

    def fail(model):
        raise Killed

    model = new_model()
    trained = []

    class Note(Callback):
        order = -1

        def after_step(self, run):
            trained[:] = [p.detach().clone() for p in run.model.parameters()]

    with pytest.raises(Killed):
        callbacks = [Note(), average, Evaluate(fail, 3, average=average)]
        train(model, shuffled_loader(), CONFIG, callbacks=callbacks)

    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), trained))


# ---- signals ----


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_run_after_its_step_and_it_is_saved(
    tmp_path, usual_signals, name
):
    number = getattr(signal, name)
    usual = signal.getsignal(number)
    whole, history = run(usual_callbacks())

    with pytest.raises(Interrupted, match=f"^{name} after step 12$") as error:
        run([*usual_callbacks(tmp_path), StopOnSignal(), Send(12, number)])
    # what was due in this step is done
    assert error.value.run.history.column("eval_loss")[0] == [3, 6, 9, 12]
    assert signal.getsignal(number) is usual
    assert Checkpoints(tmp_path).steps()[0] == 12

    resumed, again = run([*usual_callbacks(tmp_path), StopOnSignal()], seed=9)
    assert same(whole, resumed) and rows(again) == rows(history)


@pytest.mark.parametrize("moment", ["before_update", "end"])
def test_a_signal_in_the_last_step_is_heard_and_the_run_is_whole(
    tmp_path, usual_signals, moment
):
    whole, history = run(usual_callbacks())
    send = Send(STEPS, signal.SIGINT, moment)

    with pytest.raises(Interrupted, match=f"^SIGINT after step {STEPS}$"):
        run([*usual_callbacks(tmp_path), send, StopOnSignal()])
    resumed, again = run(usual_callbacks(tmp_path), seed=9)

    assert same(whole, resumed) and rows(again) == rows(history)


def test_a_second_signal_ends_the_run_at_once(tmp_path, usual_signals):
    twice = [Send(7, signal.SIGINT), Send(7, signal.SIGINT)]

    with pytest.raises(KeyboardInterrupt) as error:
        run([*usual_callbacks(tmp_path), StopOnSignal(), *twice])

    assert not isinstance(error.value, Interrupted)
    assert Checkpoints(tmp_path).steps() == [5]


def test_signals_are_given_back_after_an_error(usual_signals):
    usual = signal.getsignal(signal.SIGTERM)

    killed([StopOnSignal(), Kill(2, 0)])

    assert signal.getsignal(signal.SIGTERM) is usual


def test_ignored_signals_stay_ignored(usual_signals):
    "nohup has SIGHUP ignored."
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    _, history = run([StopOnSignal(), Send(3, signal.SIGHUP)])

    assert history.steps == STEPS


# ---- sums, counts and what isn't finite ----


def test_accumulated_parts_of_unequal_size_are_one_batch():
    # plain gradients: to Adam, one that is too long by a factor looks the same
    def trained(parts, loss_fn=None):
        config = TrainConfig(
            steps=6, warmup_steps=1, max_grad_norm=None, grad_accum_steps=len(parts)
        )
        model = new_model(dropout=0.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, forever(parts), config, optimizer=optimizer, loss_fn=loss_fn)
        return model

    def mean(model, batch):
        loss, n = sequence_loss(model, batch)
        return loss / n, 1

    batch = Batch.from_pairs(PAIRS)
    cuts = [(0, 3), (3, 4), (4, 22)]
    parts = [Batch.from_pairs(PAIRS[start:end]) for start, end in cuts]
    one = trained([batch])

    assert distance(one, new_model(dropout=0.0)) > 1e-2
    assert distance(one, trained(parts)) < 1e-6
    assert distance(one, trained(parts, mean)) > 1e-3  # the mean of means is another


def test_tokens_and_the_logged_loss_are_those_of_all_parts():
    parts = [Batch.from_pairs(PAIRS[:3]), Batch.from_pairs(PAIRS[3:])]
    config = TrainConfig(steps=1, grad_accum_steps=2, log_every=1)
    model = new_model(dropout=0.0)
    loss, n = sequence_loss(model, Batch.from_pairs(PAIRS))

    history = train(model, parts, config)

    assert history.n_tokens == n
    assert abs(history.column("loss")[1][0] - loss.item() / n) < 1e-5


def test_a_loss_that_is_not_finite_never_reaches_the_weights_or_a_checkpoint(tmp_path):
    calls = itertools.count(1)

    def burst(model, batch):  # in step 10, both of its batches
        loss, n = sequence_loss(model, batch)
        return (loss * math.nan if next(calls) > 2 * 9 else loss), n

    model = new_model()
    with pytest.raises(NotFinite, match="the loss is nan.* at step 10,") as error:
        callbacks = usual_callbacks(tmp_path, every=1)
        train(model, shuffled_loader(), CONFIG, loss_fn=burst, callbacks=callbacks)

    assert len(error.value.run.batches) == 2 and error.value.run.step == 10
    assert Checkpoints(tmp_path).steps() == [9, 8]
    saved = load_model(Checkpoints(tmp_path).path(9), Transformer)
    assert same(saved, model) and all(p.isfinite().all() for p in model.parameters())
    assert not model.training


def test_a_finite_loss_may_have_a_gradient_that_is_none():
    def root(model, batch):
        loss, n = sequence_loss(model, batch)
        return loss + (loss - loss).clamp(min=0).sqrt(), n  # steep without bound at 0

    model = new_model()
    with pytest.raises(NotFinite, match="the gradient norm nan at step 1,") as error:
        train(model, shuffled_loader(), CONFIG, loss_fn=root)

    assert error.value.run.loss.isfinite()
    assert same(model, new_model())


@pytest.mark.parametrize("make", [list, lambda few: few, forever])
def test_too_few_batches_are_refused_by_the_step(make):
    few = DataLoader(PAIRS, 5, shuffle=True, collate_fn=Batch.from_pairs)  # 5 of 32
    given, words = (few, "batches: got 'an end before step 3'")
    if make is forever:
        given, words = [], "batches: got 'none'"

    with pytest.raises(ValueError) as error:
        run([], lambda: make(given))

    assert words in str(error.value)


def test_exactly_enough_batches_are_enough():
    few = DataLoader(PAIRS, 5, shuffle=True, collate_fn=Batch.from_pairs)

    _, history = run([], lambda: few, config=CONFIG.replace(steps=2))

    assert history.steps == 2


# ---- a run of one's own ----


@dataclass(frozen=True)
class Saw(TrainConfig):
    def fraction_of_lr(self, step):
        return 0.25 if step % 2 else 0.5


def test_a_schedule_and_rates_of_ones_own():
    rates = []

    class Note(Callback):
        def before_update(self, run):
            rates.append([group["lr"] for group in run.optimizer.param_groups])

    model = new_model()
    first, *others = model.parameters()
    optimizer = torch.optim.SGD([dict(params=[first], lr=1.0), dict(params=others, lr=0.1)])
    config = Saw(steps=3)
    train(model, shuffled_loader(), config, optimizer=optimizer, callbacks=[Note()])

    assert rates == [[0.25, 0.025], [0.5, 0.05], [0.25, 0.025]]
    assert not torch.equal(first, next(new_model().parameters()))


def test_batches_and_a_loss_of_ones_own():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 1)

    def both(model, batch):
        one = nn.functional.mse_loss(model.a(batch["x"]), batch["y"], reduction="sum")
        return one + model.b(batch["x"]).abs().sum(), len(batch["x"])

    torch.manual_seed(0)
    x = torch.randn(4, 3)
    config = TrainConfig(steps=200, lr=2e-2)
    batches = forever([dict(x=x, y=x[:, :2])])
    history = train(Two(), batches, config, loss_fn=both)

    losses = history.column("loss")[1]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize(
    "wrong",
    [
        dict(schedule="cosine"),
        dict(steps=0),
        dict(lr=0),
        dict(lr=math.nan),
        dict(log_every=0),
        dict(max_grad_norm=-1),
        dict(label_smoothing=1.5),
        dict(precision="float8"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_by_name(wrong):
    with pytest.raises(ValueError) as error:
        TrainConfig(**wrong)

    assert str(error.value).startswith(next(iter(wrong)))


def test_the_optimizer_of_another_model_is_refused():
    with pytest.raises(ValueError, match="optimizer: got 'one with other parameters'"):
        optimizer = torch.optim.SGD(new_model().parameters())
        train(new_model(), shuffled_loader(), CONFIG, optimizer=optimizer)


# ---- checkpoints of other runs, damaged ones, and a full disk ----


def checkpointed(folder, config=CONFIG, callbacks=(), may_change=(), **changes):
    model = new_model(**changes)
    callbacks = [*callbacks, Checkpoints(folder, every_steps=2, may_change=may_change)]
    return model, train(model, shuffled_loader(), config, callbacks=callbacks)


def test_another_run_is_refused_by_name(tmp_path):
    short = CONFIG.replace(steps=4)
    checkpointed(tmp_path, short)

    for config, changes, words in [
        (CONFIG, {}, "steps: got 16, expected '4, as in the run before'"),
        (short.replace(lr=1.0), {}, "lr: got 1.0, expected '0.01, as"),
        (short, dict(d_ff=16), "d_ff: got 16, expected '32, as"),
        (short, dict(n_heads=4), "n_heads: got 4, expected '2, as"),  # the same shapes
    ]:
        with pytest.raises(ValueError) as error:
            checkpointed(tmp_path, config, **changes)
        assert words.replace("'", "") in str(error.value).replace("'", "")


def test_what_may_change_takes_effect(tmp_path):
    checkpointed(tmp_path, CONFIG.replace(steps=4))

    config = CONFIG.replace(steps=6, lr=1.0)
    _, history = checkpointed(tmp_path, config, may_change=("steps", "lr"))

    assert history.steps == 6
    [rate] = history.column("lr")[1][-1:]
    assert rate == config.lr * config.fraction_of_lr(6)


def test_two_callbacks_of_one_name_are_refused(tmp_path):
    averages = [WeightAverage(0.9), WeightAverage(0.5)]
    with pytest.raises(ValueError, match="callbacks: got '2 of the name WeightAverage'"):
        checkpointed(tmp_path, callbacks=averages)

    averages[0].name = "slow"
    checkpointed(tmp_path, CONFIG.replace(steps=2), averages)


@pytest.mark.parametrize("older", [{}, dict(format=3)], ids=["without", "with"])
def test_a_run_of_an_older_format_is_refused_by_its_number(tmp_path, older):
    short = CONFIG.replace(steps=2)
    checkpointed(tmp_path, short)
    path = Checkpoints(tmp_path).path(2)
    _, state = read_checkpoint(path)
    del state["format"]
    with write_folder(path) as new:
        write_model(new_model(), new)
        torch.save(state | older, new / "training.pt")

    with pytest.raises(ValueError, match=f"a run of format {older.get('format')}'"):
        checkpointed(tmp_path, short)


def test_a_damaged_checkpoint_is_skipped_and_costs_no_good_one(tmp_path):
    whole, history = checkpointed(tmp_path / "whole")
    checkpointed(tmp_path / "run")
    checkpoints = Checkpoints(tmp_path / "run")
    assert checkpoints.steps() == [16, 14]

    for damage in (
        lambda content: content[:-1],
        lambda content: content[:999] + bytes([content[999] ^ 1]) + content[1000:],
    ):
        file = checkpoints.path(16) / "training.pt"
        file.write_bytes(damage(file.read_bytes()))
        with pytest.warns(UserWarning, match="step-00000016 is skipped: .* is damaged"):
            again, more = checkpointed(tmp_path / "run", seed=9)
        assert same(whole, again) and rows(more) == rows(history)

    # a damaged one has the largest number, and is not taken for the newest
    (checkpoints.path(16) / "training.pt").write_bytes(b"oops")
    one = Checkpoints(tmp_path / "run", every_steps=1, keep=1)
    with pytest.warns(UserWarning, match="is skipped"), pytest.raises(Killed):
        train(new_model(), shuffled_loader(), CONFIG, callbacks=[one, Kill(15, 3)])
    assert one.steps() == [16, 15]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert one.read_newest()[0] == 15


def test_what_was_being_written_is_removed(tmp_path):
    (tmp_path / ".step-00000002.new-x" / "new").mkdir(parents=True)

    checkpointed(tmp_path, CONFIG.replace(steps=2))

    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002"]


def test_a_full_disk_keeps_the_old_checkpoint_and_the_run_goes_on(tmp_path, monkeypatch):
    usual = torch.save

    def full(state, file):
        if state["history"]["steps"] == 4:
            file.write_bytes(b"half")
            raise RuntimeError("no space left")
        usual(state, file)

    monkeypatch.setattr(torch, "save", full)
    with pytest.warns(UserWarning, match="no checkpoint of step 4, step 2 is kept: no sp"):
        checkpointed(tmp_path, CONFIG.replace(steps=6))

    assert Checkpoints(tmp_path).steps() == [6, 2]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("wrong", [dict(every_minutes=0), dict(keep=0)], ids=str)
def test_wrong_plans_for_checkpoints_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Checkpoints("anywhere", **wrong)


# ---- the weights of evaluations ----


def kept(folder, values, keep=1, **options):
    "The steps whose weights are kept when evaluations, every second step, find these."
    config = CONFIG.replace(steps=2 * len(values))
    keeper = KeepEvaluated(folder, keep, metric="eval_f1", **options)
    run([Evaluate(scores(*values), 2), keeper], config=config)
    return list(keeper.folders())


def test_the_last_and_the_best_evaluations_are_kept(tmp_path):
    values = [math.nan, 1.0, 0.5, 0.6, 2.0, 0.8]

    assert kept(tmp_path / "a", values) == [6, 12]
    assert kept(tmp_path / "b", values, keep=2) == [6, 10, 12]
    assert kept(tmp_path / "c", values, higher_is_better=True) == [10, 12]
    assert kept(tmp_path / "d", 3 * [math.nan]) == [2, 6]  # none is better than the first


def test_weights_are_written_once_for_each_evaluation(tmp_path, monkeypatch):
    written = []
    keeper = KeepEvaluated(tmp_path)
    monkeypatch.setattr(keeper, "write", lambda run, wanted: written.append(run.step))

    run([Evaluate(measure, 5), keeper])

    assert written == [5, 10, 15, 16]


def test_the_weights_that_were_measured_are_kept(tmp_path):
    average = WeightAverage(0.5)
    keeper = KeepEvaluated(tmp_path / "kept", average=average)
    plan = [average, Evaluate(measure, average=average), keeper]
    model, history = run([*plan, Checkpoints(tmp_path / "run")])

    found = load_model(keeper.folders()[STEPS], Transformer)
    trained = load_model(Checkpoints(tmp_path / "run").path(STEPS), Transformer)

    assert same(found, model) and not same(found, trained)
    assert math.isclose(measure(found)["loss"].item(), history.column("eval_loss")[1][-1])


def test_a_metric_that_nobody_measures_is_said(tmp_path):
    with pytest.warns(UserWarning, match="stays empty: nobody measured eval_bleu"):
        run([Evaluate(measure, 8), KeepEvaluated(tmp_path, metric="eval_bleu")])


def test_weights_of_evaluations_survive_a_kill(tmp_path):
    def callbacks():
        return [*usual_callbacks(tmp_path / "run"), KeepEvaluated(tmp_path / "kept", 2)]

    killed([*callbacks(), Kill(13, 0)])
    run(callbacks())
    whole = KeepEvaluated(tmp_path / "whole", 2)
    run([*usual_callbacks(), whole])

    resumed = callbacks()[-1].folders()
    assert resumed.keys() == whole.folders().keys()
    for step, folder in whole.folders().items():
        models = [load_model(path, Transformer) for path in (folder, resumed[step])]
        assert same(*models)


def test_a_full_disk_leaves_the_weights_that_were_kept(tmp_path, monkeypatch):
    from annotated_transformer.training import checkpoint

    def full(*arguments):
        raise OSError(28, "No space left on device")

    class Fill(Callback):
        def after_step(self, run):
            if run.step == 10:
                monkeypatch.setattr(checkpoint, "write_model", full)

    keeper = KeepEvaluated(tmp_path, 1, metric="eval_f1")
    values = scores(4.0, 1.0, 3.0, 2.0, 0.5, 0.4)  # the best two aren't written
    with pytest.warns(UserWarning, match="step-00000010 was not written"):
        run([Fill(), Evaluate(values, 2), keeper], config=CONFIG.replace(steps=12))
    assert list(keeper.folders()) == [4, 8]


def test_folders_of_other_names_are_left_alone(tmp_path):
    for name in ("step-00000002-copy", "step-1", "step-new"):
        (tmp_path / "run" / name).mkdir(parents=True)
        (tmp_path / "kept" / name).mkdir(parents=True)

    keeper = KeepEvaluated(tmp_path / "kept", 1)
    run([Checkpoints(tmp_path / "run", every_steps=2), Evaluate(measure, 4), keeper])

    assert Checkpoints(tmp_path / "run").steps() == [16, 14]
    assert {"step-1", "step-new"} < {path.name for path in tmp_path.glob("*/*")}


# ---- what strangers' callbacks and batches bring ----


@pytest.mark.parametrize("order", [-3, 0, 2, 9])
def test_a_state_comes_after_everybodys_begin(tmp_path, order):
    def counting():
        count = Count()
        count.order = order
        return count

    killed([Checkpoints(tmp_path, every_steps=5), counting(), Kill(13, 10)])
    count = counting()
    run([Checkpoints(tmp_path, every_steps=5), count])
    # what comes after the checkpoint in a step isn't in it
    assert count.n == (STEPS if order < Checkpoints.order else STEPS - 1)


def test_a_state_that_could_not_be_read_back_is_refused_by_name(tmp_path):
    class Remember(Callback):
        def state_dict(self):
            return dict(seen=dict(paths=[tmp_path]))

    with pytest.raises(ValueError, match="seen in the state of Remember: got 'a PosixPath"):
        run([Checkpoints(tmp_path / "run"), Remember()])


def test_numbers_of_other_libraries_become_plain_ones(tmp_path):
    numpy = pytest.importorskip("numpy")

    class Note(Callback):
        def after_step(self, run):
            run.history.record(run.step, a=numpy.float32(0.5), b=torch.tensor(2.0))

    killed([Checkpoints(tmp_path, every_steps=5), Note(), Kill(13, 9)])
    _, history = run([Checkpoints(tmp_path, every_steps=5), Note()])
    assert history.column("a")[1] == STEPS * [0.5]
    assert {type(row["b"]) for row in history.rows} == {float}


def test_checkpoints_that_nobody_can_read_are_not_begun_again(tmp_path):
    run([Checkpoints(tmp_path, every_steps=8)])
    for path in tmp_path.glob("step-*/model.safetensors"):
        path.unlink()
    with pytest.warns(UserWarning, match="is skipped"):
        with pytest.raises(ValueError, match="expected a checkpoint that can be read"):
            run([Checkpoints(tmp_path)])
    assert Checkpoints(tmp_path).steps() == [16, 8]


def test_weight_decay_may_change_and_accumulation_may_not(tmp_path):
    class Note(Callback):
        def after_step(self, run):
            self.decays = [group["weight_decay"] for group in run.optimizer.param_groups]

    allowed = ("weight_decay", "grad_accum_steps", "steps")
    half = CONFIG.replace(steps=8, weight_decay=0.1)
    run([Checkpoints(tmp_path)], config=half)
    note = Note()
    plan = [Checkpoints(tmp_path, may_change=allowed), note]
    run(plan, config=CONFIG.replace(weight_decay=0.5))
    assert note.decays == [0.5, 0.0]
    with pytest.raises(ValueError, match="grad_accum_steps: got 1, expected 2"):
        run(plan, config=CONFIG.replace(weight_decay=0.5, grad_accum_steps=1))


def test_callbacks_are_closed_even_if_another_one_cannot_be(usual_signals):
    closed = []

    class Close(Callback):
        def close(self):
            closed.append(self)
            raise OSError("it can't be closed")

    before = signal.getsignal(signal.SIGINT)
    model = new_model()
    with pytest.raises(OSError, match="it can't be closed"):
        plan = [StopOnSignal(), Close(), StopOnSignal(), Close()]
        train(model, shuffled_loader(), CONFIG.replace(steps=1), callbacks=plan)
    assert len(closed) == 2 and not model.training
    assert signal.getsignal(signal.SIGINT) is before


def test_a_gradient_is_looked_at_whatever_the_callbacks():
    class Bare(TrainConfig):
        def callbacks(self):
            return []

    def root(model, batch):
        loss, n = sequence_loss(model, batch)
        return loss + (0 * next(model.parameters())).abs().sqrt().sum(), n

    model = new_model()
    with pytest.raises(NotFinite, match="gradient norm nan"):
        train(model, shuffled_loader(), Bare(steps=2), loss_fn=root)
    assert same(model, new_model())


def test_batches_may_hold_what_is_no_tensor():
    from collections import namedtuple

    from annotated_transformer.base.devices import to_device
    from annotated_transformer.training.distributed import rows_of

    Point = namedtuple("Point", "x name")
    batch = dict(points=[Point(torch.arange(3), "a")], n=3, text="abc", nothing=None)
    moved = to_device(batch, "cpu")
    assert moved["points"][0].name == "a" and moved["n"] == 3 and moved["nothing"] is None
    half = rows_of(batch, 1, 2)
    assert half["points"][0].x.tolist() == [1] and half["text"] == "abc"


def test_a_loss_without_a_count_is_refused():
    with pytest.raises(ValueError, match="loss_fn: got 'a Tensor', expected a pair"):
        train(
            new_model(), shuffled_loader(), CONFIG, loss_fn=lambda m, b: measure(m)["loss"]
        )


def test_the_batches_of_several_processes_are_begun_by_the_run():
    "`train` seeds before it begins them, so that all processes shuffle alike."
    from annotated_transformer.training.distributed import own_parts

    begun = []

    class Batches:
        def __iter__(self):
            begun.append(True)
            return iter([torch.arange(4)])

    parts = own_parts(Batches())
    assert not begun
    assert next(parts).tolist() == [0, 1, 2, 3] and begun


def test_processes_that_have_not_joined_are_told(monkeypatch):
    from annotated_transformer.training.distributed import train_together

    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="joined_processes"):
        train_together(new_model(), shuffled_loader(), CONFIG)


def test_a_rate_that_is_set_between_two_runs_counts():
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    config = TrainConfig(steps=4, warmup_steps=2, log_every=1)
    batches = [Batch.from_pairs(PAIRS[:4])] * 4

    first = train(model, batches, config, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5
    optimizer.param_groups[0]["lr"] = 0.25
    second = train(model, batches, config, optimizer=optimizer)

    halves = [rate / 2 for rate in first.column("lr")[1]]
    assert second.column("lr")[1] == halves


def test_counts_may_be_weights():
    "Examples that weigh a tenth each take the step of examples that weigh one each."

    def weighted(share):
        def loss_fn(model, batch):
            loss, n = sequence_loss(model, batch)
            return share * loss, share * n

        return loss_fn

    models = [new_model(dropout=0.0) for _ in range(2)]
    batches = [Batch.from_pairs([PAIRS[0]])]
    for model, share in zip(models, (1, 0.1)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        config = TrainConfig(steps=1, warmup_steps=1, max_grad_norm=None)
        train(model, batches, config, loss_fn=weighted(share), optimizer=optimizer)

    assert all(
        torch.allclose(a, b, atol=1e-6)
        for a, b in zip(models[0].parameters(), models[1].parameters())
    )


class Momentum(torch.optim.SGD):
    "Another class than SGD."


def test_a_run_goes_on_with_its_own_optimizer_alone(tmp_path):
    def go(optimizer_class=torch.optim.SGD, may_change=(), stop=False, **options):
        model = new_model()
        optimizer = optimizer_class(model.parameters(), lr=1e-2, **options)
        callbacks = [Checkpoints(tmp_path, every_steps=5, may_change=may_change)]
        if stop:
            callbacks.append(Kill(7, 0))
        train(model, shuffled_loader(), CONFIG, optimizer=optimizer, callbacks=callbacks)
        return optimizer

    with pytest.raises(Killed):
        go(momentum=0.9, stop=True)
    with pytest.raises(ValueError, match="^optimizer: got 'Momentum', expected 'SGD'"):
        go(Momentum, momentum=0.9)
    with pytest.raises(
        ValueError, match="^momentum of the optimizer: got 0.5, expected 0.9"
    ):
        go(momentum=0.5)
    assert go(momentum=0.5, may_change=["momentum"]).param_groups[0]["momentum"] == 0.5


def test_what_cannot_be_read_back_is_refused_before_the_first_step(tmp_path):
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=np.float64(0.9))

    with pytest.raises(ValueError, match="^optimizer: got 'a float64', expected plain"):
        train(
            model,
            shuffled_loader(),
            CONFIG,
            optimizer=optimizer,
            callbacks=[Checkpoints(tmp_path)],
        )


def test_a_schedule_may_return_a_number_of_numpy(tmp_path):
    @dataclass(frozen=True)
    class Cosine(TrainConfig):
        def fraction_of_lr(self, step):
            return np.float64(0.5 + 0.5 * np.cos(np.pi * step / self.steps))

    callbacks = [Checkpoints(tmp_path, every_steps=1)]
    config = Cosine(steps=2)
    train(new_model(), shuffled_loader(), config, callbacks=callbacks)
    again = train(new_model(), shuffled_loader(), config, callbacks=callbacks)
    assert again.steps == 2


@pytest.mark.parametrize("batch", [dict(x=1), [1, 2], torch.ones(2)])
def test_a_batch_of_another_kind_is_named(batch):
    with pytest.raises(ValueError, match="^batches: got 'a .*`loss_fn` of your own"):
        train(new_model(), [batch] * 40, CONFIG)


def test_only_what_the_optimizer_updates_is_clipped():
    def moved(freeze):
        model = new_model(dropout=0.0)
        own = [model.encoder.layers[0].norm1.weight]
        if freeze:
            model.requires_grad_(False)
            own[0].requires_grad_(True)
        optimizer = torch.optim.SGD(own, lr=1.0)
        before = own[0].detach().clone()
        config = TrainConfig(steps=1, warmup_steps=1, max_grad_norm=0.01)
        train(model, [Batch.from_pairs(PAIRS[:4])], config, optimizer=optimizer)
        return (own[0] - before).norm().item()

    assert moved(freeze=True) == pytest.approx(0.01, rel=1e-3)
    assert moved(freeze=False) == pytest.approx(moved(freeze=True), rel=1e-4)


def test_the_rate_of_an_earlier_scheduler_is_forgotten():
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)  # notes `initial_lr`
    optimizer.param_groups[0]["lr"] = 1e-5
    config = TrainConfig(steps=1, warmup_steps=1, log_every=1)

    history = train(model, [Batch.from_pairs(PAIRS[:4])], config, optimizer=optimizer)

    assert history.column("lr")[1] == [1e-5]


def test_names_that_may_change_are_a_list(tmp_path):
    with pytest.raises(ValueError, match="^may_change: got 'warmup_steps'"):
        Checkpoints(tmp_path, may_change="warmup_steps")
