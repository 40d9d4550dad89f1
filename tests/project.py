"The repository as the tests read it: settings, chapters, their cells and modules."

import ast
import configparser
import functools
import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = (
    "config",
    "plotting",
    "experiments.experiment",
    "cli",
    "folders",
    "diagrams",
    "svg",
)  # from 90: what chapters lean on, and what stands in front of them all


@functools.cache
def settings() -> dict:
    parser = configparser.ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return dict(parser["DEFAULT"])


PACKAGE = ROOT / settings()["lib_path"]


class Cell:
    "One cell of a notebook, with its directives read."

    def __init__(self, data: dict):
        self.id, self.kind, self.outputs = (
            data["id"],
            data["cell_type"],
            data.get("outputs", []),
        )
        self.source = "".join(data["source"])
        self.directives = (
            re.findall(r"^#\|\s*(.+?)\s*$", self.source, re.M) if self.is_code else []
        )

    @property
    def is_code(self) -> bool:
        return self.kind == "code"

    @property
    def exported(self) -> bool:
        return any(re.match(r"exports?\b", directive) for directive in self.directives)

    @property
    def hidden(self) -> bool:
        "Housekeeping that no reader sees, and that no figure counts."
        return any(
            re.match(r"hide$|default_exp\b|include:\s*false", directive)
            for directive in self.directives
        )

    @property
    def skipped(self) -> bool:
        "Whether an ordinary run leaves this cell alone."
        flags = {"eval: false", *settings()["tst_flags"].split()}
        return any(directive in flags for directive in self.directives)

    @property
    def lines(self) -> list[str]:
        "What there is to read: neither blank lines nor directives."
        return [
            line
            for line in self.source.splitlines()
            if line.strip() and not line.startswith("#|")
        ]

    @functools.cached_property
    def tree(self) -> ast.Module:
        "Magics and shell commands, which are not Python, become `pass`."
        return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", self.source, flags=re.M))

    @property
    def tests(self) -> bool:
        "Whether a claim is checked here."

        def checks(node) -> bool:
            if isinstance(node, ast.Assert):
                return True
            name = called(node) if isinstance(node, ast.Call) else ""
            return name.startswith("test_") or name in ("expect_fail", "assert_close")

        return not self.exported and any(checks(node) for node in ast.walk(self.tree))

    @property
    def pictures(self) -> int:
        return sum(
            any(kind.startswith("image/") for kind in output.get("data", {}))
            for output in self.outputs
        )

    @property
    def words(self) -> int:
        "Running text alone: no headings, tables, formulas in display, code or pictures."
        text = re.sub(
            r"^```.*?^```|^\$\$.*?\$\$|<[^>]+>|!\[[^]]*\]\([^)]*\)",
            "",
            self.source,
            flags=re.M | re.S,
        )
        text = re.sub(r"\]\([^)]*\)", "]", text)
        return sum(
            len(line.split())
            for line in text.splitlines()
            if not re.match(r"\s*(#+\s|\||:::)", line)
        )


def called(call: ast.Call) -> str:
    "The last part of a called name: `test_eq`, or `assert_close` of `torch.testing.assert_close`."
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


class Chapter:
    "One notebook."

    def __init__(self, path: Path):
        self.path, self.name, self.number = (
            path,
            path.stem,
            path.stem.partition("_")[0],
        )  # 02, 33
        self.notebook = json.loads(path.read_text(encoding="utf-8"))
        self.cells = [
            Cell(data) for data in self.notebook["cells"] if "".join(data["source"]).strip()
        ]

    @property
    def module(self) -> str | None:
        "What it exports to, if it exports."
        found = [
            directive.split()[1]
            for cell in self.cells
            for directive in cell.directives
            if directive.startswith("default_exp")
        ]
        return found[0] if found else None

    @property
    def visible(self) -> list[Cell]:
        return [cell for cell in self.cells if not cell.hidden]

    @property
    def code(self) -> list[Cell]:
        return [cell for cell in self.visible if cell.is_code]

    @property
    def prose(self) -> list[Cell]:
        return [cell for cell in self.visible if cell.kind == "markdown" and cell.words]

    @property
    def first_reading(self) -> float:
        "Minutes, at 200 words of prose or 20 lines of code a minute, up to the marker; what a page folds is left out."
        minutes = 0.0
        for cell in self.visible:
            before, marker, _ = cell.source.partition("A first reading may end here")
            if cell.kind == "markdown":
                prose = re.sub(
                    r"(?s)<details>.*?</details>|\$\$.*?\$\$|\]\([^)]*\)", "", before
                )
                minutes += len(re.findall(r"\w+(?:['’-]\w+)*", prose)) / 200
                if marker:
                    break
            elif "export" not in cell.directives and (cell.outputs or not cell.tests):
                minutes += len(cell.lines) / 20
        return minutes


@functools.cache
def chapters() -> list[Chapter]:
    return [Chapter(path) for path in sorted((ROOT / "nbs").glob("[0-9]*.ipynb"))]


@functools.cache
def modules() -> dict[str, Path]:
    "The library's modules by dotted name, such as `models.gpt`, without those that are no chapter's."
    paths = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    return {name: path for name, path in paths.items() if not path.stem.startswith("_")}


def make(*words, folder: Path = ROOT) -> subprocess.CompletedProcess:
    "Run make as from a shell, without the options of a make that may be running these tests."
    own = {
        "MAKEFLAGS",
        "MAKEOVERRIDES",
        "MFLAGS",
        "MAKELEVEL",
        "ARGS",
        "TESTS",
        "PYTHON",
        "VENV",
    }
    clean = {name: value for name, value in os.environ.items() if name not in own}
    return subprocess.run(
        ["make", *words], cwd=folder, env=clean, capture_output=True, text=True
    )


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def public(module: ast.Module) -> list[str]:
    "`__all__`, as a list of names."
    for node in module.body:
        if isinstance(node, ast.Assign) and any(
            getattr(target, "id", "") == "__all__" for target in node.targets
        ):
            return ast.literal_eval(node.value)
    return []


def repository() -> list[Path]:
    "The files that are, or would be, in version control; relative to the root."
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:  # an unpacked archive
        made = re.compile(
            r"(^|/)(\.git|\.venv.*|__pycache__|\.\w+_cache|\.hypothesis|\.ipynb_checkpoints|[^/]+\.egg-info)/"
            r"|^(build|dist|runs|docs/_build)/|^docs/_static/tex-svg\.js$"
        )
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return sorted(path for path in paths if not made.search(path.as_posix()))
    return sorted(
        Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()
    )
