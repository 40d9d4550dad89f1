"""What a page folds: tests under the line "Tests", and before the first code the imports, which no reader needs until the code is
to be run. In the notebook both are ordinary cells. (And what it must not fold: the lines of printed tables.)

A cell is folded if it checks something, shows no result, and defines nothing that code shown further down uses; so what a page
shows can be followed without unfolding. A cell that defines a function `test_...` stays in sight: there a test is what the page
is about. Code of pictures and tables that a notebook folds (`#| code-fold: true`) has one line to unfold, however many cells it is.
"""

import ast
import re
import symtable
import sys
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from cell_directives import directives_of, without_directives

HIDDEN = {
    "hide",
    "export",
    "exporti",
    "default_exp",
}  # directives of cells that no page shows


# ---- HTML's `details` and `summary` ----


class details(nodes.General, nodes.Element):
    "A definition, tests, imports; its class says which."


class summary(nodes.General, nodes.TextElement):
    "Its line that is always seen. It is a button itself, so no link may be in it."


def visit_details(self, node):
    attributes = {"open": "open"} if node.get("open") else {}
    self.body.append(self.starttag(node, "details", **attributes))


def depart_details(self, node):
    self.body.append("</details>\n")


def visit_summary(self, node):
    self.body.append(self.starttag(node, "summary", ""))


def depart_summary(self, node):
    self.body.append("</summary>\n")


# ---- What a cell checks, needs and defines ----


def parse(source) -> ast.Module:
    "The tree of a cell, whose magics and shell commands do nothing here."
    return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M))


def checks(source) -> int:
    "How many claims code makes: statements `assert`, and calls of `test_...`, `expect_fail` and `assert_close`."
    number = 0
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Assert):
            number += 1
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name.startswith("test_") or name in ("expect_fail", "assert_close"):
                number += 1
    return number


class Names(NamedTuple):
    needed: set  # from before the code
    defined: set
    imported: set


def names(source) -> Names:
    "What code needs, defines and imports."
    needed, defined, imported = set(), set(), set()
    for statement in parse(source).body:
        table = symtable.symtable(ast.unparse(statement), "cell", "exec")

        # all that the statement reads, inside of its functions too
        loaded = set()
        for scope in scopes(table):
            for symbol in scope.get_symbols():
                is_ours = scope is table or symbol.is_global()
                if symbol.is_referenced() and is_ours:
                    loaded.add(symbol.get_name())

        stored = set()
        brought = set()
        for symbol in table.get_symbols():
            if symbol.is_imported():
                brought.add(symbol.get_name())
            elif symbol.is_assigned():
                stored.add(symbol.get_name())

        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            loaded -= stored  # a loop's own variable
        needed |= loaded - defined - imported
        defined |= stored
        imported |= brought
    return Names(needed, defined, imported)


def scopes(table):
    yield table
    for child in table.get_children():
        yield from scopes(child)


# ---- Tests ----


def tags(cell):
    return cell["metadata"].get("tags", [])


def is_shown_code(cell):
    if cell["cell_type"] != "code" or not cell["source"].strip():
        return False
    return "remove-input" not in tags(cell)


def mark_tests(cells, imports=""):
    "Tag the code cells of a page that will be under `Tests`. `imports` is code that the page shows."
    known = names(imports).imported
    used = set()  # by shown code further down
    for cell, below in zip(reversed(cells), [None, *reversed(cells)]):
        if cell["cell_type"] != "code":
            continue
        found = names(cell["source"])

        has_result = cell.get("outputs") and "remove-output" not in tags(cell)
        is_apart = {"exports", "hide-input", "remove-input"} & set(tags(cell))
        is_subject = re.search(r"^def test_", cell["source"], re.M)
        is_needed = (found.defined | found.imported - known) & used
        if checks(cell["source"]):
            if not (has_result or is_apart or is_subject or is_needed):
                cell["metadata"]["tags"] = [*tags(cell), "tests"]
                continue

        # what is folded right above tests, and is for them alone
        is_prepared = "hide-input" in tags(cell) and "exports" not in tags(cell)
        if is_prepared and below and "tests" in tags(below):
            if not has_result and not found.defined & used:
                cell["metadata"] = {"tags": ["tests"]}
                continue

        used -= found.defined
        if is_shown_code(cell):
            used |= found.needed


def fold_tests(doctree):
    "Put marked cells that follow one another under one line."
    sections = []
    for node in doctree.findall(nodes.container):
        if is_test(node) and node.parent not in sections:
            sections.append(node.parent)

    for section in sections:
        children = []
        block = None  # of tests, to which the next ones are added
        for child in section.children:
            if not is_test(child):
                children.append(child)
                block = None
                continue
            if block is None:
                block = details("", summary(), classes=["fold", "tests"])
                children.append(block)
            block += child

        for child in children:
            if "tests" in child.get("classes", ()):
                count = nodes.inline("", count_of_tests(child), classes=["count"])
                child[0] += [nodes.Text("Tests "), count]
        section.children = []
        section += children


def is_test(node) -> bool:
    "Whether it's a cell that is to be folded."
    return isinstance(node, nodes.container) and "tag_tests" in node["classes"]


def checks_of(node) -> int:
    "The number of checks in a cell."
    (listing,) = node.findall(nodes.literal_block)
    return checks(listing.astext())


def count_of_tests(block) -> str:
    number = on_gpu = 0
    for child in filter(is_test, block.children):
        number += checks_of(child)
        if "tag_cuda" in child.get("classes", ()):
            on_gpu += checks_of(child)

    words = f"{number} check" if number == 1 else f"{number} checks"
    if on_gpu:
        words += f", {on_gpu} on a GPU, not run for this page"
    return words


# ---- "Show the code" ----


class JoinFolds(SphinxPostTransform):
    "Folded code that shows nothing joins the folded code right below it: one line to unfold, not several in a row."

    default_priority = 200  # when MyST-NB has folded the code
    formats = ("html",)

    def run(self, **kwargs):
        for fold in list(self.document.findall(HideCodeCellNode)):
            cell = fold.parent
            if len(cell.children) > 1 or "tag_exports" in cell["classes"]:
                continue
            below = cell.next_node(descend=False, siblings=True)
            if below is None or not below.children:
                continue
            if isinstance(below.children[0], HideCodeCellNode):
                below.children[0].insert(0, fold.children)
                cell.parent.remove(cell)


# ---- Imports ----


def imports_of(cells) -> str:
    """What a notebook imports in cells that no page shows, as code that can be run: of cells for the library the imports, of hidden
    ones everything, since they also set the seed. Colab's cell is left out."""
    found = []
    for cell in cells:
        if cell["cell_type"] != "code" or cell["id"] == "colab":
            continue
        directives = directives_of(cell["source"])
        if "hide" not in directives and "export" not in directives:
            continue

        source = without_directives(cell["source"]).strip()
        imports = [
            statement
            for statement in parse(source).body
            if isinstance(statement, (ast.Import, ast.ImportFrom))
        ]
        if not imports:
            continue
        if "hide" not in directives:
            lines = source.splitlines()[imports[0].lineno - 1 : imports[-1].end_lineno]
            source = "\n".join(lines)
        found.append(source)
    return "\n\n".join(found)


def with_imports(cells, imports) -> list:
    "The cells of a page, and before the first code that is seen, the imports."
    if not imports:
        return cells
    for i, cell in enumerate(cells):
        if is_shown_code(cell):
            block = dict(
                cell_type="markdown",
                id="folded-imports",
                metadata={},
                source=f"``````{{imports}}\n{imports}\n``````",
            )
            return [*cells[:i], block, *cells[i:]]
    return cells


class Imports(SphinxDirective):
    "`{imports}`: the code that is folded before the first code of a chapter."

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        line = summary("", "Imports and helpers")
        listing = nodes.literal_block(text, text, language="python")
        return [details("", line, listing, classes=["fold", "imports"])]


# ---- What is printed, and tables ----

SENTENCE = 50  # characters of a column: more is a sentence


def in_columns(text) -> bool:
    "Whether a text is a table, whose lines must stay whole."
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    wide_rows = [row for row in rows if len(row) > 1]
    longest = max((len(column) for row in rows for column in row), default=0)
    return len(wide_rows) > 1 and longest <= SENTENCE


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


AMOUNT = (
    r"[−+±~≈<>–-]?\d(?:[\d.,/e·⁻⁰¹²³⁴-⁹−+-]|, )*"  # 12, 1.5, 2.0e-3, 3·10⁻⁷
    r"( ?(%|×|k|M|B|bn|[kMGT]i?B|[mµn]?s))?"
)
NUMBER = (
    re.compile(  # 62 ± 2 %, 1.23 to 1.52; long lists of numbers may go on in the next line
        rf"(?=.{{1,15}}$){AMOUNT}( (±|to|of|×|→|·) {AMOUNT})?"
    )
)


LONG_CELL = 36  # characters, more than fit on a line of a phone beside another column
LONG_ROW = 60  # characters of a table whose columns would be one or two words wide there


def longest_line(cell) -> int:
    "How many characters the longest line of a cell has; `<br>` ends a line."
    return max(len(line) for line in re.split(r"<br ?/?>|\n", cell.astext()))


class KindsOfTables(SphinxPostTransform):
    """A cell with nothing but a number gets the class `number`, so that its unit stays on the same line. A table with three
    columns or more, of words, gets the class `words`: a phone shows the cells of a row below one another."""

    default_priority = 900  # when MyST-NB has chosen the outputs

    def run(self, **kwargs):
        for cell in self.document.findall(nodes.entry):
            if NUMBER.fullmatch(cell.astext().strip()):
                cell["classes"].append("number")

        for table in self.document.findall(nodes.table):
            rows = [row.children for row in table.findall(nodes.row)]
            lengths = [[longest_line(cell) for cell in row] for row in rows]
            longest = [max(column) for column in zip(*lengths)]
            if len(longest) < 3 or "api-table" in table["classes"]:
                continue
            # under "temperature 1" and "temperature 2" no column names the row
            first, second, *_ = [cell.astext().split()[:1] for cell in rows[0]]
            if first and first == second:
                continue
            is_wide = sum(min(length, LONG_CELL) for length in longest) > LONG_ROW
            if is_wide and max(longest[1:]) > LONG_CELL:
                table["classes"].append("words")


def setup(app):
    app.add_post_transform(JoinFolds)
    app.add_post_transform(KeepColumns)
    app.add_post_transform(KindsOfTables)
    app.add_node(details, html=(visit_details, depart_details))
    app.add_node(summary, html=(visit_summary, depart_summary))
    app.add_directive("imports", Imports)
    return dict(version="1", parallel_read_safe=True, parallel_write_safe=True)
