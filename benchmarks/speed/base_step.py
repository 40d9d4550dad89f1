"""The paper's base model in the paper's step: 37,000 words, sentences of similar length, the loss in chunks.

    python benchmarks/speed/base_step.py [--device cuda] [--rounds 5]

How many tokens a second it takes, what share that is of what a large product of matrices reaches on the same machine, the two in turns; and the most
memory that a step holds beyond weights and Adam's averages, against the length of its sentences. A GPU is given the paper's 25,000 tokens on
either side, in bfloat16 and compiled; a CPU 1,000, in float32. Writes results/base_step_DEVICE.json, which chapter 8.3 shows.
"""

import statistics
import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from speed.ladder import Climber, Setup, draw_pairs
from speed.training import step_flops
from support.machine import Results, arguments, product, rounded, seconds

from annotated_transformer.training.data import Batch

FAST = dict(
    attention="fused",
    loss="chunks",
    optimizer="fused",
    batches="by tokens",
    dropout="ours",
)
SIZES = {
    "cpu": dict(
        max_tokens=1000, n_batches=3, product=2048, lengths=[128, 256, 512, 1024], rows=4
    ),
    "cuda": dict(
        max_tokens=25_000,
        n_batches=6,
        product=8192,
        lengths=[128, 256, 512, 1024, 2048, 4096],
        rows=4,
        precision="bfloat16",
        compiled=True,
    ),
}


def measure(
    device: str,
    rounds: int,
    max_tokens: int,
    n_batches: int,
    lengths: list,
    rows: int,
    product_size: int,
    model: str = "base",
    vocab_size: int = 37_000,
    precision: str = "float32",
    compiled: bool = False,
) -> dict:
    "Rate and memory of one model."
    setup = Setup(**FAST, precision=precision, compiled=compiled)
    side = Climber(
        setup,
        device,
        draw_pairs(n_batches * max_tokens // 16, vocab_size),
        model,
        vocab_size,
        max_tokens,
    )
    work = product(product_size, device, getattr(torch, precision))
    times, products = [], []
    for number in range(rounds + 1):
        step, alone = seconds(side.run, device), seconds(work, device)
        if number:  # in the first round programs are written
            times.append(step)
            products.append(alone)
    flops = sum(step_flops(side.model, batch.to(device)) for batch in side.batches)
    rate, best = (
        flops / statistics.median(times),
        2 * product_size**3 / statistics.median(products),
    )
    n_targets, n_sources = (
        sum(int((ids != 0).sum()) for ids in each)
        for each in ([b.tgt_out for b in side.batches], [b.src for b in side.batches])
    )
    plain = side
    if compiled:  # a compiled step would be compiled again for each length
        plain = Climber(
            replace(setup, compiled=False),
            device,
            [([3], [3])],
            model,
            vocab_size,
            max_tokens,
        )
        plain.run()  # in its first step Adam makes its averages
    held = [
        plain.memory(Batch.from_pairs([([3] * (n - 1), [3] * (n - 1))] * rows))
        for n in lengths
    ]
    return dict(
        model=model,
        vocab_size=vocab_size,
        max_tokens=max_tokens,
        batches=len(side.batches),
        precision=precision,
        compiled=compiled,
        rounds=rounds,
        source_tokens=n_sources,
        target_tokens=n_targets,
        seconds=rounded(statistics.median(times)),
        flops=flops,
        tokens_per_second=round(n_targets / statistics.median(times)),
        tflops=rounded(rate / 1e12),
        product_tflops=rounded(best / 1e12),
        share_of_product=rounded(rate / best),
        memory=dict(rows=rows, lengths=lengths, bytes=held),
        last_loss=rounded(float(side.losses[-1])),
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--rounds", type=int, default=5, help="measured passes over all batches"
    )
    options = parser.parse_args()
    sizes = dict(SIZES[options.device])
    results = Results(f"base_step_{options.device}", options)
    found = measure(
        options.device, options.rounds, product_size=sizes.pop("product"), **sizes
    )
    print(
        {
            key: found[key]
            for key in (
                "tokens_per_second",
                "tflops",
                "product_tflops",
                "share_of_product",
                "memory",
            )
        }
    )
    print("written to", results.save(**found))
