"""How sure the score of a trained translator of captions is, and what its heads look at: chapters 5.5 and 5.6 show it.

    python benchmarks/quality/translation_analysis.py --model runs/benchmarks/translation_multi30k_en-de_cpu_0 [--lowercase] [--name pre-norm] [--data-dir FOLDER]

Counts the padding of an epoch, translates the test sentences by a beam of 5, and finds between which values 95 of 100 BLEU scores lie if the
sentences are drawn again and again. Then, for each head of the encoder: the mean weight that a token gives to the one before it, to itself, to the
one after it, and to the end of the sentence; and that of "his" and "her" on the person whom they mean, beside the weight that the other tokens of
the same sentences give at the same distances, which a head that only counts positions would give as well. From German, where "ihr" is her or their: from
which of three places a model learns which of the two it is to write. For every head of all parts: how large the largest weight of a row is, and how many
rows of a sentence have it on the same token. BLEU of the validation and of the test sentences by the length penalty. Last, sentences translated, with
all weights. Two minutes on two cores. Writes results/translation_analysis_multi30k_SOURCE-TARGET[_lower][_NAME]_DEVICE.json.
"""

import json
import re
import sys
from itertools import product
from pathlib import Path

import sacrebleu
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments

from annotated_transformer.training.data import Batch, batch_by_tokens, padding_fraction
from annotated_transformer.text.corpora import open_parallel_text
from annotated_transformer.text.sentence_pairs import RUNNING_PAIR
from annotated_transformer.translator import Translator
from annotated_transformer.decoding.metrics import score_translations
from annotated_transformer.inspection.attention_maps import trace_attention

PERSONS = {"▁his": {"▁man", "▁boy", "▁guy"}, "▁her": {"▁woman", "▁girl", "▁lady"}}
CAPTIONS = {
    "en": "A man in a red hat is reading his newspaper.",
    "de": "Zwei Frauen sitzen vor ihrem Haus.",
}
PENALTIES = (0.0, 0.6, 1.0, 1.5, 2.0)
RUNNING = {"en": RUNNING_PAIR[0], "de": RUNNING_PAIR[1]}
# "ihr" is hers after the first of each pair, and theirs after the second
ONE_OR_MORE = [
    ("Eine Frau sitzt", "Zwei Frauen sitzen"),
    ("Ein Mädchen sitzt", "Zwei Mädchen sitzen"),
    ("Eine Dame sitzt", "Zwei Damen sitzen"),
    ("Eine Frau steht", "Drei Frauen stehen"),
    ("Ein Mädchen steht", "Drei Kinder stehen"),
    ("Eine Frau wartet", "Zwei Männer warten"),
]
THEN = [
    "vor ihrem Haus.",
    "auf ihrem Boot.",
    "mit ihrem Hund auf der Straße.",
    "in ihrem Auto.",
    "neben ihren Fahrrädern.",
    "auf ihrem Bett.",
]


def score(translations: list, references: list) -> dict:
    "sacreBLEU with its parts, and an interval by drawing the sentences again, 1,000 times."
    bleu = sacrebleu.BLEU()
    found = bleu.corpus_score(translations, [references], n_bootstrap=1000)
    mean, half = (
        found._mean,
        found._ci,
    )  # what sacrebleu prints as the mean and what stands after the plus-minus sign
    return dict(
        bleu=found.score,
        interval=[mean - half, mean + half],
        shares=found.precisions,
        brevity_penalty=found.bp,
        words_written=found.sys_len,
        words_of_references=found.ref_len,
        signature=str(bleu.get_signature()),
    )


def encoder_weights(translator: Translator, source: str) -> tuple[list, torch.Tensor]:
    "The tokens of a sentence with its end, and layers x heads x tokens x tokens of the encoder's weights."
    ids, tokenizer = translator.tokenizer.encode(source), translator.tokenizer
    maps = trace_attention(
        translator.model,
        ids,
        [translator.model.config.eos_id],
        lambda id: tokenizer.words([id])[0],
    )
    return maps.keys["encoder self"], maps.weights["encoder self"].double()


def at_distance(weights: torch.Tensor, back: int) -> torch.Tensor:
    "Layers x heads x rows: what each token gives to the one so many before it."
    return weights.diagonal(-back, -2, -1)


def blank_before(token: str) -> str:
    "A token with its blank in front, also where it is behind."
    return "▁" + token[:-1] if token.endswith("▁") else token


def meant(tokens: list) -> tuple[int, int] | None:
    "Where the first such pronoun stands, and the only person before it that it can mean."
    tokens = [*map(blank_before, tokens)]
    for i, token in enumerate(tokens):
        if token not in PERSONS:
            continue
        found = [j for j in range(i) if tokens[j] in PERSONS[token]]
        return (i, found[0]) if len(found) == 1 else None
    return None


def places(translator: Translator, sources: list) -> dict:
    "Place -> layers x heads: the mean weight over all tokens of all sentences, the end left out as a row."
    sums, n_tokens = {}, 0
    for source in sources:
        _, weights = encoder_weights(translator, source)
        weights = weights[:, :, :-1]
        n_tokens += weights.shape[2]
        here = dict(
            before=at_distance(weights, 1),
            itself=at_distance(weights, 0),
            after=at_distance(weights, -1),
            end=weights[..., -1],
        )
        for name, values in here.items():
            sums[name] = sums.get(name, 0) + values.sum(-1)
    return {name: rounded_lists(total / n_tokens) for name, total in sums.items()}


def pronouns(translator: Translator, sources: list) -> dict:
    "The weight of pronouns on whom they mean, and of the other tokens at the same distance, layers x heads."
    on_person, elsewhere = [], []
    for source in sources:
        tokens, weights = encoder_weights(translator, source)
        if not (pair := meant(tokens)):
            continue
        i, j = pair
        same = at_distance(weights, i - j)  # row k of it is token k + (i - j)
        on_person.append(same[..., j])
        elsewhere.append((same.sum(-1) - same[..., j]) / max(1, same.shape[-1] - 1))

    def mean(tensors):
        return rounded_lists(torch.stack(tensors).mean(0))

    return dict(n=len(on_person), on_person=mean(on_person), same_distance=mean(elsewhere))


def decided(translator: Translator, sources: list) -> dict:
    "Part -> layers x heads: the mean largest weight of a row, and the mean share of a sentence's rows that have it on the same token."
    found = {}
    for source in sources:
        for part, weights in translator.trace(source, beam_size=1).weights.items():
            largest, where = weights.max(-1)
            same = (
                torch.nn.functional.one_hot(where, weights.shape[-1])
                .double()
                .mean(-2)
                .amax(-1)
            )
            found.setdefault(part, []).append(
                torch.stack([largest.double().mean(-1), same])
            )
    return {
        part: dict(zip(("largest", "same"), rounded_lists(torch.stack(each).mean(0))))
        for part, each in found.items()
    }


def penalties(translator: Translator, parts: dict, language: str) -> list:
    "For each length penalty: tokenised BLEU in lower case of the validation and of the test sentences, and the words written for each of the references'."
    rows = []
    for penalty in PENALTIES:
        row = dict(length_penalty=penalty)
        for part, pairs in parts.items():
            sources, references = map(list, zip(*pairs))
            written = translator.translate(sources, length_penalty=penalty)
            row[part] = dict(
                bleu_tokenized=score_translations(written, references, language)[
                    "bleu_tokenized"
                ],
                length=sum(len(text.split()) for text in written)
                / sum(len(text.split()) for text in references),
            )
        print(row, flush=True)
        rows.append(row)
    return rows


@torch.no_grad()
def her_or_their(translator: Translator) -> dict:
    "For sentences in pairs: the log-odds of their against her, when beginning, source and pronoun are those of one (0) or of more (1)."
    model, tokenizer, odds, right = translator.model, translator.tokenizer, {}, [0, 0]
    her, their = (tokenizer.encode(f"of {word} house")[1] for word in ("her", "their"))

    def before_pronoun(
        text,
    ):  # the tokens after which it is due, whichever side of a word has the blank
        ids = tokenizer.encode(f"{text} her house")
        return ids[: len(ids) - 1 - ids[::-1].index(her)]

    for pair, rest in product(ONE_OR_MORE, THEN):
        sources = [f"{start} {rest}" for start in pair]
        written = translator.translate(sources)
        right = [
            n + (f" {word} " in text)
            for n, word, text in zip(right, ("her", "their"), written)
        ]
        # what it has written itself, up to the pronoun
        begun = [re.split(r" (?:her|their|his|its)\b", text)[0] for text in written]
        read = [
            model.encode(torch.tensor([[*tokenizer.encode(source), model.config.eos_id]]))
            for source in sources
        ]
        at = [
            next(
                i
                for i, token in enumerate(tokenizer.words(tokenizer.encode(source)))
                if blank_before(token).startswith("▁ihr")
            )
            for source in sources
        ]
        for beginning, source, pronoun in product((0, 1), repeat=3):
            memory, mask = read[source][0].clone(), read[source][1]
            memory[0, at[source]] = read[pronoun][0][0, at[pronoun]]
            ids = torch.tensor([[model.config.bos_id, *before_pronoun(begun[beginning])]])
            logits = model.output.logits(model.decode(ids, memory, mask)[0, -1])
            odds.setdefault((beginning, source, pronoun), []).append(
                (logits[their] - logits[her]).item()
            )
    rows = [
        dict(
            beginning=b,
            source=s,
            pronoun=p,
            log_odds=sum(found) / len(found),
            their=sum(x > 0 for x in found),
        )
        for (b, s, p), found in odds.items()
    ]
    return dict(pairs=len(ONE_OR_MORE) * len(THEN), right=right, rows=rows)


def rounded_lists(tensor: torch.Tensor) -> list:
    "Nested lists of numbers with three digits after the point."
    return json.loads(
        json.dumps(tensor.tolist()), parse_float=lambda digits: round(float(digits), 3)
    )


def looked_at(translator: Translator, sentence: str, parts: list) -> dict:
    "A sentence, its translation, and where parts of the model look meanwhile."
    maps = translator.trace(sentence)
    weights = {part: rounded_lists(maps.weights[part].double()) for part in parts}
    queries, keys = (
        {part: labels[part] for part in parts} for labels in (maps.queries, maps.keys)
    )
    return dict(
        sentence=sentence,
        translation=translator.translate([sentence])[0],
        weights=weights,
        queries=queries,
        keys=keys,
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        help="the folder of a finished run of translation.py",
    )
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--data-dir", help="a local copy of the corpus")
    parser.add_argument(
        "--lowercase", action="store_true", help="the model reads and writes in lower case"
    )
    parser.add_argument("--name", help="of the model, where there are several")
    options = parser.parse_args()
    kind = "_lower" * options.lowercase + (f"_{options.name}" if options.name else "")
    results = Results(
        f"translation_analysis_multi30k_{options.source}-{options.target}{kind}_{options.device}",
        options,
    )
    translator = Translator.load(options.model, options.device)
    told = json.loads((options.model / "metrics.json").read_text())["config"]
    text = open_parallel_text(
        "multi30k", options.data_dir, source=options.source, target=options.target
    )
    if options.lowercase:
        text = text.lowercased()
    sources, references = map(list, zip(*text.test))
    batches = batch_by_tokens(
        translator.tokenizer.encode_pairs(text.train), told["max_tokens"]
    )
    found = dict(
        padding=padding_fraction(map(Batch.from_pairs, batches)),
        score=score(translator.translate(sources), references),
        places=places(translator, sources),
        decided=decided(translator, sources[:200]),
        penalties=penalties(
            translator, dict(validation=text.validation, test=text.test), options.target
        ),
    )
    found |= (
        dict(pronouns=pronouns(translator, sources))
        if options.source == "en"
        else dict(her_or_their=her_or_their(translator))
    )
    print(found["score"], found["padding"], found.get("her_or_their", ""), sep="\n")
    tables = found["places"] | {
        f"his, her: {name}": table
        for name, table in found.get("pronouns", {}).items()
        if name != "n"
    }
    for name, table in tables.items():
        print(name, *("  ".join(f"{x:.3f}" for x in layer) for layer in table), sep="\n  ")
    looks = [
        looked_at(
            translator,
            CAPTIONS[options.source],
            ["encoder self", "decoder self", "decoder cross"],
        ),
        looked_at(translator, RUNNING[options.source], ["decoder cross"]),
    ]
    print("written to", results.save(**found, looks=looks))
