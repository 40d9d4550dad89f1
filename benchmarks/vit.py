"""The image classifier of chapter 56 on scikit-learn's digits, over three seeds, and the trials on which its settings were chosen.

    python benchmarks/vit.py [--device cuda] [--seeds 0,1,2]

Writes results/vit_DEVICE.json: the metrics of every run on the held-out fifth, and accuracies of other settings on a validation part of
the training pictures. Chapter 56 reads this file.
"""

from machine import Results, arguments

from annotated_transformer.experiments.image_classification import (
    ImageClassificationConfig, run_image_classification)

TRIALS = {"as it is": {}, "without jitter": dict(shift=0, degrees=0, scale=0), "a third of the steps": dict(steps=500)}

if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    seeds = list(map(int, options.seeds.split(",")))
    results, runs = Results(f"vit_{options.device}", options), []
    for seed in seeds:
        runs.append(run_image_classification(ImageClassificationConfig(seed=seed), options.device, progress=False).metrics)
        print({name: runs[-1][name] for name in ("seed", "accuracy", "train_seconds")}, flush=True)
    validation = {}
    for name, changes in TRIALS.items():
        trials = [run_image_classification(ImageClassificationConfig(validation=True, seed=seed, **changes), options.device, progress=False) for seed in seeds]
        validation[name] = [trial.metrics["accuracy"] for trial in trials]
        print("validation,", name, validation[name], flush=True)
    print("written to", results.save(runs=runs, validation=validation))
