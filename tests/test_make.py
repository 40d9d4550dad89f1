"The Makefile: complete help, and nothing removed that it did not make."

import re
import shutil

import pytest
from project import ROOT, make

MARK = ".made-by-make"


@pytest.fixture
def place(tmp_path):
    "A folder with all that make looks at, and no environment. Its name holds a blank and an apostrophe."
    folder = tmp_path / "some one's clone"
    folder.mkdir()
    for name in ("Makefile", "settings.ini", "setup.py", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    for name in ("annotated_transformer", "nbs", "docs", "tests"):
        (folder / name).mkdir()
    return folder


@pytest.fixture
def python(tmp_path):
    "A `python` that installs nothing, and makes copies of itself for environments."
    path = tmp_path / "python"
    text = 'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi'
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_help_names_every_target(place):
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.+)$", text, re.M)[1].split()

    lines = make(folder=place).stdout.splitlines()

    assert [line.split()[1] for line in lines] == targets


def test_distclean_leaves_a_folder_that_make_did_not_make(place, python):
    "Even where make installed something into it."
    kept = place / "mine" / "work.txt"
    kept.parent.mkdir()
    kept.touch()

    make("core", "VENV=mine", f"PYTHON={python}", folder=place)
    done = make("distclean", "VENV=mine", folder=place)

    assert kept.exists()
    assert "mine is not removed" in done.stderr


def test_an_environment_that_is_not_one_word_is_refused_first(place):
    kept = place / "mine" / MARK
    kept.parent.mkdir()
    kept.touch()

    done = make("distclean", "VENV=mine old", folder=place)

    assert done.returncode
    assert "nothing was done" in done.stderr
    assert kept.exists()
