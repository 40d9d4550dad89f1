"""Train a model that comes with the package, score it, and write it with its model card.

    python benchmarks/support/pretrain.py cat
    python benchmarks/support/pretrain.py copier
    python benchmarks/support/pretrain.py numbers-en-de
    python benchmarks/support/pretrain.py numbers-en-zh

Writes annotated_transformer/pretrained/NAME. `load_pretrained` finds every folder there, and tests/test_pretrained.py tests it,
so another model needs no more than this command. `numbers-SOURCE-TARGET` works for all pairs of languages that `number_pairs`
has. For a model of another kind, add a function like `cat` and its name in `RECIPES`. Give each a row in chapter 46.

The weights are stored in half precision, and the scores on the card are those of the stored weights. If the rounding changes a
score on held-out data, nothing is written.
"""

import argparse
import copy
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import device_name

from annotated_transformer.checkpoint import write_model
from annotated_transformer.data import FIRST_SYMBOL, batch_pairs
from annotated_transformer.datasets.numbers import spell_number
from annotated_transformer.datasets.sentence_pairs import sentence_pairs
from annotated_transformer.datasets.synthetic import synthetic_pairs
from annotated_transformer.experiments.copy_task import (
    CopyTaskConfig,
    held_out_pairs,
    run_copy_task,
)
from annotated_transformer.experiments.runs import count_parameters
from annotated_transformer.experiments.translation import (
    TranslationConfig,
    open_text,
    run_translation,
)
from annotated_transformer.history import History
from annotated_transformer.tokenizers.base import Tokenizer
from annotated_transformer.tokenizers.words import WordTokenizer
from annotated_transformer.training import TrainConfig, train
from annotated_transformer.transformer import Transformer
from annotated_transformer.transformer_config import TransformerConfig
from annotated_transformer.translation import PRETRAINED, Translator
from annotated_transformer.utils.atomic_folders import write_folder

SEED = 0
HELD_OUT = "held out, never trained on"
LANGUAGES = {"en": "English", "de": "German", "zh": "Chinese"}


@dataclass
class Recipe:
    "How a model is trained, what it is tested on, and what its card says."

    about: str  # what it does, in a sentence
    training: str  # how it is trained, in a sentence or two
    limits: str  # what it can't do
    examples: list[str]  # to be translated on the card
    train: Callable[[], tuple[Transformer, Tokenizer, History]]
    held_out: Callable[[], list[tuple[str, str]]]  # of the kind that it was trained on
    beyond: Callable[[], dict]  # of other kinds: what they are -> pairs


# ---- The models ----


def cat() -> Recipe:
    "Chapter 33's translator, as that chapter trains it."
    train_pairs, held_out = sentence_pairs()
    tokenizer = WordTokenizer.of(train_pairs)

    def train_cat():
        torch.manual_seed(SEED)
        model = Transformer(TransformerConfig.preset("tiny", vocab_size=len(tokenizer)))
        batches = batch_pairs(5 * tokenizer.encode_pairs(train_pairs), batch_size=64)
        history = train(model, batches, TrainConfig(steps=300, seed=SEED), progress=False)
        return model.eval(), tokenizer, history

    return Recipe(
        about="Translates the 4,800 English sentences of chapter 33 into German, such as "
        "*I have seen the cat*, the running example of the book.",
        training="The code is that of chapter 33: two layers, vectors of 64, a vocabulary of "
        "words, 300 steps on 4,320 of the sentences.",
        limits=f"It knows {len(tokenizer.tokens)} words and one kind of sentence: a subject, *have* or *has*, "
        "a participle, an article, a noun, perhaps an adverb. A word that it doesn't know is refused.",
        examples=["I have seen the cat", "she has not fed a horse"],
        train=train_cat,
        held_out=lambda: held_out,
        beyond=dict,
    )


def copier() -> Recipe:
    "The copy task by its first preset."
    config = CopyTaskConfig.preset("one-layer", n_heldout=1000, seed=SEED)
    symbols = range(FIRST_SYMBOL, FIRST_SYMBOL + config.n_symbols)
    tokenizer = WordTokenizer(tuple(map(str, symbols)))

    def as_texts(pairs):
        return [tuple(" ".join(map(str, ids)) for ids in pair) for pair in pairs]

    def train_copier():
        result = run_copy_task(config, device="cpu", progress=False)
        return result.model, tokenizer, result.history

    def beyond():
        found = {}
        for shortest, longest in ((1, 4), (13, 16)):
            pairs = synthetic_pairs("copy", config.n_symbols, shortest, longest, seed=1)
            what = f"sequences of {shortest} to {longest} symbols"
            found[what] = as_texts(next(pairs) for _ in range(500))
        return found

    return Recipe(
        about=f"Copies sequences of the symbols {symbols[0]} to {symbols[-1]}, the task of chapter 31.",
        training="The same as `annotated-transformer copy-task`: one layer, vectors of 32, one head, "
        f"{config.steps} batches of {config.batch_size} sequences.",
        limits=f"It was trained on sequences of {config.min_len} to {config.max_len} symbols. Shorter and longer ones often go wrong, "
        "as the table shows.",
        examples=["7 3 9 9 4 12", "3 3 3 3 3 3 3 3"],
        train=train_copier,
        held_out=lambda: as_texts(held_out_pairs(config)),
        beyond=beyond,
    )


def numbers(source: str, target: str) -> Recipe:
    "The translator of numbers that `train-translation` trains."
    config = TranslationConfig.preset("numbers", source=source, target=target, seed=SEED)
    reads, writes = (
        LANGUAGES.get(code, f"the language {code!r}") for code in (source, target)
    )

    def train_numbers():
        result = run_translation(config, device="cpu", progress=None)
        return result.model, result.tokenizer, result.history

    def held_out():
        return open_text(config).test

    def beyond():
        large = range(1_000_000, 2_000_000, 2_003)
        found = {
            "numbers from one to two million": [
                (spell_number(n, source), spell_number(n, target)) for n in large
            ]
        }
        if source == "en":
            american = [(a.replace(" and ", " "), b) for a, b in held_out() if " and " in a]
            found["without *and*, as Americans say them"] = american[:500]
        return found

    return Recipe(
        about=f"Translates numbers in words from {reads} into {writes}: whole numbers below a million.",
        training=f"The same as `annotated-transformer train-translation --source {source} --target {target}`: "
        "two layers, vectors of 64, byte pairs, 20 epochs on 20,000 numbers, about two minutes on two idle cores. Chapter 47 "
        "has the data, chapter 42 the training.",
        limits="It knows nothing but numbers in words, spelt as in training, in lower case. Digits and other "
        "words give nonsense.",
        examples=[spell_number(n, source) for n in (12, 342, 748_006)],
        train=train_numbers,
        held_out=held_out,
        beyond=beyond,
    )


RECIPES = {"cat": cat, "copier": copier}


def recipe(name: str) -> Recipe:
    "The recipe of a model, by its name."
    languages = re.fullmatch(r"numbers-(\w+)-(\w+)", name)
    if languages:
        return numbers(*languages.groups())
    if name not in RECIPES:
        raise SystemExit(
            f"NAME: got {name}, expected {', '.join(RECIPES)} or numbers-SOURCE-TARGET"
        )
    return RECIPES[name]()


# ---- Scores and the card ----


def count_right(translator: Translator, pairs: list[tuple[str, str]]) -> int:
    "How many translations are right to the last letter."
    answers = translator.translate([source for source, _ in pairs])
    return sum(answer == target for answer, (_, target) in zip(answers, pairs))


def score(translator: Translator, parts: dict) -> dict:
    "Of each part: how many translations are right, and how many there are."
    return {
        what: dict(right=count_right(translator, pairs), of=len(pairs))
        for what, pairs in parts.items()
    }


def card(name: str, recipe: Recipe, metrics: dict, translator: Translator) -> str:
    "The model card."
    rows = [
        f"| {what} | {n['right']:,} of {n['of']:,} |"
        for what, n in metrics["scores"].items()
    ]
    answers = translator.translate(recipe.examples)
    shown = [f"| {text} | {answer} |" for text, answer in zip(recipe.examples, answers)]
    lines = [
        f"# {name}",
        "",
        recipe.about,
        "",
        "| you write | it answers |",
        "|---|---|",
        *shown,
        "",
        "```python",
        "from annotated_transformer import load_pretrained",
        "",
        f"load_pretrained({name!r}).translate({recipe.examples[:1]!r})",
        "```",
        "",
        f"In the shell: `echo {recipe.examples[0]!r} | annotated-transformer translate --model {name}`.",
        "",
        "## Training",
        "",
        f"{recipe.training} Seed {metrics['seed']}, {metrics['steps']:,} steps in {metrics['train_seconds']} seconds, "
        f"on {metrics['device']}, PyTorch {metrics['torch']}. The model has {metrics['parameters']:,} parameters. "
        "This trains it again and writes this folder:",
        "",
        "```sh",
        f"python benchmarks/support/pretrain.py {name}",
        "```",
        "",
        "## Scores",
        "",
        "A translation counts if it is right to the last letter. The search is a beam of 5, the default.",
        "",
        "| data | right |",
        "|---|---|",
        *rows,
        "",
        "The weights are stored in half precision, and these are the scores of the stored weights. "
        "The rounding changed no score on held-out data.",
        "",
        "## Limits",
        "",
        recipe.limits,
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def main(name: str, folder: Path) -> dict:
    "Train a model and write its folder. Returns what `metrics.json` says."
    chosen = recipe(name)
    model, tokenizer, history = chosen.train()
    parts = {HELD_OUT: chosen.held_out(), **chosen.beyond()}
    scores = score(Translator(model, tokenizer), parts)

    # as it is stored, and as it will be read
    half = copy.deepcopy(model).half()
    stored = Translator(copy.deepcopy(half).float(), tokenizer)
    stored_scores = score(stored, parts)
    if stored_scores[HELD_OUT] != scores[HELD_OUT]:
        raise SystemExit(f"half precision changes the scores: {scores} {stored_scores}")

    metrics = dict(
        scores=stored_scores,
        seed=SEED,
        steps=history.steps,
        train_seconds=round(history.seconds),
        parameters=count_parameters(model),
        device=device_name("cpu"),
        torch=torch.__version__,
    )
    with write_folder(folder) as new:
        write_model(half, new, tokenizer)
        text = json.dumps(metrics, indent=2) + "\n"
        (new / "metrics.json").write_text(text, encoding="utf-8")
        text = card(name, chosen, metrics, stored)
        (new / "README.md").write_text(text, encoding="utf-8")
    return metrics


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="cat, copier or numbers-SOURCE-TARGET")
    parser.add_argument(
        "--out", type=Path, help="folder [default: annotated_transformer/pretrained/NAME]"
    )
    options = parser.parse_args()
    print(main(options.name, options.out or PRETRAINED / options.name))
