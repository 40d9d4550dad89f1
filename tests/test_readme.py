"What README.md and the pages on installing, commands and the library tell people to type works."

import functools
import os
import re
import shlex
import subprocess
import sys

import pytest
from project import ROOT, call, make

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "nbs/installing.md",
    "nbs/commands.md",
    "nbs/library.md",
)
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
COMMAND = "annotated-transformer"


def blocks(page: str, *languages: str) -> list[tuple[int, str]]:
    "The fenced blocks of a page in these languages, each with the number of its first line."
    text = TEXTS[page]
    found = re.finditer(r"^```(\w+)[^\n]*\n(.*?)^```", text, re.M | re.S)
    return [
        (text[: match.start(2)].count("\n") + 1, match[2])
        for match in found
        if match[1] in languages
    ]


def commands(program: str) -> list[list[str]]:
    "Every call of a program in shell blocks and in `backticks`, split into words."
    lines = []
    for page, text in TEXTS.items():
        lines += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
        for _, block in blocks(page, "sh", "bash", "shell", "console"):
            lines += block.replace("\\\n", " ").splitlines()

    found = []
    for line in lines:
        for typed in re.split(r"&&|;|\|", line.strip().removeprefix("$ ")):
            typed = typed.strip().removeprefix(".venv/bin/")
            if typed.split()[:1] == [program]:
                words = shlex.split(typed, comments=True)
                if words not in found:
                    found.append(words)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "nbs/library.md"])
def test_python_blocks_run_in_order(page, tmp_path):
    "One after another in one namespace, as a reader would paste them."
    found = blocks(page, "python", "py")
    assert found, f"{page} shows no Python"

    code = "import torch; torch.manual_seed(0)\nnamespace = {'__name__': '__main__'}\n"
    for line, block in found:
        padded = "\n" * (line - 1) + block  # a traceback has the page's own line numbers
        code += f"exec(compile({padded!r}, {page!r}, 'exec'), namespace)\n"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    # what a comment behind a print promises
    promised = re.findall(r"^print\(.*\)  # (.*)", "".join(b for _, b in found), re.M)
    missing = [said for said in promised if said not in done.stdout.splitlines()]
    assert not missing, done.stdout


def test_all_python_is_run():
    "Pages without a test of their Python show none."
    shown = [page for page in PAGES if blocks(page, "python", "py")]

    assert shown == ["README.md", "nbs/library.md"]


def test_make_commands_exist():
    found = commands("make")
    assert found

    for words in found:
        done = make("-n", *words[1:])
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


@functools.cache
def help_of(*words: str) -> str:
    done = call(*words, "--help")
    assert done.status == 0, f"{' '.join(words)}: {done.stderr}"
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


@pytest.mark.parametrize("page", PAGES)
def test_links_to_files_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", TEXTS[page], flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)\s]+)\)", prose)
    files = {
        target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)
    }
    folder = (ROOT / page).parent
    missing = [name for name in files if not (folder / name).exists()]

    assert files and not missing, missing


@pytest.mark.slow
def test_every_command_is_on_its_page():
    "With an example under a heading of its own."
    listed = re.search(r"^ +COMMAND\n(.*)", help_of(), re.M | re.S)[1]
    names = re.findall(r"^ {4}([\w-]+)", listed, re.M)
    headings = re.findall(r"^## ([\w-]+)$", TEXTS["nbs/commands.md"], re.M)
    shown = {words[1] for words in commands(COMMAND) if words[1:]}

    assert names and {*names} == {*headings} == shown & {*names}
