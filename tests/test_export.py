"The committed modules are what the notebooks export, byte for byte, and the notebooks are clean."

import os
import shutil
import subprocess
import sys

import pytest
from project import PACKAGE, ROOT, chapters, modules


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    "A copy of the project whose modules were all exported anew, and whose notebooks were cleaned."
    copy = tmp_path_factory.mktemp("project")
    for name in ("settings.ini", "setup.py"):
        shutil.copy(ROOT / name, copy)
    for folder, kind in (
        ("nbs", "*.ipynb"),
        (PACKAGE.name, "__*__.py"),
    ):  # these two are written by hand
        for path in (ROOT / folder).rglob(kind):
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    # nbdev exports nothing while IN_TEST is set, and setup.py is not to find the working tree
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("IN_TEST", "PYTHONPATH")
    }
    work = "from nbdev.doclinks import nbdev_export; from nbdev.clean import nbdev_clean; nbdev_export(); nbdev_clean()"
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", work],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return copy


def test_modules_are_what_the_notebooks_export(exported):
    fresh, committed = (
        {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*.py")
        }
        for folder in (exported / PACKAGE.name, PACKAGE)
    )
    assert not committed.keys() - fresh.keys(), "modules without a notebook"
    assert not fresh.keys() - committed.keys(), (
        "notebooks whose module is missing: run `make notebooks`, or nbdev_export"
    )
    stale = sorted(name for name in fresh if fresh[name] != committed[name])
    assert not stale, (
        f"not as exported: {', '.join(stale)}; change the notebook, then run nbdev_export"
    )


def test_notebooks_are_clean(exported):
    unclean = [
        chapter.path.name
        for chapter in chapters()
        if chapter.path.read_bytes() != (exported / "nbs" / chapter.path.name).read_bytes()
    ]
    assert not unclean, f"nbdev_clean would change {', '.join(unclean)}"


def test_notebook_and_module_share_a_name():
    for chapter in chapters():
        if chapter.module is not None:
            assert chapter.name.partition("_")[2] == chapter.module, (
                f"{chapter.name} exports to {chapter.module}"
            )
    names = [chapter.module for chapter in chapters() if chapter.module]
    assert sorted(names) == sorted(modules()), "one notebook per module"


def test_chapters_have_whole_numbers_of_their_own():
    numbers = [chapter.number for chapter in chapters()]
    assert len(set(numbers)) == len(numbers) and all(
        len(number) == 2 and number.isdecimal() for number in numbers
    )
