"What README.md tells people to type works."

import os
import re
import shlex
import subprocess
import sys

import pytest
from project import PACKAGE, ROOT, make

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = "annotated-transformer"


def blocks(*languages: str) -> list[tuple[int, str]]:
    "The fenced blocks in these languages, each with the number of its first line."
    found = re.finditer(r"^```(\w+)[^\n]*\n(.*?)^```", TEXT, re.M | re.S)
    return [
        (TEXT[: match.start(2)].count("\n") + 1, match[2])
        for match in found
        if match[1] in languages
    ]


def commands(program: str) -> list[list[str]]:
    "Every call of a program in shell blocks and in `backticks`, split into words."
    lines = [
        line
        for _, block in blocks("sh", "bash", "shell", "console")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    lines += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", TEXT)
    calls = (
        part.strip()
        for line in lines
        for part in re.split(r"&&|;|\|", line.strip().removeprefix("$ "))
    )
    calls = (call.removeprefix(".venv/bin/") for call in calls)
    words = (
        shlex.split(call, comments=True) for call in calls if call.split()[:1] == [program]
    )
    return list(map(list, dict.fromkeys(map(tuple, words))))


def test_python_blocks_run_in_order(tmp_path):
    "One after another in one namespace, as a reader would paste them."
    found = blocks("python", "py")
    assert found, "README.md shows no Python"
    # blank lines in front keep README's own line numbers in a traceback
    code = (
        "import torch; torch.manual_seed(0)\nnamespace = {'__name__': '__main__'}\n"
        + "".join(
            f"exec(compile({chr(10) * (line - 1) + block!r}, 'README.md', 'exec'), namespace)\n"
            for line, block in found
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("words", commands("make"), ids=" ".join)
def test_make_commands_exist(words):
    done = make("-n", *words[1:])
    assert done.returncode == 0, done.stderr


def helped(*words: str) -> str:
    "The help of a subcommand, on one line and without its frame."
    run = f"import sys; sys.argv[0] = {COMMAND!r}; from {PACKAGE.name}.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", run, *words, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
    )
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def copy_task_calls() -> list[list[str]]:
    "`make copy-task ARGS='--steps 10'` calls the command too."
    given = [
        word.removeprefix("ARGS=")
        for words in commands("make")
        if "copy-task" in words
        for word in words
        if word.startswith("ARGS=")
    ]
    return [[COMMAND, "copy-task", *shlex.split(words)] for words in given]


@pytest.mark.parametrize("words", commands(COMMAND) + copy_task_calls(), ids=" ".join)
def test_commands_exist_with_their_options(words):
    path = [word for word in words[1:2] if not word.startswith("-")]
    text = helped(*path)
    options = {word.split("=")[0] for word in words[1:] if word.startswith("-")} - {
        "--help"
    }
    missing = {
        option
        for option in options
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)
    }
    assert not missing, f"{' '.join(words)}: there is no {', '.join(sorted(missing))}"


@pytest.mark.parametrize(
    "target",
    sorted(
        {
            path.split("#")[0]
            for path in re.findall(r"\]\(([^)\s]+)\)", TEXT)
            if not re.match(r"[a-z]+:|#", path)
        }
    ),
)
def test_links_to_files_lead_somewhere(target):
    made = target.startswith("docs/_build/")
    assert made or (ROOT / target).exists(), target
