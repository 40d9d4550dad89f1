"Every public name says what it is for, and every tensor that it takes has its shape: `query: Tensor,  # B H Q Dk`."

import ast
import io
import tokenize
from pathlib import Path

from project import modules, public, tree


def comments(path: Path) -> dict[int, str]:
    "The comment at the end of each line that has one."
    source = path.read_text(encoding="utf-8")
    return {
        token.start[0]: token.string.lstrip("# ").rstrip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }


def definitions(path: Path) -> list:
    "A module's public functions and classes."
    module = tree(path)
    names = set(public(module))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in module.body if isinstance(node, kinds) and node.name in names]


def functions(node) -> list[tuple[str, ast.FunctionDef]]:
    "What a user calls: the function itself, or a class's ways to be made and called."
    if not isinstance(node, ast.ClassDef):
        return [(node.name, node)]
    return [
        (f"{node.name}.{method.name}", method)
        for method in node.body
        if isinstance(method, ast.FunctionDef)
        and method.name in ("__init__", "forward", "__call__")
    ]


def tensors(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    return [
        parameter
        for parameter in [*given.posonlyargs, *given.args, *given.kwonlyargs]
        if parameter.annotation
        and ast.unparse(parameter.annotation).split(" | ")[0] in ("Tensor", "torch.Tensor")
    ]


def test_modules_have_a_docstring():
    bare = [name for name, path in modules().items() if not ast.get_docstring(tree(path))]

    assert not bare, f"the notebook's title needs a block quote below it: {bare}"


def test_public_names_have_a_docstring():
    bare = [
        f"{name}.{node.name}"
        for name, path in modules().items()
        for node in definitions(path)
        if not (ast.get_docstring(node) or "").strip()
    ]

    assert not bare, "\n".join(bare)


def test_tensors_have_their_shape():
    bare = []
    seen = 0

    for module, path in modules().items():
        said = comments(path)
        for node in definitions(path):
            for title, function in functions(node):
                for parameter in tensors(function):
                    seen += 1
                    if not said.get(parameter.end_lineno):
                        bare.append(f"{module}.{title}: {parameter.arg}")

    assert seen > 100, "the tensors were not found"
    assert not bare, "\n".join(bare)
