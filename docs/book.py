"""How a notebook becomes a page: a small Sphinx extension.

1. Sphinx reads the notebook, and `read_notebook` hands MyST-NB a version without hidden cells and with nbdev's `#|` directives
   turned into MyST-NB's metadata. Nothing is written to disk, so the download button gives the notebook itself.
2. After each exported cell stands an `{api}` block for each public name in it: one folded line with the purpose and a link to the source,
   and inside, the table of parameters made from their comments (docments). nbdev's own `show_doc` would print the whole
   signature a second time, right below the code that the reader has just read, and would have to run the library to do so.
   These blocks come from the syntax tree of the exported modules: a site needs no torch, and each line number is that of the file.
3. Tests and imports are folded: see `folding.py`.
4. Names in backticks that the library exports become links to their blocks. (nbdev's linker would also link `L`, the number of
   layers, to fastcore's list class, and would write absolute addresses.)
"""

import ast
import io
import json
import re
import tokenize
import zlib
from functools import lru_cache
from pathlib import Path

import fetch_mathjax
import folding
import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from execnb.nbio import dict2nb, nb2dict
from folding import details, summary
from nbdev import processors
from nbdev.process import NBProcessor
from sphinx import addnodes
from sphinx.directives.other import TocTree
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.matching import patfilter
from sphinx.util.nodes import make_refnode

log = logging.getLogger(__name__)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# ---- The library, as its syntax trees tell it ----


def names_of(statement) -> list:
    "The names that one top-level statement defines."
    if isinstance(statement, DEFINITIONS):
        return [statement.name]
    targets = {ast.Assign: lambda s: s.targets, ast.AnnAssign: lambda s: [s.target]}.get(
        type(statement), lambda s: []
    )(statement)
    return [
        t.id
        for target in targets
        for t in ast.walk(target)
        if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)
    ]


@lru_cache(maxsize=None)
def _parsed(path: Path, stamp: float):
    "Public name -> statement, and line -> (comment, is it alone on its line), of one module."
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    defined = {name: statement for statement in tree.body for name in names_of(statement)}
    public = ast.literal_eval(defined["__all__"].value) if "__all__" in defined else []
    comments = {
        token.start[0]: (
            token.string.lstrip("# ").strip(),
            not token.line[: token.start[1]].strip(),
        )
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    return {name: defined[name] for name in public if name in defined}, comments


def parsed(path: Path):
    return _parsed(path, path.stat().st_mtime)


def docments(places, comments, start) -> dict:
    """What the comments say about parameters, by fastcore's rules: a comment belongs to the last parameter that ends on its
    line; a parameter without one takes the comment lines directly above it. `places` are (name, first line, last line), and on the
    line `start` the definition begins."""
    owner = {last: name for name, _, last in places}
    found = {name: comments[line][0] for line, name in owner.items() if line in comments}
    for name, first, _ in places:
        above, line = [], first - 1
        while line > start and line in comments and comments[line][1]:
            above, line = [comments[line][0], *above], line - 1
        if above:
            found.setdefault(name, " ".join(above))
    return found


def option(annotation) -> tuple:
    "The type of a command's option, `Annotated[type, typer.Option(help=...)]`, and its help; other annotations as they are."
    if not (
        isinstance(annotation, ast.Subscript)
        and ast.unparse(annotation.value).endswith("Annotated")
    ):
        return annotation, ""
    kind, *extras = annotation.slice.elts
    helps = [
        k.value.value
        for e in extras
        if isinstance(e, ast.Call)
        for k in e.keywords
        if k.arg == "help" and isinstance(k.value, ast.Constant)
    ]
    return kind, " ".join(helps)


def parameters(node, comments) -> list:
    "Rows (name, type, default, meaning) of a function or of a class with annotated fields."
    unparse = lambda tree: ast.unparse(tree) if tree is not None else ""
    if isinstance(node, ast.ClassDef):
        fields = [
            s
            for s in node.body
            if isinstance(s, ast.AnnAssign) and "ClassVar" not in unparse(s.annotation)
        ]
        notes = docments(
            [(s.target.id, s.lineno, s.end_lineno) for s in fields], comments, node.lineno
        )
        return [
            (
                s.target.id,
                unparse(s.annotation),
                unparse(s.value),
                notes.get(s.target.id, ""),
            )
            for s in fields
        ]
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = {a.arg: d for a, d in zip(plain[::-1], given.defaults[::-1])}
    defaults |= {
        a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults) if d is not None
    }
    stars = [(given.vararg, "*"), (given.kwarg, "**")]
    arguments = [
        *((a, "") for a in plain),
        *stars[:1],
        *((a, "") for a in given.kwonlyargs),
        *stars[1:],
    ]
    arguments = [(a, star) for a, star in arguments if a is not None]
    places = [(a.arg, a.lineno, defaults.get(a.arg, a).end_lineno) for a, _ in arguments]
    if node.returns:
        places.append(("return", node.returns.lineno, node.returns.end_lineno))
    notes = docments(places, comments, node.lineno)
    rows = []
    for a, star in arguments:
        if a.arg in ("self", "cls"):
            continue
        kind, told = option(a.annotation)
        rows.append(
            (
                star + a.arg,
                unparse(kind),
                unparse(defaults.get(a.arg)),
                notes.get(a.arg, told),
            )
        )
    returns = unparse(node.returns)
    return rows + (
        [("returns", returns, "", notes.get("return", ""))]
        if returns not in ("", "None")
        else []
    )


def facts(docstring) -> tuple:
    "A docstring's first sentence, the rest of its prose, and its labelled parts `Raises`, `Source`, `Differs`."
    text = " ".join((docstring or "").split())
    prose, *labelled = re.split(r"(?:(?<=[.!?;])\s+|^)(Raises|Source|Differs)\b:?\s*", text)
    first, *rest = re.split(r"(?<=[.!?])\s+(?=[A-Z`(])", prose, maxsplit=1)
    return first, " ".join(rest), list(zip(labelled[::2], labelled[1::2]))


def is_property(node):
    return any("property" in ast.unparse(d) for d in node.decorator_list)


def constant(node, name, comments) -> list:
    "What is said of a constant: its comment, or its value if that is short."
    if node.end_lineno in comments:
        return inline(comments[node.end_lineno][0])
    value = node.value
    if isinstance(getattr(node, "targets", [None])[0], ast.Tuple) and isinstance(
        value, ast.Tuple
    ):
        value = dict(zip(names_of(node), value.elts)).get(name, value)
    text = ast.unparse(value) if value is not None else ""
    return [nodes.Text("= "), code(text, "api-type")] if 0 < len(text) <= 60 else []


def signature(node) -> str:
    "What a call looks like, in one short line: names without types, `=` where there is a default."
    if isinstance(node, ast.ClassDef) or is_property(node):
        return ""
    rows = [
        (name, default) for name, _, default, _ in parameters(node, {}) if name != "returns"
    ]
    return (
        "("
        + ", ".join(
            name
            + (f"={default}" if default and len(default) < 12 else "=…" if default else "")
            for name, default in rows
        )
        + ")"
    )


# ---- The API block ----


def inline(text: str) -> list:
    "Text with code in backticks. Not Markdown: in shapes such as `*batch Q K` a star is a star."
    parts = re.split(r"`+([^`]+)`+", text)
    return [
        nodes.literal(part, part) if i % 2 else nodes.Text(part)
        for i, part in enumerate(parts)
        if part
    ]


def paragraph(*children, classes=()):
    node = nodes.paragraph(classes=list(classes))
    node += children
    return node


def code(text, *classes):
    return nodes.literal(text, text, classes=list(classes))


def table(rows) -> nodes.table:
    "Parameters as a table. Columns in which nothing stands are left out."
    head = ("parameter", "type", "default", "meaning")
    kept = [i for i in range(4) if i == 0 or any(row[i] for row in rows)]
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in kept), cols=len(kept))

    def line(cells):
        row = nodes.row()
        for cell in cells:
            entry = nodes.entry()
            entry += paragraph(*cell)
            row += entry
        return row

    def cells(row):
        for i in kept:
            if i == 3:
                yield inline(row[i])
            elif row[0] == "returns" and i == 0:
                yield [nodes.emphasis("", "returns")]
            else:
                yield (
                    [code(row[i], ("api-name", "api-type", "api-default")[i])]
                    if row[i]
                    else []
                )

    header, body = nodes.thead(), nodes.tbody()
    header += line([[nodes.Text(head[i])] for i in kept])
    for row in rows:
        body += line(cells(row))
    group += [header, body]
    return nodes.table("", group, classes=["api-table"])


def inherited(node, folder: Path) -> list:
    "Rows of the annotated fields that a class has from classes of this library, the nearest first, none that it has itself."
    rows, own = [], {row[0] for row in parameters(node, {})}
    for base in (b.id for b in getattr(node, "bases", ()) if isinstance(b, ast.Name)):
        for public, comments in map(parsed, sorted(folder.rglob("[!_]*.py"))):
            if not isinstance(public.get(base), ast.ClassDef):
                continue
            found = [*parameters(public[base], comments), *inherited(public[base], folder)]
            rows += [row for row in found if row[0] not in own]
    return rows


def description(node, comments, with_lead=False, more=()) -> list:
    "The inside of a block: prose, labelled facts, parameters, and `more` rows of them."
    first, rest, labelled = facts(ast.get_docstring(node))
    prose = f"{first} {rest}".strip() if with_lead else rest
    out = [paragraph(*inline(prose))] if prose else []
    for label, text in labelled:
        out.append(
            paragraph(
                nodes.strong(label, label),
                nodes.Text(" "),
                *inline(text),
                classes=["api-fact"],
            )
        )
    rows = [*parameters(node, comments), *more]
    return out + ([table(rows)] if rows else [])


class Api(SphinxDirective):
    "`{api} module name`: the block for one public definition. The option `open` unfolds it, for code that the page does not show."

    required_arguments = 2
    has_content = False
    option_spec = {"open": directives.flag}

    def run(self):
        module, name = self.arguments
        package = Path(self.config.book_package)
        path = package / f"{module.replace('.', '/')}.py"
        self.env.note_dependency(str(path))
        public, comments = parsed(path)
        node = public[name]
        block = details(ids=[f"api-{name}"], classes=["api"], open="open" in self.options)
        self.register(block, module, name, self.kind(node))
        lead = (
            inline(facts(ast.get_docstring(node))[0])
            if isinstance(node, DEFINITIONS)
            else constant(node, name, comments)
        )
        shown = name + (
            signature(node) if isinstance(node, DEFINITIONS) and block["open"] else ""
        )
        block += summary(
            "",
            "",
            code(shown, "api-name"),
            nodes.Text(" "),
            nodes.inline("", "", *lead, classes=["api-lead"]),
        )
        entry = nodes.container(
            "", block, paragraph(self.source(path, node, name)), classes=["api-entry"]
        )
        if not isinstance(node, DEFINITIONS):
            return [entry]
        init = node
        if isinstance(node, ast.ClassDef):
            methods = {m.name: m for m in node.body if isinstance(m, DEFINITIONS)}
            init = methods.get("__init__", node)
        fields = inherited(node, package) if isinstance(node, ast.ClassDef) else ()
        block += (
            description(node, comments, more=fields)
            if init is node
            else [*description_of_class(node), *description(init, comments)]
        )
        if isinstance(node, ast.ClassDef):
            for method in methods.values():
                if method.name.startswith("_") and method.name != "__call__":
                    continue
                block += self.method(path, module, name, method, comments)
        return [entry]

    def kind(self, node):
        return (
            "class"
            if isinstance(node, ast.ClassDef)
            else "function"
            if isinstance(node, DEFINITIONS)
            else "data"
        )

    def register(self, node, module, name, kind):
        "Make a name known: to search, to the index, to links."
        full, (target,) = (
            f"{Path(self.config.book_package).name}.{module}.{name}",
            node["ids"],
        )
        self.env.domains.python_domain.note_object(
            full, kind, target, location=self.get_location()
        )
        node += addnodes.index(entries=[("single", f"{name} ({module})", target, "", None)])

    def source(self, path, node, name):
        "A link that says to those who hear it of what it is the source."
        file = path.relative_to(Path(self.config.book_package).parent).as_posix()
        link = nodes.reference(
            "",
            "source",
            classes=["api-source"],
            refuri=f"{self.config.book_repository}/blob/{self.config.book_branch}/{file}#L{node.lineno}",
        )
        link += nodes.inline("", f" of {name}", classes=["visually-hidden"])
        return link

    def method(self, path, module, name, method, comments):
        term = paragraph(
            code(f".{method.name}{signature(method)}", "api-name"),
            nodes.Text(" "),
            self.source(path, method, f"{name}.{method.name}"),
            classes=["api-method"],
        )
        term["ids"].append(f"api-{name}.{method.name}")
        self.register(
            term,
            module,
            f"{name}.{method.name}",
            "property" if is_property(method) else "method",
        )
        return [term, *description(method, comments, with_lead=True)]


def description_of_class(node) -> list:
    "A class with an `__init__` of its own: its prose and facts; the parameters are those of `__init__`."
    return [part for part in description(node, {}) if not isinstance(part, nodes.table)]


# ---- Notebook -> page ----


def directive(source, name):
    "The value of `#| name: value`, or None."
    match = re.search(rf"^#\|\s*{name}:\s*(.+?)\s*$", source, re.M)
    if match is None:
        return None
    return str(yaml.safe_load(match[1])) if match[1][0] in "\"'" else match[1]


def exported(source) -> str | None:
    "`export` or `exports`, if the cell has such a directive."
    match = re.search(r"^#\|\s*(exports?)\s*$", source, re.M)
    return match and match[1]


def with_api_blocks(cells, package, docname):
    "The cells, and after each exported one a Markdown cell with the blocks of its public names."
    module = next(
        (
            m[1]
            for c in cells
            if (m := re.search(r"^#\|\s*default_exp\s+(\S+)", c["source"], re.M))
        ),
        None,
    )
    path = package / f"{(module or '').replace('.', '/')}.py"
    public = parsed(path)[0] if module and path.exists() else {}
    for cell in cells:
        yield cell
        how = cell["cell_type"] == "code" and exported(cell["source"])
        if not how:
            continue
        names = [
            name
            for s in ast.parse(cell["source"]).body
            for name in names_of(s)
            if not name.startswith("_")
        ]
        missing = [name for name in names if name not in public]
        if missing:
            log.warning(
                f"{docname} exports {', '.join(missing)}, which {path.name} does not have in its __all__: run nbdev_export",
                location=docname,
            )
        options = "\n:open:" if how == "export" else ""
        blocks = [
            f"```{{api}} {module} {name}{options}\n```" for name in names if name in public
        ]
        if blocks:
            yield dict(
                cell_type="markdown",
                id=cell.get("id", "cell") + "-api",
                metadata={},
                source="\n\n".join(blocks),
            )


def with_metadata(cell):
    "nbdev's (Quarto's) `#|` directives of a code cell as the metadata that MyST-NB reads; the directives themselves go."
    source, tags, options = cell["source"], [], {}
    if directive(source, "echo") == "false":
        tags.append("remove-input")
    if directive(source, "output") == "false":
        tags.append("remove-output")
    if directive(source, "code-fold") == "true":
        tags.append("hide-input")
        options["code_prompt_show"] = options["code_prompt_hide"] = (
            directive(source, "code-summary") or "Show the code"
        )
    if directive(source, "code-fold") == "false":
        tags.append("unfolded")
    # these become classes, and book.css says what they look like
    tags += [
        flag
        for flag in ("exports", "slow", "cuda")
        if re.search(rf"^#\|\s*{flag}\s*$", source, re.M)
    ]
    if caption := directive(source, "fig-cap"):
        options["figure"] = dict(caption=caption) | (
            {"name": label} if (label := directive(source, "label")) else {}
        )
    if alt := directive(source, "fig-alt"):
        options["image"] = dict(alt=alt)
    cell["source"] = re.sub(r"^#\|.*\n?", "", source, flags=re.M).strip("\n")
    cell["metadata"] = ({"tags": tags} if tags else {}) | (
        {"mystnb": options} if options else {}
    )
    return cell


def read_notebook(app, docname, source):
    "Sphinx's `source-read`: the notebook as the page shows it."
    if Path(app.env.doc2path(docname)).suffix != ".ipynb":
        return
    notebook = json.loads(source[0])
    notebook["metadata"].pop(
        "widgets", None
    )  # the state of widgets, of no use without the scripts that would draw them
    for i, cell in enumerate(notebook["cells"]):
        cell["source"], cell["id"] = "".join(cell["source"]), cell.get("id", f"cell-{i}")
    imports = folding.imports_of(notebook["cells"])
    notebook["cells"] = list(
        with_api_blocks(notebook["cells"], Path(app.config.book_package), docname)
    )
    # Directives have to outlive nbdev's processors, because `with_metadata` reads them after.
    procs = [
        getattr(processors, p)
        for p in (
            "populate_language",
            "strip_ansi",
            "hide_line",
            "filter_stream_",
            "rm_header_dash",
            "rm_export",
            "clean_magics",
            "hide_",
            "strip_hidden_metadata",
        )
    ]
    nb = dict2nb(notebook)
    NBProcessor(nb=nb, procs=procs, rm_directives=False).process()
    notebook = nb2dict(nb)
    shown = []
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        if cell["cell_type"] == "code":
            if directive(cell["source"], "include") == "false" or re.search(
                r"^(nbdev\.)?show_doc\(", cell["source"], re.M
            ):
                continue
            cell = with_metadata(cell)
        if cell["source"]:
            shown.append(cell)
    folding.mark_tests(shown, imports)
    notebook["cells"] = folding.with_imports(shown, imports)
    source[0] = json.dumps(notebook)


def read_readme(app, relative_path, parent, content):
    """Sphinx's `include-read`: README.md is written for the repository. Its links to chapters and pages of `nbs/` become pages by the options in
    index.md; those to other files that exist lead to GitHub, since the site does not hold them."""
    root = Path(app.config.book_package).parent

    def link(match):
        image, text, target = match.groups()
        page = target.startswith("nbs/") and target.endswith((".ipynb", ".md"))
        if image or page or not (root / target).exists():
            return match[0]
        return f"[{text}]({app.config.book_repository}/{'tree' if (root / target).is_dir() else 'blob'}/{app.config.book_branch}/{target}"

    content[0] = re.sub(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)", link, content[0])


# ---- The order of the book ----


class Part(TocTree):
    """`{part} caption`: a hidden toctree of the chapters that exist. Each line is a pattern such as `0?_*` or a plain entry.
    Sphinx's own toctree warns of a pattern without a match, under no name by which that could be switched off."""

    final_argument_whitespace = True
    required_arguments = 1

    def run(self):
        self.env.glob_toctrees.add(
            self.env.docname
        )  # the page is read again when a chapter comes or goes
        lines = [
            line
            for line in self.content
            if line.strip()
            and ("*" not in line or patfilter(self.env.found_docs, line.strip()))
        ]
        if not lines:
            return []
        self.content = StringList(lines, source=self.get_source_info()[0])
        self.options |= dict(caption=self.arguments[0], hidden=True, glob=True)
        return super().run()


# ---- Finishing touches on the document ----


def chapter_number(docname):
    "As the reader sees it: 3 or 20."
    match = re.match(r"(\d\d)_", docname)
    return match and (match[1].lstrip("0") or "0")


PAPER = "https://arxiv.org/abs/1706.03762"
SECTIONS_OF_PAPER = "https://arxiv.org/html/1706.03762v7"  # the paper as a page, each section with an address
TABLES = {"1": "S4", "2": "S6", "3": "S6", "4": "S6"}  # the section in which a table stands


def paper_address(place) -> str:
    "Where on the web `section 3.2.1` or `table 2` of the paper is."
    if found := re.search(r"section (\d)(?:\.(\d))?(?:\.(\d))?", place, re.I):
        numbers = [number for number in found.groups() if number]
        return f"{SECTIONS_OF_PAPER}#{'.'.join('S' * depth + number for depth, number in enumerate(numbers, 1))}"
    if (found := re.search(r"table (\d)", place, re.I)) and found[1] in TABLES:
        return f"{SECTIONS_OF_PAPER}#{TABLES[found[1]]}.T{found[1]}"
    return PAPER


def dress(app, doctree):
    "Folded tests, the promise under the title, the number of the chapter, and where in the paper a quotation stands."
    docname = app.env.docname
    number = chapter_number(docname)
    folding.fold_tests(doctree)
    for quote in list(doctree.findall(nodes.block_quote)):
        before = quote.parent.index(quote)
        if (
            number is not None
            and isinstance(quote.parent[before - 1], nodes.title)
            and isinstance(quote.parent.parent, nodes.document)
        ):
            quote["classes"].append("promise")
            continue
        texts = list(quote.findall(nodes.Text))
        if texts and (
            place := re.search(
                r"\s*\(((?:section|table|figure|equation|abstract)\b[^()]*)\)\s*$",
                texts[-1],
                re.I,
            )
        ):
            last, parent = texts[-1], texts[-1].parent
            cite = nodes.inline(
                "",
                "",
                nodes.reference("", place[1], refuri=paper_address(place[1])),
                classes=["paper-place"],
            )
            parent.replace(last, [nodes.Text(last[: place.start()]), nodes.Text(" "), cite])
    for math in list(doctree.findall(nodes.math)):
        # A drawn formula is an image to the browser, which would put the comma after it on the next line.
        parent, i = math.parent, math.parent.index(math)
        after = parent[i + 1] if i + 1 < len(parent) else None
        if isinstance(after, nodes.Text) and (mark := re.match(r"[,.;:!?)]+", after)):
            parent[i : i + 2] = [
                nodes.inline("", "", math, nodes.Text(mark[0]), classes=["together"]),
                nodes.Text(after[mark.end() :]),
            ]
    if number is None or not (title := next(doctree.findall(nodes.title), None)):
        return
    title.parent.insert(0, paragraph(nodes.Text(f"Chapter {number}"), classes=["eyebrow"]))
    # The sidebar is made of these tables of contents; numbers make the order of the book visible there.
    entry = next(app.env.tocs[docname].findall(nodes.reference))
    entry.insert(0, nodes.inline("", f"{number}", classes=["chapter-number"]))


class LinkNames(SphinxPostTransform):
    "`masked_softmax` in backticks, anywhere in prose, links to its API block. Unknown names stay as they are."

    default_priority = 500

    def run(self, **kwargs):
        package = Path(self.config.book_package).name
        known = {}
        for full, entry in self.env.domains.python_domain.objects.items():
            name = entry.node_id.removeprefix(
                "api-"
            )  # a module's name has dots, and so has a method's
            for spelling in {name, full.removeprefix(f"{package}."), full}:
                known.setdefault(spelling, []).append(entry)
        for literal in list(self.document.findall(nodes.literal)):
            if "api-name" in literal["classes"] or any(
                isinstance(p, (nodes.reference, nodes.title, summary))
                for p in parents(literal)
            ):
                continue
            found = known.get(literal.astext().removesuffix("()"), [])
            here = [e for e in found if e.docname == self.env.docname]
            if len(found) > 1:
                found = (
                    here  # the same name in two chapters: only this page's own can be meant
                )
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


def parents(node):
    while node.parent is not None:
        node = node.parent
        yield node


def need_mathjax(app):
    "Formulas that stay raw TeX are no site, so a build without MathJax is refused, with the reason."
    try:
        fetch_mathjax.fetch()
    except RuntimeError as error:
        raise ExtensionError(str(error)) from None


def setup(app):
    app.add_config_value("book_package", "", "env")
    app.add_config_value("book_repository", "", "env")
    app.add_config_value("book_branch", "", "env")
    folding.setup(app)
    app.add_directive("api", Api)
    app.add_directive("part", Part)
    app.add_post_transform(LinkNames)
    app.connect("builder-inited", need_mathjax)
    app.connect("source-read", read_notebook)
    app.connect("include-read", read_readme)
    app.connect(
        "doctree-read", dress, priority=900
    )  # after Sphinx has collected titles and tables of contents
    # A link depends on where other pages define their names, so all pages are written again when one has changed.
    app.connect("env-updated", lambda app, env: env.found_docs)
    # a change of these files makes every page out of date
    version = zlib.crc32(Path(__file__).read_bytes() + Path(folding.__file__).read_bytes())
    return dict(
        version="1", env_version=version, parallel_read_safe=True, parallel_write_safe=True
    )
