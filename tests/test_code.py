"The package as code: no free or unused names, imports only downwards, and nothing heavy before it is needed."

import ast
import functools
import subprocess
import sys

import pytest
from project import PACKAGE, ROOT, chapters, modules, repository, settings, tree

MODELS = {"multi_head", "layers", "embeddings", "transformer"}
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
    paths = [ROOT / path for path in repository() if path.parts[0] == folder and path.suffix == ".py"]
    if not paths:
        pytest.skip(f"there is no Python in {folder}/")
    ruff = f"{sys.executable} -m ruff check --isolated --no-cache --output-format concise --select {RULES}".split()
    done = subprocess.run([*ruff, *paths], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@functools.cache
def imports(module: str) -> frozenset[str]:
    "The modules of this library that a module imports anywhere in its code."
    found = set()
    for node in ast.walk(tree(modules()[module])):
        if isinstance(node, ast.ImportFrom):
            inside = node.level > 0 or (node.module or "").split(".")[0] == PACKAGE.name
            parts = (node.module or "").split(".") if node.level else (node.module or "").split(".")[1:]
            if inside:
                found |= {parts[0]} if parts and parts[0] else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith(f"{PACKAGE.name}.")}
    return frozenset(found & modules().keys())


def numbers() -> dict[str, str]:
    return {chapter.module: chapter.number for chapter in chapters() if chapter.module}


@pytest.mark.parametrize("module", modules())
def test_imports_point_downwards(module):
    number = numbers()
    allowed = {"plotting": {"config"}, "config": set(), "runs": {"plotting", "config"}, "cli": set(number)}.get(
        module, {"plotting", "config", "runs"} | {other for other in number if number[other] < number[module]}
    )
    upwards = imports(module) - allowed
    assert not upwards, f"{module} ({number[module]}) imports " + ", ".join(
        f"{name} ({number[name]})" for name in sorted(upwards)
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
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_torch_is_enough():
    "All but `plotting` and `cli` import where nothing else is installed."
    names = [PACKAGE.name, *(f"{PACKAGE.name}.{name}" for name in modules() if name not in ("plotting", "cli"))]
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


def test_nothing_heavy_is_loaded_early():
    "Importing all chapters loads what `import torch` loads."
    names = [f"{PACKAGE.name}.{name}" for name in modules() if name not in ("plotting", "cli")]
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
    done = python(f"import sys; sys.modules[{package!r}] = None; import {PACKAGE.name}.{module}")
    last = done.stderr.strip().splitlines()[-1] if done.stderr else ""
    assert done.returncode and last.startswith("ImportError") and f"pip install {package}" in last, done.stderr


def test_version_is_the_same_everywhere():
    done = python(f"import {PACKAGE.name}; print({PACKAGE.name}.__version__)")
    assert done.stdout.strip() == settings()["version"], done.stderr
