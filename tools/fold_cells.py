"""Folds what readers needn't see in a notebook: hidden cells, the code of pictures and tables, and tests. JupyterLab, VS Code and
Colab read this from the cells' metadata; the site decides for itself.

    python tools/fold_cells.py [notebook ...]    # default: all

`run_notebooks.py` does it for each notebook that it runs.
"""

import ast
import re
import sys
from pathlib import Path

import nbformat
from cell_directives import directives_of

NBS = Path(__file__).resolve().parent.parent / "nbs"
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}


def is_test(cell) -> bool:
    "Whether a cell only checks: it asserts something, and shows and defines nothing but helpers of its own."
    source = cell.source
    if (
        directives_of(source)
        or cell.outputs
        or not re.search(r"\bassert\b|\btest_", source)
    ):
        return False
    tree = ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M))
    return isinstance(tree.body[-1], (ast.Assert, ast.For, ast.With, ast.Expr))


def is_aside(cell) -> bool:
    "Whether readers of a notebook needn't see a cell's code."
    if cell.cell_type != "code":
        return False
    directives = directives_of(cell.source)
    hidden = {"hide", "default_exp"} & directives.keys() or directives.get(
        "echo"
    ) == "false"
    return bool(hidden) or is_test(cell)


def fold(cells):
    "Fold such cells. Those that a writer folded stay folded."
    for cell in cells:
        if is_aside(cell):
            cell.metadata.update(FOLDED)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or sorted(NBS.glob("*/*.ipynb"))):
        notebook = nbformat.read(path, 4)
        fold(notebook.cells)
        nbformat.write(notebook, path)
