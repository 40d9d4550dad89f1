"""Step time of this Transformer against other libraries' of the same sizes.

    python benchmarks/speed/training.py [--device cuda] [--sizes tiny,base,big] [--rounds 15] [--compile]

All sides that are installed (see peers.py) take turns in one process, on the same batch, with the same loss, optimizer and clipping. Ours has
biases in its projections here, and dropout in all the places where `nn.Transformer` has it; what still differs is in peers.py. A ratio is the
other's time over ours, round by round, and the median of these: above 1, ours is faster. On a CPU a large product of matrices takes turns with them: what share of its rate a step reaches.
"""

import statistics
import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from speed.peers import has_right_masks, peers_here, versions
from speed.steps import Steps
from support.machine import Results, arguments, product, rounded, seconds
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from annotated_transformer.training.data import Batch, batch_pairs
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.tasks.runs import count_parameters
from annotated_transformer.training.loss import sequence_loss
from annotated_transformer.training.optimizer import build_optimizer
from annotated_transformer.base.allocations import peak_bytes
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

# name: (symbols, shortest, longest, sequences in a batch on a CPU, on a GPU)
SIZES = {
    "tiny": (10, 5, 12, 128, 1024),
    "base": (997, 32, 64, 16, 512),
    "big": (997, 32, 64, 8, 256),
}
SEED = 0  # of the weights and dropout
PRODUCT = 2048  # size of the matrices that a CPU multiplies in its turn; a GPU's rate is measured by itself, in stages.py
WARM_UP = 3  # steps of each side that are not counted


class Side:
    "One of those who are compared: a model with its optimizer, and the seconds of its steps."

    def __init__(self, model: nn.Module, compiled: bool = False):
        self.model = torch.compile(model) if compiled else model
        self.one_step = Steps(self.model, build_optimizer(model), sequence_loss)
        self.times = []

    def step(self, batch: Batch, device: str):
        self.times.append(seconds(partial(self.one_step, batch), device))

    def memory(self, batch: Batch) -> float | None:
        "The most MB that a step holds at one time beyond weights and Adam's averages; None where nobody can count it."
        step = partial(self.one_step, batch)
        self.model.zero_grad()
        if not batch.src.is_cuda:
            return (
                None
                if hasattr(self.model, "_orig_mod")
                else rounded(peak_bytes(step) / 1e6)
            )
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        return rounded((torch.cuda.max_memory_allocated() - before) / 1e6)


def step_flops(model: nn.Module, batch: Batch) -> int:
    "Floating-point operations of the matrix products in one forward and backward pass."
    # attention by the formula: fused kernels are not counted everywhere
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter:
        loss, _ = sequence_loss(model, batch)
        torch.autograd.grad(loss, [*model.parameters()])
    return counter.get_total_flops()


def compare(
    size: str,
    dropout: float,
    device: str,
    rounds: int,
    compiled: bool = False,
    n_rows: int | None = None,
    vocab_size: int | None = None,
) -> dict:
    "Median step times of all sides, measured in turns."
    n_symbols, shortest, longest, *usual = SIZES[size]
    n_symbols = vocab_size - 3 if vocab_size else n_symbols
    n_rows = n_rows or usual[device == "cuda"]
    torch.manual_seed(SEED)
    same = dict(
        attention_bias=True,
        dropout=dropout,
        attention_dropout=dropout,
        hidden_dropout=dropout,
    )
    config = TransformerConfig.preset(size, vocab_size=3 + n_symbols, **same)
    batch = next(
        batch_pairs(synthetic_pairs("copy", n_symbols, shortest, longest), n_rows)
    ).to(device)
    makers = {"ours": partial(Transformer, config)} | {
        name: partial(kind, config) for name, kind in peers_here().items()
    }
    for name, make in makers.items():
        if not has_right_masks(make(), config.vocab_size):
            raise SystemExit(f"{name} does not mask as it should")
    sides = {name: Side(make().to(device).train()) for name, make in makers.items()}
    if compiled:
        sides |= {
            f"{name} compiled": Side(makers[name]().to(device).train(), True)
            for name in ("ours", "torch")
        }
    at_best = product(PRODUCT, device, torch.float32) if device == "cpu" else None
    products = []
    for turn in range(WARM_UP + rounds):
        if at_best:
            products.append(seconds(at_best, device))
        for name in sorted(
            sides, reverse=turn % 2 == 0
        ):  # the order alternates, so that nobody always goes first
            sides[name].step(batch, device)
    times = {name: side.times[WARM_UP:] for name, side in sides.items()}
    median = {name: statistics.median(each) for name, each in times.items()}
    pairs = {
        theirs: "ours compiled" if "compiled" in theirs else "ours"
        for theirs in sides
        if not theirs.startswith("ours")
    }
    by_round = {
        theirs: [b / a for a, b in zip(times[mine], times[theirs])]
        for theirs, mine in pairs.items()
    }
    flops = step_flops(sides["ours"].model, batch)
    rate = 2 * PRODUCT**3 / statistics.median(products) if at_best else None
    return dict(
        size=size,
        dropout=dropout,
        vocab_size=config.vocab_size,
        seed=SEED,
        batch=list(batch.src.shape),
        tokens=batch.n_tokens,
        rounds=rounds,
        parameters={name: count_parameters(side.model) for name, side in sides.items()},
        flops=flops,
        milliseconds={name: rounded(1000 * each) for name, each in median.items()},
        share_of_product=rate
        and {name: rounded(flops / each / rate) for name, each in median.items()},
        tokens_per_second={
            name: round(batch.n_tokens / each) for name, each in median.items()
        },
        step_memory_mb={name: side.memory(batch) for name, side in sides.items()},
        ratios={
            theirs: rounded(statistics.median(each)) for theirs, each in by_round.items()
        },
        ratio_quartiles={
            theirs: [rounded(q) for q in statistics.quantiles(each, n=4)]
            for theirs, each in by_round.items()
        },
    )


def main(options):
    results, rows = Results(f"training_{options.device}", options), []
    for size in options.sizes.split(","):
        for dropout in (0.0, 0.1):
            row = compare(size, dropout, options.device, options.rounds, options.compile)
            rows.append(row)
            print(f"{size}, dropout {dropout}")
            for name, ms in row["milliseconds"].items():
                beside = (
                    f"   ours is {row['ratios'][name]:.2f} times as fast (quartiles {row['ratio_quartiles'][name]})"
                    if name in row["ratios"]
                    else ""
                )
                print(
                    f"  {name:20}{ms:9.1f} ms{row['tokens_per_second'][name]:9,} tokens/s{row['step_memory_mb'][name] or 0:9,.0f} MB{beside}",
                    flush=True,
                )
            path = results.save(versions=versions(), rows=rows)
    print("written to", path)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--sizes", default="tiny,base", help="of tiny, base, big; separated by commas"
    )
    parser.add_argument(
        "--rounds", type=int, default=15, help="measured steps of each side"
    )
    parser.add_argument(
        "--compile", action="store_true", help="measure both sides compiled as well"
    )
    main(parser.parse_args())
