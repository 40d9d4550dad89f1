"""Train a model that comes with the package, score it, and write it with its model card.

    python benchmarks/support/pretrain.py cat
    python benchmarks/support/pretrain.py copier
    python benchmarks/support/pretrain.py numbers-en-de
    python benchmarks/support/pretrain.py numbers-en-zh

Writes annotated_transformer/pretrained/NAME. `load_pretrained` finds every folder there, and tests/test_pretrained.py tests it,
so another model needs no more than this command. `numbers-SOURCE-TARGET` works for all pairs of languages that `number_pairs`
has. For a model of another kind, add a function like `cat` and its name in `RECIPES`. Give each a row in chapter 5.4.

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

from annotated_transformer.base.model_files import write_model
from annotated_transformer.training.data import FIRST_SYMBOL, batch_by_tokens, batch_pairs
from annotated_transformer.text.number_words import spell_number
from annotated_transformer.text.sentence_pairs import sentence_pairs
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.tasks.copy_task import (
    CopyTaskConfig,
    held_out_pairs,
    run_copy_task,
)
from annotated_transformer.tasks.runs import count_parameters
from annotated_transformer.tasks.translation import epochs
from annotated_transformer.tasks.translation_setup import TranslationConfig, open_text
from annotated_transformer.training.history import History
from annotated_transformer.text.tokenizer import Tokenizer
from annotated_transformer.text.bpe import BPETokenizer
from annotated_transformer.text.tokenizer import WordTokenizer
from annotated_transformer.training.loop import TrainConfig, train
from annotated_transformer.training.progress import Progress
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig
from annotated_transformer.translator import PRETRAINED, Translator
from annotated_transformer.base.atomic_folders import write_folder

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
    "Chapter 4.4's translator, as that chapter trains it."
    train_pairs, held_out = sentence_pairs()
    tokenizer = WordTokenizer.of(train_pairs)

    def train_cat():
        torch.manual_seed(SEED)
        model = Transformer(TransformerConfig.preset("tiny", vocab_size=len(tokenizer)))
        batches = batch_pairs(5 * tokenizer.encode_pairs(train_pairs), batch_size=64)
        history = train(model, batches, TrainConfig(steps=300, seed=SEED))
        return model.eval(), tokenizer, history

    return Recipe(
        about="Translates the 4,800 English sentences of chapter 4.4 into German, such as "
        "*I have seen the cat*, the running example of the book.",
        training="The code is that of chapter 4.4: two layers, vectors of 64, a vocabulary of "
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
        result = run_copy_task(config, device="cpu")
        return result.model, tokenizer, result.history

    def beyond():
        found = {}
        for shortest, longest in ((1, 4), (13, 16)):
            pairs = synthetic_pairs("copy", config.n_symbols, shortest, longest, seed=1)
            what = f"sequences of {shortest} to {longest} symbols"
            found[what] = as_texts(next(pairs) for _ in range(500))
        return found

    return Recipe(
        about=f"Copies sequences of the symbols {symbols[0]} to {symbols[-1]}, the task of chapter 4.2.",
        training="The same as `annotated-transformer copy-task`: one layer, vectors of 32, one head, "
        f"{config.steps} batches of {config.batch_size} sequences.",
        limits=f"It was trained on sequences of {config.min_len} to {config.max_len} symbols. Shorter and longer ones often go wrong, "
        "as the table shows.",
        examples=["7 3 9 9 4 12", "3 3 3 3 3 3 3 3"],
        train=train_copier,
        held_out=lambda: as_texts(held_out_pairs(config)),
        beyond=beyond,
    )


def asked_first() -> list[int]:
    "The numbers that people try first: up to twenty, tens, hundreds, and as many thousands."
    small = [*range(21), *range(30, 100, 10), *range(100, 1000, 100)]
    return small + [1000 * n for n in small if n]


# As people write English numbers, whether or not it is how num2words does: what is left out, or becomes a blank.
LEFT_OUT = {
    "without *and*, as Americans say them": [" and"],
    "without commas": [","],
    "without *and* and commas": [" and", ","],
    "without *and*, commas and hyphens": [" and", ",", "-"],
}


def leave_out(text: str, marks: list[str]) -> str:
    for mark in marks:
        text = text.replace(mark, " " if mark == "-" else "")
    return text


def numbers(source: str, target: str) -> Recipe:
    "A translator of numbers, trained as `train-translation` does, on more short numbers."
    config = TranslationConfig.preset("numbers", source=source, target=target, seed=SEED)
    reads, writes = (
        LANGUAGES.get(code, f"the language {code!r}") for code in (source, target)
    )
    text = open_text(config)

    def spelt(number):
        return spell_number(number, source), spell_number(number, target)

    first = [spelt(number) for number in asked_first()]
    test = [pair for pair in text.test if pair not in first]
    validation = [pair for pair in text.validation if pair not in first]

    def training_pairs():
        # A number drawn below a million hardly ever has one word or two.
        held_out = {*test, *validation}
        thousands = [spelt(number) for number in range(1000, 1_000_000, 1000)]
        pairs = text.train + 3 * [pair for pair in thousands if pair not in held_out]
        if source == "en":
            pairs += [
                (leave_out(a, marks), b)
                for start, marks in enumerate(LEFT_OUT.values())
                for a, b in pairs[start::8]
            ]
        return pairs + 20 * first

    def train_numbers():
        pairs = training_pairs()
        sides = (side for pair in pairs for side in pair)
        tokenizer = BPETokenizer.learn(sides, config.vocab_size)
        ids = tokenizer.encode_pairs(pairs)
        n_batches = len(list(batch_by_tokens(ids, config.max_tokens)))

        torch.manual_seed(SEED)
        model = Transformer(config.transformer(len(tokenizer)))
        batches = epochs(ids, config.max_tokens, SEED)
        history = train(
            model,
            batches,
            config.training(n_batches),
            loss_fn=config.loss_fn(),
            callbacks=[Progress()],
        )
        return model.eval(), tokenizer, history

    def beyond():
        large = range(1_000_000, 2_000_000, 2_003)
        found = {
            "the numbers that people try first, trained on": first,
            "numbers from one to two million": [spelt(number) for number in large],
        }
        if source == "en":
            for what, marks in LEFT_OUT.items():
                written = [(leave_out(a, marks), b) for a, b in test[:500]]
                found[f"held out, {what}"] = written
        return found

    return Recipe(
        about=f"Translates numbers in words from {reads} into {writes}: whole numbers below a million.",
        training="The same as `annotated-transformer train-translation`: two layers, vectors of 64, byte pairs, 20 epochs. "
        "The data are the 20,000 numbers of “Numbers in words” and some more short ones, because few numbers drawn below a million "
        "have one word or two: the round thousands three times, and 73 numbers such as *twelve*, *forty* or *two thousand* twenty times. "
        + (
            "Half of them are there once more without *and*, commas or hyphens. "
            if source == "en"
            else ""
        )
        + "None of them is in the held-out part.",
        limits="It knows nothing but numbers in words, spelt as in training, in lower case. Digits and other "
        "words give nonsense.",
        examples=[spell_number(n, source) for n in (12, 342, 748_006)],
        train=train_numbers,
        held_out=lambda: test,
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


def score(translator: Translator, parts: dict) -> dict:
    "Of each part: how many translations are right to the last letter, of how many, and up to three wrong ones."
    scores = {}
    for what, pairs in parts.items():
        answers = translator.translate([source for source, _ in pairs])
        wrong = [a for (a, b), answer in zip(pairs, answers) if answer != b]
        scores[what] = dict(right=len(pairs) - len(wrong), of=len(pairs), wrong=wrong[:3])
    return scores


def score_row(what: str, part: dict) -> str:
    "A line of the card's table, with the few wrong ones by name."
    n_wrong = part["of"] - part["right"]
    named = ", ".join(f"*{text}*" for text in part["wrong"])
    wrong = f"; not {named}" if 0 < n_wrong <= len(part["wrong"]) else ""
    return f"| {what} | {part['right']:,} of {part['of']:,}{wrong} |"


def card(name: str, recipe: Recipe, metrics: dict, translator: Translator) -> str:
    "The model card."
    rows = [score_row(what, part) for what, part in metrics["scores"].items()]
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
