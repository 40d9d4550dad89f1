"""A small training for tests of several processes: python training_together.py FOLDER [key=value ...] [+ key=value ...].

What it leaves in FOLDER/0, FOLDER/1, ...: model, history and, from each process, the rows that it has computed with.
"""

import os
import signal
import sys
from itertools import islice
from pathlib import Path

import torch
from annotated_transformer.training.checkpoint import Checkpoints
from annotated_transformer.base.model_files import write_model
from annotated_transformer.training.data import Batch, batch_pairs
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.training.chunked_loss import chunked_sequence_loss
from annotated_transformer.training.loss import sequence_loss
from annotated_transformer.training.distributed import (
    is_shard,
    joined_processes,
    n_processes,
    run_on_rank_zero,
    process_rank,
)
from annotated_transformer.training.loop import TrainConfig, train
from annotated_transformer.training.loss import evaluate
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

OPTIONS = dict(
    steps=12,
    accumulate=1,
    dropout=0.0,
    shard=False,
    rows=7,
    kill=0,
    stop=0,
    every=0,
    tie=False,
    unused=False,
    ema=0.0,
    chunked=False,
)


def batches(rows: int):
    "The fourth is too small to be shared."
    pairs = list(islice(synthetic_pairs(min_len=1, max_len=9), 600))
    yield from islice(batch_pairs(pairs, rows), 3)
    yield Batch.from_pairs(pairs[-1:])
    yield from batch_pairs(pairs[3 * rows :], rows)


def run(folder: Path, **given):
    "Train, and write down what happened."
    options, seen = OPTIONS | given, []
    torch.manual_seed(
        100 * process_rank()
    )  # the first process's weights are those that count
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
        model.unused = torch.nn.Linear(
            3, 3
        ).double()  # as BERT's pooler is, in pre-training

    def loss(runner, batch, smoothing):
        seen.extend(batch.src.tolist())
        assert n_processes() == 1 or is_shard(next(runner.parameters())) == options["shard"]
        return (chunked_sequence_loss if options["chunked"] else sequence_loss)(
            runner, batch, smoothing
        )

    def watched():
        for number, batch in enumerate(batches(options["rows"]), 1):
            me, marker = process_rank() == n_processes() - 1, folder / "killed"
            if me and number == options["kill"] and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if me and number == options["stop"]:
                os.kill(os.getpid(), signal.SIGTERM)
            yield batch

    config = TrainConfig(
        steps=options["steps"],
        grad_accum_steps=options["accumulate"],
        ema_decay=options["ema"],
        warmup_steps=4,
        log_every=1,
        eval_every=6,
        precision="float32",
    )
    held_out = list(islice(batch_pairs(synthetic_pairs(held_out=True), 8), 2))
    checkpoints = Checkpoints(
        folder / "checkpoints", every_steps=options["every"] or 10**9, keep_evaluated=1
    )
    history = train(
        model,
        watched(),
        config,
        eval_fn=lambda model: evaluate(model, held_out),
        checkpoints=checkpoints,
        loss_fn=loss,
        progress=False,
        shard=options["shard"],
    )
    run_on_rank_zero(write_model, model, folder)
    run_on_rank_zero(history.save, folder / "history.csv")
    if seen:  # a run that was at its end before a restart has nothing to do
        torch.save(seen, folder / f"rows-{process_rank()}.pt")


def value(name: str, text: str):
    return type(OPTIONS[name])(float(text))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for number, words in enumerate(
        " ".join(sys.argv[2:]).split("+")
    ):  # one training after another
        options = {
            name: value(name, text)
            for name, _, text in (word.partition("=") for word in words.split())
        }
        place = folder / str(number)
        place.mkdir(exist_ok=True)
        with joined_processes():
            run(place, **options)
