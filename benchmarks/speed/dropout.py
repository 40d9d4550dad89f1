"""Dropout on a CPU: PyTorch's against this library's, which draws four decisions from one random number.

    python benchmarks/speed/dropout.py [--rounds 9]

Forward and backward on tensors as they occur in three models, beside a product with a mask that is there already; then training steps of two models
on sentences of similar length, with either. All take turns. Writes results/dropout_cpu.json, which chapter 8.1 shows. On a GPU both are the same.
"""

import statistics
import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from speed.ladder import Climber, Setup, draw_pairs, take_turns
from support.machine import Results, arguments, rounded, seconds
from torch.nn import functional as F

from annotated_transformer.core.dropout import apply_dropout, dropout_mask

FAST = dict(attention="fused", loss="chunks", optimizer="fused", batches="by tokens")
SHAPES = [
    (1664, 64),
    (4096, 128),
    (1024, 512),
    (4096, 512),
]  # rows and width: tiny, small, base, base with a larger batch
STEPS = {
    "small": dict(vocab_size=10_000, max_tokens=4096, n_batches=3),
    "base": dict(vocab_size=37_000, max_tokens=1000, n_batches=2),
}
P, REPEATS = 0.1, 20


def forward_and_backward(drop, x: torch.Tensor, gradient: torch.Tensor):
    x.grad = None
    drop(x).backward(gradient)


def compare_calls(shape: tuple[int, int], rounds: int) -> dict:
    "Nanoseconds for each number of a tensor."
    x, gradient = torch.randn(shape, requires_grad=True), torch.randn(shape)
    mask = dropout_mask(x, P)
    ways = dict(
        product=lambda x: x * mask,
        torch=partial(F.dropout, p=P),
        ours=partial(apply_dropout, p=P),
    )
    times = {name: [] for name in ways}
    for turn in range(1 + rounds * REPEATS):
        for name in list(ways)[:: 1 if turn % 2 else -1]:
            once = seconds(partial(forward_and_backward, ways[name], x, gradient), "cpu")
            if turn:
                times[name].append(once)
    found = {
        name: 1e9 * statistics.median(each) / x.numel() for name, each in times.items()
    }
    return dict(
        shape=shape,
        p=P,
        ratio=rounded(found["torch"] / found["ours"]),
        **{name: rounded(each) for name, each in found.items()},
    )


def compare_steps(
    model: str, rounds: int, vocab_size: int, max_tokens: int, n_batches: int
) -> dict:
    "Speed of training with either dropout."
    pairs = draw_pairs(n_batches * max_tokens // 16, vocab_size)
    sides = [
        Climber(Setup(**FAST, dropout=dropout), "cpu", pairs, model, vocab_size, max_tokens)
        for dropout in ("torch", "ours")
    ]
    theirs, ours = take_turns(sides, rounds, "cpu")
    ratios = [a / b for a, b in zip(theirs, ours)]
    low, _, high = statistics.quantiles(ratios, n=4)
    n_tokens = sum(len(target) + 1 for _, target in pairs)
    return dict(
        model=model,
        dropout=sides[0].model.config.dropout,
        vocab_size=vocab_size,
        max_tokens=max_tokens,
        rounds=rounds,
        tokens_per_second=[
            round(n_tokens / statistics.median(times)) for times in (theirs, ours)
        ],
        ratio=rounded(statistics.median(ratios)),
        quartiles=[rounded(low), rounded(high)],
        last_loss=[rounded(float(side.losses[-1])) for side in sides],
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--rounds", type=int, default=9, help="measured passes of each side"
    )
    options = parser.parse_args()
    if options.device != "cpu":
        raise SystemExit(
            "on a GPU this library's dropout is PyTorch's: there is nothing to compare"
        )
    results, calls, steps = Results("dropout_cpu", options), [], []
    for shape in SHAPES:
        calls.append(compare_calls(shape, options.rounds))
        print(calls[-1], flush=True)
    for model, sizes in STEPS.items():
        steps.append(compare_steps(model, options.rounds, **sizes))
        print(steps[-1], flush=True)
    print("written to", results.save(calls=calls, steps=steps))
