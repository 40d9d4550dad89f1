"Each command does what its page says; what is wrong with its input is said in one line, with status 2."

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from project import ROOT, call

from annotated_transformer import GPT, GPTConfig, Transformer, TransformerConfig
from annotated_transformer import load_model, save_model
from annotated_transformer.cli import parse_ids
from annotated_transformer.text.tokenizer import CharTokenizer

WRITTEN = ["attention.png", "config.json", "history.csv", "loss.png", "manifest.json"]
WRITTEN += ["metrics.json", "model.safetensors"]
CPU = ("--device", "cpu")


def copy_task(out, *more):
    return call("copy-task", "--heldout", 20, *CPU, "--out", out, *more)


def test_the_program_lists_its_commands_and_its_version():
    from annotated_transformer import __version__

    assert call("--version").stdout == f"annotated-transformer {__version__}\n"
    listed = call()
    assert listed.status == 2 and "copy-task" in listed.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["copy-task", "--task", "reverse", "--heldout", 20],
        ["gpt", "--heldout", 2, "--text", ROOT / "nbs" / "glossary.md"],
        ["bert", "--heldout", 50],
        ["vit"],
        ["captioning", "--heldout", 2],
    ],
    ids=lambda command: command[0],
)
def test_a_short_run_writes_its_files(command, tmp_path):
    if command[0] in ("vit", "captioning"):
        pytest.importorskip("sklearn")
    done = call(*command, "--steps", 2, "--seed", 5, *CPU, "--out", tmp_path / "run")
    assert done.status == 0, done.stderr

    written = sorted(path.name for path in (tmp_path / "run").iterdir())
    vocabulary = ["vocab.json"] if command[0] in ("gpt", "bert") else []
    assert written == WRITTEN + vocabulary
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["steps"], metrics["seed"]) == (2, 5)
    assert metrics["summary"] in done.stdout


WRONG = [
    ("copy-task", "--task", "revers", "did you mean 'reverse'?"),
    ("copy-task", "--preset", "one-layr", "did you mean 'one-layer'?"),
    ("copy-task", "--steps", "0", "--steps: got 0"),
    ("copy-task", "--steps", "many", "--steps: invalid int"),
    ("copy-task", "--device", "gpu", "--device: got"),
    ("copy-task", "--heldout", "-1", "--heldout: got -1"),
    ("copy-task", "--seed", 10**30, "--seed: got 1000"),
    ("copy-task", "--out", "/dev/null", "--out: got"),
    ("copy-task", "--out", "", "--out: got"),
    ("copy-task", "--out", ".", "--out: got"),
    ("copy-task", "--out", "/proc/run", "a folder that can be made"),
    ("copy-task", "--nothing", "1", "unrecognized arguments: --nothing"),
    ("copy-task", "--step", "1", "unrecognized arguments: --step"),
    ("gpt", "--text", "nowhere", "--text: got"),
    ("bert", "--preset", "bse", "did you mean 'base'?"),
    ("vit", "--data", "nowhere", "nowhere"),
    ("vit", "--heldout", "1.5", "--heldout: got 1.5"),
    ("captioning", "--heldout", "0", "--heldout: got 0"),
    ("train-translation", "--corpus", "nowhere", "nowhere"),
    ("train-translation", "--epochs", "0", "--epochs: got 0"),
    ("train-translation", "--preset", "number", "mean 'numbers'?"),
]


@pytest.mark.parametrize("command, option, value, why", WRONG)
def test_a_wrong_option_is_refused_before_anything_is_written(
    command, option, value, why, tmp_path
):
    done = call(command, "--out", tmp_path / "never", option, value)

    assert done.status == 2 and why in done.stderr, done.stderr
    assert "error: " in done.stderr.splitlines()[-1]
    assert not (tmp_path / "never").exists()


@pytest.mark.slow
def test_a_run_with_other_settings_is_not_replaced(tmp_path):
    assert [copy_task(tmp_path / "run", "--steps", 2).status for _ in range(2)] == [0, 0]
    refused = copy_task(tmp_path / "run", "--steps", 3)
    assert refused.status == 2
    for part in ("another folder, or --overwrite", "steps 2, now 3"):
        assert part in refused.stderr, refused.stderr

    metrics = tmp_path / "run" / "metrics.json"
    assert json.loads(metrics.read_text())["steps"] == 2
    assert copy_task(tmp_path / "run", "--steps", 3, "--overwrite").status == 0
    assert json.loads(metrics.read_text())["steps"] == 3


@pytest.mark.slow
def test_a_stopped_run_says_what_is_kept(tmp_path, usual_signals):
    words = ["copy-task", "--steps", "100000", *CPU, "--checkpoint-minutes", ".0001"]
    process = subprocess.Popen(
        [sys.executable, "-m", "annotated_transformer", *words, "--out", tmp_path / "run"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    while process.poll() is None and not list(tmp_path.glob("run.checkpoints/step-*")):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) == 128 + signal.SIGTERM
    said = process.stderr.read().splitlines()
    assert re.fullmatch(r"stopped by SIGTERM after step \d+", said[0]), said
    assert "--resume continues it" in said[1]
    newest = max(tmp_path.glob("run.checkpoints/step-*"))
    assert not load_model(newest, Transformer).training
    assert not (tmp_path / "run").exists()


def test_what_fails_after_training_leaves_checkpoints_and_a_line(tmp_path, monkeypatch):
    from annotated_transformer import cli

    def fail(*arguments, **options):
        (tmp_path / "run.checkpoints" / "step-00000010").mkdir(parents=True)
        raise OSError("no space left")

    monkeypatch.setattr(cli, "run_and_save", fail)
    done = copy_task(tmp_path / "run")
    assert done.status == 1
    assert done.stderr.startswith("failed: no space left\nthe run is kept in")


@pytest.mark.slow
def test_a_pipe_that_is_closed_ends_the_command_quietly():
    "`annotated-transformer translate ... | head -1`"
    code = "import sys; from annotated_transformer.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "translate", "--model", "cat", "--line-buffered"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    process.stdout.close()
    process.stdin.write(b"I have seen the cat\n" * 3)
    process.stdin.close()

    assert process.wait(120) == 1 and process.stderr.read() == b""


def test_symbols_are_read():
    assert parse_ids("7  3 9", 13) == [7, 3, 9]
    for text in ("7 x", "7 2", "13", " ", "-4", "7" * 5000):
        with pytest.raises(ValueError, match="symbol: got .* symbols from 3 to 12"):
            parse_ids(text, 13)


def test_the_copier_answers(tmp_path):
    page = tmp_path / "new" / "look.html"
    search = ["--beam", 4, "--n-best", 4, "--max-len", 6]
    done = call("decode", "7 3 9", "--model", "copier", *search, "--attention", page)

    assert done.status == 0 and done.stdout.startswith("7 3 9   log-probability -0.")
    assert done.stdout.count("log-probability") == 4
    shown = re.search(r'<script type="application/json">(.*?)</script>', page.read_text())
    assert json.loads(shown[1])[2]["keys"] == ["7", "3", "9", "EOS"]
    cut_off = call("decode", "7 3 9", "--model", "copier", "--max-len", 2)
    assert cut_off.stdout.rstrip().endswith("(cut off)")


@pytest.mark.parametrize(
    "words, why",
    [
        (["7 99"], "symbol: got '99'"),
        (["7", "--beam", 0], "--beam: got 0"),
        (["7", "--n-best", 3], "--n-best: got 3"),
        (["7", "--n-best", 0], "--n-best: got 0"),
        (["7", "--max-len", 0], "--max-len: got 0"),
        (["7", "--length-penalty", -1], "--length-penalty: got -1"),
        (["7", "--attention", "page.txt"], "--attention: got 'page.txt'"),
        (["7", "--attention", "/dev/null/page.html"], "error: [Errno"),
    ],
    ids=str,
)
def test_a_wrong_question_is_refused(words, why):
    done = call("decode", *words, "--model", "copier")
    assert done.status == 2 and why in done.stderr


def test_decode_takes_models_of_the_copy_task_alone(tmp_path):
    save_model(Transformer(TransformerConfig.preset("tiny", eos_id=9)), tmp_path / "other")
    done = call("decode", "7", "--model", tmp_path / "other")
    assert done.status == 2 and "special tokens: got" in done.stderr
    page = tmp_path / "other" / "page.html"
    done = call("decode", "7", "--model", tmp_path / "other", "--attention", page)
    assert done.status == 2 and "outside the model's folder" in done.stderr


def test_lines_that_cannot_be_translated_stay_empty():
    typed = b"I have seen the cat\n\n\xff\nI have seen the elephant\nI have seen the cat\n"
    done = call("translate", "--model", "cat", *CPU, typed=typed)

    assert done.status == 1
    answer = "ich habe die Katze gesehen"
    assert done.stdout.splitlines() == [answer, "", "", "", answer]
    third, fourth = done.stderr.splitlines()
    assert third == "line 3: byte 1 is not UTF-8"
    assert fourth.startswith("line 4: text: got 'elephant', expected words")


def test_translations_of_one_line_and_a_page(tmp_path):
    words = ["--model", "cat", *CPU, "--n-best", 3, "--attention", tmp_path / "look.html"]
    done = call("translate", *words, typed="I have seen the cat\n")

    answers = done.stdout.splitlines()
    assert done.status == 0 and len(answers) == 3
    assert answers[0] == "ich habe die Katze gesehen"
    assert "Katze" in (tmp_path / "look.html").read_text(encoding="utf-8")
    none = call("translate", *words, typed="\n")
    assert none.status == 0 and "no sentence, so no page" in none.stderr


@pytest.mark.slow
def test_a_translator_is_trained_and_asked(tmp_path):
    "It learns in a few seconds to swap two numbers and translate the words around them."
    lines = [
        f"two numbers: {a} and {b}\tzwei Zahlen: {b} und {a}\n"
        for a in range(60)
        for b in range(60)
    ]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(lines))
    out = tmp_path / "run"
    trained = call(
        "train-translation", "--corpus", pairs, "--epochs", 12, *CPU, "--out", out
    )
    assert trained.status == 0 and "so few sentences" in trained.stdout  # 36
    share = re.search(r"exact ([\d.]+)", trained.stdout)
    assert float(share[1]) > 0.9 and (out / "tokenizer.json").is_file()

    typed = "two numbers: 1 and 2\n" + "one " * 10_000
    done = call("translate", "--model", out, *CPU, typed=typed)
    assert done.status == 1 and done.stdout == "zwei Zahlen: 2 und 1\n\n"
    assert re.match("line 2: [0-9,]+ tokens, and the model takes 1,024", done.stderr)


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> Path:
    "The folder of a language model that has learned nothing."
    torch.manual_seed(0)
    letters = CharTokenizer.of(["abc "])
    sizes = dict(d_model=16, d_ff=16, n_heads=2, n_layers=1, max_len=40)
    special = dict(pad_id=0, bos_id=2, eos_id=2)
    config = GPTConfig(vocab_size=len(letters), **sizes, **special)
    folder = tmp_path_factory.mktemp("models") / "gpt"
    return save_model(GPT(config), folder, letters)


def test_a_text_is_continued(writer, tmp_path):
    words = ["generate", "--model", writer, "--seed", 1]
    page = tmp_path / "look.html"
    done = call(*words, "abc", "--attention", page)

    assert done.status == 0 and done.stdout.startswith("abc")
    assert done.stdout == call(*words, "-", typed="abc").stdout
    assert "blocks self" in page.read_text()


@pytest.mark.parametrize(
    "wrong",
    [("--temperature", -1), ("--chat",), ("--max-new-tokens", 99), ("--stop", "")],
    ids=str,
)
def test_a_text_that_cannot_be_written_is_refused(wrong, writer):
    done = call("generate", "abc", "--model", writer, *wrong)
    assert done.status == 2 and "expected" in done.stderr and done.stdout == ""


def test_a_language_model_answers_no_question(writer):
    done = call("decode", "3 4", "--model", writer)
    assert done.status == 2 and "expected Transformer" in done.stderr
