"The chapters refer to each other by links that lead somewhere, in Markdown that every reader of notebooks understands."

import re

from project import ROOT, chapters


def text_cells():
    "(chapter, cell) for all cells of text in the book."
    for chapter in chapters():
        for cell in chapter.cells:
            if not cell.is_code:
                yield chapter, cell


def test_next_is_the_next_chapter():
    names = [chapter.name for chapter in chapters()]
    wrong = []

    for chapter, following in zip(chapters(), [*names[1:], None]):
        last = chapter.cells[-1].source
        said = re.findall(r"^Next: \[[^]]+\]\(([^)]+)\.ipynb\)", last, re.M)
        if said != ([following] if following else []):
            wrong.append(f"{chapter.name} says {said}, the next one is {following}")

    assert not wrong, "\n".join(wrong)


def test_links_between_chapters_lead_somewhere():
    "And if the text of a link ends with a number, it is the number of that chapter."
    numbers = {chapter.name: chapter.number for chapter in chapters()}
    link = r"\[([^]]*)\]\(([^)#\s]+)\.ipynb(?:#[^)]*)?\)"
    wrong = []

    for chapter, cell in text_cells():
        for text, target in re.findall(link, cell.source):
            said = re.search(r"\b(\d\d)$", text)
            if target not in numbers or (said and said[1] != numbers[target]):
                wrong.append(f"{chapter.name}, cell {cell.id}: [{text}]({target}.ipynb)")

    assert not wrong, "\n".join(wrong)


def test_chapters_that_are_named_exist():
    numbers = {chapter.number for chapter in chapters()}

    missing = [
        f"{chapter.name}, cell {cell.id}: chapter {number}"
        for chapter, cell in text_cells()
        for number in re.findall(r"\b[Cc]hapters? \[?(\d\d[a-z]?)", cell.source)
        if number not in numbers
    ]

    assert not missing, "\n".join(missing)


def test_markdown_is_standard():
    "Notebooks are read in JupyterLab, VS Code, Colab and on GitHub: no role or directive of one renderer."
    special = []

    for chapter, cell in text_cells():
        prose = re.sub(r"`[^`\n]*`(?!`)", "", cell.source)
        if found := re.search(r"^:::.*|\{[a-z]+\}`", prose, re.M):
            special.append(f"{chapter.name}, cell {cell.id}: {found[0]}")

    assert not special, "\n".join(special)


def test_folded_text_ends_before_other_text():
    "Without an empty line, what follows `</details>` is HTML to a reader of Markdown, and its links stay raw."
    raw = [
        f"{chapter.name}, cell {cell.id}"
        for chapter, cell in text_cells()
        if re.search(r"</details>[^\S\n]*\n(?=\S)", cell.source)
    ]

    assert not raw, "\n".join(raw)


def test_the_list_of_chapters_in_the_readme_is_complete():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \d\d \| \[[^]]+\]\(nbs/([\w.]+)\.ipynb\)", text, re.M)

    assert listed == [chapter.name for chapter in chapters()]
