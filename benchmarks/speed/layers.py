"""Time and memory of the layers that Table 1 compares, against length and width.

    python benchmarks/speed/layers.py [--device cuda] [--rounds 9]

One sequence, one head, nothing but the layer's own work: no projections. All layers take turns, and medians are kept. Memory is what a layer holds
at the same time beyond its inputs, forward only, and forward and backward together. Then eight heads, as a model has them, under no mask, a causal
mask as a table, and `is_causal`: time and memory, forward and backward. Writes results/layers_DEVICE.json, which chapter 8.2 shows.
"""

import statistics
import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments, rounded, seconds
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as fused_attention

from annotated_transformer.core.attention import scaled_dot_product_attention
from annotated_transformer.core.masks import causal_mask
from annotated_transformer.base.allocations import peak_bytes
from annotated_transformer.core.tiled_attention import (
    restricted_attention,
    tiled_attention,
)

LENGTHS, WIDTH = [256, 512, 1024, 2048, 4096, 8192], 128
WIDTHS, LENGTH = [64, 128, 256, 512, 1024], 1024
RADIUS, KERNEL = 64, 3
CAUSAL_LENGTHS, HEADS, HEAD_WIDTH = [512, 1024, 2048, 4096], 8, 64


class Recurrent(nn.Module):
    "The simplest: one state, one step for each token."

    def __init__(self, width: int, device: str):
        super().__init__()
        self.rnn = nn.RNN(width, width, batch_first=True, device=device)

    def forward(self, x):
        return self.rnn(x)[0]


def layers(width: int, device: str) -> dict:
    "name -> a function of a sequence, (1, n, width) -> the same shape"

    def attention(attend):
        def layer(x):
            heads = x[:, None]  # one; without this axis PyTorch has no fused kernel
            return attend(heads, heads, heads)[:, 0]

        return layer

    convolution = nn.Conv1d(width, width, KERNEL, padding="same", device=device)
    return {
        "self-attention, by the formula": attention(scaled_dot_product_attention),
        "self-attention, in tiles": attention(tiled_attention),
        "self-attention, fused": attention(fused_attention),
        "self-attention, restricted": attention(
            partial(restricted_attention, radius=RADIUS)
        ),
        "recurrent": Recurrent(width, device),
        "convolutional": lambda x: convolution(x.mT).mT,
    }


def memory(layer, x, train: bool, device: str) -> int:
    "Bytes held at the same time, beyond the input."

    def work():
        with torch.set_grad_enabled(train):
            y = layer(x.detach().requires_grad_(train))
            if train:
                y.sum().backward()

    if device == "cpu":
        return peak_bytes(work)
    work()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def compare(device: str, rounds: int, lengths=tuple(LENGTHS), widths=tuple(WIDTHS)) -> dict:
    "All layers at all lengths, and at all widths. Rounds are outermost: a machine that slows down does so for all."
    torch.manual_seed(0)
    sizes = [*((n, WIDTH) for n in lengths), *((LENGTH, d) for d in widths)]
    sides = [(torch.randn(1, n, d, device=device), layers(d, device)) for n, d in sizes]
    times = [{name: [] for name in found} for _, found in sides]
    with torch.no_grad():
        for number in range(rounds + 1):
            for (x, found), spent in zip(sides, times):
                for name, layer in found.items():
                    once = 1000 * seconds(partial(layer, x), device)
                    if number:
                        spent[name].append(once)  # the first round warms up
    rows = [
        {
            name: dict(
                milliseconds=rounded(statistics.median(spent[name])),
                forward_bytes=memory(layer, x, False, device),
                training_bytes=memory(layer, x, True, device),
            )
            for name, layer in found.items()
        }
        for (x, found), spent in zip(sides, times)
    ]
    return dict(
        settings=dict(
            width=WIDTH, length=LENGTH, radius=RADIUS, kernel=KERNEL, rounds=rounds
        ),
        by_length=[dict(length=n, layers=row) for n, row in zip(lengths, rows)],
        by_width=[
            dict(width=d, layers=row) for d, row in zip(widths, rows[len(lengths) :])
        ],
    )


def compare_causal(device: str, rounds: int, lengths=tuple(CAUSAL_LENGTHS)) -> list:
    "Fused attention without a mask, under a causal mask as a table, and told `is_causal`, forward and backward."
    torch.manual_seed(0)
    dtype = (
        torch.bfloat16 if device == "cuda" else torch.float32
    )  # what its flash kernel takes
    sides = []
    for n in lengths:
        x = torch.randn(1, HEADS, n, HEAD_WIDTH, device=device, dtype=dtype)
        mask = causal_mask(n, device=device)  # made once: in a model all layers share it
        sides.append(
            (
                x,
                {
                    "no mask": fused_attention,
                    "a table": partial(fused_attention, attn_mask=mask),
                    "is_causal": partial(fused_attention, is_causal=True),
                },
            )
        )

    def step(attend, x):
        x = x.detach().requires_grad_()
        attend(x, x, x).sum().backward()

    times = [{name: [] for name in ways} for _, ways in sides]
    for number in range(rounds + 1):
        for (x, ways), spent in zip(sides, times):
            for name, attend in ways.items():
                once = 1000 * seconds(partial(step, attend, x), device)
                if number:
                    spent[name].append(once)  # the first round warms up
    return [
        dict(
            length=x.shape[2],
            ways={
                name: dict(
                    milliseconds=rounded(statistics.median(spent[name])),
                    bytes=memory(lambda x, attend=attend: attend(x, x, x), x, True, device),
                )
                for name, attend in ways.items()
            },
        )
        for (x, ways), spent in zip(sides, times)
    ]


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    results = Results(f"layers_{options.device}", options)
    found = compare(options.device, options.rounds)
    print(
        "written to",
        results.save(**found, causal=compare_causal(options.device, options.rounds)),
    )
