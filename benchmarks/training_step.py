"""Step time of this Transformer against `torch.nn.Transformer` of the same sizes.

    python benchmarks/training_step.py [--device cuda] [--sizes tiny,base,big] [--rounds 15] [--compile]

All sides take turns in one process, on the same batch, with the same ends (embedding, positions, tied logits), the same
loss and the same optimizer. Ours has biases in its projections here, and dropout in all the places where torch's has it,
so that both compute the same function. The ratio is torch's median over ours: above 1, ours is faster.
"""
import statistics
from functools import partial

import torch
from machine import Results, arguments, rounded, seconds
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from annotated_transformer.data import Batch, batch_pairs
from annotated_transformer.datasets.synthetic import synthetic_pairs
from annotated_transformer.masks import causal_mask, to_ignore_mask
from annotated_transformer.optimizer import build_optimizer
from annotated_transformer.experiments.experiment import count_parameters
from annotated_transformer.loss import sequence_loss
from annotated_transformer.training import TrainConfig, train_step
from annotated_transformer.transformer import (Transformer, TransformerConfig,
                                               build_embeddings)

# name: (symbols, shortest, longest, sequences in a batch on a CPU, on a GPU)
SIZES = {"tiny": (10, 5, 12, 128, 1024), "base": (997, 32, 64, 16, 512), "big": (997, 32, 64, 8, 256)}
SEED = 0 # of the weights and dropout
WARM_UP = 3 # steps of each side that are not counted


class TorchTransformer(nn.Module):
    "`nn.Transformer` between the ends of ours."

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.src_embed, self.tgt_embed, self.output = build_embeddings(config)
        self.core = nn.Transformer(
            config.d_model, config.n_heads, config.n_layers, config.n_layers, config.d_ff, config.dropout, batch_first=True,
            norm_first=config.norm == "pre",
        )

    def forward(self, src, tgt):
        pad = src == 0
        hidden = self.core(
            self.src_embed(src), self.tgt_embed(tgt), tgt_mask=to_ignore_mask(causal_mask(tgt.shape[1], device=tgt.device)),
            src_key_padding_mask=pad, tgt_key_padding_mask=tgt == 0, memory_key_padding_mask=pad, tgt_is_causal=True,
        )
        return self.output.logits(hidden)


class Side:
    "One of those who are compared: a model with its optimizer, and the seconds of its steps."

    def __init__(self, model: nn.Module, compiled: bool = False):
        self.optimizer, self.times = build_optimizer(model), []
        self.model = torch.compile(model) if compiled else model

    def step(self, batch: Batch, device: str):
        self.times.append(seconds(lambda: train_step(self.model, [batch], self.optimizer, TrainConfig()), device))

    def memory(self, batch: Batch) -> float | None:
        "Peak memory of a step in GB, beyond weights and optimizer; None on a CPU, where nobody counts it."
        if not batch.src.is_cuda: return None
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        train_step(self.model, [batch], self.optimizer, TrainConfig())
        return rounded((torch.cuda.max_memory_allocated() - before) / 1e9)


def step_flops(model: nn.Module, batch: Batch) -> int:
    "Floating-point operations of the matrix products in one forward and backward pass."
    counter = FlopCounterMode(display=False)
    with counter: sequence_loss(model, batch).backward()
    model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def compare(size: str, dropout: float, device: str, rounds: int, compiled: bool = False, n_rows: int | None = None) -> dict:
    "Median step times of all sides, measured in turns."
    n_symbols, shortest, longest, *usual = SIZES[size]
    n_rows = n_rows or usual[device == "cuda"]
    torch.manual_seed(SEED)
    same = dict(attention_bias=True, dropout=dropout, attention_dropout=dropout, hidden_dropout=dropout)
    config = TransformerConfig.preset(size, vocab_size=3 + n_symbols, **same)
    batch = next(batch_pairs(synthetic_pairs("copy", n_symbols, shortest, longest), n_rows)).to(device)
    makers = {"ours": partial(Transformer, config), "torch": partial(TorchTransformer, config)}
    sides = {name: Side(make().to(device).train()) for name, make in makers.items()}
    if compiled: sides |= {f"{name} compiled": Side(make().to(device).train(), True) for name, make in makers.items()}
    for turn in range(WARM_UP + rounds):
        for name in sorted(sides, reverse=turn % 2 == 0): # the order alternates, so that nobody always goes first
            sides[name].step(batch, device)
    times = {name: side.times[WARM_UP:] for name, side in sides.items()}
    median = {name: statistics.median(each) for name, each in times.items()}
    pairs = {mine: mine.replace("ours", "torch") for mine in sides if mine.startswith("ours")}
    ratios = {mine: [b / a for a, b in zip(times[mine], times[theirs])] for mine, theirs in pairs.items()}
    return dict(
        size=size, dropout=dropout, seed=SEED, batch=list(batch.src.shape), tokens=batch.n_tokens, rounds=rounds,
        parameters={name: count_parameters(side.model) for name, side in sides.items()},
        flops=step_flops(sides["ours"].model, batch),
        milliseconds={name: rounded(1000 * each) for name, each in median.items()},
        tokens_per_second={name: round(batch.n_tokens / each) for name, each in median.items()},
        step_memory_gb={name: side.memory(batch) for name, side in sides.items()},
        ratios={mine: rounded(median[theirs] / median[mine]) for mine, theirs in pairs.items()},
        ratio_quartiles={mine: [rounded(q) for q in statistics.quantiles(each, n=4)] for mine, each in ratios.items()},
    )


def main(options):
    results, rows = Results(f"training_step_{options.device}", options), []
    print(f"{'size':6}{'dropout':>8}{'':15}{'ours, ms':>10}{'torch, ms':>11}{'ours, tok/s':>13}{'torch, tok/s':>14}{'ratio':>8}   quartiles")
    for size in options.sizes.split(","):
        for dropout in (0.0, 0.1):
            row = compare(size, dropout, options.device, options.rounds, options.compile)
            rows.append(row)
            for mine, ratio in row["ratios"].items():
                theirs, (low, _, high) = mine.replace("ours", "torch"), row["ratio_quartiles"][mine]
                ms, speed = row["milliseconds"], row["tokens_per_second"]
                print(f"{size:6}{dropout:8}{mine[4:]:15}{ms[mine]:10.1f}{ms[theirs]:11.1f}{speed[mine]:13,}{speed[theirs]:14,}{ratio:8.2f}   {low:.2f} to {high:.2f}", flush=True)
            path = results.save(rows=rows)
    print("written to", path)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--sizes", default="tiny,base", help="of tiny, base, big; separated by commas")
    parser.add_argument("--rounds", type=int, default=15, help="measured steps of each side")
    parser.add_argument("--compile", action="store_true", help="measure both sides compiled as well")
    main(parser.parse_args())
