"The repository as the tests read it: settings, chapters with their cells, and modules."

import ast
import configparser
import functools
import io
import json
import os
import re
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def settings() -> dict:
    parser = configparser.ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return dict(parser["DEFAULT"])


PACKAGE = ROOT / settings()["lib_path"]


# ---- Notebooks ----


class Cell:
    "One cell of a notebook, with its directives read."

    def __init__(self, data: dict):
        self.id = data["id"]
        self.is_code = data["cell_type"] == "code"
        self.source = "".join(data["source"])
        self.outputs = data.get("outputs", [])
        self.directives = []
        if self.is_code:
            self.directives = re.findall(r"^#\|\s*(.+?)\s*$", self.source, re.M)

    def directive(self, name: str) -> str | None:
        "What stands behind a directive: `exports: x` or `exports x` -> 'x'; None without the directive."
        for words in self.directives:
            found = re.fullmatch(rf"{name}(?:[:\s]\s*(.*))?", words)
            if found:
                return (found[1] or "").strip("\"'")
        return None

    @property
    def exported(self) -> bool:
        return self.directive("exports?") is not None

    @property
    def hidden(self) -> bool:
        "Housekeeping that no reader sees."
        return (
            self.directive("hide") is not None
            or self.directive("default_exp") is not None
            or self.directive("include") == "false"
        )

    @functools.cached_property
    def tree(self) -> ast.Module:
        "Magics and shell commands, which are not Python, become `pass`."
        return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", self.source, flags=re.M))


class Chapter:
    "One notebook."

    def __init__(self, path: Path):
        self.path = path
        self.name = path.relative_to(ROOT / "nbs").with_suffix("").as_posix()
        numbered = re.match(r"(\d+)_\w+/(\d+)_", self.name)
        # 1.2; what one looks up has none
        self.number = f"{numbered[1]}.{numbered[2]}" if numbered else None
        self.notebook = json.loads(path.read_text(encoding="utf-8"))
        self.cells = [
            Cell(data) for data in self.notebook["cells"] if "".join(data["source"]).strip()
        ]

    @property
    def module(self) -> str | None:
        "What its cells are exported to, unless they name another module."
        for cell in self.cells:
            name = cell.directive("default_exp")
            if name is not None:
                return name
        return None


@functools.cache
def chapters() -> list[Chapter]:
    return [Chapter(path) for path in sorted((ROOT / "nbs").glob("*/*.ipynb"))]


@functools.cache
def parts() -> dict[str, list[str]]:
    "The order of the book, as nbs/index.md has it: part -> names of its notebooks and pages that are there."
    text = (ROOT / "nbs" / "index.md").read_text(encoding="utf-8")
    found = {}
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.M | re.S):
        options, _, names = block.partition("\n\n")
        caption = re.search(r":caption: (.+)", options)[1]
        files = [
            file for name in names.split() for file in (ROOT / "nbs").glob(f"{name}.*")
        ]
        found[caption] = [
            file.relative_to(ROOT / "nbs").with_suffix("").as_posix()
            for file in files
            if file.suffix in (".ipynb", ".md")
        ]
    return found


# to look something up in; all other parts are read from beginning to end
LOOKED_UP = ("In depth", "Reference")


def reading() -> list[str]:
    "The names of the chapters that one reads one after another."
    return [
        name
        for part, names in parts().items()
        for name in names
        if part not in LOOKED_UP and "/" in name
    ]


# ---- Modules ----


@functools.cache
def modules() -> dict[str, Path]:
    "The library's modules by dotted name, such as `models.gpt`, without those that are no chapter's."
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.stem.startswith("_"):
            name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            found[name] = path
    return found


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def public(module: ast.Module) -> list[str]:
    "`__all__`, as a list of names."
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


# ---- Files and commands ----


def make(*words, folder: Path = ROOT) -> subprocess.CompletedProcess:
    "Run make as from a shell, without the options of a make that may be running these tests."
    env = dict(os.environ)
    for name in ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL"):
        env.pop(name, None)
    for name in ("ARGS", "TESTS", "PYTHON", "VENV"):
        env.pop(name, None)
    return subprocess.run(
        ["make", *words], cwd=folder, env=env, capture_output=True, text=True
    )


def repository() -> list[Path]:
    "The files that are, or would be, in version control; relative to the root."
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        return unpacked()
    paths = [Path(name) for name in listed.stdout.split("\0") if name]
    return sorted(path for path in paths if (ROOT / path).is_file())


def unpacked() -> list[Path]:
    "The same for an archive without git: all that no tool has made."
    made = re.compile(
        r"(^|/)(\.git|\.venv.*|__pycache__|\.\w+_cache|\.hypothesis|\.ipynb_checkpoints|[^/]+\.egg-info)/"
        r"|^(build|dist|runs|docs/_build)/|^docs/_static/(tex-svg\.js$|models/)"
    )
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return sorted(path for path in paths if not made.search(path.as_posix()))


# ---- The command ----


@dataclass
class Ended:
    "How a command ended, and what it said."

    status: int
    stdout: str
    stderr: str


def call(*words, typed: str | bytes = "") -> Ended:
    "Run `annotated-transformer` in this process; `typed` is its standard input."
    from annotated_transformer.cli import run_command

    given = typed.encode() if isinstance(typed, str) else typed
    stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    stdout, stderr = io.StringIO(), io.StringIO()
    with mock.patch("sys.stdin", stdin), redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            status = run_command([str(word) for word in words])
        except SystemExit as end:  # of --help, and of options that argparse refuses
            status = end.code
    return Ended(status, stdout.getvalue(), stderr.getvalue())
