"The names of the package, loaded when they are asked for."

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
