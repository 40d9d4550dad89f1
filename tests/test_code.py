"The package as code: imports go one way, need nothing but torch, and load nothing heavy."

import ast
import functools
import subprocess
import sys

import pytest
from project import PACKAGE, ROOT, modules, settings, tree

# From the ground up: each imports only from itself and from below.
FLOORS = [
    "base",
    "figures",
    "core",
    "training",
    "text",
    "decoding",
    "models",
    "debugging",
    "inspection",
    "translator",
    "interop",
    "generation",
    "tasks",
    "cli",
]
MODELS = {
    "core.multi_head_attention",
    "core.layers",
    "core.embeddings",
    "core.positions",
    "core.rotary",
    "core.kv_cache",
    "core.transformer",
}
# It is for people who have matplotlib; all other modules need torch alone.
NEED_MORE = {"figures.plotting": "matplotlib"}
HEAVY = [
    "matplotlib",
    "PIL",
    "pandas",
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


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported_names(node: ast.AST, module: str) -> set[str]:
    "The full names that an import statement may mean, as a module or as a name in one."
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return set()

    here = [PACKAGE.name, *module.split(".")]
    base = here[: -node.level] if node.level else []
    if node.module:
        base = [*base, node.module]
    base = ".".join(base)
    return {base, *(f"{base}.{alias.name}" for alias in node.names)}


@functools.cache
def imports(module: str) -> frozenset[str]:
    "The modules of this library that a module imports, at its head or inside a function."
    found = set()
    waiting = [tree(modules()[module])]

    while waiting:
        node = waiting.pop()
        if is_for_type_checkers(node):
            continue
        found |= imported_names(node, module)
        waiting += ast.iter_child_nodes(node)

    ours = {name.removeprefix(f"{PACKAGE.name}.") for name in found}
    return frozenset(ours & modules().keys())


def reached(module: str) -> dict[str, list[str]]:
    "All modules that a module imports, directly or through others, each with the way there."
    ways = {}
    waiting = [[module]]

    while waiting:
        way = waiting.pop()
        for name in imports(way[-1]):
            if name not in ways:
                ways[name] = [*way, name]
                waiting.append(ways[name])

    return ways


def test_imports_form_no_cycle():
    cycles = [
        " imports ".join(reached(module)[module])
        for module in modules()
        if module in reached(module)
    ]

    assert not cycles, "\n".join(cycles)


def test_imports_go_down():
    "A folder imports from itself and from those below it. Imports for type checkers count too: they tie files as well."
    wrong = []
    for module in modules():
        floor = module.partition(".")[0]
        below = FLOORS[: FLOORS.index(floor) + 1]
        for node in ast.walk(tree(modules()[module])):
            for name in imported_names(node, module):
                place = name.removeprefix(f"{PACKAGE.name}.").partition(".")[0]
                if place in FLOORS and place not in below:
                    wrong.append(f"{module} imports {name}")

    assert {module.partition(".")[0] for module in modules()} == set(FLOORS)
    assert not wrong, "\n".join(wrong)


def test_training_and_decoding_know_no_model():
    assert MODELS <= modules().keys(), "a module was renamed, and has to be renamed here"

    for module in ("training.loop", "decoding.greedy"):
        ways = reached(module)
        assert ways, f"{module} imports nothing, which this test must have misread"

        for name, way in ways.items():
            knows = name in MODELS or name.startswith("models.")
            assert not knows, " imports ".join(way)


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )


def modules_for_torch_alone() -> list[str]:
    assert NEED_MORE.keys() <= modules().keys()
    return [f"{PACKAGE.name}.{name}" for name in modules() if name not in NEED_MORE]


def test_torch_is_enough():
    names = [PACKAGE.name, *modules_for_torch_alone()]

    done = python(f"""
import importlib, sys, traceback, warnings

for name in {[*HEAVY, "numpy"]}:
    sys.modules[name] = None
with warnings.catch_warnings():
    warnings.simplefilter("ignore") # torch misses numpy
    import torch

failed = False
for name in {names}:
    try:
        importlib.import_module(name)
    except ImportError:
        failed = True
        print(name, traceback.format_exc(limit=-2))
sys.exit(failed)
""")

    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_heavy_is_loaded_early():
    done = python(f"""
import importlib, sys
import torch

before = set(sys.modules)
for name in {modules_for_torch_alone()}:
    importlib.import_module(name)
    new = {{module.partition(".")[0] for module in set(sys.modules) - before}}
    heavy = sorted(new & {set(HEAVY)})
    if heavy:
        sys.exit(f"{{name}} loads {{', '.join(heavy)}}")
""")

    assert done.returncode == 0, done.stderr


def test_drawings_need_no_torch():
    "The site draws with them, and is built without it."
    assert "figures.diagrams" in modules()

    done = python(
        f"import sys; sys.modules['torch'] = None; import {PACKAGE.name}.figures.diagrams"
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module,package", NEED_MORE.items())
def test_a_missing_package_is_named(module, package):
    done = python(
        f"import sys; sys.modules[{package!r}] = None; import {PACKAGE.name}.{module}"
    )

    assert done.returncode
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError"), done.stderr
    assert f"pip install {package}" in last, done.stderr


def test_version_is_that_of_the_settings():
    done = python(f"import {PACKAGE.name}; print({PACKAGE.name}.__version__)")

    assert done.stdout.strip() == settings()["version"], done.stderr
