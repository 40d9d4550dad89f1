"""Heads that share keys: with keys of their own, with the keys repeated, with the queries folded, and by the kernel (`enable_gqa`); in a step of decoding, and in training.

    python benchmarks/speed/shared_heads.py [--keys 2048] [--threads 2] [--rounds 15]

Writes results/shared_heads_cpu.json: for a step before a long text, times as ratios to heads with keys of their own; for attention forward and
backward, the repeated keys under `is_causal` beside the folded queries under a table, time and memory (medians; all ways take turns).
Chapter 7.1 reads its table from there.
"""

import sys
import time
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments
from torch.nn import functional as F

from annotated_transformer.core.masks import causal_mask
from annotated_transformer.models.modern_layers import repeat_heads
from annotated_transformer.base.allocations import peak_bytes

LENGTHS = [(16, 128), (8, 256), (4, 512), (2, 1024), (1, 2048)]  # texts, and tokens of each
TRAINED = dict(n_heads=8, n_kv_heads=2, d_k=64)
SIZES = [
    dict(n_heads=32, n_kv_heads=8, d_k=128),
    dict(n_heads=32, n_kv_heads=1, d_k=128),
    dict(n_heads=14, n_kv_heads=2, d_k=64),
]


def ways(n_heads: int, n_kv_heads: int, d_k: int, n_keys: int) -> dict:
    "name -> a step without arguments; the three of shared keys give the same."
    query = torch.randn(1, n_heads, 1, d_k)
    own = torch.randn(2, 1, n_heads, n_keys, d_k)
    shared = torch.randn(2, 1, n_kv_heads, n_keys, d_k)

    def repeated():
        return F.scaled_dot_product_attention(
            query, *(repeat_heads(x, n_heads) for x in shared)
        )

    def folded():  # the queries of a group are rows of one product
        rows = query.unflatten(1, (n_kv_heads, -1)).flatten(2, 3)
        return F.scaled_dot_product_attention(rows, *shared).reshape(query.shape)

    def enable_gqa():
        return F.scaled_dot_product_attention(query, *shared, enable_gqa=True)

    shared_ways = dict(repeated=repeated, folded=folded, enable_gqa=enable_gqa)
    for way in shared_ways.values():
        assert torch.allclose(way(), repeated(), atol=1e-5)
    return dict(own=lambda: F.scaled_dot_product_attention(query, *own), **shared_ways)


def training_ways(batch: int, length: int, n_heads: int, n_kv_heads: int, d_k: int) -> dict:
    "name -> attention forward and backward, of a whole causal text"
    query = torch.randn(batch, n_heads, length, d_k, requires_grad=True)
    key, value = (
        torch.randn(batch, n_kv_heads, length, d_k, requires_grad=True) for _ in range(2)
    )
    mask = causal_mask(length)

    def repeated():
        return F.scaled_dot_product_attention(
            query, repeat_heads(key, n_heads), repeat_heads(value, n_heads), is_causal=True
        )

    mask_of_rows = mask.tile(n_heads // n_kv_heads, 1)

    def folded():
        rows = query.unflatten(1, (n_kv_heads, -1)).flatten(2, 3)
        out = F.scaled_dot_product_attention(rows, key, value, mask_of_rows)
        return out.reshape(query.shape)

    def enable_gqa():
        return F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=True
        )

    ways = dict(repeated=repeated, folded=folded, enable_gqa=enable_gqa)
    for way in ways.values():
        assert torch.allclose(way(), repeated(), atol=1e-5)
    return {name: lambda way=way: way().sum().backward() for name, way in ways.items()}


def compare(steps: dict, n_rounds: int, times_each: int = 10) -> dict:
    "Milliseconds of each way, of medians; in every round each has its turn."
    times = {name: [] for name in steps}
    for _ in range(n_rounds + 2):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(times_each):
                step()
            times[name].append((time.perf_counter() - start) * 1000 / times_each)
    return {
        name: median(found[2:]) for name, found in times.items()
    }  # the first two warm up


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--keys", type=int, default=2048, help="tokens that the new one attends to"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results, found = Results("shared_heads_cpu", options), []
    for sizes in SIZES:
        with torch.inference_mode():
            ms = compare(ways(**sizes, n_keys=options.keys), options.rounds)
        found.append(
            dict(
                sizes,
                milliseconds=ms,
                **{
                    name: ms[name] / ms["own"]
                    for name in ("repeated", "folded", "enable_gqa")
                },
            )
        )
        print(found[-1], flush=True)
    trained = []
    for batch, length in LENGTHS:
        steps = training_ways(batch, length, **TRAINED)
        trained.append(
            dict(
                batch=batch,
                length=length,
                **TRAINED,
                milliseconds=compare(steps, options.rounds, 2),
                bytes={name: peak_bytes(step) for name, step in steps.items()},
            )
        )
        print(trained[-1], flush=True)
    print("written to", results.save(sizes=found, training=trained))
