"""One step of decoding before a long text: heads with keys of their own, shared keys that are repeated, and queries that are folded.

    python benchmarks/shared_heads.py [--keys 2048] [--threads 2] [--rounds 15]

Writes results/shared_heads_cpu.json: for some sizes, times as ratios to heads with keys of their own (medians; all ways take turns).
Chapter 60 reads its table from there.
"""

import time
from statistics import median

import torch
from machine import Results, arguments

from annotated_transformer.models.modern_layers import fold_heads
from annotated_transformer.multi_head_attention import attend

SIZES = [dict(n_heads=32, n_kv_heads=8, d_k=128), dict(n_heads=32, n_kv_heads=1, d_k=128), dict(n_heads=14, n_kv_heads=2, d_k=64)]


def ways(n_heads: int, n_kv_heads: int, d_k: int, n_keys: int) -> dict:
    "name -> a step without arguments; the three of shared keys give the same."
    query = torch.randn(1, n_heads, 1, d_k)
    own = torch.randn(2, 1, n_heads, n_keys, d_k)
    shared = torch.randn(2, 1, n_kv_heads, n_keys, d_k)

    def repeated(): return attend(query, *(x.repeat_interleave(n_heads // n_kv_heads, 1) for x in shared))[0]
    def folded(): return attend(fold_heads(query, None, n_kv_heads)[0], *shared)[0].reshape(query.shape)

    assert torch.allclose(repeated(), folded(), atol=1e-5)
    return dict(own=lambda: attend(query, *own)[0], repeated=repeated, folded=folded)


@torch.inference_mode()
def compare(steps: dict, n_rounds: int) -> dict:
    "Milliseconds of each way, of medians; in every round each has its turn."
    times = {name: [] for name in steps}
    for _ in range(n_rounds + 2):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(10): step()
            times[name].append((time.perf_counter() - start) * 100)
    return {name: median(found[2:]) for name, found in times.items()}  # the first two warm up


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--keys", type=int, default=2048, help="tokens that the new one attends to")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results, found = Results("shared_heads_cpu", options), []
    for sizes in SIZES:
        ms = compare(ways(**sizes, n_keys=options.keys), options.rounds)
        found.append(dict(sizes, milliseconds=ms, **{name: ms[name] / ms["own"] for name in ("repeated", "folded")}))
        print(found[-1], flush=True)
    print("written to", results.save(sizes=found))
