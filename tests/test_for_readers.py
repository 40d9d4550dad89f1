"Notebooks elsewhere: in Colab they find the library, and what they say of other chapters leads there."

import importlib.util
import sys
from types import ModuleType

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from project import ROOT, chapters, settings

each_chapter = pytest.mark.parametrize(
    "chapter", chapters(), ids=lambda chapter: chapter.name
)


@pytest.fixture(scope="module")
def script():
    "nbs/for_readers.py, as a module."
    spec = importlib.util.spec_from_file_location(
        "for_readers", ROOT / "nbs" / "for_readers.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each_chapter
def test_colab_is_served_once_after_the_title(chapter, script):
    places = [
        i
        for i, cell in enumerate(chapter.cells)
        if cell.id == "colab" or "google.colab" in cell.source
    ]
    assert places == [1], f"{chapter.name}: python nbs/for_readers.py colab"
    assert (
        chapter.cells[1].source == script.COLAB
        and chapter.cells[1].hidden
        and not chapter.cells[1].outputs
    )


@pytest.fixture
def calls(monkeypatch, script):
    "Run Colab's cell, as IPython does, and say what it would have called."

    def run() -> list[str]:
        found = []

        class Shell:
            def system(self, command):
                found.append(f"!{command}")

            def run_line_magic(self, name, words):
                found.append(f"%{name} {words}")

        exec(TransformerManager().transform_cell(script.COLAB), {"get_ipython": Shell})
        return found

    monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    return run


def test_nothing_is_installed_elsewhere(calls):
    assert calls() == []


def test_colab_gets_the_book_and_the_library(calls, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    expected = settings()
    home, clone, inside, install = calls()
    assert clone.startswith("!git clone ") and clone.split()[-1] == expected["git_url"]
    assert (
        home.startswith("%cd ")
        and inside.split()[-1]
        == f"{expected['git_url'].rpartition('/')[2]}/{expected['nbs_path']}"
    )
    assert (
        install.startswith("%pip install ")
        and install.endswith("'..[notebooks]'")
        and expected["notebooks_requirements"]
    )


def test_colab_cell_is_put_in_once_and_changes_nothing_else(script, tmp_path):
    path = chapters()[0].path
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    script.prepare(copy, {"colab", "links"})
    assert not script.prepare(copy, {"colab", "links"})
    first = copy.read_text(encoding="utf-8")
    assert first.count('"id": "colab"') == 1


# ---- Links to chapters ----


@each_chapter
def test_chapters_that_are_named_are_linked(chapter, script):
    bare = [
        f"{chapter.name}, cell {cell.id}: {found}"
        for cell in chapter.cells
        if not cell.is_code
        for found in script.mentions(cell.source)
    ]
    assert not bare, "\n".join(bare) + "\npython nbs/for_readers.py links"


def test_readme_links_chapters(script):
    assert not script.mentions((ROOT / "README.md").read_text(encoding="utf-8"))


def test_what_is_linked_and_what_is_not(script):
    file = script.chapters()
    link = "[{}]({})".format
    assert (
        script.linked("In chapter 33, or chapter 7.")
        == f"In {link('chapter 33', file[33])}, or {link('chapter 7', file[7])}."
    )
    several = (
        f"chapters {link('02', file[2])}, {link('03', file[3])} and {link('10', file[10])}"
    )
    assert script.linked("chapters 02, 03 and 10") == several
    for text in (
        several,
        "`chapter 33`",
        "## chapter 33",
        "```\nchapter 33\n```",
        "chapter 99",
        "[chapter 33](x)",
        "chapters of 33",
        "chapter 335",
    ):
        assert script.linked(text) == text and not script.mentions(text)


@pytest.mark.parametrize(
    "chapter", [c for c in chapters() if c.number <= "09"], ids=lambda chapter: chapter.name
)
def test_a_first_reading_of_the_model_takes_twenty_minutes_a_chapter(chapter):
    assert chapter.first_reading <= 20, (
        "the rest belongs behind `A first reading may end here`"
    )
