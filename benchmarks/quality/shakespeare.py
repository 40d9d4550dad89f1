"""The language model of chapter 6.2 on the text that everybody trains on first: a million characters of Shakespeare.

    python benchmarks/quality/shakespeare.py --text input.txt [--seeds 0,1,2] [--device cuda]
    python benchmarks/quality/shakespeare.py --seconds 180         without it: Python's language reference, which is on every machine

The text is not part of this project; nanoGPT's `data/shakespeare_char` says where it is. The division is nanoGPT's: the first nine tenths are for
training, the last tenth for validation, and the vocabulary is the characters. The reference is divided as in chapter 6.2, where models that count
are measured on the same parts. The loss is nats per character, by consecutive windows as long as the
model's, in which the first characters have little before them (as nanoGPT measures), and by windows that overlap, so that each character
but those of the first window is predicted from at least half a window. Trained are our settings, and sizes, steps and peak rate of nanoGPT's example for
a CPU (2,000 steps of 12 windows of 64, learned positions), for which its README reports 1.88 after three minutes; its schedule is a cosine, ours is
linear, and beta_2 is 0.99 there. With --seconds each setting gets as many steps as fit into them, so that both have the same budget.
Writes results/shakespeare_DEVICE.json, or results/language_reference_DEVICE.json.
"""

import copy
import hashlib
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments, rounded

from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.training.data import EOS, Batch
from annotated_transformer.text.python_reference import (
    random_windows,
    sliding_windows,
    split_text,
)
from annotated_transformer.text.tokenizer import CharTokenizer
from annotated_transformer.tasks.language_model import LanguageModelConfig
from annotated_transformer.tasks.runs import count_parameters
from annotated_transformer.models.gpt import GPT
from annotated_transformer.training.loop import TrainConfig, train
from annotated_transformer.training.loss import evaluate

OURS = LanguageModelConfig.preset("tiny")
SETTINGS = {
    "cpu": {
        "ours": (OURS, {}),
        "nanoGPT's": (
            OURS.replace(positions="learned", batch_size=12, steps=2000, lr=1e-3),
            dict(max_len=64),
        ),
    }
}
# six layers of width 384 and windows of 256, as in nanoGPT's run on a GPU
LARGE = dict(
    d_model=384,
    d_ff=1536,
    n_heads=6,
    n_layers=6,
    max_len=256,
    dropout=0.2,
    attention_dropout=0.2,
)
SETTINGS["cuda"] = {
    "ours": (OURS.replace(batch_size=64, steps=2000, lr=1e-3), LARGE),
    "nanoGPT's": (
        OURS.replace(positions="learned", batch_size=64, steps=5000, lr=1e-3),
        LARGE,
    ),
}


def consecutive_windows(
    ids: list, length: int, special: SpecialTokens, rows: int = 64
) -> list:
    "One after the other, without overlap: what nanoGPT draws at random."
    starts = range(0, len(ids) - length, length)
    windows = torch.tensor([ids[start : start + length + 1] for start in starts])
    return [Batch((part[:, :-1],), part[:, 1:], special) for part in windows.split(rows)]


def divide(text: str | None) -> tuple[list[str], list[str]]:
    "Documents for training, and those for validation."
    if text is None:
        return split_text(OURS.topics())
    cut = int(0.9 * len(text))
    return [text[:cut]], [text[cut:]]


def steps_within(seconds: float, model: GPT, batches, config: TrainConfig) -> int:
    "How many steps fit into so many seconds, judged by forty of them on a copy, after ten that do not count."
    model = copy.deepcopy(model)
    train(model, batches, config.replace(steps=10))
    return max(
        1,
        int(seconds / train(model, batches, config.replace(steps=40)).seconds * 40),
    )


def run(
    text: str | None,
    config: LanguageModelConfig,
    changes: dict,
    device: str,
    seconds: float | None = None,
) -> dict:
    "Train once, and measure in both ways."
    parts = divide(text)
    tokenizer = CharTokenizer.of([document for part in parts for document in part])
    training, held_out = (
        [[*tokenizer.encode(document), EOS] for document in part] for part in parts
    )
    in_a_row = [id for document in held_out for id in document]
    torch.manual_seed(config.seed)
    model = GPT(config.gpt(len(tokenizer)).replace(**changes)).to(device)
    special, length = SpecialTokens.of(model), model.config.max_len

    def batches():
        return random_windows(training, length, config.batch_size, config.seed, special)

    if seconds:
        config = config.replace(
            steps=steps_within(seconds, model, batches(), config.training())
        )
    history = train(model, batches(), config.training())
    return dict(
        loss=rounded(
            evaluate(model, consecutive_windows(in_a_row[:-1], length, special))["loss"]
        ),
        loss_overlapping=rounded(
            evaluate(model, sliding_windows(held_out, length, special=special))["loss"]
        ),
        seed=config.seed,
        steps=history.steps,
        train_seconds=rounded(history.seconds),
        tokens_per_second=round(history.n_tokens / history.seconds),
        parameters=count_parameters(model),
        config=config.to_dict() | dict(text="Shakespeare" if text else ""),
        model=model.config.to_dict(),
    )


def main(options):
    text = Path(options.text).read_text(encoding="utf-8") if options.text else None
    name = "shakespeare" if text else "language_reference"
    results, runs = Results(f"{name}_{options.device}", options), []
    whole = text or "".join(document for part in divide(text) for document in part)
    about = dict(characters=len(whole), sha256=hashlib.sha256(whole.encode()).hexdigest())
    for name, (config, changes) in SETTINGS[options.device].items():
        for seed in map(int, options.seeds.split(",")):
            runs.append(
                dict(
                    settings=name,
                    **run(
                        text,
                        config.replace(seed=seed, steps=options.steps or config.steps),
                        changes,
                        options.device,
                        options.seconds,
                    ),
                )
            )
            print(
                {
                    key: runs[-1][key]
                    for key in (
                        "settings",
                        "seed",
                        "loss",
                        "loss_overlapping",
                        "steps",
                        "train_seconds",
                    )
                },
                flush=True,
            )
            path = results.save(text=about, runs=runs)
    print("written to", path)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--text", help="the file, UTF-8; without it, Python's language reference"
    )
    parser.add_argument("--seeds", default="0,1,2", help="separated by commas")
    parser.add_argument(
        "--steps", type=int, default=0, help="of each run; 0: those of its settings"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help="of training for each run, in place of a number of steps",
    )
    main(parser.parse_args())
