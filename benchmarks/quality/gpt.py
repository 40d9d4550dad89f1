"""The language model of chapter 6.2 over several seeds, beside models that count.

    python benchmarks/quality/gpt.py [--preset small] [--text book.txt] [--device cuda] [--seeds 0,1,2] [--learned 0]

Writes results/gpt_DEVICE.json: the metrics of every run; last those with learned positions. Of the first also the history, with the loss
on held-out texts at ten moments, and what it writes. Chapter 6.2 reads its numbers from there.
"""

import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments

from annotated_transformer.tasks.language_model import (
    LanguageModelConfig,
    generate_text,
    run_language_model,
)
from annotated_transformer.decoding.sampling import sample


def samples(
    run, count: int = 3, begin: int = 28
) -> list:  # of (prompt, what the model wrote)
    "Held-out texts, begun, and gone on with by chance at temperature 0.8 until the model's window is full."
    prompts = [prompt[-begin:] for prompt, _ in run.examples[:count]]
    draw = partial(sample, temperature=0.8, generator=torch.Generator().manual_seed(0))
    length = run.config.gpt(len(run.tokenizer)).max_len - begin
    return list(
        zip(
            prompts,
            generate_text(
                run.model.cpu().eval(), run.tokenizer, prompts, length, decode=draw
            ),
        )
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--preset", default="tiny", choices=list(LanguageModelConfig.presets)
    )
    parser.add_argument(
        "--text", default="", help="a file of text; nothing: Python's language reference"
    )
    parser.add_argument(
        "--seeds", default="0,1,2", help="of the runs with the positions of the preset"
    )
    parser.add_argument(
        "--learned",
        default="0",
        help="seeds of runs with learned positions, as GPT-2 has them",
    )
    options = parser.parse_args()
    results, runs, first = Results(f"gpt_{options.device}", options), [], {}
    planned = [(seed, {}) for seed in options.seeds.split(",") if seed]
    planned += [
        (seed, dict(positions="learned")) for seed in options.learned.split(",") if seed
    ]
    for seed, changes in planned:
        config = LanguageModelConfig.preset(
            options.preset, text=options.text, seed=int(seed), **changes
        )
        run = run_language_model(
            config,
            device=options.device,
            eval_every=0 if first else config.steps // 10,
        )
        runs.append(run.metrics)
        if not first:
            first = dict(history=run.history.rows, samples=samples(run))
        print(
            {
                name: run.metrics[name]
                for name in (
                    "seed",
                    "loss",
                    "loss_3gram",
                    "loss_5gram",
                    "train_seconds",
                    "tokens_per_second",
                )
            },
            flush=True,
        )
    print("written to", results.save(runs=runs, **first))
