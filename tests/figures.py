"""The figures of the house style, chapter by chapter: `python tests/figures.py`; `test_figures.py` checks them.

Only what a reader sees is counted: no `#| hide` and no `#| default_exp` cells.
"""

import statistics
from itertools import groupby

from project import TOOLS, Chapter, chapters, modules


def after_prose(chapter: Chapter) -> list[bool]:
    "For each code cell, whether text stands directly before it."
    shown = chapter.visible
    text = [
        not cell.is_code and not all(line.startswith("#") for line in cell.source.split("\n") if line) for cell in shown
    ]
    return [i > 0 and text[i - 1] for i, cell in enumerate(shown) if cell.is_code]


def runs(chapter: Chapter, code: bool) -> list[list]:
    "Neighbouring cells of one kind."
    return [list(cells) for is_code, cells in groupby(chapter.visible, lambda cell: cell.is_code) if is_code == code]


def percentile(numbers: list, share: float):
    "The smallest number that at least this share does not exceed."
    ordered = sorted(numbers)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0


def share(flags: list) -> float:
    "Percent of the flags that are set."
    return 100 * sum(flags) / max(1, len(flags))


def median(numbers: list) -> float:
    return statistics.median(numbers) if numbers else 0


def figures(book: list[Chapter]) -> dict:
    "All figures, over one chapter or several."
    code = [cell for chapter in book for cell in chapter.code]
    exporting = [cell for chapter in book if chapter.module for cell in chapter.code]
    lengths = [len(cell.lines) for cell in code]
    words = [cell.words for chapter in book for cell in chapter.prose]
    stretches = [sum(cell.words for cell in run) for chapter in book for run in runs(chapter, code=False)]
    paths = [modules()[chapter.module] for chapter in book if chapter.module in modules()]
    return {
        "code cells": len(code),
        "after prose %": share([after for chapter in book for after in after_prose(chapter)]),
        "in a row": max([len(run) for chapter in book for run in runs(chapter, code=True)], default=0),
        "lines median": median(lengths),
        "lines p90": percentile(lengths, 0.9),
        "lines most": max(lengths, default=0),
        "exported %": share([cell.exported for cell in exporting]),
        "tests/export": sum(cell.tests for cell in exporting) / max(1, sum(cell.exported for cell in exporting)),
        "words median": median(words),
        "words most": max(words, default=0),
        "words between code": max(stretches, default=0),
        "pictures": median([sum(cell.pictures for cell in chapter.cells) for chapter in book]),
        "module lines": max([len(path.read_text(encoding="utf-8").splitlines()) for path in paths], default=0),
    }


if __name__ == "__main__":
    story = [chapter for chapter in chapters() if chapter.module not in TOOLS]
    rows = {chapter.name: figures([chapter]) for chapter in chapters()}
    rows |= {"all": figures(chapters()), "all without 90-92": figures(story)}
    names = list(rows["all"])
    print(f"{'':22}" + "".join(f"{name.split(' ', 1)[0]:>9}" for name in names))
    print(f"{'':22}" + "".join(f"{name.partition(' ')[2][:8]:>9}" for name in names))
    for label, row in rows.items():
        print(
            f"{label:22}"
            + "".join(f"{row[name]:9.2f}" if name == "tests/export" else f"{row[name]:9.0f}" for name in names)
        )
