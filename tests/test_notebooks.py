"Notebooks are committed as they were run: with pictures and values, without errors."

import ast
import sys

import pytest
from project import PACKAGE, ROOT, called, chapters, tree

sys.path.insert(0, str(ROOT / "nbs"))
from run_notebooks import fingerprint

pytestmark = pytest.mark.parametrize(
    "chapter", chapters(), ids=lambda chapter: chapter.name
)


def drawing() -> set[str]:
    "The functions of `plotting` that return a picture."

    def returns(node) -> bool:
        promised = node.returns is None or ast.unparse(node.returns) == "Picture"
        return promised and any(
            isinstance(inner, ast.Return) and inner.value for inner in ast.walk(node)
        )

    return {
        node.name
        for node in tree(PACKAGE / "plotting.py").body
        if isinstance(node, ast.FunctionDef) and returns(node)
    }


def ran(cell) -> bool:
    return cell.is_code and not cell.hidden and not cell.skipped and not cell.exported


def expected(cell) -> str | None:
    "The output that the cell cannot be without, told from its code: a picture, a value or text."
    body = cell.tree.body
    if any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and called(node.value) == "print"
        for node in body
    ):
        return "text"
    if not body or not isinstance(body[-1], ast.Expr) or cell.source.rstrip().endswith(";"):
        return None
    value = body[-1].value
    if isinstance(value, ast.Call):
        return "picture" if called(value) in drawing() else None
    silent = isinstance(value, ast.Constant) and value.value is None
    return None if silent else "value"


def has(cell, kind: str) -> bool:
    if kind == "picture":
        return cell.pictures > 0
    wanted = "stream" if kind == "text" else "execute_result"
    return any(output["output_type"] == wanted for output in cell.outputs)


def test_cells_that_show_something_show_it(chapter):
    bare = [
        f"{chapter.name}, cell {cell.id}: no {kind}"
        for cell in chapter.cells
        if ran(cell) and (kind := expected(cell)) and not has(cell, kind)
    ]
    assert not bare, "\n".join(bare) + "\nrun `make notebooks ARGS=nbs/...`"


def test_no_output_is_an_error_or_a_warning(chapter):
    loud = [
        f"{chapter.name}, cell {cell.id}: {output.get('ename', ''.join(output.get('text', '')).strip())}"
        for cell in chapter.cells
        for output in cell.outputs
        if output["output_type"] == "error" or output.get("name") == "stderr"
    ]
    assert not loud, "\n".join(loud)


def test_ids_are_unique(chapter):
    ids = [data["id"] for data in chapter.notebook["cells"]]
    assert len(set(ids)) == len(ids), sorted({id for id in ids if ids.count(id) > 1})


def test_opens_with_a_title_and_its_promise(chapter):
    head = chapter.cells[0]
    lines = [line for line in head.source.splitlines() if line.strip()]
    assert (
        head.kind == "markdown" and lines[0].startswith("# ") and lines[1].startswith("> ")
    ), f"{chapter.name} opens with {lines[:2]}, expected '# Title' and '> one sentence'"


def test_no_code_is_switched_off(chapter):
    off = [
        f"{chapter.name}, cell {cell.id}"
        for cell in chapter.code
        for node in ast.walk(cell.tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant)
    ]
    assert not off, "\n".join(off)


def test_outputs_come_from_the_code_that_is_there(chapter):
    found = chapter.notebook["metadata"].get("executed")
    assert found == fingerprint(chapter.notebook["cells"]), (
        "run it again: make notebooks ARGS=nbs/" + chapter.path.name
    )
