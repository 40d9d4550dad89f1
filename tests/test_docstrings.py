"Every public name says what it is for, and every parameter what it is: `query:Tensor, # B H Q Dk`."

import ast
import io
import tokenize

import pytest
from project import modules, public, tree

LONGEST = 80  # characters of a parameter's comment; about 60 is the aim


def comments(module: str) -> dict[int, str]:
    "The comment at the end of each line that has one."
    source = modules()[module].read_text(encoding="utf-8")
    return {
        token.start[0]: token.string.lstrip("# ").rstrip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }


def definitions(module: str) -> dict:
    "The module's public functions and classes."
    names = set(public(tree(modules()[module])))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        node.name: node
        for node in tree(modules()[module]).body
        if isinstance(node, kinds) and node.name in names
    }


def parameters(function) -> dict[str, int]:
    "The parameters to be explained, with the line on which each ends: not `self`, nor options with a `help=`."
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults = dict(
        zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True)
    )
    defaults |= {
        name: value
        for name, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if value
    }
    extra = [name for name in (given.vararg, given.kwarg) if name]
    return {
        name.arg: defaults.get(name, name).end_lineno
        for name in [*plain, *given.kwonlyargs, *extra]
        if name.arg not in ("self", "cls") and not helped(name)
    }


def helped(name: ast.arg) -> bool:
    return any(
        isinstance(node, ast.keyword) and node.arg == "help" for node in ast.walk(name)
    )


def fields(node: ast.ClassDef) -> dict[str, int]:
    "The fields of a dataclass or named tuple, with their lines."
    is_data = any(
        "dataclass" in ast.unparse(decorator) for decorator in node.decorator_list
    )
    is_tuple = any(ast.unparse(base) in ("NamedTuple", "TypedDict") for base in node.bases)
    found = {
        field.target.id: field.end_lineno
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    return found if is_data or is_tuple else {}


def places(module: str):
    "Everything in a module that has to be explained: a title, and the lines of its parts."
    for name, node in definitions(module).items():
        if isinstance(node, ast.ClassDef):
            yield name, fields(node)
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name in (
                    "__init__",
                    "forward",
                    "__call__",
                ):
                    yield f"{name}.{method.name}", parameters(method)
        else:
            yield name, parameters(node)


every_module = pytest.mark.parametrize("module", modules())


@every_module
def test_public_names_have_a_docstring(module):
    bare = [
        name
        for name, node in definitions(module).items()
        if not (ast.get_docstring(node) or "").strip()
    ]
    assert not bare, f"{module}: no docstring on {', '.join(bare)}"


@every_module
def test_module_has_a_docstring(module):
    assert ast.get_docstring(tree(modules()[module])), (
        "the notebook's H1 needs a block quote below it"
    )


@every_module
def test_parameters_are_explained(module):
    if module == "one_page":
        pytest.skip("a page in plain PyTorch: the shapes stand behind each signature")
    said, wrong = comments(module), []
    for title, parts in places(module):
        lines = list(parts.values())
        for name, line in parts.items():
            comment = said.get(line, "")
            if not comment:
                wrong.append(f"{module}.{title}: {name} has no comment")
            elif len(comment) > LONGEST:
                wrong.append(
                    f"{module}.{title}: the comment on {name} has {len(comment)} characters, at most {LONGEST}"
                )
            elif lines.count(line) > 1:
                wrong.append(
                    f"{module}.{title}: {name} shares its line, and so its comment"
                )
    assert not wrong, "\n".join(wrong)


@every_module
def test_public_names_exist(module):
    "Nothing but names that the module itself defines is offered."
    body = tree(modules()[module]).body
    defined = {node.name for node in body if hasattr(node, "name")}
    for node in body:
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            defined |= (
                {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
                if target is not None
                else set()
            )
    missing = set(public(tree(modules()[module]))) - defined
    assert not missing, f"{module}.__all__ names {sorted(missing)}"
