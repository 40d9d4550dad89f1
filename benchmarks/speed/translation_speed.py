"""How fast translation is: training beside `torch.nn.Transformer`, and the test part translated beside Hugging Face's `generate`.

    python benchmarks/speed/translation_speed.py [--corpus numbers] [--steps 120] [--rounds 3] [--device cuda]
    python benchmarks/speed/translation_speed.py --corpus multi30k --source de --target en --lowercase --data-dir FOLDER --model runs/benchmarks/translation_multi30k_de-en_lower_suffix_pre-norm_cpu_0

Both train on the same batches of chapter 5.3, with the same ends, loss, optimizer and dropout, and take turns at every step; the
ratio is torch's seconds over ours, summed. Then ours, trained for some hundred steps or, with --model, as long as it was, translates the test
part, and so does the same model as a Marian, or with norms before the sub-layers as a Pegasus: the same tokenizer and batches by length, greedily and by a beam of five; an answer may have 50 tokens more than its source
(ours) or than the longest source of its batch (theirs). How many answers of
the two are equal is part of the result. Both sides end a search with as many answers as there are hypotheses (`early_stopping=True`), and have no length penalty. Sentences a second, medians over the rounds; ratios above 1 mean that ours is faster.
"""

import statistics
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from speed.peers import TorchTransformer
from speed.training import Side
from support.machine import Results, arguments, rounded, seconds

from annotated_transformer.base.model_files import load_model
from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.training.data import batch_pairs
from annotated_transformer.tasks.translation import epochs
from annotated_transformer.tasks.translation_setup import (
    TranslationConfig,
    encode_parts,
    open_text,
)
from annotated_transformer.translator import Translator
from annotated_transformer.interop.huggingface import to_huggingface
from annotated_transformer.training.loop import train
from annotated_transformer.core.transformer import Transformer

WARM_UP = 5  # steps that are not counted
AT_ONCE = 100  # sentences in a batch


def compare_training(config, batches: list, device: str) -> dict:
    "Seconds of all steps, in turns."
    torch.manual_seed(0)
    sides = {
        "ours": Side(Transformer(config).to(device).train()),
        "torch": Side(TorchTransformer(config).to(device).train()),
    }
    for turn, batch in enumerate(batches):
        for name in sorted(sides, reverse=turn % 2 == 0):
            sides[name].step(batch.to(device), device)
    times = {name: side.times[WARM_UP:] for name, side in sides.items()}
    n_tokens = sum(batch.n_tokens for batch in batches[WARM_UP:])
    ratios = sorted(b / a for a, b in zip(times["ours"], times["torch"]))
    return dict(
        steps=len(batches) - WARM_UP,
        tokens=n_tokens,
        dropout=config.dropout,
        tokens_per_second={
            name: round(n_tokens / sum(each)) for name, each in times.items()
        },
        ratio=rounded(sum(times["torch"]) / sum(times["ours"])),
        ratio_quartiles=[rounded(q) for q in statistics.quantiles(ratios, n=4)],
    )


@torch.no_grad()
def by_hugging_face(
    theirs, tokenizer, special, sentences: list, beam_size: int, device: str
) -> list:
    "What Hugging Face's `generate` makes of the same model, in the batches of `generate_ids`."
    sources = tokenizer.encode_all(sentences)
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    answers = {}
    for batch in batch_pairs(((sources[i], []) for i in order), AT_ONCE):
        src = batch.src.to(device)
        rows = theirs.generate(
            src,
            attention_mask=(src != special.pad_id).long(),
            max_new_tokens=src.shape[1] + 50,
            num_beams=beam_size,
            do_sample=False,
            length_penalty=0.0,
            early_stopping=beam_size > 1,
            suppress_tokens=[special.pad_id, special.bos_id],
        )
        for row in rows.tolist():
            ids = row[1:]
            answers[order[len(answers)]] = tokenizer.decode(
                ids[: ids.index(special.eos_id)] if special.eos_id in ids else ids
            )
    return [answers[i] for i in range(len(sources))]


def compare_decoding(
    model, tokenizer, sentences: list, beam_size: int, device: str, rounds: int
) -> dict:
    "Sentences a second of both sides, in turns; what they wrote is compared."
    theirs, translator, written = (
        to_huggingface(model).to(device),
        Translator(model, tokenizer),
        {},
    )
    sides = {
        "ours": partial(
            translator.translate,
            sentences,
            beam_size=beam_size,
            length_penalty=0.0,
            early_stopping=True,
            batch_size=AT_ONCE,
        ),
        "hugging face": partial(
            by_hugging_face,
            theirs,
            tokenizer,
            SpecialTokens.of(model),
            sentences,
            beam_size,
            device,
        ),
    }

    def run(name):
        written[name] = sides[name]()

    times = {name: [] for name in sides}
    for turn in range(1 + rounds):  # the first one warms up
        for name in sorted(sides, reverse=turn % 2 == 0):
            times[name].append(seconds(partial(run, name), device))
    median = {name: statistics.median(each[1:]) for name, each in times.items()}
    equal = sum(a == b for a, b in zip(*written.values()))
    return dict(
        beam_size=beam_size,
        sentences=len(sentences),
        rounds=rounds,
        equal_answers=equal,
        sentences_per_second={
            name: rounded(len(sentences) / each) for name, each in median.items()
        },
        ratio=rounded(median["hugging face"] / median["ours"]),
    )


def trained_model(options, settings, train_ids: list, config):
    "A model with biases, as theirs has them: the one in --model with zeros for those it lacks, or a new one after some hundred steps."
    torch.manual_seed(0)
    model = Transformer(config.replace(attention_bias=True)).to(options.device)
    if options.model:
        trained = load_model(options.model, Transformer, options.device)
        missing, unexpected = model.load_state_dict(trained.state_dict(), strict=False)
        if unexpected or not all(name.endswith(".bias") for name in missing):
            raise SystemExit(f"{options.model} is no model of --corpus {options.corpus}")
        with torch.no_grad():
            for name in missing:
                model.get_parameter(name).zero_()
        return model.eval()
    n_batches = sum(
        1 for _ in zip(epochs(train_ids, settings.max_tokens), range(options.trained))
    )
    train(
        model,
        epochs(train_ids, settings.max_tokens),
        settings.training(n_batches),
        loss_fn=settings.loss_fn(),
    )
    return model


def main(options):
    results = Results(f"translation_speed_{options.corpus}_{options.device}", options)
    transformers.logging.set_verbosity_error()
    settings = TranslationConfig.preset(
        options.corpus,
        data_dir=options.data_dir,
        epochs=1,
        source=options.source,
        target=options.target,
        lowercase=options.lowercase,
    )
    _, tokenizer, train_ids, _ = encode_parts(settings)
    if options.model and Translator.load(options.model).tokenizer != tokenizer:
        raise SystemExit(
            f"{options.model} has other tokens; name --source, --target and --lowercase as it was trained"
        )
    config = settings.transformer(len(tokenizer))
    same = dict(
        attention_bias=True, attention_dropout=config.dropout, hidden_dropout=config.dropout
    )  # as torch has them
    batches = list(islice(epochs(train_ids, settings.max_tokens), WARM_UP + options.steps))
    training = compare_training(config.replace(**same), batches, options.device)
    print(training, flush=True)
    model = trained_model(options, settings, train_ids, config)
    test = [source for source, _ in open_text(settings).test]
    decoding = []
    for beam_size in (1, 5):
        decoding.append(
            compare_decoding(
                model, tokenizer, test, beam_size, options.device, options.rounds
            )
        )
        print(decoding[-1], flush=True)
        path = results.save(
            corpus=options.corpus,
            languages=[options.source, options.target],
            norm=config.norm,
            model=options.model and Path(options.model).name,
            parameters=sum(p.numel() for p in model.parameters()),
            training=training,
            decoding=decoding,
        )
    print("written to", path)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--corpus", default="numbers", choices=["numbers", "multi30k"])
    parser.add_argument("--data-dir", help="a local copy of the corpus")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--lowercase", action="store_true", help="all text in lower case")
    parser.add_argument(
        "--steps", type=int, default=120, help="measured training steps of each side"
    )
    parser.add_argument(
        "--model",
        metavar="FOLDER",
        help="a model that benchmarks/quality/translation.py trained on this corpus, to translate with",
    )
    parser.add_argument(
        "--trained",
        type=int,
        default=400,
        help="steps that the model is trained for before it translates",
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="measured translations of the test part"
    )
    main(parser.parse_args())
