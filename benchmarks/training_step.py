"""Step time of this Transformer against `torch.nn.Transformer` of the same sizes.

    python benchmarks/training_step.py [--device cuda] [--sizes tiny,base] [--rounds 15]

Both sides take turns in one process, on the same batch, with the same ends (embedding, positions, tied logits), the same
loss and the same optimizer. Ours has biases in its projections here, and dropout in all the places where torch's has it,
so that both compute the same function. The ratio is torch's median over ours: above 1, ours is faster.
"""
import statistics
import time
from itertools import islice

import torch
from machine import Results, arguments
from torch import nn

from annotated_transformer.data import Batch, stream_batches, synthetic_pairs
from annotated_transformer.masks import causal_mask, to_blocking
from annotated_transformer.optimizer import build_optimizer
from annotated_transformer.runs import count_parameters
from annotated_transformer.training import TrainConfig, train_step
from annotated_transformer.transformer import Transformer, TransformerConfig, build_ends

# name: (changes to the preset of that name, symbols, shortest, longest, sequences in a batch)
SIZES = {"tiny": (dict(vocab_size=13), 10, 5, 12, 128), "base": (dict(vocab_size=1000), 997, 32, 64, 16)}


class TorchTransformer(nn.Module):
    "`nn.Transformer` between the ends of ours."

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.src_input, self.tgt_input, self.output = build_ends(config)
        self.core = nn.Transformer(
            config.d_model, config.n_heads, config.n_layers, config.n_layers, config.d_ff, config.dropout, batch_first=True,
            norm_first=config.norm == "pre",
        )

    def forward(self, src, tgt):
        pad = src == 0
        hidden = self.core(
            self.src_input(src), self.tgt_input(tgt), tgt_mask=to_blocking(causal_mask(tgt.shape[1], device=tgt.device)),
            src_key_padding_mask=pad, tgt_key_padding_mask=tgt == 0, memory_key_padding_mask=pad, tgt_is_causal=True,
        )
        return self.output.logits(hidden)


def one_step(model, batch: Batch, optimizer, config: TrainConfig) -> float:
    "Seconds of one update."
    if batch.src.is_cuda: torch.cuda.synchronize()
    start = time.perf_counter()
    train_step(model, [batch], optimizer, config)
    if batch.src.is_cuda: torch.cuda.synchronize()
    return time.perf_counter() - start


def compare(size: str, dropout: float, device: str, rounds: int) -> dict:
    "Median step times of both models, measured in turns."
    changes, n_symbols, shortest, longest, batch_size = SIZES[size]
    config = TransformerConfig.preset(size, **changes, attention_bias=True, dropout=dropout, attention_dropout=dropout, hidden_dropout=dropout)
    batch = next(stream_batches(synthetic_pairs("copy", n_symbols, shortest, longest), batch_size)).to(device)
    models = {"ours": Transformer(config).to(device).train(), "torch": TorchTransformer(config).to(device).train()}
    optimizers = {name: build_optimizer(model) for name, model in models.items()}
    seconds = {name: [] for name in models}
    for turn in range(rounds + 3):
        for name in sorted(models, reverse=turn % 2 == 0): # the order alternates, so that neither always goes first
            seconds[name].append(one_step(models[name], batch, optimizers[name], TrainConfig()))
    median = {name: statistics.median(times[3:]) for name, times in seconds.items()} # the first three are warm-up
    ratios = [b / a for a, b in islice(zip(seconds["ours"], seconds["torch"]), 3, None)]
    return dict(
        size=size, dropout=dropout, batch=list(batch.src.shape), tokens=batch.n_tokens, rounds=rounds,
        parameters={name: count_parameters(model) for name, model in models.items()},
        milliseconds={name: round_to(1000 * t) for name, t in median.items()},
        tokens_per_second={name: round(batch.n_tokens / t) for name, t in median.items()},
        ratio=round_to(median["torch"] / median["ours"]), ratio_quartiles=[round_to(q) for q in statistics.quantiles(ratios, n=4)],
    )


def round_to(x: float) -> float: return float(f"{x:.4g}")


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--sizes", default="tiny,base", help="of tiny, base, big; separated by commas")
    parser.add_argument("--rounds", type=int, default=15, help="measured steps of each model")
    options = parser.parse_args()
    results, rows = Results(f"training_step_{options.device}", options), []
    print(f"{'size':6}{'dropout':>8}{'ours, ms':>10}{'torch, ms':>11}{'ours, tok/s':>13}{'torch, tok/s':>14}{'ratio':>8}   quartiles")
    for size in options.sizes.split(","):
        for dropout in (0.0, 0.1):
            row = compare(size, dropout, options.device, options.rounds)
            rows.append(row)
            ms, speed, quartiles = row["milliseconds"], row["tokens_per_second"], row["ratio_quartiles"]
            print(f"{size:6}{dropout:8}{ms['ours']:10.1f}{ms['torch']:11.1f}{speed['ours']:13,}{speed['torch']:14,}{row['ratio']:8.2f}   "
                  f"{quartiles[0]:.2f} to {quartiles[2]:.2f}", flush=True)
    print("written to", results.save(rows=rows))
