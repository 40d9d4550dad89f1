"""From the plainest training step to the fastest: what each change is worth on this machine.

    python benchmarks/speed/ladder.py [--device cuda] [--rounds 7]

Sentences of random words, as long as those of Multi30k, and a model of its size; on a GPU, the paper's base model
and 8,000 tokens a step, since the plainest step holds many tables. On
each rung the best so far and the same with one change take turns on the same sentences, each with a model and an optimizer of its own. A change
that is faster stays; one that is slower here is shown, and left out of the next rungs. Writes results/ladder_DEVICE.json, which chapter 8.3 shows.
"""

import random
import statistics
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from speed.steps import Steps
from support.machine import Results, arguments, rounded, seconds
from torch import nn
from torch.nn import functional as F
from torch._dynamo.utils import counters

from annotated_transformer.training.data import (
    PAD,
    Batch,
    batch_by_tokens,
    padding_fraction,
)
from annotated_transformer.core.dropout import Dropout
from annotated_transformer.training.chunked_loss import chunked_sequence_loss
from annotated_transformer.core.multi_head_attention import MultiHeadAttention
from annotated_transformer.training.optimizer import BETAS, EPSILON, build_optimizer
from annotated_transformer.base.allocations import peak_bytes
from annotated_transformer.training.loop import TrainConfig
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

SIZES = {
    "cpu": dict(model="small", vocab_size=10_000, max_tokens=4096, n_batches=4),
    "cuda": dict(model="base", vocab_size=37_000, max_tokens=8000, n_batches=12),
}
SMOOTHING, SEED = 0.1, 0
MEAN_LOG, SPREAD, RATIO_SPREAD, SHORTEST, LONGEST = (
    2.6,
    0.33,
    0.18,
    3,
    50,
)  # of the lengths in Multi30k, in pieces of words


@dataclass(frozen=True)
class Setup:
    "How a step is taken. The defaults are the plainest."

    attention: str = "formula"
    dropout: str = "torch"
    loss: str = "formula"
    optimizer: str = "a loop"
    batches: str = "in any order"
    precision: str = "float32"
    compiled: bool = False


class FormulaAttention(MultiHeadAttention):
    "It keeps the table of weights."

    def attend(self, query, key, value, mask=None, is_causal=False):
        return self.dropout(self.weights(query, key, mask, is_causal)) @ value


class FormulaConfig(TransformerConfig):
    def attention(self, i):
        return self.attention_of_kind(FormulaAttention)

    cross_attention = attention


# what is said of it, what it changes, where it makes sense
RUNGS = [
    ("fused attention", dict(attention="fused"), ("cpu", "cuda")),
    ("PyTorch's cross-entropy", dict(loss="kernel"), ("cpu", "cuda")),
    ("fused Adam", dict(optimizer="fused"), ("cpu", "cuda")),
    ("batches of similar length", dict(batches="by tokens"), ("cpu", "cuda")),
    ("cross-entropy in chunks", dict(loss="chunks"), ("cpu", "cuda")),
    ("cheaper dropout masks", dict(dropout="ours"), ("cpu",)),  # on a GPU it is PyTorch's
    ("bfloat16", dict(precision="bfloat16"), ("cpu", "cuda")),
    ("compiled", dict(compiled=True), ("cpu", "cuda")),
]


def draw_pairs(count: int, vocab_size: int) -> list:
    "Pairs of sentences of random words."
    draw = random.Random(SEED)

    def words(length: float) -> list:
        return [
            draw.randrange(3, vocab_size)
            for _ in range(max(SHORTEST, min(LONGEST, round(length))))
        ]

    pairs = []
    for _ in range(count):
        length = draw.lognormvariate(MEAN_LOG, SPREAD)
        pairs.append((words(length), words(length * draw.lognormvariate(0, RATIO_SPREAD))))
    return pairs


def make_batches(pairs: list, setup: Setup, max_tokens: int) -> list[Batch]:
    "As many batches in either way, of the same pairs."
    groups = list(batch_by_tokens(pairs, max_tokens, SEED))
    if setup.batches != "by tokens":
        groups = [pairs[start :: len(groups)] for start in range(len(groups))]
    return [Batch.from_pairs(group) for group in groups]


def formula_loss(model, batch: Batch):
    "With a table of smoothed targets, as large as the logits."
    log_p = model(*batch.inputs).log_softmax(-1)
    size = log_p.shape[-1]
    wanted = (1 - SMOOTHING) * F.one_hot(batch.targets, size) + SMOOTHING / (size - 1)
    wanted[..., PAD] = 0
    wanted = wanted * (batch.targets != PAD)[..., None]
    return -(wanted * log_p).sum(), batch.n_tokens


def kernel_loss(model, batch: Batch):
    "By PyTorch's function. PAD gets its share of the smoothing here, as any word."
    logits = model(*batch.inputs).flatten(0, 1)
    loss = F.cross_entropy(
        logits,
        batch.targets.flatten(),
        ignore_index=PAD,
        label_smoothing=SMOOTHING,
        reduction="sum",
    )
    return loss, batch.n_tokens


class Climber:
    "A model that is trained in one of the ways."

    def __init__(
        self,
        setup: Setup,
        device: str,
        pairs: list,
        model: str,
        vocab_size: int,
        max_tokens: int,
    ):
        torch.manual_seed(SEED)
        self.setup, self.device = setup, device
        kind = TransformerConfig if setup.attention == "fused" else FormulaConfig
        config = kind.preset(model, vocab_size=vocab_size)
        self.model = Transformer(config).to(device).train()
        for name, module in list(self.model.named_modules()):
            if isinstance(module, Dropout) and setup.dropout == "torch":
                self.model.set_submodule(name, nn.Dropout(module.p))
        plain_adam = partial(
            torch.optim.Adam, betas=BETAS, eps=EPSILON, foreach=False, fused=False
        )
        optimizer = (
            build_optimizer(self.model)
            if setup.optimizer == "fused"
            else plain_adam(self.model.parameters())
        )
        chunks = partial(chunked_sequence_loss, label_smoothing=SMOOTHING)
        losses = dict(formula=formula_loss, kernel=kernel_loss, chunks=chunks)
        self.step = Steps(
            torch.compile(self.model) if setup.compiled else self.model,
            optimizer,
            losses[setup.loss],
            TrainConfig(precision=setup.precision),
        )
        self.batches = make_batches(pairs, setup, max_tokens)
        self.losses = []

    def run(self):
        "All batches once."
        self.losses = [self.step(batch) for batch in self.batches]

    def memory(self, batch: Batch | None = None) -> int | None:
        "The most bytes that a step (on the largest batch) holds at one time beyond weights and Adam's averages; None where nobody can count it."
        largest = batch or max(self.batches, key=lambda batch: batch.tgt_out.numel())
        if self.device == "cpu":
            return None if self.setup.compiled else peak_bytes(lambda: self.step(largest))
        torch.cuda.synchronize()
        self.model.zero_grad()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        self.step(largest)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before


def take_turns(sides: list[Climber], rounds: int, device: str) -> list[list[float]]:
    "Seconds of each pass of each side; one before them, in which graphs are compiled, is not counted."
    times = [[] for _ in sides]
    for turn in range(1 + rounds):
        for side, spent in list(zip(sides, times))[:: 1 if turn % 2 else -1]:
            once = seconds(side.run, device)
            if turn:
                spent.append(once)
    return times


def compare(
    before: Setup,
    after: Setup,
    device: str,
    rounds: int,
    pairs: list,
    n_tokens: int,
    **sizes,
) -> dict:
    "One change: speed without and with it, in turns."
    counters.clear()
    sides = [Climber(setup, device, pairs, **sizes) for setup in (before, after)]
    old, new = take_turns(sides, rounds, device)
    ratios = [a / b for a, b in zip(old, new)]
    low, middle, high = statistics.quantiles(ratios, n=4) if rounds > 1 else 3 * ratios
    return dict(
        tokens_per_second=[
            round(n_tokens / statistics.median(times)) for times in (old, new)
        ],
        ratio=rounded(statistics.median(ratios)),
        quartiles=[rounded(low), rounded(high)],
        step_mb=[
            bytes and rounded(bytes / 1e6) for bytes in (side.memory() for side in sides)
        ],
        padding=[rounded(padding_fraction(side.batches)) for side in sides],
        last_loss=[rounded(side.losses[-1]) for side in sides],
        graphs=counters["stats"]["unique_graphs"],
    )


def climb(
    device: str,
    rounds: int,
    model: str,
    vocab_size: int,
    max_tokens: int,
    n_batches: int,
    report=print,
) -> dict:
    "All rungs, and the last against the first."
    sizes = dict(model=model, vocab_size=vocab_size, max_tokens=max_tokens)
    pairs = draw_pairs(n_batches * max_tokens // 16, vocab_size)
    n_tokens = sum(len(target) + 1 for _, target in pairs)
    plainest = best = Setup()
    rows = []
    for name, change, devices in RUNGS:
        if device not in devices:
            continue
        tried = replace(best, **change)
        row = dict(
            name=name, **compare(best, tried, device, rounds, pairs, n_tokens, **sizes)
        )
        row["kept"] = row["quartiles"][1] >= 1
        if row["kept"]:
            best = tried
        rows.append(row)
        report(row)
    whole = dict(
        name="all that was kept",
        **compare(plainest, best, device, rounds, pairs, n_tokens, **sizes),
    )
    report(whole)
    return dict(
        sizes=sizes
        | dict(pairs=len(pairs), tokens=n_tokens, smoothing=SMOOTHING, rounds=rounds),
        rows=rows,
        whole=whole,
        setup=vars(best),
    )


def show(row: dict):
    (old, new), (low, high) = row["tokens_per_second"], row["quartiles"]
    print(
        f"{row['name']:28}{old:9,} -> {new:9,} tokens/s   x {row['ratio']:.2f} ({low:.2f} to {high:.2f})   MB {row['step_mb']}",
        flush=True,
    )


def main(options):
    results = Results(f"ladder_{options.device}", options)
    found = climb(options.device, options.rounds, **SIZES[options.device], report=show)
    print("written to", results.save(**found))


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--rounds", type=int, default=7, help="measured passes of each side"
    )
    main(parser.parse_args())
