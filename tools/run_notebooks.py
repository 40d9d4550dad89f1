"""Run notebooks and save their outputs in place: `python tools/run_notebooks.py [--flags slow,cuda] [nbs/1_model/2_attention.ipynb ...]`.

Cells marked `#| eval: false` and cells with one of settings.ini's `tst_flags` are left alone, old outputs included,
unless their flag is named in `--flags`: what a slow or GPU cell once printed stays until somebody runs it again.
A notebook keeps the fingerprint of the code that its outputs come from, and the tests compare it with the code that is there.
"""

import argparse
import ast
import configparser
import hashlib
import io
import os
import time
import tokenize
from pathlib import Path

import nbformat
from cell_directives import directives_of
from fold_cells import fold
from nbclient import NotebookClient
from nbclient.util import run_sync

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"


def skipped_flags(wanted: set) -> set:
    "settings.ini's flags without the wanted ones."
    settings = configparser.ConfigParser()
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    return set(settings["DEFAULT"]["tst_flags"].split()) - wanted


def is_skipped(source: str, skip: set) -> bool:
    "Whether a cell's directives say that it is left alone."
    directives = directives_of(source)
    return directives.get("eval") == "false" or bool(skip & directives.keys())


def without_comments(source: str) -> str:
    "The code without comments and docstrings, which change no output."
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return source  # it has magic commands

    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in nodes:
        documented = isinstance(node, (ast.FunctionDef, ast.ClassDef))
        if documented and ast.get_docstring(node) is not None:
            first = node.body[0]
            if first.lineno > node.lineno:
                count = first.end_lineno - first.lineno + 1
                lines[first.lineno - 1 : first.end_lineno] = [""] * count
    return "\n".join(line.rstrip() for line in lines if line.strip())


def fingerprint(cells) -> str:
    "Of the code that an ordinary run executes, whatever its comments say."
    sources = [
        "".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"
    ]
    run = [source for source in sources if not is_skipped(source, skipped_flags(set()))]
    code = "\n\n".join(without_comments(source) for source in run)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


class Client(NotebookClient):
    "An nbclient that honours nbdev's directives."

    skip: set = set()

    async def async_execute_cell(self, cell, cell_index, **kwargs):
        if is_skipped(cell.source, self.skip):
            return cell
        return await super().async_execute_cell(cell, cell_index, **kwargs)

    execute_cell = run_sync(async_execute_cell)


def run(path: Path, skip: set):
    "Execute one notebook in a kernel of its own and write it back."
    notebook = nbformat.read(path, 4)
    notebook.metadata.pop("widgets", None)  # of progress bars that an earlier run showed
    client = Client(
        notebook,
        kernel_name="python3",
        timeout=None,
        coalesce_streams=True,
        resources=dict(metadata=dict(path=str(path.parent))),
    )
    client.skip = skip
    client.execute()
    notebook.metadata["executed"] = fingerprint(notebook.cells)
    fold(notebook.cells)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "notebooks", nargs="*", type=Path, help="default: all chapters, in order"
    )
    parser.add_argument(
        "--flags", default="", help="run cells with these flags too, such as slow,cuda"
    )
    options = parser.parse_args()
    wanted = set(options.flags.split(","))
    skip = skipped_flags(wanted)
    if "slow" in wanted:
        os.environ["ANNOTATED_TRANSFORMER_SLOW"] = "1"  # slow cells ask for it
    os.environ.setdefault(
        "OMP_WAIT_POLICY", "passive"
    )  # of the kernels: a thread that waits must not take the others' core
    for path in options.notebooks or sorted(NBS.glob("*/*.ipynb")):
        start = time.perf_counter()
        run(path, skip)
        print(
            f"{path}: {time.perf_counter() - start:.1f} s, {path.stat().st_size:,} bytes",
            flush=True,
        )
