"""A translator from text to text: cut off and resumed, through the doors of the package, and with a vocabulary that is not its own."""

import pytest

for package in ("tokenizers", "sacrebleu", "sacremoses"):
    pytest.importorskip(
        package, reason="translation needs its extra: pip install '.[translation]'"
    )

import json
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import torch
from project import ROOT, call

from annotated_transformer import Transformer, TransformerConfig, cli, translate
from annotated_transformer.training.checkpoint import Checkpoints, KeepEvaluated
from annotated_transformer.base.model_files import load_model, save_model
from annotated_transformer.training.history import History
from annotated_transformer import translator as inference
from annotated_transformer.text.corpora import open_parallel_text
from annotated_transformer.tasks import translation, translation_setup
from annotated_transformer.tasks.runs import run_and_save
from annotated_transformer.tasks.translation import (
    TRANSLATION,
    candidate_models,
    run_translation,
    search_steps,
)
from annotated_transformer.tasks.translation_setup import TranslationConfig, encode_parts
from annotated_transformer.decoding.metrics import score_translations
from annotated_transformer.translator import Translator

pytestmark = pytest.mark.slow

SMALL = dict(epochs=3, vocab_size=300, max_tokens=512, n_average=2, warmup_steps=20)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "pairs.tsv"
    words = "one two three four five six seven eight nine ten eleven twelve".split()
    worte = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
    path.write_text(
        "".join(
            f"{a} and {b}\t{y} und {x}\n"
            for a, x in zip(words, worte)
            for b, y in zip(words, worte)
        )
    )
    return str(path)


@pytest.fixture(scope="module")
def uncut(corpus):
    return run_translation(TranslationConfig(corpus=corpus, **SMALL), device="cpu")


def same(one, two) -> bool:
    return all(
        torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters())
    )


@pytest.mark.parametrize("bpe_dropout", [0.0, 0.2])
def test_a_run_that_was_cut_off_ends_as_if_it_had_not(
    bpe_dropout, corpus, uncut, tmp_path, monkeypatch
):
    class Killed(Exception):
        pass

    calls, usual = [], Translator.translate

    def killed(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise Killed
        return usual(self, *arguments, **options)

    config = TranslationConfig(corpus=corpus, bpe_dropout=bpe_dropout, **SMALL)
    whole = run_translation(config, device="cpu") if bpe_dropout else uncut
    checkpoints = Checkpoints(tmp_path / "run", every_steps=2)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Translator, "translate", killed)
        run_translation(config, device="cpu", callbacks=[checkpoints])
    resumed = run_translation(config, device="cpu", callbacks=[checkpoints])
    assert same(resumed, whole) and resumed.predictions == whole.predictions
    assert resumed.history.column("eval_loss") == whole.history.column("eval_loss")
    assert same(resumed, uncut) == (
        not bpe_dropout
    )  # words that are cut otherwise teach other weights
    kept = KeepEvaluated(checkpoints.folder / "evaluated").folders()
    assert len(kept) <= SMALL["n_average"] + 1 and max(kept) == resumed.history.steps


def test_the_selected_model_is_handed_out(corpus, uncut, monkeypatch):
    config, text = TranslationConfig(corpus=corpus, **SMALL), open_parallel_text(corpus)
    other = type(uncut.model)(uncut.model.config).eval()
    models = {"best epoch": other, "mean of 2 epochs": uncut.model}
    options = dict(beam_size=config.beam_size, length_penalty=config.length_penalty)
    for name, model in models.items():
        monkeypatch.setattr(translation, "select_model", lambda *given, name=name: name)
        done = translation.evaluate_search(
            config,
            text=text,
            tokenizer=uncut.tokenizer,
            history=uncut.history,
            models=models,
        )
        assert done.model is model and done.metrics["selected"] == name
        assert done.predictions == Translator(model, uncut.tokenizer).translate(
            [source for source, _ in text.test], **options
        )


@pytest.mark.parametrize("best", [0, 1, 2])
def test_candidates_are_the_epoch_of_the_lowest_loss_and_the_mean_of_the_last(
    best, corpus, uncut, tmp_path
):
    config, steps = (
        TranslationConfig(corpus=corpus, **SMALL),
        [1, 2, 3],
    )  # of three epochs two are averaged
    kept = KeepEvaluated(tmp_path)
    folders = {step: tmp_path / f"step-{step:08}" for step in steps}
    for folder in folders.values():
        save_model(type(uncut.model)(uncut.model.config), folder)
    losses = [1.0, 1.1, 1.2]
    losses[best] = 0.5
    rows = [dict(step=step, eval_loss=loss) for step, loss in zip(steps, losses)]
    found = candidate_models(config, History(rows), kept, torch.device("cpu"))
    weights = [
        load_model(folder, type(uncut.model)).state_dict() for folder in folders.values()
    ]
    assert [*found] == ["best epoch", "mean of 2 epochs"]
    for name, tensor in found["best epoch"].state_dict().items():
        assert torch.equal(tensor, weights[best][name])
    for name, tensor in found["mean of 2 epochs"].state_dict().items():
        if tensor.is_floating_point():
            assert torch.allclose(
                tensor, (weights[1][name] + weights[2][name]) / 2, atol=1e-7
            )


def test_each_step_of_the_search_changes_one_thing():
    config = TranslationConfig(beam_size=3, length_penalty=0.9)
    beam, whole = (
        dict(beam_size=3, length_penalty=0.0),
        dict(beam_size=3, length_penalty=0.9),
    )
    models = {"best epoch": "best", "mean of 5 epochs": "mean"}
    for selected, model in models.items():
        assert search_steps(config, models, selected) == {
            "best epoch, greedy": ("best", dict(beam_size=1)),
            "+ beam of 3": ("best", beam),
            "+ mean of 5 epochs": ("mean", beam),
            "+ length penalty": ("mean", whole),
            "selected by validation": (model, whole),
        }


def test_the_search_is_told_its_options(uncut, monkeypatch):
    asked, usual = [], inference.beam_search

    def asking(*given, **options):
        asked.append(options)
        return usual(*given, **options)

    monkeypatch.setattr(inference, "beam_search", asking)
    translator = Translator(uncut.model, uncut.tokenizer)
    options = dict(beam_size=3, length_penalty=0.9, early_stopping=True)
    assert len(translator.translate(["one and two", ""], n_best=2, **options)[0]) == 2
    translator.translate(["one and two"])
    assert asked == [
        dict(options, n_best=2),
        dict(beam_size=5, length_penalty=0.6, n_best=None, early_stopping=False),
    ]


def test_a_run_trains_as_it_is_told(corpus, monkeypatch):
    told = dict(
        lr=0.01, warmup_steps=7, schedule="inverse_sqrt", label_smoothing=0.2, seed=9
    )
    options = SMALL | told | dict(epochs=4, patience=3, ema_decay=0.5, n_average=6)
    config = TranslationConfig(corpus=corpus, **options)
    training = config.training(10)
    assert training.steps == 40
    assert {name: getattr(training, name) for name in told} == told

    class Asked(Exception):
        pass

    def asking(model, batches, given, *, loss_fn, callbacks):
        raise Asked(given, loss_fn, callbacks)

    monkeypatch.setattr(translation, "train_together", asking)
    with pytest.raises(Asked) as asked:
        run_translation(config, device="cpu")
    given, loss_fn, callbacks = asked.value.args
    average, evaluation, kept = callbacks
    assert given == config.training(given.steps // 4)
    assert loss_fn.keywords == dict(label_smoothing=0.2)
    assert average.decay == 0.5 and kept.keep == 6
    assert (evaluation.every, evaluation.patience) == (given.steps // 4, 3)
    assert evaluation.average is average and kept.average is average


@pytest.mark.parametrize(
    "words, changes",
    [
        ([], {}),
        (["--corpus", "multi30k"], None),  # with its own preset
        (["--corpus", "multi30k", "--preset", "numbers"], dict(corpus="multi30k")),
        (
            "--corpus multi30k --preset numbers --target fr --test 2018".split(),
            dict(corpus="multi30k", target="fr", test="2018"),
        ),
        (
            [
                "--corpus",
                "a.en,a.de",
                "--lowercase",
                "--patience",
                "2",
                "--epochs",
                "9",
                "--max-length",
                "80",
            ],
            dict(corpus="a.en,a.de", lowercase=True, patience=2, epochs=9, max_length=80),
        ),
        (
            ["--corpus", "a.zh,a.en", "--vocab-size", "8000", "--nfkc"],
            dict(corpus="a.zh,a.en", vocab_size=8000, nfkc=True),
        ),
    ],
    ids=str,
)
def test_the_command_trains_what_it_is_told(words, changes, tmp_path, monkeypatch):
    asked = []

    def asking(experiment, config, *given, **options):
        asked.append(config)
        raise ValueError("that was all")

    monkeypatch.setattr(cli, "run_and_save", asking)
    call("train-translation", *words, "--out", tmp_path / "run")
    assert asked == [
        TranslationConfig.preset("multi30k")
        if changes is None
        else TranslationConfig(**changes)
    ]


def test_the_lines_of_chapter_42_train_and_translate(corpus, tmp_path, monkeypatch, capsys):
    cells = json.loads(
        (ROOT / "nbs" / "5_translation/3_training_a_translator.ipynb").read_text(
            encoding="utf-8"
        )
    )["cells"]
    (text,) = ("".join(cell["source"]) for cell in cells if cell["id"] == "use-it")
    (lines,) = re.findall(r"```python\n(.*?)```", text, re.S)
    assert "preset('multi30k'," in lines and len(lines.splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text(Path(corpus).read_text(encoding="utf-8"), encoding="utf-8")
    exec(
        lines.replace(
            "preset('multi30k',", f"preset('numbers', **{SMALL | dict(epochs=1)},"
        ),
        {},
    )
    assert (
        capsys.readouterr().out.splitlines()[-1].startswith("[")
        and Path("runs/mine/tokenizer.json").is_file()
    )


def test_a_saved_translator_translates_alike(corpus, uncut, tmp_path):
    config = TranslationConfig(corpus=corpus, **SMALL)
    saved = run_and_save(
        TRANSLATION, config, tmp_path / "run", device="cpu", progress=False
    )
    assert same(saved, uncut)
    assert saved.metrics["task"] == f"{corpus} en-de"
    sources = [source for source, _ in saved.examples]
    assert (
        translate(tmp_path / "run", sources, beam_size=config.beam_size)
        == uncut.predictions
    )
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "attention.png",
        "config.json",
        "history.csv",
        "loss.png",
        "manifest.json",
        "metrics.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_a_run_goes_on_with_its_own_corpus_alone(corpus, tmp_path, monkeypatch):
    class Stop(KeyboardInterrupt):
        pass

    def stop(self, *arguments, **options):
        raise Stop

    words = tmp_path / "pairs.tsv"
    words.write_text(open(corpus, encoding="utf-8").read(), encoding="utf-8")
    config = TranslationConfig(corpus=str(words), **SMALL)
    options = dict(every_minutes=1e-9, device="cpu", progress=False)
    with monkeypatch.context() as patched, pytest.raises(Stop):
        patched.setattr(Translator, "translate", stop)  # at the first evaluation
        run_and_save(TRANSLATION, config, tmp_path / "run", **options)
    whole = words.read_text(encoding="utf-8")
    words.write_text(whole.replace("eins und", "eins  ,"), encoding="utf-8")
    with pytest.raises(ValueError, match="corpus: got 'other pairs'"):
        run_and_save(TRANSLATION, config, tmp_path / "run", resume=True, **options)
    words.write_text(whole, encoding="utf-8")
    run_and_save(TRANSLATION, config, tmp_path / "run", resume=True, **options)
    assert not (tmp_path / "run.checkpoints").exists()


@pytest.fixture
def divided(corpus, tmp_path):
    "Options of a run that names the three parts of the corpus, each in a file of its own."
    text = open_parallel_text(corpus)
    for part in ("train", "validation", "test"):
        lines = ("\t".join(pair) + "\n" for pair in getattr(text, part))
        (tmp_path / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
    return dict(
        corpus="train.tsv",
        validation="validation.tsv",
        test="test.tsv",
        data_dir=str(tmp_path),
        **SMALL,
    )


def test_parts_in_files_of_their_own_train_the_same_model(divided, uncut):
    done = run_translation(TranslationConfig(**divided), device="cpu")
    assert (
        same(done, uncut)
        and done.predictions == uncut.predictions
        and done.examples == uncut.examples
    )
    assert done.metrics["corpus"]["dropped"]["also held out"] == 0


@pytest.mark.parametrize(
    "changes",
    [
        dict(lowercase=True),
        dict(bpe_dropout=0.2),
        dict(lowercase=True, whitespace_as_suffix=True, bpe_dropout=0.2),
    ],
    ids=str,
)
def test_a_streamed_corpus_gives_the_ids_of_one_in_memory(changes, corpus, divided):
    _, tokenizer, streamed, _ = encode_parts(TranslationConfig(**divided | changes))
    _, other, listed, _ = encode_parts(TranslationConfig(corpus=corpus, **SMALL | changes))
    assert tokenizer == other and [*streamed] == [*listed]


@pytest.mark.parametrize("option", ["--validation", "--test"])
@pytest.mark.parametrize("wrong", ["b.de,b.en", "b.en,b.fr"])
def test_the_command_refuses_held_out_files_in_other_languages(option, wrong, tmp_path):
    for name in ("a.en", "a.de", "b.en", "b.de", "b.fr"):
        (tmp_path / name).write_text("one\ntwo\n")
    files = {"--corpus": "a.en,a.de", "--validation": "b.en,b.de", "--test": "b.en,b.de"}
    files |= {option: wrong, "--data-dir": tmp_path, "--out": tmp_path / "run"}
    words = [str(word) for pair in files.items() for word in pair]
    result = call("train-translation", *words)
    assert result.status == 2 and not (tmp_path / "run").exists()
    said = " ".join(result.stderr.split())
    expected = "expected the file in en first, then the one in de"
    assert f"{option}: got '{wrong.replace(',', ', ')}', {expected}" in said


def test_columns_are_chosen_by_number(corpus, divided, tmp_path):
    for part in ("train", "validation", "test"):
        path = tmp_path / f"{part}.tsv"
        lines = path.read_text(encoding="utf-8").splitlines()
        scored = (f"0.{i}\t{line}\n" for i, line in enumerate(lines))
        path.write_text("".join(scored), encoding="utf-8")
    expected = open_parallel_text(corpus)
    chosen = translation_setup.open_text(TranslationConfig(**divided, columns="2,3"))
    assert [*chosen.train] == expected.train and chosen.test == expected.test

    whole = dict(corpus="train.tsv", data_dir=str(tmp_path), columns="3,2")
    swapped = translation_setup.open_text(
        TranslationConfig(**whole, source="de", target="en")
    )
    pairs = swapped.train + swapped.validation + swapped.test
    assert {pair[::-1] for pair in pairs} == {*expected.train}


def test_a_full_disk_is_named():
    nothing = KeepEvaluated("runs/none.checkpoints")
    with pytest.raises(OSError, match="runs/none.checkpoints; is the disk full"):
        candidate_models(TranslationConfig(), None, nothing, torch.device("cpu"))


def test_a_training_pair_that_is_held_out_is_not_learnt(divided, corpus, tmp_path):
    text = open_parallel_text(corpus)
    (source, target), *_ = text.test
    with open(tmp_path / "train.tsv", "a", encoding="utf-8") as file:
        file.write(f"{source.upper()}\tganz anders\nsomething else\t{target}\n")
    found, *_ = encode_parts(TranslationConfig(**divided))
    assert [*found.train] == text.train and found.test == text.test
    assert found.report["dropped"]["also held out"] == 2


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_what_is_too_long_is_said_before_anything_is_trained(
    part, corpus, tmp_path, monkeypatch
):
    text, long = (
        open_parallel_text(corpus),
        "".join(map(chr, range(0x4E00, 0x4E00 + 1000))),
    )  # two tokens each, or three
    (_, target), *others = getattr(text, part)
    longer = replace(text, **{part: [(long, target), *others]})
    config = TranslationConfig(corpus=corpus, **SMALL | dict(max_tokens=4096))
    with (
        monkeypatch.context() as patched,
        pytest.raises(
            ValueError, match="corpus: got .a pair of [123],[0-9]+ tokens.*max_length"
        ),
    ):
        patched.setattr(
            translation_setup, "open_parallel_text", lambda *names, **options: longer
        )
        encode_parts(config)
    path = tmp_path / "pairs.tsv"
    path.write_text(
        open(corpus, encoding="utf-8").read() + f"{long}\tlang\n", encoding="utf-8"
    )
    left_out, *_ = encode_parts(config.replace(corpus=str(path), max_length=400))
    assert left_out.report["dropped"]["too long"] == 1


def test_what_looks_the_same_is_translated_the_same(uncut):
    translator = Translator(uncut.model, uncut.tokenizer)
    texts = ["fünf and one", "fu\u0308nf and one", " fünf\tand\u00a0one "]
    first, *others = translator.translate(text for text in texts)
    assert first and others == [first] * 2
    assert translator.translate(iter(())) == []


def test_a_model_gets_no_other_vocabulary(uncut, tmp_path):
    from annotated_transformer.text.bpe import BPETokenizer

    save_model(uncut.model, tmp_path / "model", BPETokenizer.learn(["something else"], 262))
    with pytest.raises(ValueError, match="tokenizer: got '2[0-9]+ tokens', expected"):
        Translator.load(tmp_path / "model")


def untrained(n_extra=0, **sizes):
    from annotated_transformer import Transformer, TransformerConfig
    from annotated_transformer.text.bpe import BPETokenizer

    tokenizer = BPETokenizer.learn(["the cat", "a cow"], 262)
    config = TransformerConfig.preset("tiny", vocab_size=len(tokenizer) + n_extra, **sizes)
    return Translator(Transformer(config).eval(), tokenizer)


def test_learned_positions_have_no_room_for_the_end_behind_the_longest_source():
    translator = untrained(positions="learned", max_len=8)
    assert (translator.longest_source, untrained(max_len=8).longest_source) == (7, 8)
    assert len(translator.search([[5] * 7, [6]])) == 2
    with pytest.raises(ValueError, match="sentence 1: got '8 tokens', expected at most 7"):
        translator.search([[6], [5] * 8])


def test_ids_without_a_token_become_nothing():
    "A vocabulary may be rounded up."
    translator = untrained(n_extra=3, output_bias=True, max_len=100)
    with torch.no_grad():
        translator.model.output.bias[-1] = 100.0  # writes nothing but the last id
    assert translator.translate(["the cat", "a cow"]) == ["", ""]
    assert translator.translate(["the cat"], n_best=2)[0][0] == ""
    translator.trace("the cat")


def test_the_tokenizer_knows_nothing_of_what_is_held_out(corpus, monkeypatch):
    config = TranslationConfig(corpus=corpus, **SMALL)
    _, usual, *_ = encode_parts(config)
    strange = [("zyx zyx zyx zyx", "wvu wvu wvu wvu")] * 50
    text = replace(open_parallel_text(corpus), validation=strange, test=strange)
    monkeypatch.setattr(
        translation_setup, "open_parallel_text", lambda *arguments, **options: text
    )
    assert encode_parts(config)[1] == usual


def test_scores_are_those_of_sacrebleu():
    import sacrebleu

    references = [
        "Ein Hund läuft über die Wiese.",
        "Zwei Männer stehen an einer Straße und reden.",
    ]
    predictions = [
        "Ein Hund rennt über die Wiese.",
        "Zwei Männer stehen auf einer Straße und sprechen.",
    ]
    scores = score_translations(predictions, references)
    assert scores["bleu"] == sacrebleu.corpus_bleu(predictions, [references]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(predictions, [references]).score
    assert 0 < scores["bleu"] < 100 and "tok:13a" in scores["signature"]


def test_a_run_in_lower_case_is_scored_in_lower_case(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "".join(f"Room {i} IS Open\tZimmer {i} IST Offen\n" for i in range(100))
    )
    text, tokenizer, train_ids, _ = encode_parts(
        TranslationConfig(corpus=str(path), lowercase=True, **SMALL)
    )
    for source, target in text.train + text.validation + text.test:
        assert (source, target) == (source.lower(), target.lower())
        assert (
            tokenizer.decode(tokenizer.encode(target)) == target
        )  # so that an exact match is possible
    assert [tokenizer.decode(target) for _, target in train_ids] == [
        target for _, target in text.train
    ]
    cased, *_ = encode_parts(TranslationConfig(corpus=str(path), **SMALL))
    assert any("Zimmer" in target for _, target in cased.test)


def test_full_width_letters_are_the_usual_ones_if_asked(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "".join(f"Room {i}\t第{chr(0xFF10 + i % 10)}号房间Ａ{i}\n" for i in range(100)),
        encoding="utf-8",
    )
    options = dict(corpus=str(path), target="zh", **SMALL)
    text, tokenizer, train_ids, _ = encode_parts(TranslationConfig(nfkc=True, **options))
    assert not any("０" <= c <= "９" or c == "Ａ" for _, t in text.test for c in t)
    assert tokenizer.encode("Ａ１") == tokenizer.encode("A1")
    assert [*map(tokenizer.decode, train_ids[0])] == [*text.train[0]]

    text, tokenizer, _, _ = encode_parts(TranslationConfig(**options))
    assert all("Ａ" in target for _, target in text.test)
    assert tokenizer.encode("Ａ１") != tokenizer.encode("A1")


def test_the_command_says_how_small_a_vocabulary_may_be(tmp_path, corpus):
    words = ["train-translation", "--corpus", str(corpus), "--vocab-size", "100"]
    result = call(*words, "--out", tmp_path / "run")
    assert result.status == 2
    assert "--vocab-size: got 100, expected at least 260" in " ".join(result.stderr.split())


def test_multi30k_has_a_test_by_name_and_no_files(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="test of multi30k: got '2020'"):
        TranslationConfig(corpus="multi30k", test="2020")
    with pytest.raises(ValueError, match="validation: got 'a.tsv', expected none"):
        TranslationConfig(corpus="multi30k", validation="a.tsv", test="2017")

    asked = {}
    monkeypatch.setattr(
        translation_setup,
        "open_parallel_text",
        lambda *given, **options: asked.update(options),
    )
    options = dict(corpus="multi30k", target="fr", test="mscoco", data_dir=str(tmp_path))
    translation_setup.open_text(TranslationConfig(**options))
    assert [asked[name] for name in ("data_dir", "target", "test")] == [
        str(tmp_path),
        "fr",
        "mscoco",
    ]


@pytest.fixture(scope="module")
def saved(uncut, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    save_model(uncut.model, folder, uncut.tokenizer)
    return folder


def test_a_program_that_waits_for_each_answer_gets_it(saved):
    command = [sys.executable, "-m", "annotated_transformer", "translate"]
    options = ["--model", saved, "--line-buffered", "--device", "cpu", "--beam", "1"]
    with subprocess.Popen(
        [*command, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        stop = threading.Timer(120, process.kill)
        stop.start()
        answers = []
        for line in ("one and two", "", "six and four"):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())  # before the end of the input
        process.stdin.close()
        assert process.stdout.read() == "" and process.wait() == 0
        stop.cancel()
    expected = translate(saved, ["one and two", "", "six and four"], beam_size=1)
    assert [answer.removesuffix("\n") for answer in answers] == expected


def test_numbers_in_chinese_are_cut_into_characters():
    config = TranslationConfig(target="zh-CN", vocab_size=400)
    text, tokenizer, train_ids, _ = encode_parts(config)
    assert text.target == "zh-CN" and all(t.isalpha() for _, t in text.test)
    target = max((target for _, target in text.test), key=len)
    assert tokenizer.words(tokenizer.encode(target)) == [*target]
    assert tokenizer.decode(train_ids[0][1]) == text.train[0][1]


def test_without_the_best_epoch_the_mean_of_the_last_is_there(tmp_path):
    "Its write may have failed, and the history still names it."

    save_model(Transformer(TransformerConfig.preset("tiny", vocab_size=9)), tmp_path / "b")

    class Kept:
        folder = tmp_path

        def folders(self):
            return {2: tmp_path / "b"}

        def best_step(self, history):
            return 1

    models = candidate_models(TranslationConfig(), None, Kept(), torch.device("cpu"))
    assert list(models) == ["last epoch"]
