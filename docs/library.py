"""What the modules of the library say about themselves: names, parameters and their comments (docments), docstrings.

All of it comes from their syntax trees. So the site needs no torch, and each line number is that of the file.
"""

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Comment(NamedTuple):
    text: str
    alone: bool  # on its line


class Parameter(NamedTuple):
    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Module:
    public: dict  # name -> statement
    comments: dict  # line -> Comment


# ---- Modules ----


def read_module(path: Path) -> Module:
    return _read_module(path, path.stat().st_mtime)


@lru_cache(maxsize=None)
def _read_module(path: Path, changed: float) -> Module:
    source = path.read_text(encoding="utf-8")

    defined = {}
    for statement in ast.parse(source).body:
        for name in names_of(statement):
            defined[name] = statement
    public = []
    if "__all__" in defined:
        public = ast.literal_eval(defined["__all__"].value)

    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            alone = not token.line[:column].strip()
            comments[line] = Comment(token.string.lstrip("# ").strip(), alone)

    return Module({name: defined[name] for name in public if name in defined}, comments)


def names_of(statement) -> list:
    "The names that one top-level statement defines."
    if isinstance(statement, DEFINITIONS):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return []

    names = []
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append(node.id)
    return names


# ---- Parameters ----


def parameters(node, comments: dict) -> list:
    "Those of a function, or the annotated fields of a class."
    if isinstance(node, ast.ClassDef):
        return fields(node, comments)

    # the arguments in their order, with stars and defaults
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    arguments = [(a, "") for a in plain]
    if given.vararg:
        arguments.append((given.vararg, "*"))
    arguments += [(a, "") for a in given.kwonlyargs]
    if given.kwarg:
        arguments.append((given.kwarg, "**"))

    defaults = {}
    for a, default in zip(reversed(plain), reversed(given.defaults)):
        defaults[a.arg] = default
    for a, default in zip(given.kwonlyargs, given.kw_defaults):
        if default is not None:
            defaults[a.arg] = default

    # what their comments say
    places = [(a.arg, a.lineno, defaults.get(a.arg, a).end_lineno) for a, _ in arguments]
    if node.returns:
        places.append(("return", node.returns.lineno, node.returns.end_lineno))
    notes = docments(places, comments, node.lineno)

    rows = []
    for a, star in arguments:
        if a.arg in ("self", "cls"):
            continue
        kind, default = code_of(a.annotation), code_of(defaults.get(a.arg))
        rows.append(Parameter(star + a.arg, kind, default, notes.get(a.arg, "")))
    returns = code_of(node.returns)
    if returns not in ("", "None"):
        rows.append(Parameter("returns", returns, "", notes.get("return", "")))
    return rows


def fields(node: ast.ClassDef, comments: dict) -> list:
    "The annotated fields of a class that a caller gives."
    found = []
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign):
            continue
        of_the_class = "ClassVar" in code_of(statement.annotation)
        made_by_itself = "init=False" in code_of(statement.value)
        if not of_the_class and not made_by_itself:
            found.append(statement)

    places = [(field.target.id, field.lineno, field.end_lineno) for field in found]
    notes = docments(places, comments, node.lineno)

    rows = []
    for field in found:
        name = field.target.id
        kind, default = code_of(field.annotation), code_of(field.value)
        rows.append(Parameter(name, kind, default, notes.get(name, "")))
    return rows


def inherited_fields(node: ast.ClassDef, package: Path) -> list:
    "The fields that a class has from classes of this library, the nearest first, without those it has itself."
    own = {row.name for row in parameters(node, {})}
    rows = []
    for base in node.bases:
        if not isinstance(base, ast.Name):
            continue
        for path in sorted(package.rglob("[!_]*.py")):
            module = read_module(path)
            parent = module.public.get(base.id)
            if isinstance(parent, ast.ClassDef):
                rows += parameters(parent, module.comments)
                rows += inherited_fields(parent, package)
    return [row for row in rows if row.name not in own]


def docments(places, comments: dict, start: int) -> dict:
    """What the comments say about parameters, by fastcore's rules: a comment belongs to the last parameter that ends on its
    line; a parameter without one takes the comment lines directly above it. `places` are (name, first line, last line), and
    the definition begins on the line `start`."""
    owner = {last: name for name, _, last in places}
    found = {}
    for line, name in owner.items():
        if line in comments:
            found[name] = comments[line].text

    for name, first, _ in places:
        above = []
        line = first - 1
        while line > start and line in comments and comments[line].alone:
            above.insert(0, comments[line].text)
            line -= 1
        if above:
            found.setdefault(name, " ".join(above))
    return found


def code_of(tree) -> str:
    return "" if tree is None else ast.unparse(tree)


# ---- Docstrings and signatures ----


class Facts(NamedTuple):
    first: str  # sentence
    rest: str  # of the prose
    labelled: list  # of (label, text)


def facts(node) -> Facts:
    "What the docstring of a definition says: prose, and the parts labelled `Raises`, `Source` and `Differs`."
    text = " ".join((ast.get_docstring(node) or "").split())
    prose, *labelled = re.split(r"(?:(?<=[.!?;])\s+|^)(Raises|Source|Differs)\b:?\s*", text)
    first, *rest = re.split(r"(?<=[.!?])\s+(?=[A-Z`(])", prose, maxsplit=1)
    return Facts(first, " ".join(rest), list(zip(labelled[::2], labelled[1::2])))


def is_property(node) -> bool:
    return any("property" in ast.unparse(d) for d in node.decorator_list)


def signature(node) -> str:
    "What a call looks like, in one short line: names without types, `=` where there is a default."
    if isinstance(node, ast.ClassDef) or is_property(node):
        return ""
    words = []
    for row in parameters(node, {}):
        if row.name == "returns":
            continue
        word = row.name
        if row.default:
            word += f"={row.default}" if len(row.default) < 12 else "=…"
        words.append(word)
    return f"({', '.join(words)})"


def value_of(node, name: str) -> str:
    "The value of a constant, as code; also of one that is defined beside others: `A, B = 1, 2`."
    value = node.value
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        if isinstance(value, ast.Tuple):
            value = dict(zip(names_of(node), value.elts)).get(name, value)
    return code_of(value)
