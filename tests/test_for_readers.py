"Notebooks elsewhere: in Colab they find the library, and what they say of other chapters leads there."

import importlib
import sys
from types import ModuleType

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from project import ROOT, chapters, settings


@pytest.fixture(scope="module")
def script():
    "tools/for_readers.py, as a module."
    sys.path.insert(0, str(ROOT / "tools"))
    return importlib.import_module("for_readers")


# ---- Colab ----


def test_colab_is_served_once_after_the_title(script):
    wrong = []
    for chapter in chapters():
        places = [
            i
            for i, cell in enumerate(chapter.cells)
            if cell.id == "colab" or "google.colab" in cell.source
        ]
        if places != [1] or chapter.cells[1].source != script.COLAB:
            wrong.append(chapter.name)

    assert not wrong, f"python tools/for_readers.py colab: {wrong}"


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
    repo = expected["git_url"].rpartition("/")[2]

    home, clone, inside, install = calls()

    assert home.startswith("%cd ")
    assert clone.startswith("!git clone ")
    assert clone.split()[-1] == expected["git_url"]
    assert inside.split()[-1] == f"{repo}/{expected['nbs_path']}"
    assert install.startswith("%pip install ")
    assert install.endswith("'..[notebooks]'")
    assert expected["notebooks_requirements"]


def test_colab_cell_is_put_in_once(script, tmp_path):
    path = chapters()[0].path
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())

    script.prepare(copy, {"colab", "links"})

    assert not script.prepare(copy, {"colab", "links"}), "a second time changes nothing"
    assert copy.read_text(encoding="utf-8").count('"id": "colab"') == 1


# ---- Links to chapters ----


def test_chapters_that_are_named_are_linked(script):
    texts = {
        f"{chapter.name}, cell {cell.id}": cell.source
        for chapter in chapters()
        for cell in chapter.cells
        if not cell.is_code
    }
    for page in ("README.md", "nbs/installing.md", "nbs/commands.md", "nbs/library.md"):
        texts[page] = (ROOT / page).read_text(encoding="utf-8")

    bare = [
        f"{place}: {found}"
        for place, text in texts.items()
        for found in script.mentions(text)
    ]

    assert not bare, "python tools/for_readers.py links\n" + "\n".join(bare)


def test_what_is_linked(script):
    file = script.chapters()

    def link(words, number):
        return f"[{words}]({file[number]})"

    found = script.linked("In chapter 4.4, or chapter 1.7.")
    assert found == f"In {link('chapter 4.4', '4.4')}, or {link('chapter 1.7', '1.7')}."

    found = script.linked("chapters 1.2, 1.3 and 2.1")
    assert (
        found
        == f"chapters {link('1.2', '1.2')}, {link('1.3', '1.3')} and {link('2.1', '2.1')}"
    )


def test_what_is_not_linked(script, monkeypatch):
    known = {number: name for number, name in script.chapters().items() if number != "7.4"}
    monkeypatch.setattr(script, "chapters", lambda: known)

    for text in (
        "`chapter 4.4`",
        "## chapter 4.4",
        "```\nchapter 4.4\n```",
        "chapter 7.4",
        "[chapter 4.4](x)",
        "chapters of 33",
        "chapter 33.5",
    ):
        assert script.linked(text) == text
        assert not script.mentions(text)
