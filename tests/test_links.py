"The chapters refer to each other by links that lead somewhere, in Markdown that every reader of notebooks understands."

import posixpath
import re

from project import ROOT, chapters, parts, reading


def text_cells():
    "(chapter, cell) for all cells of text in the book."
    for chapter in chapters():
        for cell in chapter.cells:
            if not cell.is_code:
                yield chapter, cell


def target_of(page: str, link: str) -> str:
    "The name of the notebook that a link on a page leads to."
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def test_every_notebook_is_in_one_part_of_the_book():
    listed = [name for names in parts().values() for name in names if "/" in name]

    assert sorted(listed) == [chapter.name for chapter in chapters()]


def test_next_is_the_next_chapter_to_read():
    "Notebooks to look something up in need not say what comes next."
    order = reading()
    following = dict(zip(order, [*order[1:], None]))
    wrong = []

    for chapter in chapters():
        if chapter.name not in following:
            continue
        last = chapter.cells[-1].source
        links = re.findall(r"^Next: \[[^]]+\]\(([^)]+)\.ipynb\)", last, re.M)
        said = [target_of(chapter.name, link) for link in links]
        after = following[chapter.name]
        if said != ([after] if after else []):
            wrong.append(f"{chapter.name} says {said}, the next one is {after}")

    assert order and not wrong, "\n".join(wrong)


def test_links_between_chapters_lead_somewhere():
    "And if the text of a link is a number, or ends with 'chapter' and one, it is the number of that chapter."
    numbers = {chapter.name: chapter.number for chapter in chapters()}
    link = r"\[([^]]*)\]\((?:nbs/)?([^)#\s]+)\.ipynb(?:#[^)]*)?\)"
    wrong = []

    places = {
        f"{chapter.name}.ipynb, cell {cell.id}": cell.source
        for chapter, cell in text_cells()
    }
    for page in (ROOT / "README.md", *(ROOT / "nbs").glob("*.md")):
        places[page.name] = page.read_text(encoding="utf-8")

    for place, source in places.items():
        for text, target in re.findall(link, source):
            said = re.search(r"(?:^|[Cc]hapter )(\d\.\d+)$", text)
            name = target_of(place, target)
            if name not in numbers or (said and said[1] != numbers[name]):
                wrong.append(f"{place}: [{text}]({target}.ipynb)")

    assert not wrong, "\n".join(wrong)


def test_chapters_that_are_named_exist():
    numbers = {chapter.number for chapter in chapters()}

    missing = [
        f"{chapter.name}, cell {cell.id}: chapter {number}"
        for chapter, cell in text_cells()
        for number in re.findall(r"\b[Cc]hapters? \[?(\d+(?:\.\d+)?)", cell.source)
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


def test_contents_in_the_readme_are_complete():
    "The chapters to read in their order, and those of the reference part in theirs; notebooks in depth may be there."
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, _, contents = text.partition("\n## Contents\n")
    listed = re.findall(r"\]\(nbs/(\w+/\w+)\.ipynb\)", contents)
    wanted = reading() + [name for name in parts()["Reference"] if "/" in name]

    assert [name for name in listed if name not in parts()["In depth"]] == wanted
