"""The `{api}` block: what a reader wants to know about one public name of the library.

It is one folded line with the purpose and a link to the source; inside, the parameters as a table. Where the page doesn't show the
code, in the parts where people look things up, the line has the call's arguments, too. nbdev's own `show_doc` would
print the whole signature a second time, right below the code that the reader has just read, and would run the library to do so.

Names in backticks that have such a block become links to it. (nbdev's linker would also link `L`, the number of layers, to
fastcore's list class, and would write absolute addresses.)
"""

import ast
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from folding import details, summary
from library import (
    DEFINITIONS,
    facts,
    inherited_fields,
    is_property,
    parameters,
    read_module,
    signature,
    value_of,
)
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

# ---- Pieces of a block ----


def inline(text: str) -> list:
    "Text with code in backticks. Not Markdown: in shapes such as `*batch Q K` a star is a star."
    parts = []
    for i, part in enumerate(re.split(r"`+([^`]+)`+", text)):
        if part:
            parts.append(nodes.literal(part, part) if i % 2 else nodes.Text(part))
    return parts


def paragraph(*children, classes=()):
    node = nodes.paragraph(classes=list(classes))
    node += children
    return node


def code(text, *classes):
    return nodes.literal(text, text, classes=list(classes))


def table(rows) -> nodes.table:
    "Parameters as a table. Columns with nothing in them are left out."
    headings = ("parameter", "type", "default", "meaning")
    kept = [0]
    for i in (1, 2, 3):
        if any(row[i] for row in rows):
            kept.append(i)

    def table_row(cells):
        row = nodes.row()
        for cell in cells:
            entry = nodes.entry()
            entry += paragraph(*cell)
            row += entry
        return row

    def cell(row, i):
        if i == 3:
            return inline(row.meaning)
        if i == 0 and row.name == "returns":
            return [nodes.emphasis("", "returns")]
        if not row[i]:
            return []
        return [code(row[i], ("api-name", "api-type", "api-default")[i])]

    header = nodes.thead()
    header += table_row([[nodes.Text(headings[i])] for i in kept])
    body = nodes.tbody()
    for row in rows:
        body += table_row([cell(row, i) for i in kept])

    widths = [nodes.colspec(colwidth=1) for _ in kept]
    group = nodes.tgroup("", *widths, header, body, cols=len(kept))
    return nodes.table("", group, classes=["api-table"])


def told(rows) -> list:
    "The rows that say more than a signature does: a type or a meaning."
    return [row for row in rows if row.type or row.meaning]


def description(node, rows, with_lead=False) -> list:
    "The inside of a block: prose, labelled facts, and `rows` of parameters."
    first, rest, labelled = facts(node)
    prose = f"{first} {rest}".strip() if with_lead else rest

    found = []
    if prose:
        found.append(paragraph(*inline(prose)))
    for label, text in labelled:
        found.append(
            paragraph(
                nodes.strong(label, label),
                nodes.Text(" "),
                *inline(text),
                classes=["api-fact"],
            )
        )
    if rows:
        found.append(table(rows))
    return found


def constant(node, name, comments) -> list:
    "What is said of a constant: its comment, or its value, of a long one the beginning."
    if node.end_lineno in comments:
        return inline(comments[node.end_lineno].text)
    text = beginning(value_of(node, name))
    return [nodes.Text("= "), code(text, "api-type")] if text else []


LONGEST_VALUE = 60  # characters


def beginning(text: str) -> str:
    "A value as it is if it's short; of a long list, table or text the beginning; of other long code nothing."
    if len(text) <= LONGEST_VALUE:
        return text
    if not text.startswith(("'", '"', "(", "[", "{", "dict(")):
        return ""
    start = text[: LONGEST_VALUE - 3]
    for end in (", ", ": ", " "):  # of an item, a key or a word
        if end in start:
            return f"{start.rpartition(end)[0]}{end.rstrip()} …"
    return f"{start}…"


# ---- The block ----


class Api(SphinxDirective):
    """`{api} module name`: the block for one public name. The option `unseen` says that the page does not show the code, `call`
    that the line has the arguments, too, and `open` unfolds the block."""

    required_arguments = 2
    has_content = False
    option_spec = dict.fromkeys(("unseen", "call", "open"), directives.flag)

    def run(self):
        self.module, self.name = self.arguments
        self.package = Path(self.config.book_package)
        self.path = self.package / f"{self.module.replace('.', '/')}.py"
        self.env.note_dependency(str(self.path))
        module = read_module(self.path)
        self.comments = module.comments
        node = module.public[self.name]

        block = details(
            ids=[f"api-{self.name}"], classes=["api"], open="open" in self.options
        )

        # the line that is always seen
        shown = self.name
        if isinstance(node, DEFINITIONS):
            lead = inline(facts(node).first)
            if "call" in self.options:
                shown += signature(node)
        else:
            lead = constant(node, self.name, self.comments)
        block += summary(
            "",
            "",
            code(shown, "api-name"),
            nodes.Text(" "),
            nodes.inline("", "", *lead, classes=["api-lead"]),
        )

        if isinstance(node, ast.ClassDef):
            self.register(block, self.name, "class")
            block += self.class_body(node)
        elif isinstance(node, DEFINITIONS):
            self.register(block, self.name, "function")
            block += description(node, parameters(node, self.comments))
        else:
            self.register(block, self.name, "data")

        # code right above a constant says all that its block could; the block stays for links
        classes = ["api-entry"]
        if not isinstance(node, DEFINITIONS) and "unseen" not in self.options:
            classes.append("seen")
        source = paragraph(self.source(node, self.name))
        return [nodes.container("", block, source, classes=classes)]

    def class_body(self, node) -> list:
        "Parameters of `__init__`, or the fields where there is none; then the methods."
        methods = {m.name: m for m in node.body if isinstance(m, DEFINITIONS)}
        if "__init__" in methods:
            init = methods["__init__"]
            found = description(node, [])
            found += description(init, parameters(init, self.comments))
        else:
            rows = parameters(node, self.comments) + inherited_fields(node, self.package)
            found = description(node, rows)

        for name, method in methods.items():
            if name == "__call__" or not name.startswith("_"):
                found += self.method(method)
        return found

    def method(self, node) -> list:
        name = f"{self.name}.{node.name}"
        term = paragraph(
            code(f".{node.name}{signature(node)}", "api-name"),
            nodes.Text(" "),
            self.source(node, name),
            classes=["api-method"],
        )
        term["ids"].append(f"api-{name}")
        self.register(term, name, "property" if is_property(node) else "method")
        rows = told(parameters(node, self.comments))
        return [term, *description(node, rows, with_lead=True)]

    def register(self, node, name, kind):
        "Make a name known: to search, to the index, to links."
        full = f"{self.package.name}.{self.module}.{name}"
        (target,) = node["ids"]
        domain = self.env.domains.python_domain
        domain.note_object(full, kind, target, location=self.get_location())
        entry = ("single", f"{name} ({self.module})", target, "", None)
        node += addnodes.index(entries=[entry])

    def source(self, node, name):
        "A link to the source; those who hear it are told of what."
        file = self.path.relative_to(self.package.parent).as_posix()
        root = f"{self.config.book_repository}/blob/{self.config.book_branch}"
        address = f"{root}/{file}#L{node.lineno}"
        link = nodes.reference("", "source", classes=["api-source"], refuri=address)
        link += nodes.inline("", f" of {name}", classes=["visually-hidden"])
        return link


# ---- Links to the blocks ----

REPEATS = (
    ".one_page."  # a module whose names are those of others: linked on its own page alone
)


class LinkNames(SphinxPostTransform):
    "`masked_softmax` in backticks, anywhere in prose, links to its API block. Unknown names stay as they are."

    default_priority = 500

    def run(self, **kwargs):
        known = self.known_names()
        for literal in list(self.document.findall(nodes.literal)):
            if "api-name" in literal["classes"] or is_inside_link_or_title(literal):
                continue

            # a name of two chapters can only mean the one of this page
            found = known.get(literal.astext().removesuffix("()"), [])
            if len(found) > 1:
                found = [entry for entry in found if entry.docname == self.env.docname]
            if len(found) != 1:
                continue

            link = make_refnode(
                self.app.builder,
                self.env.docname,
                found[0].docname,
                found[0].node_id,
                literal.deepcopy(),
            )
            link["classes"].append("api-link")
            literal.replace_self(link)

    def known_names(self) -> dict:
        "What a name may be called -> the entries that it may mean."
        package = Path(self.config.book_package).name
        known = {}
        for full, entry in self.env.domains.python_domain.objects.items():
            if REPEATS in full and entry.docname != self.env.docname:
                continue
            name = entry.node_id.removeprefix("api-")  # with the class before a method's
            for spelling in {name, full.removeprefix(f"{package}."), full}:
                known.setdefault(spelling, []).append(entry)
        return known


def is_inside_link_or_title(node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, (nodes.reference, nodes.title, summary)):
            return True
    return False
