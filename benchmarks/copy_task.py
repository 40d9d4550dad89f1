"""The copy task over several tasks and seeds, each run decoding 10,000 held-out sequences.

    python benchmarks/copy_task.py [--preset base] [--device cuda] [--tasks copy,reverse] [--seeds 0,1,2,3,4]

Writes results/copy_task_PRESET_DEVICE.json: the metrics of every run and the history of the first of each task. Chapter 12 draws
its figures from these files.
"""
import argparse

from machine import save

from annotated_transformer.copy_task import CopyTaskConfig, run_copy_task

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="tiny", choices=list(CopyTaskConfig.presets))
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--tasks", default="copy,reverse")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--eval-every", type=int, default=0, help="steps between exact matches on 500 sequences; 0 means none")
    options = parser.parse_args()
    runs, histories = [], {}
    for task in options.tasks.split(","):
        for seed in map(int, options.seeds.split(",")):
            result = run_copy_task(CopyTaskConfig.preset(options.preset, task=task, seed=seed), options.device, progress=False, eval_every=options.eval_every)
            runs.append(result.metrics)
            histories.setdefault(task, result.history.rows)
            print({name: result.metrics[name] for name in ("task", "seed", "exact_match", "train_seconds", "tokens_per_second")}, flush=True)
    print("written to", save(f"copy_task_{options.preset}_{options.device}", options.device, runs=runs, histories=histories))
