"The committed modules are what the notebooks export, byte for byte, and the notebooks are clean."

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import PACKAGE, ROOT, chapters


def contents(package: Path) -> dict[str, bytes]:
    return {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in package.rglob("*.py")
    }


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    "A copy of the project whose modules were all exported anew, and whose notebooks were cleaned."
    copy = tmp_path_factory.mktemp("project")
    for name in ("settings.ini", "setup.py"):
        shutil.copy(ROOT / name, copy)

    by_hand = (PACKAGE.name, "__*__.py")
    for folder, kind in (("nbs", "*.ipynb"), by_hand):
        for path in (ROOT / folder).rglob(kind):
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)

    # nbdev exports nothing while IN_TEST is set, and setup.py must not find the working tree
    env = dict(os.environ)
    env.pop("IN_TEST", None)
    env.pop("PYTHONPATH", None)

    code = """
from nbdev.clean import nbdev_clean
from nbdev.doclinks import nbdev_export

nbdev_export()
nbdev_clean()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        cwd=copy,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return copy


def test_modules_are_what_the_notebooks_export(exported):
    fresh = contents(exported / PACKAGE.name)
    committed = contents(PACKAGE)

    without = sorted(committed.keys() - fresh.keys())
    assert not without, f"no notebook exports {without}"

    missing = sorted(fresh.keys() - committed.keys())
    assert not missing, f"run nbdev_export, and git add {missing}"

    stale = sorted(name for name in fresh if fresh[name] != committed[name])
    assert not stale, f"change the notebook, then run nbdev_export: {stale}"


def test_notebooks_are_clean(exported):
    unclean = [
        chapter.name
        for chapter in chapters()
        if chapter.path.read_bytes()
        != (exported / chapter.path.relative_to(ROOT)).read_bytes()
    ]

    assert not unclean, f"run nbdev_clean: {unclean}"


def test_a_module_is_named_by_one_notebook():
    "By its `default_exp`: it begins there, and cells of other notebooks may follow."
    named = [chapter.module for chapter in chapters() if chapter.module]

    assert named and len(set(named)) == len(named), sorted(named)
