"Notebooks are committed as they were run, without errors, and open with a title and a promise."

import ast
import re
import sys

import nbformat
import pytest
from project import ROOT, chapters

from annotated_transformer.inspection.widgets import WIDGETS, widget_file

sys.path.insert(0, str(ROOT / "tools"))
from fold_cells import FOLDED, is_aside
from run_notebooks import fingerprint


# asked of a commit, not of every change
@pytest.mark.slow
def test_outputs_come_from_the_code_that_is_there():
    stale = []
    for chapter in chapters():
        executed = chapter.notebook["metadata"].get("executed")
        if executed != fingerprint(chapter.notebook["cells"]):
            stale.append(f"make notebooks ARGS=nbs/{chapter.name}.ipynb")

    assert not stale, "run them again:\n" + "\n".join(stale)


@pytest.mark.slow
def test_chapters_show_the_widgets_of_today():
    "A change to a script or a style sheet is seen in a chapter when it has been run again."
    used = set()
    for chapter in chapters():
        for cell in chapter.cells:
            for output in cell.outputs:
                shown = "".join(output.get("data", {}).get("text/html", ""))
                if not shown.startswith('<div class="book-widget"'):
                    continue
                name = re.search(r'data-widget="([\w-]+)"', shown)[1]
                used.add(name)
                style = widget_file("common.css") + widget_file(f"{name}.css")
                script = widget_file("common.js") + widget_file(f"{name}.js")
                is_current = f"<style>{style}</style>" in shown
                is_current = is_current and f"<script>{{{script}}}</script>" in shown
                assert is_current, f"run {chapter.path.name} again"
    assert used == set(WIDGETS)


def test_no_output_is_an_error_or_a_warning():
    loud = [
        f"{chapter.name}, cell {cell.id}"
        for chapter in chapters()
        for cell in chapter.cells
        for output in cell.outputs
        if output["output_type"] == "error" or output.get("name") == "stderr"
    ]

    assert not loud, "\n".join(loud)


def test_what_readers_need_not_see_is_folded():
    "In JupyterLab, VS Code and Colab, not only on the site."
    open_cells = [
        f"{chapter.name}, cell {cell['id']}"
        for chapter in chapters()
        for cell in nbformat.read(ROOT / f"nbs/{chapter.name}.ipynb", 4).cells
        if is_aside(cell) and not FOLDED.items() <= cell.metadata.items()
    ]

    assert not open_cells, "python tools/fold_cells.py\n" + "\n".join(open_cells)


def test_ids_are_unique():
    "Modules and failing tests name cells by their ids."
    repeated = []
    for chapter in chapters():
        ids = [data["id"] for data in chapter.notebook["cells"]]
        repeated += [f"{chapter.name}: {id}" for id in set(ids) if ids.count(id) > 1]

    assert not repeated, "\n".join(repeated)


def test_opens_with_a_title_and_a_promise():
    "They become the title of the page and the docstring of the module."
    wrong = []
    for chapter in chapters():
        head = chapter.cells[0]
        lines = [line for line in head.source.splitlines() if line.strip()]
        is_whole = (
            not head.is_code
            and len(lines) > 1
            and lines[0].startswith("# ")
            and lines[1].startswith("> ")
        )
        if not is_whole:
            wrong.append(f"{chapter.name} opens with {lines[:2]}")

    assert not wrong, "expected '# Title' and '> one sentence'\n" + "\n".join(wrong)


def test_without_its_script_an_output_is_a_picture_or_a_table():
    "JupyterLab before a notebook is trusted, and GitHub always, take out scripts and styles."
    wrong = []
    for chapter in chapters():
        for cell in chapter.cells:
            for output in cell.outputs:
                shown = "".join(output.get("data", {}).get("text/html", ""))
                if "<script" not in shown:
                    continue

                left = re.sub(r"<(script|style)\b.*?</\1>", "", shown, flags=re.S)
                shows = re.findall(r'<img [^>]*alt="\S[^>]* src="data:image/|<table>', left)
                if len(shows) != 1:
                    wrong.append(f"{chapter.name}, cell {cell.id}: {shows}")

    assert not wrong, "expected one picture or one table:\n" + "\n".join(wrong)


# ---- "Run all" in Jupyter, which knows nothing of flags ----

GUARDS = {"slow": "slow_cells_run()", "cuda": "torch.cuda.is_available()"}


def test_slow_and_gpu_cells_ask_before_they_run():
    flagged, unguarded = 0, []
    for chapter in chapters():
        for cell in chapter.cells:
            for flag in GUARDS.keys() & set(cell.directives):
                flagged += 1
                first = next(
                    node
                    for node in cell.tree.body
                    if not isinstance(node, (ast.Import, ast.ImportFrom))
                )
                guarded = isinstance(first, ast.If) and first is cell.tree.body[-1]
                if not guarded or ast.unparse(first.test) != GUARDS[flag]:
                    unguarded.append(f"{chapter.name}, cell {cell.id}: if {GUARDS[flag]}:")

    assert flagged > 30
    assert not unguarded, "expected nothing but imports outside of:\n" + "\n".join(
        unguarded
    )


def test_a_notebook_needs_no_clone():
    "It neither looks for one, nor writes into one: measurements come from `stored_result`."
    words = re.compile(r"""settings\.ini|['"]benchmarks\b|Path\(['"]\.\.['"]\)""")
    bound = [
        f"{chapter.name}, cell {cell.id}: {found[0]}"
        for chapter in chapters()
        for cell in chapter.cells
        if cell.is_code and cell.id != "stored-result"
        for found in words.finditer(cell.source)
    ]

    assert not bound, "\n".join(bound)


def test_a_comment_makes_no_output_stale():
    def cells(source):
        return [dict(cell_type="code", source=source)]

    plain = "def f(x):\n    return '# no comment'"
    said = 'def f(\n    x,  # what came\n):\n    """Two\n    lines."""\n    # a step\n    return x'
    bare = "def f(\n    x,\n):\n    return x"
    assert fingerprint(cells(said)) == fingerprint(cells(bare))
    assert fingerprint(cells(plain)) != fingerprint(cells(plain.replace("no ", "a ")))
