"The wheel holds the library and nothing else, and works where it is installed, far from this folder."

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    PathDistribution,
    distribution,
)
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from project import PACKAGE, ROOT, chapters, modules, repository, settings

pytestmark = pytest.mark.slow


def call(*command, cwd):
    "Run a program that finds this library only where it is installed."
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True
    )


def pip(*options, cwd):
    done = call(
        sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *options, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    "The repository in another place, because setuptools leaves its own files beside setup.py."
    copy = tmp_path_factory.mktemp("source")
    for path in repository():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, copy / path)
    return copy


@pytest.fixture(scope="module")
def wheel(copy, tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    pip(
        "wheel", ".", "--no-deps", "--no-index", "--no-build-isolation", "-w", out, cwd=copy
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    "The folder of an environment that holds the wheel, and sees this one's packages without its editable installs."
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, symlinks=True)
    pip(
        "--python",
        home / "bin" / "python",
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=home,
    )
    packages = next((home / "lib").glob("python3*")) / "site-packages"
    # at the end of the path, and read without the .pth files in it, which is how an editable install is found
    shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "shared.pth").write_text("\n".join(shared), encoding="utf-8")
    return home


def test_wheel_holds_the_library_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    library = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    sources = [
        path
        for ending in ("py", "css", "js", "typed")
        for path in PACKAGE.rglob(f"*.{ending}")
    ]
    sources += (PACKAGE / "pretrained").glob("*/*")
    results = (ROOT / "benchmarks" / "results").glob("*.json")
    expected = {
        f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}" for path in sources
    }
    assert library == expected | {f"{PACKAGE.name}/results/{path.name}" for path in results}
    assert any(name.endswith("/LICENSE") for name in names)


def test_wheel_knows_its_command_and_its_needs(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    known: Distribution = PathDistribution(next(tmp_path.glob("*.dist-info")))
    assert known.version == settings()["version"]
    scripts = {
        entry.name: entry.value
        for entry in known.entry_points
        if entry.group == "console_scripts"
    }
    assert scripts == {"annotated-transformer": f"{PACKAGE.name}.cli:main"}
    needs = {Requirement(need).name for need in known.requires if "extra ==" not in need}
    assert needs == {Requirement(need).name for need in settings()["requirements"].split()}


def test_installed_library_imports(installed, tmp_path):
    code = "import importlib, sys; print(*(importlib.import_module(name).__file__ for name in sys.argv[1:]), sep='\\n')"
    names = [PACKAGE.name, *(f"{PACKAGE.name}.{name}" for name in modules())]
    done = call(installed / "bin" / "python", "-c", code, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(Path(line).is_relative_to(installed) for line in done.stdout.split()), (
        done.stdout
    )


def test_installed_command_runs(installed, tmp_path):
    done = call(installed / "bin" / "annotated-transformer", "--help", cwd=tmp_path)
    assert done.returncode == 0 and "copy-task" in done.stdout, done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


# ---- In Colab ----


def closure(*needs: Requirement) -> set[str]:
    "The names of all distributions that pip would bring for these, of those that are here."
    found, waiting = (
        set(),
        [(need, extra) for need in needs for extra in ["", *need.extras]],
    )
    for need, extra in waiting:  # grows while it is walked
        name = canonicalize_name(need.name)
        if (name, extra) in found:
            continue
        try:
            wanted = map(Requirement, distribution(name).requires or ())
        except PackageNotFoundError:
            continue
        found.add((name, extra))
        due = [
            one
            for one in wanted
            if one.marker is None or one.marker.evaluate({"extra": extra})
        ]
        waiting += [(one, more) for one in due for more in ["", *one.extras]]
    return {name for name, _ in found}


def imports(chapter) -> list[str]:
    "All its statements `import`, also those inside of functions."
    nodes = [node for cell in chapter.cells if cell.is_code for node in ast.walk(cell.tree)]
    return [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]


@pytest.fixture(scope="module")
def colab(wheel, tmp_path_factory):
    "A path for Python with what `pip install '..[notebooks]'` brings, and nothing else: the wheel, and links to packages."
    unpacked, links = tmp_path_factory.mktemp("unpacked"), tmp_path_factory.mktemp("links")
    zipfile.ZipFile(wheel).extractall(unpacked)
    known = PathDistribution(next(unpacked.glob("*.dist-info")))
    needs = [
        need
        for need in map(Requirement, known.requires)
        if need.marker is None or need.marker.evaluate({"extra": "notebooks"})
    ]
    for name in closure(*needs):
        there = distribution(name)
        for top in {path.parts[0] for path in there.files or ()} - {"..", "__pycache__"}:
            if not (links / top).exists():
                (links / top).symlink_to(there.locate_file(top))
    return [str(unpacked), str(links)]


def test_chapters_import_what_colab_has(colab, tmp_path):
    "Each in names of its own, from the installed library and the packages that its extra `notebooks` names."
    wanted = {chapter.name: imports(chapter) for chapter in chapters()}
    code = f"""
import json, sys, traceback
sys.path += {colab}
failed = []
for chapter, statements in json.load(sys.stdin).items():
    names = {{}}
    for statement in statements:
        try: exec(statement, names)
        except Exception: failed.append(f"{{chapter}}: {{statement}}: {{traceback.format_exc(limit=-1)}}")
import {PACKAGE.name}
print(len(failed), {PACKAGE.name}.__file__, *failed, sep="\\n")
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        input=json.dumps(wanted),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    number, place, *failed = done.stdout.splitlines()
    assert Path(place).is_relative_to(colab[0]) and number == "0", "\n".join(failed)


def test_every_requirement_is_pinned_within_its_bounds():
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line.partition(" #")[0])
            version = next(iter(pin.specifier))
            assert version.operator == "==", line
            pins.setdefault(canonicalize_name(pin.name), []).append(version.version)
    for kind in (
        "requirements",
        "dev_requirements",
        "docs_requirements",
        "notebooks_requirements",
    ):
        for need in map(Requirement, settings()[kind].split()):
            versions = pins.get(canonicalize_name(need.name))
            assert versions, f"{need.name} of {kind} is not in constraints.txt"
            assert all(version in need.specifier for version in versions), (
                f"{need} in settings.ini, {versions} in constraints.txt"
            )
