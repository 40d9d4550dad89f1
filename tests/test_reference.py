"The pages of reference lead to chapters that exist, and the bibliography has what the chapters cite."

import functools
import re

from project import ROOT, chapters

NBS = ROOT / "nbs"
PAGES = [NBS / f"{name}.md" for name in ("glossary", "paper", "bibliography")]
ARXIV = re.compile(r"\[([^\]]+)\]\(https://arxiv\.org/(?:abs|pdf)/(\d{4}\.\d{4,5})")


def rows(page) -> list[list[str]]:
    "The cells of all tables."
    return [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]


@functools.cache
def sources(code: bool) -> dict[str, str]:
    "The text of each chapter, with or without its code."
    return {
        chapter.name: "\n".join(
            cell.source for cell in chapter.cells if code or not cell.is_code
        )
        for chapter in chapters()
    }


def bibliography() -> dict[str, tuple]:
    "Number at arXiv -> (the entry, names of the chapters that cite it)."
    found = {}
    for work, where, cited_in in rows(NBS / "bibliography.md"):
        numbers = ARXIV.search(where)
        if numbers:
            assert numbers[2] not in found, f"{numbers[2]} is there twice"
            found[numbers[2]] = work, re.findall(r"\(([\w./]+)\.ipynb\)", cited_in)
    return found


def test_links_lead_to_files():
    for page in PAGES:
        targets = re.findall(r"\]\(([^)#:\s]+)\)", page.read_text(encoding="utf-8"))
        assert targets
        missing = [target for target in targets if not (NBS / target).exists()]
        assert not missing, f"{page.name}: {missing}"


def test_what_a_chapter_cites_is_in_the_bibliography():
    known = bibliography()
    missing = [
        f"{name} cites {text}: {number}"
        for name, text in sources(code=False).items()
        for text, number in ARXIV.findall(text)
        if number not in known or name not in known[number][1]
    ]

    assert known and not missing, "\n".join(missing)


def test_the_bibliography_has_no_more_than_is_cited():
    "By its number, or by its first author and year."
    wrong = []
    for number, (entry, cited_in) in bibliography().items():
        author = re.match(r"[\w-]+", entry)[0]
        year = re.search(r"\d{4}", entry)[0]
        for name in cited_in:
            text = sources(code=True)[name]
            if number not in text and not (author in text and year in text):
                wrong.append(f"{entry}: not in {name}")

    assert not wrong, "\n".join(wrong)
