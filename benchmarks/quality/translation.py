"""The translator of chapter 5.3: one run to its end for each seed.

    python benchmarks/quality/translation.py [--corpus numbers] [--seeds 0,1,2] [--untied] [--device cuda]
    python benchmarks/quality/translation.py --corpus multi30k --lowercase --whitespace-as-suffix --pre-norm --data-dir FOLDER

Writes results/translation_CORPUS_SOURCE-TARGET_DEVICE.json: the metrics of every seed with a row of scores for each step of the search, what
they would be if the search ended with as many answers as it has hypotheses, the losses and scores of each epoch, the last step's output scored
in every way, by length and by words that training never had, and ten translations that a seed has chosen. Seeds that the file has from other
calls stay in it, each run with its own origin. A run that was cut off goes on when it is called again: its folder is in runs/benchmarks/.
Multi30k takes hours on two cores. The options are in the name of the file, so norms stand after the sub-layers and blanks before
the words unless it is said otherwise. Chapters 5.3 and 5.5 read these files.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import ROOT, Results, arguments

from annotated_transformer.text.corpora import open_parallel_text
from annotated_transformer.tasks.runs import run_and_save
from annotated_transformer.tasks.translation import (
    TRANSLATION,
    TranslationConfig,
)
from annotated_transformer.decoding.metrics import (
    score_every_way,
    score_groups,
    score_translations,
)
from annotated_transformer.translator import Translator


def words(text: str) -> list[str]:
    return text.lower().replace("-", " ").replace(",", " ").replace(".", " ").split()


def by_length(source: str) -> str:
    "Up to so many words, a name that sorts."
    n_words = len(words(source))
    return next(
        f"up to {limit:2} words" for limit in (7, 10, 13, 16, 99) if n_words <= limit
    )


def summary(result) -> dict:
    "What is kept of a run."
    config, examples, predictions = result.config, result.examples, result.predictions
    chosen = sorted(random.Random(0).sample(range(len(examples)), 10))
    history = {
        name: result.history.column(f"eval_{name}")[1]
        for name in ("loss", "bleu", "exact_match")
    }
    samples = [
        dict(source=examples[i][0], target=examples[i][1], prediction=predictions[i])
        for i in chosen
    ]
    text = open_parallel_text(
        config.corpus, config.data_dir, source=config.source, target=config.target
    )
    known = {word for source, _ in text.train for word in words(source)}
    of_words = {True: "all words known", False: "a word that training never had"}
    search = dict(
        beam_size=config.beam_size,
        length_penalty=config.length_penalty,
        early_stopping=True,
    )
    early = Translator(result.model, result.tokenizer).translate(
        [source for source, _ in examples], **search
    )
    return dict(
        result.metrics,
        history=history,
        samples=samples,
        stopped_early=score_translations(
            early, [target for _, target in examples], text.target
        ),
        every_way=score_every_way(
            predictions, [target for _, target in examples], result.tokenizer, text.target
        ),
        by_length=score_groups(examples, predictions, by_length, text.target),
        by_words=score_groups(
            examples,
            predictions,
            lambda source: of_words[known.issuperset(words(source))],
            text.target,
        ),
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--corpus", default="numbers", choices=["numbers", "multi30k"])
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--data-dir", help="a local copy of the corpus")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument(
        "--epochs", type=int, help="at the most; without it, those of the preset"
    )
    parser.add_argument(
        "--lowercase",
        action="store_true",
        help="all text in lower case, as older work has it",
    )
    parser.add_argument(
        "--whitespace-as-suffix",
        action="store_true",
        help="a blank ends each word, and begins none",
    )
    parser.add_argument(
        "--pre-norm", action="store_true", help="norms before the sub-layers"
    )
    parser.add_argument(
        "--bpe-dropout",
        type=float,
        default=0.0,
        help="probability that a merge is skipped in training",
    )
    parser.add_argument(
        "--r-drop",
        type=float,
        default=0.0,
        help="weight of the disagreement between two passes with other dropout",
    )
    parser.add_argument(
        "--schedule",
        choices=["linear", "inverse_sqrt"],
        help="of the rate; without it, that of the preset",
    )
    parser.add_argument(
        "--max-tokens", type=int, help="of a batch; without it, those of the preset"
    )
    parser.add_argument(
        "--untied",
        action="store_true",
        help="matrices of their own for source, target and output",
    )
    options = parser.parse_args()
    kind = (
        "_lower" * options.lowercase
        + "_suffix" * options.whitespace_as_suffix
        + "_pre-norm" * options.pre_norm
        + "_bpe-dropout" * bool(options.bpe_dropout)
        + "_r-drop" * bool(options.r_drop)
        + "_untied" * options.untied
    )
    name = f"translation_{options.corpus}_{options.source}-{options.target}{kind}_{options.device}"
    results, runs = Results(name, options), []
    changes = dict(
        epochs=options.epochs, schedule=options.schedule, max_tokens=options.max_tokens
    )
    changes = {name: value for name, value in changes.items() if value is not None} | dict(
        norm="pre" if options.pre_norm else "post",
        whitespace_as_suffix=options.whitespace_as_suffix,
        bpe_dropout=options.bpe_dropout,
        r_drop=options.r_drop,
    )
    for seed in map(int, options.seeds.split(",")):
        config = TranslationConfig.preset(
            options.corpus,
            source=options.source,
            target=options.target,
            lowercase=options.lowercase,
            tie_weights=not options.untied,
            data_dir=options.data_dir,
            seed=seed,
            **changes,
        )
        folder = ROOT / "runs" / "benchmarks" / f"{name}_{seed}"
        result = run_and_save(
            TRANSLATION,
            config,
            folder,
            resume=True,
            overwrite=True,
            device=options.device,
            progress=None,
        )
        runs.append(summary(result))
        runs[-1]["config"].pop("data_dir")  # a path of one machine
        print(f"seed {seed}: {result.summary}", flush=True)
        for step, scores in runs[-1]["steps_of_search"].items():
            print(
                f"  {step:24}",
                {k: v for k, v in scores.items() if "signature" not in k},
                flush=True,
            )
        print("written to", results.save_seeds(runs), flush=True)
