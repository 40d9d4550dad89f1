"The Makefile: complete help, set-up once and no more than needed, clear words where a machine lacks something."

import os
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


def set_up(folder):
    "Pretend that everything was installed just now."
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("bin/python", ".core", ".dev"):
        (folder / ".venv" / name).touch()


def stand_in(folder, refuses="nothing"):
    """A `python` that writes down how it is called, makes copies of itself for environments, and fails on request.

    It fails where an old Python does, or one without its venv module.
    """
    python = folder.parent / "python"
    python.write_text(
        f"""#!/bin/sh
echo "$*" >> {folder.parent}/calls
case "$*" in *{refuses}*) exit 1;; esac
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi
""",
        encoding="utf-8",
    )
    python.chmod(0o755)
    return python


def calls(folder) -> list[str]:
    path = folder.parent / "calls"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def test_help_names_every_target(place):
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.+)$", text, re.M)[1].split()

    lines = make(folder=place).stdout.splitlines()

    assert [line.split()[1] for line in lines] == targets


def test_copy_task_installs_the_core_only(place):
    fresh = make("-n", "copy-task", "ARGS=--steps 3", folder=place).stdout

    assert 'annotated-transformer" copy-task --steps 3' in fresh
    assert "pip" in fresh
    assert "[dev" not in fresh
    assert "[dev" in make("-n", "test", folder=place).stdout


def test_set_up_is_repeated_for_a_changed_pin_alone(place):
    set_up(place)
    for target in ("copy-task", "check", "test", "docs"):
        assert "pip" not in make("-n", target, folder=place).stdout

    later = (place / ".venv" / ".dev").stat().st_mtime + 10
    os.utime(place / "constraints.txt", (later, later))
    assert "[dev" in make("-n", "test", folder=place).stdout


def test_everything_is_installed_once_within_the_pins(place):
    python = stand_in(place)

    for target, option in (("core", "-e ."), ("dev", "-e .[dev,docs]")):
        done = make(target, f"PYTHON={python}", folder=place)
        assert done.returncode == 0, done.stderr
        installs = [call for call in calls(place) if "install" in call]
        assert installs[-1].endswith(option)
        assert all("-c constraints.txt" in call for call in installs)

    before = calls(place)
    make("dev", f"PYTHON={python}", folder=place)
    assert calls(place) == before


@pytest.mark.parametrize(
    "refuses,words",
    [
        ("version_info", "needs Python 3.10 or newer"),
        ("venv", "install its venv module"),
    ],
)
def test_a_python_that_will_not_do_is_refused(place, refuses, words):
    done = make("copy-task", f"PYTHON={stand_in(place, refuses)}", folder=place)

    assert done.returncode
    assert words in done.stderr
    assert not (place / ".venv").exists()


def test_distclean_removes_the_environment_that_make_made(place):
    make("core", f"PYTHON={stand_in(place)}", folder=place)
    assert (place / ".venv" / MARK).exists()

    make("distclean", folder=place)

    assert not (place / ".venv").exists()


def test_distclean_leaves_a_folder_that_make_did_not_make(place):
    "Even where make installed something into it."
    kept = place / "mine" / "work.txt"
    kept.parent.mkdir()
    kept.touch()

    make("core", "VENV=mine", f"PYTHON={stand_in(place)}", folder=place)
    done = make("distclean", "VENV=mine", folder=place)

    assert kept.exists()
    assert "mine is not removed" in done.stderr


@pytest.mark.parametrize("name", ["mine old", ""])
def test_an_environment_that_is_not_one_word_is_refused_first(place, name):
    kept = place / "mine" / MARK
    kept.parent.mkdir()
    kept.touch()

    done = make("distclean", f"VENV={name}", folder=place)

    assert done.returncode
    assert "nothing was done" in done.stderr
    assert kept.exists()
