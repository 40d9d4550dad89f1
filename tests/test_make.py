"The Makefile: complete help, set-up once and no more than needed, clear words where a machine lacks something."

import ast
import os
import re
import shutil

import pytest
from project import ROOT, make, repository

TEXT = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.+)$", TEXT, re.M)[1].split()


@pytest.fixture
def place(tmp_path):
    "A folder with all that make looks at, and no environment."
    for name in ("Makefile", "settings.ini", "setup.py", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("annotated_transformer", "nbs", "docs", "tests"):
        (tmp_path / name).mkdir()
    return tmp_path


def set_up(folder, *stamps):
    "Pretend that these installs were done just now."
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("bin/python", *stamps):
        (folder / ".venv" / name).touch()


def test_help_names_every_target(place):
    lines = make(folder=place).stdout.splitlines()
    assert [line.split()[1] for line in lines] == TARGETS
    assert all(len(line.split()) > 4 for line in lines), "a target without its line"


def test_copy_task_installs_the_core_only(place):
    fresh = make("-n", "copy-task", "ARGS=--steps 3", folder=place).stdout
    assert 'annotated-transformer" copy-task --steps 3' in fresh
    assert "pip" in fresh and "[dev" not in fresh
    assert "[dev" in make("-n", "test", folder=place).stdout


@pytest.mark.parametrize(
    "target,stamps",
    [("copy-task", [".core"]), ("test", [".core", ".dev"]), ("docs", [".core", ".dev"])],
)
def test_set_up_is_not_repeated(place, target, stamps):
    set_up(place, *stamps)
    assert "pip" not in make("-n", target, folder=place).stdout


@pytest.mark.parametrize("name", ["settings.ini", "setup.py", "constraints.txt"])
def test_a_changed_pin_installs_again(place, name):
    set_up(place, ".core", ".dev")
    later = (place / ".venv" / ".dev").stat().st_mtime + 10
    os.utime(place / name, (later, later))
    assert (
        "pip" in make("-n", "copy-task", folder=place).stdout
        and "[dev" in make("-n", "test", folder=place).stdout
    )


def stand_in(folder, refuses="nothing"):
    """A `python` that writes down how it is called, makes copies of itself for environments, and fails on request.

    It fails where an old Python does, or one without its venv module.
    """
    python = folder / "python"
    python.write_text(
        f"""#!/bin/sh
echo "$*" >> {folder}/calls
case "$*" in *{refuses}*) exit 1;; esac
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi
""",
        encoding="utf-8",
    )
    python.chmod(0o755)
    return python


def calls(folder) -> list[str]:
    path = folder / "calls"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def test_set_up_happens_once(place):
    python = stand_in(place)
    for target, option in (("core", "-e ."), ("dev", "-e .[dev,docs]")):
        assert make(target, f"PYTHON={python}", folder=place).returncode == 0
        installs = [call for call in calls(place) if "install" in call]
        assert installs[-1].endswith(option) and all(
            "-c constraints.txt" in call for call in installs
        )
    before = calls(place)
    for target in ("core", "dev"):
        make(target, f"PYTHON={python}", folder=place)
    assert calls(place) == before


@pytest.mark.parametrize(
    "refuses,words,tried",
    [
        ("version_info", "needs Python 3.10 or newer", 1),
        ("venv", "install its venv module", 2),
    ],
)
def test_a_python_that_will_not_do_is_refused(place, refuses, words, tried):
    done = make("copy-task", f"PYTHON={stand_in(place, refuses)}", folder=place)
    assert done.returncode and words in done.stderr
    assert len(calls(place)) == tried and not (place / ".venv").exists()


def test_a_missing_python_is_named(place):
    done = make("copy-task", "PYTHON=no-such-python", folder=place)
    assert done.returncode and "no-such-python is not" in done.stderr


MARK = ".made-by-make"


def foreign(folder, name):
    "A folder that make did not make, with something in it."
    kept = folder / name / "work.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine", encoding="utf-8")
    return kept


def test_distclean_removes_the_environment_that_make_made(place):
    assert make("core", f"PYTHON={stand_in(place)}", folder=place).returncode == 0
    assert (place / ".venv" / MARK).exists()
    assert make("distclean", folder=place).returncode == 0
    assert not (place / ".venv").exists()


@pytest.mark.parametrize("name", [".venv", "old/venv"])
def test_distclean_leaves_a_folder_that_make_did_not_make(place, name):
    kept = foreign(place, name)
    done = make("distclean", f"VENV={name}", folder=place)
    assert kept.read_text(encoding="utf-8") == "mine"
    assert f"{name} is not removed" in done.stderr and f"{name}/{MARK}" in done.stderr


def test_an_environment_that_was_there_is_used_and_stays(place):
    python = stand_in(place)
    kept = foreign(place, ".venv")
    assert make("core", f"PYTHON={python}", folder=place).returncode == 0
    make("distclean", folder=place)
    assert kept.exists() and not (place / ".venv" / MARK).exists()


def test_a_failed_environment_is_removed_only_if_make_made_it(place):
    python = stand_in(place, "venv")
    kept = foreign(place, "theirs")
    for name in ("theirs", "own"):
        done = make("core", f"PYTHON={python}", f"VENV={name}", folder=place)
        assert done.returncode and "install its venv module" in done.stderr
        assert ("left as it is" in done.stderr) == (name == "theirs")
    assert kept.exists() and not (place / "own").exists()


@pytest.mark.parametrize(
    "value,words",
    [
        ("mine old/venv", "a blank in its name"),
        ("mine ", "a blank in its name"),
        ("", "is empty"),
        *(
            (name, "as part of a name")
            for name in (
                "*",
                "min?",
                "~/mine",
                "mine'",
                'mine"',
                "mine:old",
                "-mine",
                "mine;old",
            )
        ),
    ],
)
@pytest.mark.parametrize("target", ["distclean", "core"])
def test_a_folder_that_make_cannot_handle_is_refused_first(place, target, value, words):
    kept = [foreign(place, name) for name in ("mine", "old/venv", "mine old/venv", "build")]
    for path in kept:
        (path.parent / MARK).touch()
    done = make(target, f"VENV={value}", f"PYTHON={stand_in(place)}", folder=place)
    assert done.returncode and words in done.stderr and "nothing was done" in done.stderr
    assert all(path.exists() for path in kept) and calls(place) == []


def test_a_repository_in_a_folder_with_a_blank(place):
    folder = place.parent / f"{place.name} b's"
    shutil.copytree(place, folder)
    assert make("core", f"PYTHON={stand_in(place)}", folder=folder).returncode == 0
    assert (folder / ".venv" / MARK).exists()
    assert make("distclean", folder=folder).returncode == 0
    assert not (folder / ".venv").exists()


def test_no_command_line_is_split_at_blanks():
    "`f'{sys.executable} -m ruff'.split()` breaks a path with a blank in it, and so five tests of a repository in such a folder."
    places = [path for path in repository() if path.suffix == ".py"]
    split = [
        f"{path}:{node.lineno}"
        for path in places
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "split"
        if isinstance(node.func.value, ast.JoinedStr) and not node.args
    ]
    assert places and not split, split


def test_paths_are_quoted():
    recipes = [
        line for line in TEXT.replace("\\\n", " ").splitlines() if line.startswith("\t")
    ]
    bare = [
        line
        for line in recipes
        if re.search(r"\$\((VENV|BIN|MARK|PYTHON)\)", re.sub(r'"[^"]*"', '""', line))
    ]
    assert recipes and not bare, bare
