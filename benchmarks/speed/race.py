"""The race of race.md: how soon 10,000 sequences never seen are copied without a mistake. All rungs take turns, seed by seed.

    python benchmarks/speed/race.py [--seeds 0,1,2,3,4] [--device cuda]
    python benchmarks/speed/race.py --table          the table of race.md, from what is stored

Writes results/race_DEVICE.json. To join, put a rung at the end of RUNGS: what changes in the configuration of the copy task.
"""

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import RESULTS, Results, arguments

from annotated_transformer.tasks.copy_task import CopyTaskConfig, run_copy_task
from annotated_transformer.core.transformer import TransformerConfig

TransformerConfig.presets |= {
    "two heads": dict(d_model=64, d_ff=256, n_heads=2, n_layers=1, dropout=0.0)
}
FIRST = dict(
    model="tiny", batch_size=128, steps=600, lr=3e-3, warmup_steps=100, label_smoothing=0.0
)
RUNGS = {  # what is new in it -> the whole recipe
    "two layers of four heads, 600 batches of 128": FIRST,
    "400 batches of 64, a higher rate": FIRST
    | dict(batch_size=64, steps=400, lr=4e-3, warmup_steps=50),
    "one layer of two heads, 800 batches of 64": FIRST
    | dict(model="two heads", batch_size=64, steps=800, lr=5e-3),
    "one head, vectors of 32 instead of 64": FIRST
    | dict(model="one-layer", batch_size=64, steps=800, lr=1e-2),
    "label smoothing 0.1, 600 batches": FIRST
    | dict(model="one-layer", batch_size=64, steps=600, lr=1e-2, label_smoothing=0.1),
}


def table(stored: dict) -> str:
    "The rungs as Markdown: in how many runs all was exact, the median of their seconds, and where that was."
    lines = [
        "| recipe | all exact | seconds of training | times as fast |",
        "|---|---|---|---|",
    ]
    first = None
    for name, runs in stored["rungs"].items():
        seconds = statistics.median(run["train_seconds"] for run in runs)
        first = first or seconds
        exact = sum(run["exact_match"] == 1 for run in runs)
        lines.append(
            f"| {name} | {exact} of {len(runs)} | {seconds:.1f} | {first / seconds:.1f} |"
        )
    lines += [
        "",
        "({device}; torch {torch}, {date}, commit {commit})".format(**stored["origin"]),
    ]
    return "\n".join(lines)


def main(options):
    if options.table:
        print(table(json.loads((RESULTS / f"race_{options.device}.json").read_text())))
        return
    results, rungs = (
        Results(f"race_{options.device}", options),
        {name: [] for name in RUNGS},
    )
    for seed in map(int, options.seeds.split(",")):
        for name, recipe in RUNGS.items():
            found = run_copy_task(
                CopyTaskConfig(seed=seed, **recipe), device=options.device
            ).metrics
            rungs[name].append(
                {
                    key: found[key]
                    for key in (
                        "seed",
                        "exact_match",
                        "n_heldout",
                        "parameters",
                        "train_seconds",
                        "tokens_per_second",
                    )
                }
            )
            print(name, rungs[name][-1], flush=True)
    print("written to", results.save(rungs=rungs))
    print(table(dict(origin=results.origin, rungs=rungs)))


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument(
        "--table",
        action="store_true",
        help="print the table of what is stored, and do nothing",
    )
    main(parser.parse_args())
