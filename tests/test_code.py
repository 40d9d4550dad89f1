"The package as code: no free or unused names, imports only downwards, and nothing heavy before it is needed."

import ast
import functools
import subprocess
import sys

import pytest
from project import PACKAGE, ROOT, chapters, modules, repository, settings, tree

MODELS = {"multi_head_attention", "layers", "embeddings", "positions", "transformer"}
# Each folder may import from those before it; the root from itself alone, in the order of the chapters.
FOLDERS = ("", "inspection", "datasets", "models", "experiments", "debugging", "interop")
EVERYBODY = {
    "config",
    "plotting",
    "folders",
    "processes",
    "dropout",
    "diagrams",
    "svg",
}  # may be imported by all, and import nobody else
RULES = "E9,F,PLE,B006,B023"  # what cannot run, names out of place, and state shared by accident
HEAVY = [
    "matplotlib",
    "PIL",
    "pandas",
    "tqdm",
    "typer",
    "click",
    "rich",
    "safetensors",
    "IPython",
    "fastcore",
    "nbdev",
    "execnb",
    "tokenizers",
    "sacrebleu",
    "transformers",
    "datasets",
    "sklearn",
]


@pytest.mark.parametrize("folder", [PACKAGE.name, "tests", "benchmarks", "docs", "nbs"])
def test_no_free_or_unused_names(folder):
    paths = [
        ROOT / path
        for path in repository()
        if path.parts[0] == folder and path.suffix == ".py"
    ]
    if not paths:
        pytest.skip(f"there is no Python in {folder}/")
    ruff = [
        sys.executable,
        "-m",
        "ruff",
    ]  # not split from a line: the path of Python may hold a blank
    words = [
        "check",
        "--isolated",
        "--no-cache",
        "--output-format",
        "concise",
        "--select",
        RULES,
    ]
    done = subprocess.run([*ruff, *words, *paths], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@functools.cache
def imports(module: str) -> frozenset[str]:
    "The modules of this library that a module imports anywhere in its code."
    found, here = set(), [PACKAGE.name, *module.split(".")]
    for node in ast.walk(tree(modules()[module])):
        if isinstance(node, ast.ImportFrom):
            base = ".".join(
                [*(here[: -node.level] if node.level else []), *filter(None, [node.module])]
            )
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(
        {name.removeprefix(f"{PACKAGE.name}.") for name in found} & modules().keys()
    )


def numbers() -> dict[str, str]:
    return {chapter.module: chapter.number for chapter in chapters() if chapter.module}


def rank(module: str) -> tuple:
    "Its folder, then its chapter; what experiments share comes before all of them."
    shared = module == "experiments.experiment"
    return FOLDERS.index(module.rpartition(".")[0]), "" if shared else numbers()[module]


@pytest.mark.parametrize("module", modules())
def test_imports_point_downwards(module):
    if module == "cli":
        return  # stands in front of them all
    allowed = (
        EVERYBODY
        if module in EVERYBODY
        else EVERYBODY
        | {other for other in modules() if other != "cli" and rank(other) < rank(module)}
    )
    upwards = imports(module) - allowed - {module}
    assert not upwards, (
        f"{module} ({numbers()[module]}) imports {', '.join(sorted(upwards))}"
    )


@pytest.mark.parametrize("module", ["training", "decoding"])
def test_training_and_decoding_know_no_model(module):
    if module not in modules():
        pytest.skip(f"there is no {module} yet")
    paths, seen = [[module]], {module}
    for path in paths:  # grows while it is walked
        for name in imports(path[-1]) - seen:
            assert name not in MODELS, " imports ".join([*path, name])
            seen.add(name)
            paths.append([*path, name])


def test_no_star_imports():
    stars = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in [*PACKAGE.glob("*.py"), *(ROOT / "tests").glob("*.py")]
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    assert not stars, stars


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )


def test_torch_is_enough():
    "All but `plotting` and `cli` import where nothing else is installed."
    names = [
        PACKAGE.name,
        *(
            f"{PACKAGE.name}.{name}"
            for name in modules()
            if name not in ("plotting", "cli")
        ),
    ]
    done = python(f"""
import importlib, sys, traceback, warnings
for name in {[*HEAVY, "numpy"]}: sys.modules[name] = None
with warnings.catch_warnings():
    warnings.simplefilter("ignore") # torch misses numpy
    import torch
failed = False
for name in {names}:
    try: importlib.import_module(name)
    except ImportError: failed = True; print(name, traceback.format_exc(limit=-2))
sys.exit(failed)
""")
    assert done.returncode == 0, done.stdout + done.stderr


def test_drawings_need_nothing():
    "The site draws with them, and is built without torch."
    done = python(
        f"import sys; sys.modules['torch'] = None; import {PACKAGE.name}.diagrams"
    )
    assert done.returncode == 0, done.stderr


def test_nothing_heavy_is_loaded_early():
    "Importing all chapters loads what `import torch` loads."
    names = [
        f"{PACKAGE.name}.{name}" for name in modules() if name not in ("plotting", "cli")
    ]
    done = python(f"""
import importlib, sys
import torch
before = set(sys.modules)
for name in {names}:
    importlib.import_module(name)
    loaded = {{module.partition(".")[0] for module in set(sys.modules) - before}} & {set(HEAVY)}
    if loaded: sys.exit(f"{{name}} loads {{', '.join(sorted(loaded))}}")
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module,package", [("plotting", "matplotlib"), ("cli", "typer")])
def test_a_missing_package_is_named(module, package):
    done = python(
        f"import sys; sys.modules[{package!r}] = None; import {PACKAGE.name}.{module}"
    )
    last = done.stderr.strip().splitlines()[-1] if done.stderr else ""
    assert (
        done.returncode
        and last.startswith("ImportError")
        and f"pip install {package}" in last
    ), done.stderr


def test_version_is_the_same_everywhere():
    done = python(f"import {PACKAGE.name}; print({PACKAGE.name}.__version__)")
    assert done.stdout.strip() == settings()["version"], done.stderr
