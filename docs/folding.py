"""What a page folds: tests under the line "Tests", and before the first code the imports, which no reader needs until the code is
to be run. In the notebook both are ordinary cells. (And what it must not fold: the lines of printed tables.)

A cell is folded if it checks something, shows no result, and defines nothing that code shown further down uses; so what a page
shows can be followed without unfolding. Where a test is what the page is about, it stays in sight: a cell that defines a function
`test_...`, and any cell with `#| code-fold: false`.
"""

import ast
import re
import symtable
from types import SimpleNamespace

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective


class details(nodes.General, nodes.Element):
    "HTML's `details`: a definition, tests, imports; its class says which."


class summary(nodes.General, nodes.TextElement):
    "Its line that is always seen. No link may stand in it: it is a button itself."


def visit_details(self, node):
    self.body.append(
        self.starttag(node, "details", **({"open": "open"} if node.get("open") else {}))
    )


def depart_details(self, node):
    self.body.append("</details>\n")


def visit_summary(self, node):
    self.body.append(self.starttag(node, "summary", ""))


def depart_summary(self, node):
    self.body.append("</summary>\n")


def python_of(source) -> str:
    "The code without magics and shell commands."
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M)


# ---- What a cell checks, needs and defines ----


def checks(source) -> int:
    "How many claims code makes: statements `assert`, and calls of `test_...`, `expect_fail` and `assert_close`."
    tree = ast.parse(python_of(source))
    called = [
        getattr(n.func, "attr", getattr(n.func, "id", ""))
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
    ]
    return sum(isinstance(n, ast.Assert) for n in ast.walk(tree)) + sum(
        name.startswith("test_") or name in ("expect_fail", "assert_close")
        for name in called
    )


def scopes(table):
    yield table
    for child in table.get_children():
        yield from scopes(child)


def names(source) -> SimpleNamespace:
    "The names that the code needs from before it, those that it defines, and those that it imports."
    needed, defined, imported = set(), set(), set()
    for statement in ast.parse(python_of(source)).body:
        table = symtable.symtable(ast.unparse(statement), "cell", "exec")
        loaded = {
            s.get_name()
            for scope in scopes(table)
            for s in scope.get_symbols()
            if s.is_referenced() and (scope is table or s.is_global())
        }
        stored = {
            s.get_name()
            for s in table.get_symbols()
            if s.is_assigned() and not s.is_imported()
        }
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            loaded -= stored  # a loop's own variable
        needed |= loaded - defined - imported
        defined |= stored
        imported |= {s.get_name() for s in table.get_symbols() if s.is_imported()}
    return SimpleNamespace(needed=needed, defined=defined, imported=imported)


# ---- Tests ----


def tags(cell):
    return cell["metadata"].get("tags", [])


def seen(cell):
    return (
        cell["cell_type"] == "code"
        and bool(cell["source"].strip())
        and "remove-input" not in tags(cell)
    )


def mark_tests(cells, imports=""):
    "Tag the code cells of a page that will stand under `Tests`. `imports` is code that the page shows."
    used = set()  # by shown code further down
    known = names(imports).imported
    for cell in (c for c in reversed(cells) if c["cell_type"] == "code"):
        found = names(cell["source"])
        result = cell.get("outputs") and "remove-output" not in tags(cell)
        apart = {"exports", "hide-input", "remove-input", "unfolded"} & set(tags(cell))
        subject = any(name.startswith("test_") for name in found.defined)
        needed = (found.defined | found.imported - known) & used
        if checks(cell["source"]) and not (result or apart or subject or needed):
            cell["metadata"]["tags"] = [*tags(cell), "tests"]
            continue
        used -= found.defined
        if seen(cell):
            used |= found.needed


def checks_of(node) -> int:
    "The number of checks in a cell that is to be folded."
    if not isinstance(node, nodes.container) or "tag_tests" not in node["classes"]:
        return 0
    return checks(next(node.findall(nodes.literal_block)).astext())


def fold_tests(doctree):
    "Marked cells one after another come under one line."
    for section in {
        id(n.parent): n.parent for n in doctree.findall(nodes.container) if checks_of(n)
    }.values():
        children, block = [], None
        for child in section.children:
            number = checks_of(child)
            if number and block is not None:
                block += child
            else:
                children.append(
                    block := details("", summary(), child, classes=["fold", "tests"])
                    if number
                    else child
                )
            if not number:
                block = None
        for block in (c for c in children if "tests" in c.get("classes", ())):
            number = sum(map(checks_of, block.children))
            on_gpu = sum(
                checks_of(child)
                for child in block.children
                if "tag_cuda" in child.get("classes", ())
            )
            words = (
                f"{number} check{'s' * (number > 1)}"
                + f", {on_gpu} on a GPU, not run for this page" * (on_gpu > 0)
            )
            block[0] += [nodes.Text("Tests "), nodes.inline("", words, classes=["count"])]
        section.children = []
        section += children


# ---- Imports ----


def imports_of(cells) -> str:
    """What a notebook imports in cells that no page shows, as code that can be run: of cells for the library the imports, of hidden
    ones everything, since they also set the seed. Colab's cell is left out."""
    found = []
    for cell in (c for c in cells if c["cell_type"] == "code" and c.get("id") != "colab"):
        hidden = re.search(r"^#\|\s*(hide|include:\s*false)\s*$", cell["source"], re.M)
        if not hidden and not re.search(r"^#\|\s*export\s*$", cell["source"], re.M):
            continue
        source = re.sub(r"^#\|.*\n?", "", cell["source"], flags=re.M).strip()
        imports = [
            s
            for s in ast.parse(python_of(source)).body
            if isinstance(s, (ast.Import, ast.ImportFrom))
        ]
        if imports:
            found.append(
                source
                if hidden
                else "\n".join(
                    source.splitlines()[imports[0].lineno - 1 : imports[-1].end_lineno]
                )
            )
    return "\n\n".join(found)


def with_imports(cells, imports) -> list:
    "The cells of a page, and before the first code that is seen, the imports."
    at = next((i for i, cell in enumerate(cells) if seen(cell)), None)
    if not imports or at is None:
        return cells
    block = dict(
        cell_type="markdown",
        id="imports",
        metadata={},
        source=f"``````{{imports}}\n{imports}\n``````",
    )
    return [*cells[:at], block, *cells[at:]]


class Imports(SphinxDirective):
    "`{imports}`: the code that stands folded before the first code of a chapter."

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        return [
            details(
                "",
                summary("", "Imports and helpers"),
                nodes.literal_block(text, text, language="python"),
                classes=["fold", "imports"],
            )
        ]


# ---- What is printed ----

SENTENCE = 50  # characters of a column: more is a sentence


def in_columns(text) -> bool:
    "Whether a text is a table, whose lines must stay whole."
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    return (
        sum(len(row) > 1 for row in rows) > 1
        and max(len(column) for row in rows for column in row) <= SENTENCE
    )


class KeepColumns(SphinxPostTransform):
    "Printed tables get the class `columns`; other long lines that are printed go on in the next line, as text does."

    default_priority = 900  # when MyST-NB has chosen the outputs

    def run(self, **kwargs):
        for output in self.document.findall(nodes.container):
            if output.get("nb_element") != "cell_code_output":
                continue
            for listing in output.findall(nodes.literal_block):
                if in_columns(listing.astext()):
                    listing["classes"].append("columns")


def setup(app):
    app.add_post_transform(KeepColumns)
    app.add_node(details, html=(visit_details, depart_details))
    app.add_node(summary, html=(visit_summary, depart_summary))
    app.add_directive("imports", Imports)
    return dict(version="1", parallel_read_safe=True, parallel_write_safe=True)
