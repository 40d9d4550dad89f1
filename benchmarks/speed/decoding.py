"""Cached decoding against uncached decoding and Hugging Face's `generate`, base size, the same weights on all sides.

    python benchmarks/speed/decoding.py [--device cuda] [--lengths 32,128,256] [--batches 1,32] [--beams 1,4] [--compile] [--rounds 3]

All sides take turns in one process; every answer has the full length, as nothing ends it. Sources have 32 tokens. Before
anything is timed, the sides in float32 (prepared, uncached, Hugging Face) write 24 tokens for two sources and have to
agree; bfloat16 is not compared. Numbers are tokens a second, medians over the rounds; ratios above 1 mean that ours is
faster. On a CPU ours is prepared (`prepare_for_decoding`, as a short measurement on this processor says; the result keeps
it), and "ours plain" is not. UncachedDecoder decoding is timed at evenly
spaced positions, because whole answers take minutes.
"""

import copy
import statistics
import sys
from functools import partial
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments, rounded, seconds
from torch.nn import functional as F

from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.decoding.greedy import UncachedDecoder, greedy_decode
from annotated_transformer.interop.huggingface import to_huggingface
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.decoding.decoding_speed import (
    Compiled,
    measure_products,
    prepare_for_decoding,
)
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

ENDLESS = SpecialTokens(eos_id=None)
SOURCE_LENGTH, SEED = 32, 0


def ours(model, src, length: int, beam: int):
    "The best answers, cached."
    if beam == 1:
        return greedy_decode(model, src, length, special=ENDLESS)
    return beam_search(
        model, src, length, special=ENDLESS, beam_size=beam, length_penalty=0.0
    )


def theirs(model, src, length: int, beam: int):
    "The same by Hugging Face."
    return model.generate(
        src,
        attention_mask=torch.ones_like(src),
        max_new_tokens=length,
        num_beams=beam,
        do_sample=False,
        length_penalty=0.0,
        early_stopping=beam > 1,
        suppress_tokens=[0, 1, 2],
    )


@torch.no_grad()
def time_uncached(model, src, length: int, device: str, samples: int) -> float:
    "Seconds for an answer without a cache, from steps at evenly spaced positions."
    uncached, times = UncachedDecoder(model), []
    _, prefixes = uncached.start(src)
    for i in range(samples):
        position = int((i + 0.5) * length / samples)
        prefixes.ids = torch.full(
            (len(src), position), 3, device=device
        )  # the newest token comes on top
        newest = torch.full((len(src), 1), 3, device=device)
        times.append(
            seconds(
                lambda newest=newest: (
                    uncached.step(newest, prefixes).log_softmax(-1).argmax(-1)
                ),
                device,
            )
        )
    return length * statistics.fmean(times)


def check(models: dict, src, length: int):
    "All sides write the same tokens in float32, greedily and by a beam."
    for beam in (1, 4):
        found, expected = (
            ours(models["ours"], src, length, beam),
            theirs(models["hugging face"], src, length, beam),
        )
        if found.ids.tolist() != expected[:, 1:].tolist():
            raise SystemExit(f"beam {beam}: the two sides write different tokens")
    plain = greedy_decode(UncachedDecoder(models["uncached"]), src, length, special=ENDLESS)
    if plain.ids.tolist() != ours(models["ours"], src, length, 1).ids.tolist():
        raise SystemExit("cached and uncached write different tokens")


def compare(models: dict, src, length: int, beam: int, device: str, rounds: int) -> dict:
    "Median speeds of all sides, measured in turns."
    batch = len(src)
    sides = {
        name: partial(ours if name.startswith("ours") else theirs, model, src, length, beam)
        for name, model in models.items()
        if name != "uncached"
    }
    for name in sides:
        if "compiled" in name:
            model = Compiled(
                models[name],
                room=length,
                mode="reduce-overhead" if device == "cuda" else None,
            )
            sides[name] = partial(ours, model, src, length, beam)
            sides[name]()  # compiles
    times = {name: [] for name in [*sides, *(["uncached"] if beam == 1 else [])]}
    rounds = rounds if batch * beam < 32 else min(rounds, 2)  # minutes for each answer
    for turn in range(rounds):
        for name in sorted(
            sides, reverse=turn % 2 == 0
        ):  # the order alternates, so that neither always goes first
            times[name].append(seconds(sides[name], device))
        if beam == 1:
            times["uncached"].append(
                time_uncached(
                    models["uncached"], src, length, device, 8 if batch == 1 else 4
                )
            )
    median = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        f"{mine} / {other}": median[other] / median[mine]
        for mine in sides
        if mine.startswith("ours")
        for other in median
        if not other.startswith("ours")
    }
    return dict(
        length=length,
        batch=batch,
        beam=beam,
        rounds=rounds,
        seed=SEED,
        bytes_per_step={
            name: step_bytes(models["uncached"], batch, beam, length)
            // (1 + ("bf16" in name))
            for name in sides
        },
        tokens_per_second={name: rounded(batch * length / s) for name, s in median.items()},
        spread={
            name: [rounded(batch * length / s) for s in (max(values), min(values))]
            for name, values in times.items()
        },
        ratios={name: rounded(ratio) for name, ratio in ratios.items()},
    )


def step_bytes(model, batch: int, beam: int, length: int) -> int:
    "What a cached float32 step has to read at least: decoder and output matrix once, the source's keys and values, those of each hypothesis."
    config = model.config

    # the decoder without the matrices for the memory's keys and values, and the output matrix
    weights = sum(p.numel() for p in model.decoder.parameters())
    weights -= 2 * config.n_layers * config.d_model**2
    weights += config.vocab_size * config.d_model

    # keys and values in each layer, in the middle of an answer
    of_a_token = 2 * config.n_layers * config.d_model
    cached = batch * (SOURCE_LENGTH + beam * length // 2) * of_a_token
    return 4 * (weights + cached)


@torch.no_grad()
def by_position(model, src, length: int, device: str, rounds: int) -> dict:
    "Milliseconds of a cached step early and late in an answer, and those of its attention alone."
    times = []
    for _ in range(rounds):
        bos, cache = model.start(src)
        model.step(bos, cache)
        newest = torch.full((len(src), 1), 3, device=device)
        step = partial(model.step, newest, cache)
        times.append([seconds(step, device) for _ in range(length)])
    step = [statistics.median(column) for column in zip(*times)]
    quarter = length // 4
    config, attention = model.config, {}
    for name, n_keys in (("early", quarter // 2), ("late", length - quarter // 2)):
        shape = (
            3,
            config.n_layers,
            len(src),
            config.n_heads,
            length,
            config.d_model // config.n_heads,
        )
        query, key, value = torch.randn(
            shape, device=device, dtype=next(model.parameters()).dtype
        )  # each layer reads its own
        layers = [
            (q[:, :, :1], k[:, :, :n_keys], v[:, :, :n_keys])
            for q, k, v in zip(query, key, value)
        ]
        calls = [
            seconds(
                lambda layers=layers: [
                    F.scaled_dot_product_attention(*layer) for layer in layers
                ],
                device,
            )
            for _ in range(100)
        ]
        attention[name] = statistics.median(calls)
    return dict(
        length=length,
        batch=len(src),
        steps_early=rounded(1000 * statistics.median(step[:quarter])),
        steps_late=rounded(1000 * statistics.median(step[-quarter:])),
        attention_early=rounded(1000 * attention["early"]),
        attention_late=rounded(1000 * attention["late"]),
    )


def prepare(
    device: str, compiled: bool, n_sources: int, **changes
) -> tuple[dict, torch.Tensor, dict]:
    "All sides with the same weights, checked against each other, sources for them, and what skinny products gain."
    torch.manual_seed(SEED)
    config = TransformerConfig(
        attention_bias=True, **changes
    )  # the base model, with the biases that Marian has
    model = Transformer(config).eval()
    transformers.logging.set_verbosity_error()
    marian = to_huggingface(model).to(device)
    half = copy.deepcopy(model.to(device)).bfloat16()
    models = {"ours": model, "ours bf16": half}
    gains = (
        {name: measure_products(m) for name, m in models.items()} if device == "cpu" else {}
    )
    if gains:
        models = {"ours plain": model} | {
            name: prepare_for_decoding(m, gains[name]) for name, m in models.items()
        }
    if compiled:
        models |= {"ours compiled": model, "ours bf16 compiled": half}
    models |= {
        "hugging face": marian,
        "hugging face bf16": copy.deepcopy(marian).bfloat16(),
        "uncached": model,
    }
    src = torch.randint(3, config.vocab_size, (n_sources, SOURCE_LENGTH), device=device)
    check(models, src[:2], 24)
    products = {
        f"{n_out} x {n_in} {dtype}": {
            rows: rounded(ratio) for rows, ratio in ratios.items()
        }
        for found in gains.values()
        for (n_out, n_in, dtype), ratios in found.items()
    }
    return models, src, products


def main(options):
    results = Results(f"decoding_{options.device}", options)
    models, src, products = prepare(options.device, options.compile, max(options.batches))
    positions = [
        by_position(
            models["ours"],
            src[:batch],
            max(options.lengths),
            options.device,
            options.rounds,
        )
        for batch in options.batches
    ]
    for row in positions:
        print(row, flush=True)
    rows = []
    for length in options.lengths:
        for batch in options.batches:
            for beam in options.beams:
                rows.append(
                    row := compare(
                        models, src[:batch], length, beam, options.device, options.rounds
                    )
                )
                print(
                    f"length {length}, batch {batch}, beam {beam}:",
                    row["tokens_per_second"],
                    row["ratios"],
                    flush=True,
                )
                path = results.save(
                    model="base",
                    source_length=SOURCE_LENGTH,
                    rows=rows,
                    by_position=positions,
                    products=products,
                )
    print("written to", path)


if __name__ == "__main__":
    parser = arguments(__doc__)
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument(
        "--lengths",
        type=numbers,
        default=[32, 128, 256],
        help="tokens of an answer, separated by commas",
    )
    parser.add_argument(
        "--batches", type=numbers, default=[1, 32], help="sources decoded together"
    )
    parser.add_argument(
        "--beams", type=numbers, default=[1, 4], help="1 is greedy decoding"
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="measure the compiled step as well (on a GPU: recorded graphs)",
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="measured answers of each side"
    )
    main(parser.parse_args())
