"""The translator of chapter 42: one run to its end for each seed.

    python benchmarks/translation.py [--corpus numbers] [--seeds 0,1,2] [--device cuda]
    python benchmarks/translation.py --corpus multi30k --source en --target de --data-dir FOLDER

Writes results/translation_CORPUS_SOURCE-TARGET_DEVICE.json: the metrics of every seed with a row of scores for each step of the search,
the losses and scores of each epoch, and ten translations that a seed has chosen. A run that was cut off goes on when it is called again:
its folder is in runs/benchmarks/. Multi30k takes ten minutes a seed on a large GPU, and hours on two cores. Chapter 42 reads these files.
"""

import random

from machine import ROOT, Results, arguments

from annotated_transformer.experiments.experiment import run_and_save
from annotated_transformer.experiments.translation import TranslationConfig, plot, run_translation


def summary(result) -> dict:
    "What is kept of a run."
    chosen = sorted(random.Random(0).sample(range(len(result.examples)), 10))
    history = {name: result.history.column(f"eval_{name}")[1] for name in ("loss", "bleu", "exact_match")}
    samples = [dict(source=result.examples[i][0], target=result.examples[i][1], prediction=result.predictions[i]) for i in chosen]
    return dict(result.metrics, history=history, samples=samples)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--corpus", default="numbers", choices=["numbers", "multi30k"])
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--data-dir", help="a local copy of the corpus")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--lowercase", action="store_true", help="all text in lower case, as older work has it")
    options = parser.parse_args()
    name = f"translation_{options.corpus}_{options.source}-{options.target}{'_lower' * options.lowercase}_{options.device}"
    results, runs = Results(name, options), []
    for seed in map(int, options.seeds.split(",")):
        config = TranslationConfig.preset(
            options.corpus, source=options.source, target=options.target, lowercase=options.lowercase, data_dir=options.data_dir, seed=seed)
        folder = ROOT / "runs" / "benchmarks" / f"{name}_{seed}"
        result = run_and_save(run_translation, config, folder, plot, resume=True, overwrite=True, device=options.device, progress=False)
        runs.append(summary(result))
        runs[-1]["config"].pop("data_dir")  # a path of one machine
        print(f"seed {seed}: {result.summary}", flush=True)
        for step, scores in runs[-1]["steps_of_search"].items():
            print(f"  {step:24}", {k: v for k, v in scores.items() if k != "signature"}, flush=True)
        print("written to", results.save(runs=runs), flush=True)
