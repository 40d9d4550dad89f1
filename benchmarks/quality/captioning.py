"""The captioner of chapter 6.7 over three seeds, and the trials on which its settings were chosen.

    python benchmarks/quality/captioning.py [--device cuda] [--seeds 0,1,2]

Writes results/captioning_DEVICE.json: the metrics of every run on strips of held-out digits, and exact matches of other settings on strips of
validation digits. Chapter 6.7 reads this file.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments

from annotated_transformer.tasks.captioning import CaptioningConfig, run_captioning
from annotated_transformer.models.captioner import CaptionerConfig

TRIALS = {"as it is": {}, "pre-norm": dict(model="pre-norm")}

if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    CaptionerConfig.presets["pre-norm"] = dict(norm="pre")  # for a trial only
    results, runs, validation = Results(f"captioning_{options.device}", options), [], {}
    for seed in map(int, options.seeds.split(",")):
        runs.append(
            run_captioning(CaptioningConfig(seed=seed), device=options.device).metrics
        )
        print(
            {
                name: runs[-1][name]
                for name in ("seed", "exact_match", "exact_by_length", "train_seconds")
            },
            flush=True,
        )
    print("written to", results.save(runs=runs, validation=validation))
    for name, changes in TRIALS.items():
        trial = run_captioning(
            CaptioningConfig(validation=True, **changes), device=options.device
        )
        validation[name] = trial.metrics["exact_match"]
        print("validation,", name, validation[name], flush=True)
        print("written to", results.save(runs=runs, validation=validation))
