"""What `gpu.py` runs: each stage is a list of jobs, each job a function with its settings on a GPU and in a rehearsal."""

import ast
import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from support.machine import ROOT, rounded, seconds

sys.path.append(str(ROOT / "tools"))
from cell_directives import directives_of

NO_DATA = "its data are not on this machine (benchmarks/README.md says how to bring them)"


@dataclass
class Context:
    "What a job is told besides its settings."

    device: str  # 'cuda', or 'cpu' in a rehearsal
    results: dict = field(
        default_factory=dict
    )  # (stage, job) -> what was measured so far, on this device

    @property
    def ceilings(self) -> dict:  # the stage `device`; empty where it failed
        return self.results.get(("device", "ceilings"), {})


@dataclass(frozen=True)
class Job:
    "The smallest piece that is done or not done."

    name: str
    run: Callable[..., dict]  # (context, **settings) -> what was measured, fit for JSON
    minutes: float  # expected on an H100
    settings: dict = field(default_factory=dict)  # on a GPU
    rehearsal: dict = field(
        default_factory=dict
    )  # what a rehearsal on a CPU changes of them
    needs: tuple = ()  # packages besides torch, numpy, matplotlib and safetensors
    wanted: Callable[[Context], bool] = lambda context: (
        True
    )  # looked at when its turn comes
    lacks: Callable[[Context], str] = (
        lambda context: ""
    )  # what this machine has not: files that it reads, or GPUs; looked at when its turn comes
    last: bool = False  # after all other stages, as far as minutes allow


@dataclass(frozen=True)
class Stage:
    "Jobs whose results are kept in one file."

    name: str
    about: str
    jobs: tuple


def measure_device(context: Context, copied: int, size: int, rounds: int) -> dict:
    "What this device can do at best: GB/s of a large copy, read and written, and TFLOP/s of a bfloat16 product."
    source = torch.randn(copied // 4, device=context.device)
    target = torch.empty_like(source)
    a, b = (torch.randn(size, size, device=context.device).bfloat16() for _ in range(2))
    best = {}
    for name, work in {
        "copy": lambda: target.copy_(source),
        "product": lambda: a @ b,
    }.items():
        for _ in range(3):
            work()
        best[name] = statistics.median(seconds(work, context.device) for _ in range(rounds))
    found = dict(
        copy_gb_per_second=rounded(2 * copied / best["copy"] / 1e9),
        bf16_tflops=rounded(2 * size**3 / best["product"] / 1e12),
    )
    if context.device == "cuda":
        about = torch.cuda.get_device_properties(0)
        found |= dict(
            memory_gb=rounded(about.total_memory / 1e9),
            multiprocessors=about.multi_processor_count,
        )
    return found


def copy_run(
    context: Context, preset: str, recipe: str, eval_every: int = 0, **changes
) -> dict:
    "A full run of the copy task: its metrics, and the history of its training."
    from quality.copy_task import configuration, exact_matches

    from annotated_transformer.tasks.copy_task import run_copy_task

    config = configuration(preset, recipe, **changes)
    callbacks = exact_matches(config, eval_every)
    done = run_copy_task(config, device=context.device, callbacks=callbacks)
    return dict(recipe=recipe, metrics=done.metrics, history=done.history.rows)


def exact(context: Context, recipe: str) -> bool:
    "Whether the first run of a recipe copied everything."
    found = context.results.get(("copy_task", f"copy, {recipe}"))
    return bool(found) and found["metrics"]["exact_match"] == 1


def none_exact(context: Context, *recipes) -> bool:
    return not any(exact(context, recipe) for recipe in recipes)


def copy_again(context: Context, **settings) -> dict:
    "Another run, by the first recipe that was exact; by the first of all where none was."
    from quality.copy_task import RECIPES

    return copy_run(
        context,
        recipe=next((r for r in RECIPES if exact(context, r)), RECIPES[0]),
        **settings,
    )


def flagged_cells(path: Path, flag: str) -> dict[str, str]:
    "The source of a notebook's cells with a flag, by their ids."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = {
        cell["id"]: "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"
    }
    return {
        name: source for name, source in sources.items() if flag in directives_of(source)
    }


def run_cells(context: Context, notebook: str) -> dict:
    "The cells of a notebook that need a GPU, each by itself: it imports what it uses. No nbdev is needed."
    done = {}
    for name, source in flagged_cells(ROOT / "nbs" / notebook, "cuda").items():
        source = source.replace("'cuda'", repr(context.device))
        if context.device == "cpu":  # a rehearsal
            source = source.replace("if torch.cuda.is_available():", "if True:")
        start, said = time.perf_counter(), io.StringIO()
        with contextlib.redirect_stdout(
            said
        ):  # the tree keeps line numbers, and the name says where
            exec(
                compile(ast.parse(source), f"{notebook}#{name}", "exec"),
                {"__name__": "__main__"},
            )
        done[name] = dict(
            seconds=round(time.perf_counter() - start, 1), printed=said.getvalue()
        )
    return dict(cells=done)


def step_time(context: Context, **settings) -> dict:
    "A training step of all sides, and what share of the measured bfloat16 rate ours reach."
    from speed.training import compare

    row = compare(device=context.device, **settings)
    if best := context.ceilings.get("bf16_tflops"):
        row["share_of_bf16_rate"] = {
            name: rounded(row["flops"] / (ms / 1000) / (best * 1e12))
            for name, ms in row["milliseconds"].items()
        }
    return row


def ladder(context: Context, **sizes) -> dict:
    "What each change of a training step is worth."
    from speed.ladder import climb

    return climb(context.device, report=lambda row: None, **sizes)


def base_step(context: Context, **sizes) -> dict:
    "The paper's base model in its own step, and memory against length."
    from speed.base_step import measure

    return measure(context.device, **sizes)


def lacks_company(context: Context) -> str:
    "A second GPU."
    return (
        ""
        if context.device == "cpu" or torch.cuda.device_count() > 1
        else "there is one GPU"
    )


def processes(context: Context, **sizes) -> dict:
    "A training by one process, and by one on each GPU together."
    from speed.together import compare

    return compare(context.device, max(2, torch.cuda.device_count()), **sizes)


def layer_costs(
    context: Context, rounds: int, causal_lengths: tuple | None = None, **sizes
) -> dict:
    "Time and memory of the layers of Table 1, and of a causal mask as a table and without one."
    from speed.layers import CAUSAL_LENGTHS, compare, compare_causal

    return dict(
        **compare(context.device, rounds, **sizes),
        causal=compare_causal(context.device, rounds, causal_lengths or CAUSAL_LENGTHS),
    )


def decoding_speed(
    context: Context,
    compiled: bool,
    batch: int,
    beam: int,
    length: int,
    rounds: int,
    **changes,
) -> dict:
    "Tokens a second of all sides, and what share of the measured memory rate they reach."
    from speed.decoding import compare, prepare

    models, src, _ = prepare(context.device, compiled, max(batch, 2), **changes)
    row = compare(models, src[:batch], length, beam, context.device, rounds)
    if best := context.ceilings.get("copy_gb_per_second"):
        steps = {
            name: speed / batch
            for name, speed in row["tokens_per_second"].items()
            if name in row["bytes_per_step"]
        }
        row["share_of_memory_rate"] = {
            name: rounded(n * row["bytes_per_step"][name] / (best * 1e9))
            for name, n in steps.items()
        }
    return row


def gpt_run(context: Context, preset: str, **changes) -> dict:
    from annotated_transformer.tasks.language_model import (
        LanguageModelConfig,
        run_language_model,
    )

    done = run_language_model(
        LanguageModelConfig.preset(preset, **changes),
        device=context.device,
        eval_every=max(1, changes["steps"] // 5),
    )
    return dict(metrics=done.metrics, history=done.history.rows)


def shakespeare_path() -> Path:
    from annotated_transformer.text.multi30k import multi30k_folder

    return multi30k_folder().parent / "shakespeare.txt"


def lacks_shakespeare(context: Context) -> str:
    "It lies beside Multi30k; a rehearsal reads something else."
    return "" if context.device == "cpu" or shakespeare_path().is_file() else NO_DATA


def characters_run(
    context: Context,
    settings: str,
    seconds: float,
    text: str | None = None,
    sizes: dict | None = None,
    **changes,
) -> dict:
    "Six layers of width 384 on characters, as many steps as fit into so many seconds. `text` names a file; 'shakespeare' is the one beside Multi30k; None: Python's language reference."
    from quality.shakespeare import SETTINGS, run

    config, usual = SETTINGS["cuda"][settings]
    path = shakespeare_path() if text == "shakespeare" else text
    return run(
        path and Path(path).read_text(encoding="utf-8"),
        config.replace(**changes),
        usual | (sizes or {}),
        context.device,
        seconds,
    )


def bert_run(context: Context, preset: str, **changes) -> dict:
    from annotated_transformer.tasks.topic_classification import (
        TopicClassificationConfig,
        run_topic_classification,
    )

    done = run_topic_classification(
        TopicClassificationConfig.preset(preset, **changes),
        device=context.device,
    )
    return dict(metrics=done.metrics, history=done.history.rows)


def captioning_run(context: Context, preset: str, **changes) -> dict:
    from annotated_transformer.tasks.captioning import (
        CaptioningConfig,
        run_captioning,
    )

    done = run_captioning(CaptioningConfig.preset(preset, **changes), device=context.device)
    return dict(metrics=done.metrics, history=done.history.rows)


def vit_run(context: Context, preset: str, per_class: int, **changes) -> dict:
    "ViT's own size wants a folder of pictures: scikit-learn's digits, written as PNG files."
    from PIL import Image
    from sklearn.datasets import load_digits

    from annotated_transformer.tasks.image_classification import (
        ImageClassificationConfig,
        run_image_classification,
    )

    digits, written = load_digits(), dict.fromkeys(range(10), 0)
    with tempfile.TemporaryDirectory() as folder:
        for number, (picture, label) in enumerate(
            zip(digits.images, digits.target.tolist())
        ):
            if written[label] == per_class:
                continue
            written[label] += 1
            path = Path(folder) / str(label) / f"{number}.png"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray((255 - picture * 15.9375).astype("uint8")).save(path)
        done = run_image_classification(
            ImageClassificationConfig.preset(preset, data=folder, **changes),
            device=context.device,
        )
    metrics = done.metrics | dict(
        config=done.metrics["config"] | dict(data="digits, enlarged")
    )
    return dict(metrics=metrics, history=done.history.rows)


def lacks_corpus(context: Context) -> str:
    "Multi30k, where it is looked for; a rehearsal has a corpus of its own."
    from annotated_transformer.text.multi30k import MULTI30K_SHA256, multi30k_folder

    there = context.device == "cpu" or all(
        (multi30k_folder() / name).is_file() for name in MULTI30K_SHA256
    )
    return "" if there else NO_DATA


def translation_run(context: Context, preset: str, n_pairs: int = 0, **changes) -> dict:
    "With `n_pairs`, on so many short sentences that need no file."
    from annotated_transformer.text.sentence_pairs import sentence_pairs
    from annotated_transformer.tasks.translation import run_translation
    from annotated_transformer.tasks.translation_setup import TranslationConfig

    with tempfile.TemporaryDirectory() as folder:
        if n_pairs:
            changes["corpus"] = f"{folder}/pairs.tsv"
            pairs, _ = sentence_pairs()
            Path(changes["corpus"]).write_text(
                "".join(f"{source}\t{target}\n" for source, target in pairs[:n_pairs]),
                encoding="utf-8",
            )
        done = run_translation(
            TranslationConfig.preset(preset, **changes),
            device=context.device,
        )
    metrics = done.metrics | dict(
        config=done.metrics["config"]
        | dict(corpus="sentences" if n_pairs else done.config.corpus)
    )
    return dict(metrics=metrics, history=done.history.rows)


FEW = dict(steps=4, batch_size=4, n_heldout=4)  # of a rehearsal
SHORT = FEW | dict(preset="one-layer", max_len=6)
FEW_CHARACTERS = dict(
    text=str(ROOT / "README.md"),
    seconds=0.0,
    steps=2,
    batch_size=2,
    sizes=dict(n_layers=1, max_len=32),
)
SMALL = dict(
    d_model=32, d_ff=64, n_heads=2, n_layers=2, vocab_size=40
)  # a base model of a rehearsal
AGAIN = [(task, seed) for seed in (1, 2) for task in ("copy", "reverse", "sort")]

STAGES = (
    Stage(
        "device",
        "the two ceilings: a large copy, and a bfloat16 product; the layers of Table 1",
        (
            Job(
                "ceilings",
                measure_device,
                0.3,
                dict(copied=2**31, size=8192, rounds=20),
                dict(copied=2**24, size=256, rounds=3),
            ),
            Job(
                "layers",
                layer_costs,
                0.7,
                dict(rounds=9),
                dict(
                    rounds=1,
                    lengths=(64, 128, 256, 512),
                    widths=(16, 32, 64),
                    causal_lengths=(64, 128),
                ),
            ),
        ),
    ),
    Stage(
        "copy_task",
        "the copy task at the paper's size, to exact copies",
        (
            Job(
                "copy, post-norm",
                copy_run,
                4.5,
                dict(preset="base", recipe="post-norm", eval_every=500),
                SHORT,
            ),
            Job(
                "copy, longer warm-up",
                copy_run,
                6.5,
                dict(preset="base", recipe="longer warm-up", eval_every=500),
                SHORT,
                wanted=lambda context: none_exact(context, "post-norm"),
            ),
            Job(
                "copy, pre-norm",
                copy_run,
                4.5,
                dict(preset="base", recipe="pre-norm", eval_every=500),
                SHORT,
                wanted=lambda context: none_exact(context, "post-norm", "longer warm-up"),
            ),
            *(
                Job(
                    f"{task}, seed {seed}",
                    copy_again,
                    4.5,
                    dict(preset="base", task=task, seed=seed),
                    SHORT,
                    last=True,
                )
                for task, seed in AGAIN
            ),
        ),
    ),
    Stage(
        "cuda_tests",
        "every cell marked `cuda`",
        tuple(
            Job(
                path.stem,
                partial(run_cells, notebook=f"{path.parent.name}/{path.name}"),
                0.7,
            )
            for path in sorted((ROOT / "nbs").glob("*/*.ipynb"))
            if flagged_cells(path, "cuda")
        ),
    ),
    Stage(
        "training",
        "a training step against `nn.Transformer` and others, eager and compiled; what makes it fast",
        (
            *(
                Job(
                    size,
                    step_time,
                    minutes,
                    dict(size=size, dropout=0.1, rounds=20, compiled=True),
                    dict(size="tiny", rounds=2, n_rows=4),
                )
                for size, minutes in (("tiny", 1.0), ("base", 1.5), ("big", 2.0))
            ),
            Job(
                "base, 37,000 tokens",
                step_time,
                2.0,
                dict(size="base", vocab_size=37_000, dropout=0.1, rounds=10, compiled=True),
                dict(size="tiny", vocab_size=100, rounds=2, n_rows=4),
            ),
            Job(
                "the paper's base step",
                base_step,
                2.5,
                dict(
                    rounds=5,
                    max_tokens=25_000,
                    n_batches=6,
                    product_size=8192,
                    lengths=[128, 256, 512, 1024, 2048, 4096],
                    rows=4,
                    precision="bfloat16",
                    compiled=True,
                ),
                dict(
                    rounds=1,
                    max_tokens=200,
                    n_batches=2,
                    product_size=64,
                    lengths=[8, 16, 32],
                    rows=1,
                    model="tiny",
                    vocab_size=100,
                ),
            ),
            Job(
                "ladder",
                ladder,
                5.0,
                dict(
                    rounds=5, model="base", vocab_size=37_000, max_tokens=8000, n_batches=12
                ),
                dict(rounds=1, model="tiny", vocab_size=100, max_tokens=200, n_batches=2),
            ),
            Job(
                "processes",
                processes,
                3.0,
                dict(preset="base", rows=512, steps=30),
                dict(preset="tiny", rows=2, steps=2),
                lacks=lacks_company,
            ),
        ),
    ),
    Stage(
        "decoding",
        "cached decoding of the base model against Hugging Face",
        tuple(
            Job(
                f"batch {batch}, beam {beam}{', compiled' if compiled else ''}",
                decoding_speed,
                2.0 if compiled else 1.2,
                dict(compiled=compiled, batch=batch, beam=beam, length=256, rounds=3),
                dict(batch=min(batch, 3), length=24, rounds=2, **SMALL),
                needs=("transformers",),
            )
            for compiled in (False, True)
            for batch in (1, 32)
            for beam in (1, 4)
        ),
    ),
    Stage(
        "family",
        "GPT, BERT, the captioner and ViT at their larger sizes",
        (
            Job(
                "gpt",
                gpt_run,
                2.5,
                dict(preset="small", steps=1000),
                dict(preset="tiny", text=str(ROOT / "README.md"), **FEW),
            ),
            *(
                Job(
                    name,
                    characters_run,
                    4.0,
                    dict(settings=settings, seconds=180.0, text="shakespeare"),
                    FEW_CHARACTERS,
                    lacks=lacks_shakespeare,
                )
                for name, settings in (
                    ("shakespeare", "ours"),
                    ("shakespeare, nanoGPT's settings", "nanoGPT's"),
                )
            ),
            Job(
                "bert",
                bert_run,
                3.0,
                dict(preset="base"),
                dict(preset="tiny", finetune_steps=2, n_topics=2, n_labelled=4, **FEW),
            ),
            Job(
                "captioning",
                captioning_run,
                3.0,
                dict(preset="base", steps=4000),
                dict(preset="tiny", **FEW),
                needs=("sklearn",),
            ),
            Job(
                "vit",
                vit_run,
                3.0,
                dict(preset="base", per_class=200, batch_size=64, steps=500),
                dict(preset="tiny", per_class=5, batch_size=4, steps=2),
                needs=("sklearn", "PIL"),
            ),
            *(
                Job(
                    name,
                    characters_run,
                    4.0,
                    dict(settings=settings, seconds=180.0),
                    FEW_CHARACTERS,
                    last=True,
                )
                for name, settings in (
                    ("reference", "ours"),
                    ("reference, nanoGPT's settings", "nanoGPT's"),
                )
            ),
        ),
    ),
    Stage(
        "translation",
        "Multi30k in lower case, English to German, three seeds; then what else may matter",
        tuple(
            Job(
                name,
                translation_run,
                6.0,
                dict(preset="multi30k", source=source, target=target, **changes),
                dict(
                    preset="multi30k",
                    model="tiny",
                    epochs=1,
                    n_average=1,
                    vocab_size=300,
                    n_pairs=200,
                ),
                needs=("tokenizers", "num2words", "sacrebleu", "sacremoses"),
                lacks=lacks_corpus,
                last=last,
            )
            for name, source, target, changes, last in (
                *(
                    (
                        f"en-de, seed {seed}",
                        "en",
                        "de",
                        dict(lowercase=True, seed=seed),
                        False,
                    )
                    for seed in (0, 1, 2)
                ),
                ("de-en", "de", "en", dict(lowercase=True), False),
                (
                    "en-de, three matrices",
                    "en",
                    "de",
                    dict(lowercase=True, tie_weights=False),
                    True,
                ),
                ("en-de, capitals", "en", "de", {}, True),
            )
        ),
    ),
)
