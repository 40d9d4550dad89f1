"The pages of reference: terms, works and sections of the paper lead to chapters that exist, and nothing that is cited is missing."

import json
import re

import pytest
from project import ROOT, chapters

NBS = ROOT / "nbs"
PAGES = [NBS / f"{name}.md" for name in ("glossary", "paper", "bibliography")]
ARXIV = re.compile(r"\[([^\]]+)\]\(https://arxiv\.org/(?:abs|pdf)/(\d{4}\.\d{4,5})")
CITATION = re.compile(r"\b[A-Z][\w-]+(?: et al\.| and [A-Z][\w-]+) (?:19|20)\d\db?\b")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
each_chapter = pytest.mark.parametrize(
    "chapter", chapters(), ids=lambda chapter: chapter.name
)


def rows(page) -> list[list[str]]:
    "The cells of all tables, without heads."
    lines = [
        line
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return [
        row
        for row, line in zip(cells, lines)
        if not re.match(r"\| (?:term|symbol|section|work) \|", line)
    ]


def prose(chapter) -> str:
    return "\n".join(cell.source for cell in chapter.cells if not cell.is_code)


def bibliography() -> dict:
    "Number at arXiv -> (the entry, names of the chapters that cite it)."
    found = {}
    for row in rows(NBS / "bibliography.md"):
        if numbers := ARXIV.search(row[1]):
            assert numbers[2] not in found, f"{numbers[2]} stands there twice"
            found[numbers[2]] = row[0], re.findall(r"\(([\w.]+)\.ipynb\)", row[2])
    return found


@each_page
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#:\s]+)\)", page.read_text(encoding="utf-8"))
    assert targets and not [target for target in targets if not (NBS / target).exists()]


@each_page
def test_rows_are_whole(page):
    table = rows(page)
    assert len(table) > 25 and len({tuple(row) for row in table}) == len(table)
    assert not [row for row in table if not all(row)], "empty cells"
    assert {len(row) for row in table} == {5 if page.stem == "paper" else 3}


def test_terms_are_in_order():
    terms = [
        row[0].strip("*") for row in rows(NBS / "glossary.md") if row[0].startswith("**")
    ]
    assert len(terms) > 50 and terms == sorted(terms, key=str.lower)


@each_chapter
def test_what_a_chapter_cites_is_in_the_bibliography(chapter):
    known = bibliography()
    for text, number in ARXIV.findall(prose(chapter)):
        assert number in known, f"{text}: {number}"
        entry, cited_in = known[number]
        assert chapter.name in cited_in, f"{entry} is cited in {chapter.name}"


def test_the_bibliography_has_no_more_than_is_cited():
    for number, (entry, cited_in) in bibliography().items():
        for name in cited_in:
            source = "".join(
                "".join(c["source"])
                for c in json.loads((NBS / f"{name}.ipynb").read_text(encoding="utf-8"))[
                    "cells"
                ]
            )
            first, year = re.match(r"[\w-]+", entry)[0], re.search(r"\d{4}", entry)[0]
            assert number in source or (first in source and year in source), (
                f"{entry}: not in {name}"
            )


@each_chapter
def test_citations_with_an_arxiv_page_are_links(chapter):
    "Works that have no page there are named with their authors and year, as in the bibliography."
    works = [row[0] for row in rows(NBS / "bibliography.md")]
    unlinked = re.sub(r"\[[^\]]*\]\([^)]*\)", "", prose(chapter))
    for citation in CITATION.findall(unlinked):
        first, year = re.match(r"[\w-]+", citation)[0], citation[-4:]
        assert any(work.startswith(first) and year in work for work in works), (
            f"{chapter.name}: {citation}"
        )
        on_paper = [
            row
            for row in rows(NBS / "bibliography.md")
            if row[0].startswith(first) and year in row[0] and row[1] != "–"
        ]
        assert not on_paper, (
            f"{chapter.name}: {citation} has a page at arXiv, and is no link"
        )
