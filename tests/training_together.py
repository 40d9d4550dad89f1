"""A small training for tests of several processes: python training_together.py FOLDER [key=value ...] [+ key=value ...].

What it leaves in FOLDER/0, FOLDER/1, ...: model, history and, from each process, the rows that it has computed with.
"""

import os
import signal
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from annotated_transformer.base.model_files import write_model
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.training.callbacks import Evaluate, StopOnSignal, WeightAverage
from annotated_transformer.training.checkpoint import Checkpoints, KeepEvaluated
from annotated_transformer.training.chunked_loss import chunked_sequence_loss
from annotated_transformer.training.data import Batch, batch_pairs
from annotated_transformer.training.distributed import (
    joined_processes,
    n_processes,
    process_rank,
    run_on_rank_zero,
    train_together,
)
from annotated_transformer.training.loop import TrainConfig
from annotated_transformer.training.loss import cross_entropy, evaluate, sequence_loss

OPTIONS = dict(
    steps=12,
    accumulate=1,
    dropout=0.0,
    rows=7,
    kill=0,  # the last process, at this batch
    stop=0,  # SIGTERM to the last process, at this batch
    every=0,
    hurry=False,  # the last process wants a checkpoint after each step
    patience=False,  # only the first process's model gets no better
    tie=False,
    unused=False,
    ema=0.0,
    chunked=False,
    plain=False,  # batches are dictionaries, and the loss is one's own
)


def batches(rows: int):
    "The fourth is too small to be shared."
    pairs = list(islice(synthetic_pairs(min_len=1, max_len=9), 600))
    yield from islice(batch_pairs(pairs, rows), 3)
    yield Batch.from_pairs(pairs[-1:])
    yield from batch_pairs(pairs[3 * rows :], rows)


def plain_loss(model, batch):
    logits = model(batch["src"], batch["tgt"][0])
    targets = batch["tgt"][1]
    return cross_entropy(logits, targets), int((targets != 0).sum())


def run(folder: Path, **given):
    "Train, and write down what happened."
    options, seen = OPTIONS | given, []
    is_last = process_rank() == n_processes() - 1
    # the first process's weights are those that count
    torch.manual_seed(100 * process_rank())
    model = Transformer(
        TransformerConfig.preset(
            "tiny",
            vocab_size=13,
            d_model=16,
            d_ff=32,
            dropout=options["dropout"],
            tie_weights=options["tie"],
        )
    ).double()

    if options["unused"]:
        model.unused = torch.nn.Linear(3, 3).double()  # as BERT's pooler is

    def loss_fn(runner, batch):
        if options["plain"]:
            seen.extend(batch["src"].tolist())
            return plain_loss(runner, batch)
        seen.extend(batch.src.tolist())
        chosen = chunked_sequence_loss if options["chunked"] else sequence_loss
        return chosen(runner, batch)

    def watched():
        for number, batch in enumerate(batches(options["rows"]), 1):
            marker = folder / "killed"
            if is_last and number == options["kill"] and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if is_last and number == options["stop"]:
                os.kill(os.getpid(), signal.SIGTERM)
            if options["plain"]:
                batch = dict(src=batch.src, tgt=(batch.tgt_in, batch.tgt_out))
            yield batch

    config = TrainConfig(
        steps=options["steps"],
        grad_accum_steps=options["accumulate"],
        warmup_steps=4,
        log_every=1,
        precision="float32",
    )
    held_out = list(islice(batch_pairs(synthetic_pairs(held_out=True), 8), 2))
    losses = iter([2.0, 2.0, 2.0] if process_rank() == 0 else [2.0, 1.0, 0.0])
    average = WeightAverage(options["ema"])
    averaged = average if options["ema"] else None
    measure = partial(evaluate, batches=held_out)
    if options["patience"]:
        evaluation = Evaluate(lambda model: dict(loss=next(losses)), 3, patience=1)
    else:
        evaluation = Evaluate(measure, 6, average=averaged)
    checkpoints = Checkpoints(
        folder / "checkpoints",
        every_steps=options["every"],
        every_minutes=1e-9 if options["hurry"] and is_last else 10**9,
        keep=3,
    )
    history = train_together(
        model,
        watched(),
        config,
        loss_fn=loss_fn,
        callbacks=[
            *([average] if averaged else []),
            evaluation,
            KeepEvaluated(folder / "evaluated", 1, average=averaged),
            StopOnSignal(),
            checkpoints,
        ],
    )
    run_on_rank_zero(write_model, model, folder)
    run_on_rank_zero(history.save, folder / "history.csv")
    if seen:  # a run that was at its end before a restart has nothing to do
        torch.save(seen, folder / f"rows-{process_rank()}.pt")


def value(name: str, text: str):
    return type(OPTIONS[name])(float(text))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    # one training after another
    for number, words in enumerate(" ".join(sys.argv[2:]).split("+")):
        options = {
            name: value(name, text)
            for name, _, text in (word.partition("=") for word in words.split())
        }
        place = folder / str(number)
        place.mkdir(exist_ok=True)
        with joined_processes():
            run(place, **options)
