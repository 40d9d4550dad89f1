"""The copy task over several tasks and seeds, each run decoding 10,000 held-out sequences.

    python benchmarks/quality/copy_task.py [--preset base] [--device cuda] [--tasks copy,reverse] [--seeds 0,1,2,3,4]
    python benchmarks/quality/copy_task.py --preset half --tasks copy --seeds 0 --eval-every 200 --recipe pre-norm

Writes results/copy_task_PRESET_DEVICE.json: the metrics of every run and the history of the first of each task. Chapter 4.2 draws
its figures from these files. The preset `half` is the rehearsal of `base`: half its width, shorter sequences of fewer symbols, a
size that a CPU trains in 81 minutes. A recipe is a way to train the same task: see RECIPES.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments

from annotated_transformer.tasks.copy_task import (
    CopyTaskConfig,
    held_out_pairs,
    run_copy_task,
)
from annotated_transformer.decoding.greedy import generate_ids
from annotated_transformer.decoding.metrics import exact_match
from annotated_transformer.training.callbacks import Evaluate
from annotated_transformer.core.transformer import TransformerConfig

TransformerConfig.presets |= {"half": dict(d_model=256, d_ff=1024, n_heads=4)}
for size in ("one-layer", "tiny", "half", "base"):
    TransformerConfig.presets[f"{size}, pre-norm"] = TransformerConfig.presets[size] | dict(
        norm="pre"
    )
CopyTaskConfig.presets |= {
    "half": dict(
        n_symbols=197,
        max_len=24,
        model="half",
        batch_size=64,
        steps=1600,
        lr=7e-4,
        warmup_steps=400,
        label_smoothing=0.0,
    ),
}
RECIPES = ("post-norm", "longer warm-up", "pre-norm")


def configuration(preset: str, recipe: str = "post-norm", **changes) -> CopyTaskConfig:
    "A preset of the copy task, trained by one of the RECIPES; the first is the preset as it is."
    config = CopyTaskConfig.preset(preset, **changes)
    if recipe == "longer warm-up":
        return config.replace(
            steps=3 * config.steps // 2, warmup_steps=config.steps
        )  # a quarter of the steps at the most
    if recipe == "pre-norm":
        return config.replace(model=f"{config.model}, pre-norm")
    return config


def exact_matches(config: CopyTaskConfig, every: int) -> list[Evaluate]:
    "Count exact matches on 500 held-out sequences, every so many steps; 0 means never."
    if every == 0:
        return []
    pairs = held_out_pairs(config)[:500]
    sources, targets = map(list, zip(*pairs))

    def measure(model):
        predictions = generate_ids(model, sources, max_len=config.max_len + 2)
        return dict(exact_match=exact_match(predictions, targets))

    return [Evaluate(measure, every)]


def main(options):
    name = f"copy_task_{options.preset}" + (
        "" if options.recipe == "post-norm" else "_" + options.recipe.replace(" ", "_")
    )
    results, runs, histories = Results(f"{name}_{options.device}", options), [], {}
    for task in options.tasks.split(","):
        for seed in map(int, options.seeds.split(",")):
            config = configuration(options.preset, options.recipe, task=task, seed=seed)
            result = run_copy_task(
                config,
                device=options.device,
                callbacks=exact_matches(config, options.eval_every),
            )
            runs.append(result.metrics)
            histories.setdefault(task, result.history.rows)
            print(
                {
                    name: result.metrics[name]
                    for name in (
                        "task",
                        "seed",
                        "exact_match",
                        "train_seconds",
                        "tokens_per_second",
                    )
                },
                flush=True,
            )
            path = results.save(runs=runs, histories=histories)
    print("written to", path)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--preset", default="one-layer", choices=list(CopyTaskConfig.presets)
    )
    parser.add_argument("--recipe", default="post-norm", choices=RECIPES)
    parser.add_argument("--tasks", default="copy,reverse")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument(
        "--eval-every",
        type=int,
        default=0,
        help="steps between exact matches on 500 sequences; 0 means none",
    )
    main(parser.parse_args())
