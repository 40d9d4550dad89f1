"The doors of the package: about twenty names, loaded when they are asked for."

import subprocess
import sys

import annotated_transformer
import pytest
from project import PACKAGE, ROOT, modules, public, tree

NAMES = annotated_transformer.__all__


@pytest.mark.parametrize("name", NAMES)
def test_name_is_that_of_its_module(name):
    module = annotated_transformer._PUBLIC[name]
    assert name in public(tree(modules()[module]))
    assert getattr(annotated_transformer, name).__module__ == f"{PACKAGE.name}.{module}"


def test_about_twenty():
    assert 15 <= len(NAMES) <= 25 and set(NAMES) <= set(dir(annotated_transformer))


def test_no_name_hides_a_module():
    "Importing a module sets an attribute of the package, which would take the place of the name."
    assert not set(NAMES) & {name.partition(".")[0] for name in modules()}


def test_importing_the_package_loads_nothing_else():
    code = f"import sys; import {PACKAGE.name}; print(sorted(m for m in sys.modules if 'torch' in m or m.startswith('{PACKAGE.name}.')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'Transfomer'"):
        annotated_transformer.Transfomer  # noqa: B018
    with pytest.raises(ImportError):
        from annotated_transformer import Transfomer  # noqa: F401
