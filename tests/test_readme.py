"What README.md tells people to type works."

import functools
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
    lines = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", TEXT)
    for _, block in blocks("sh", "bash", "shell", "console"):
        lines += block.replace("\\\n", " ").splitlines()

    found = []
    for line in lines:
        for call in re.split(r"&&|;|\|", line.strip().removeprefix("$ ")):
            call = call.strip().removeprefix(".venv/bin/")
            if call.split()[:1] == [program]:
                words = shlex.split(call, comments=True)
                if words not in found:
                    found.append(words)
    return found


@pytest.mark.slow
def test_python_blocks_run_in_order(tmp_path):
    "One after another in one namespace, as a reader would paste them."
    found = blocks("python", "py")
    assert found, "README.md shows no Python"

    code = "import torch; torch.manual_seed(0)\nnamespace = {'__name__': '__main__'}\n"
    for line, block in found:
        padded = "\n" * (line - 1) + block  # a traceback has README's own line numbers
        code += f"exec(compile({padded!r}, 'README.md', 'exec'), namespace)\n"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_make_commands_exist():
    found = commands("make")
    assert found

    for words in found:
        done = make("-n", *words[1:])
        assert done.returncode == 0, done.stderr


@functools.cache
def help_of(*words: str) -> str:
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
    return [
        [COMMAND, "copy-task", *shlex.split(word.removeprefix("ARGS="))]
        for words in commands("make")
        if "copy-task" in words
        for word in words
        if word.startswith("ARGS=")
    ]


@pytest.mark.slow
def test_commands_exist_with_their_options():
    found = [*commands(COMMAND), *copy_task_calls()]
    assert found

    for words in found:
        path = [word for word in words[1:2] if not word.startswith("-")]
        text = help_of(*path)
        for word in words[1:]:
            if word.startswith("-"):
                option = re.escape(word.partition("=")[0])
                assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), " ".join(words)


def test_links_to_files_lead_somewhere():
    targets = re.findall(r"\]\(([^)\s]+)\)", TEXT)
    files = {
        target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)
    }
    missing = [
        name
        for name in files
        if not name.startswith("docs/_build/") and not (ROOT / name).exists()
    ]

    assert files and not missing, missing
