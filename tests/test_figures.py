"The house style in figures: hard limits for each cell, chapter and module, and averages over the whole book."

import pytest
from figures import figures, runs
from project import TOOLS, chapters, modules

LINES, WORDS, ROW, MODULE = 30, 150, 3, (60, 400)

# figure, least, most; over all chapters, or without 90 to 92
BOOK = [
    ("after prose %", 60, 100),
    ("words median", 20, 50),
    ("exported %", 30, 40),
    ("tests/export", 0.9, 99),
    ("lines median", 0, 12),
    ("lines p90", 0, 20),
]
STORY = [("pictures", 3, 6)]


def each_chapter():
    return pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)


@each_chapter()
def test_no_code_cell_is_too_long(chapter):
    long = [
        f"{chapter.name}, cell {cell.id}: {len(cell.lines)} lines, at most {LINES}"
        for cell in chapter.code
        if len(cell.lines) > LINES
    ]
    assert not long, "\n".join(long)


@each_chapter()
def test_no_text_cell_is_too_long(chapter):
    long = [
        f"{chapter.name}, cell {cell.id}: {cell.words} words, at most {WORDS}"
        for cell in chapter.prose
        if cell.words > WORDS
    ]
    assert not long, "\n".join(long)


@each_chapter()
def test_code_cells_are_interrupted_by_text(chapter):
    long = [
        f"{chapter.name}, from cell {run[0].id}: {len(run)} code cells in a row, at most {ROW}"
        for run in runs(chapter, code=True)
        if len(run) > ROW
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("module", modules())
def test_module_has_a_readable_size(module):
    lines = len(modules()[module].read_text(encoding="utf-8").splitlines())
    assert MODULE[0] <= lines <= MODULE[1], f"{module}.py: {lines} lines, expected {MODULE[0]} to {MODULE[1]}"


@pytest.mark.parametrize("figure,least,most", BOOK, ids=[figure for figure, *_ in BOOK])
def test_figures_of_the_book(figure, least, most):
    check(chapters(), figure, least, most)


@pytest.mark.parametrize("figure,least,most", STORY, ids=[figure for figure, *_ in STORY])
def test_figures_of_the_story(figure, least, most):
    check([chapter for chapter in chapters() if chapter.module not in TOOLS], figure, least, most)


def check(book, figure, least, most):
    "Over all chapters together; the message lists those which alone are out of bounds."
    found = figures(book)[figure]
    each = {chapter.name: figures([chapter])[figure] for chapter in book}
    culprits = ", ".join(f"{name} {value:.2f}" for name, value in each.items() if not least <= value <= most)
    assert least <= found <= most, (
        f"{figure}: {found:.2f} over the book, expected {least} to {most}; out of bounds alone: {culprits}"
    )
