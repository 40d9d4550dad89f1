"""One training by one process, and by several together.

    python benchmarks/speed/together.py [--device cuda] [--processes 2]

Same model, same batches, no dropout: what is compared is tokens a second, and the loss of the last step, which has to be the same up to
rounding. torchrun starts the processes, over NCCL on GPUs, a GPU each, and over gloo on a CPU. Writes results/together_DEVICE.json.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import ROOT, Results, arguments, rounded

from annotated_transformer.training.data import batch_pairs
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.training.distributed import (
    joined_processes,
    process_rank,
    train_together,
)
from annotated_transformer.training.chunked_loss import chunked_sequence_loss
from annotated_transformer.training.loop import TrainConfig
from annotated_transformer.base.devices import pick_device
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

SIZES = {
    "cpu": dict(preset="tiny", rows=64, steps=20),
    "cuda": dict(preset="base", rows=512, steps=30),
}
WARM_UP = 10  # steps of a training before, which is not counted


def work(device: str, preset: str, rows: int, steps: int) -> dict:
    "What each of the processes does."
    pairs = list(islice(synthetic_pairs("copy", 997, 32, 64), rows * 4))
    batches = list(batch_pairs(pairs, rows))

    def again(n):
        return (batches[i % len(batches)] for i in range(n))

    with joined_processes():
        place = pick_device(device)
        torch.manual_seed(0)
        model = Transformer(
            TransformerConfig.preset(preset, vocab_size=1000, dropout=0.0)
        ).to(place)
        for n in (WARM_UP, steps):
            history = train_together(
                model,
                again(n),
                TrainConfig(steps=n, log_every=n, lr=3e-4),
                loss_fn=chunked_sequence_loss,
            )
        return dict(
            rank=process_rank(),
            tokens_per_second=round(history.n_tokens / history.seconds),
            last_loss=history.column("loss")[1][-1],
        )


def start(n: int, *words) -> dict:
    "Run `work` in so many processes, and read what the first of them has found."
    launcher = (
        []
        if n == 1
        else ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n}"]
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            *launcher,
            __file__,
            "--worker",
            f"{folder}/found.json",
            *map(str, words),
        ]
        alone = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "OMP_NUM_THREADS": "1",
        }
        process = subprocess.Popen(
            command,
            env=alone,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            _, said = process.communicate()
        finally:  # also when this one is told to stop: nobody is left on the GPUs
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{said[-3000:]}")
        return json.loads(Path(f"{folder}/found.json").read_text())


def compare(device: str, processes: int, **sizes) -> dict:
    "Both ways. Raises `RuntimeError` if they train different models."
    if device == "cuda":
        torch.cuda.empty_cache()  # what jobs before have left in this process
    found = {
        way: start(n, device, json.dumps(sizes))
        for way, n in {"one process": 1, "together": processes}.items()
    }
    alone = found["one process"]
    for way, row in found.items():
        if abs(row["last_loss"] / alone["last_loss"] - 1) > 0.01:
            raise RuntimeError(
                f"{way}: a loss of {row['last_loss']}, alone {alone['last_loss']}"
            )
        row["ratio"] = rounded(row["tokens_per_second"] / alone["tokens_per_second"])
    return dict(
        processes=processes,
        over="nccl" if device == "cuda" else "gloo",
        sizes=sizes,
        ways=found,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        path, device, sizes = sys.argv[2:]
        row = work(device, **json.loads(sizes))
        if row.pop("rank") == 0:
            Path(path).write_text(json.dumps(row))
        sys.exit()
    parser = arguments(__doc__)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    results = Results(f"together_{options.device}", options)
    found = compare(options.device, options.processes, **SIZES[options.device])
    for way, row in found["ways"].items():
        print(
            f"{way:14}{row['tokens_per_second']:10,} tokens/s   x {row['ratio']:.2f}   loss {row['last_loss']:.4f}"
        )
    print("written to", results.save(**found))
