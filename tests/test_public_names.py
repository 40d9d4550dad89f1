"The names of the package, loaded when they are asked for."

import inspect
import subprocess
import sys

import annotated_transformer
import pytest
from project import PACKAGE, ROOT, modules

NAMES = annotated_transformer.__all__


def test_each_name_is_that_of_its_module():
    assert NAMES and set(NAMES) <= set(dir(annotated_transformer))

    for name in NAMES:
        found = getattr(annotated_transformer, name)
        home = found.__module__.removeprefix(f"{PACKAGE.name}.")
        assert home in modules(), name
        assert getattr(sys.modules[found.__module__], name) is found, name


def test_no_name_hides_a_module():
    "Importing a module sets an attribute of the package, which would take the place of the name."
    assert not set(NAMES) & {name.partition(".")[0] for name in modules()}


def test_importing_the_package_loads_nothing_else():
    code = f"import sys, {PACKAGE.name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert PACKAGE.name in loaded
    assert "torch" not in loaded
    assert not [name for name in loaded if name.startswith(f"{PACKAGE.name}.")]


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'Transfomer'"):
        annotated_transformer.Transfomer  # noqa: B018
    with pytest.raises(ImportError):
        from annotated_transformer import Transfomer  # noqa: F401


# these are fields of a configuration, which refuses other names and lists its own
FIELDS = ("from_huggingface", "preset", "replace", "attention_of_kind")


def test_signatures_name_every_option():
    "An editor and `help` can't show what `**options` hides."
    seen = 0
    hidden = []
    for name in NAMES:
        found = getattr(annotated_transformer, name)
        functions = [found]
        if inspect.isclass(found):
            methods = inspect.getmembers(found, inspect.isroutine)
            functions = [method for key, method in methods if not key.startswith("_")]

        for function in functions:
            home = getattr(function, "__module__", None) or ""
            if home.startswith(PACKAGE.name) and function.__name__ not in FIELDS:
                kinds = [p.kind for p in inspect.signature(function).parameters.values()]
                seen += len(kinds)
                if inspect.Parameter.VAR_KEYWORD in kinds:
                    hidden.append(f"{name}: {function.__qualname__}")

    assert seen > 100
    assert not hidden, hidden


def test_a_misspelt_option_is_refused_by_the_function_that_was_called():
    calls = dict(sample=[None, None], generate=[None, None, "a"], translate=["cat", ["a"]])
    for name, arguments in calls.items():
        with pytest.raises(TypeError, match=f"^{name}.. got an unexpected .* 'beam_sise'"):
            getattr(annotated_transformer, name)(*arguments, beam_sise=3)
