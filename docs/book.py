"""How a notebook becomes a page: a small Sphinx extension.

1. Sphinx reads the notebook, and `read_notebook` hands MyST-NB a version without hidden cells and with nbdev's `#|` directives
   turned into MyST-NB's metadata. Nothing is written to disk, so the download button gives the notebook itself.
2. After each exported cell comes an `{api}` block for each public name in it: `api_blocks.py`, which reads `library.py`.
3. Tests and imports are folded: `folding.py`.
4. `dress` adds what a page has around its text: the chapter's number, and links from quotations to the paper.

Why not Jupyter Book or plain MyST: neither folds tests or shows what a function takes without running the library.
"""

import ast
import functools
import json
import re
import sys
import zlib
from pathlib import Path

import api_blocks
import fetch_mathjax
import folding
import library
import yaml
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util import logging

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from cell_directives import directives_of, without_directives

log = logging.getLogger(__name__)


# ---- Notebook -> page ----


def read_notebook(app, docname, source):
    "Sphinx's `source-read`: the notebook as the page shows it."
    if Path(app.env.doc2path(docname)).suffix != ".ipynb":
        return
    notebook = json.loads(source[0])
    # the state of widgets is of no use without the scripts that would draw them
    notebook["metadata"].pop("widgets", None)
    for i, cell in enumerate(notebook["cells"]):
        cell["source"] = "".join(cell["source"])
        cell.setdefault("id", f"cell-{i}")

    imports = folding.imports_of(notebook["cells"])
    package = Path(app.config.book_package)
    cells = list(with_api_blocks(notebook["cells"], package, docname))
    shown = []
    for cell in cells:
        if cell["cell_type"] == "code":
            if folding.HIDDEN & directives_of(cell["source"]).keys():
                continue
            cell = with_metadata(cell, is_long(cell["source"], docname))
        if cell["source"]:
            shown.append(cell)

    folding.mark_tests(shown, imports)
    notebook["cells"] = folding.with_imports(shown, imports)
    source[0] = json.dumps(notebook)


# Lines of exported code that a page shows unfolded, in the two parts of the book that people don't read from beginning to end
LONGEST_CODE = {"In depth": 100, "Reference": 45}


@functools.cache
def looked_up() -> dict[str, str]:
    "The notebooks in these two parts, and the part that each is in."
    index = Path(__file__).resolve().parents[1] / "nbs" / "index.md"
    found = {}
    for block in re.findall(
        r"^```\{toctree\}\n(.*?)^```", index.read_text(encoding="utf-8"), re.M | re.S
    ):
        part = re.search(r":caption: (.+)\n", block)
        if part and part[1] in LONGEST_CODE:
            found.update(dict.fromkeys(block.split(), part[1]))
    return found


def is_long(source, docname) -> bool:
    "Whether the code of an exported cell is folded: those who look something up came for what it does and takes."
    if "exports" not in directives_of(source) or docname not in looked_up():
        return False
    return len(without_directives(source).splitlines()) > LONGEST_CODE[looked_up()[docname]]


def with_api_blocks(cells, package, docname):
    """The cells, and with each exported one a Markdown cell with the blocks of its public names: below the code, or above it if
    the code is folded."""
    default = None
    for cell in cells:
        default = directives_of(cell["source"]).get("default_exp", default)

    for i, cell in enumerate(cells):
        found = directives_of(cell["source"]) if cell["cell_type"] == "code" else {}
        if "export" not in found and "exports" not in found:
            yield cell
            continue

        module = found.get("exports") or found.get("export") or default
        path = package / f"{module.replace('.', '/')}.py"
        public = library.read_module(path).public if path.exists() else {}
        names, missing = [], []
        for statement in ast.parse(cell["source"]).body:
            for name in library.names_of(statement):
                if name in public:
                    names.append(name)
                elif not name.startswith("_"):
                    missing.append(name)

        # `#| exports` shows its code. Of other code the blocks are all that is seen: where people look things up a list of calls,
        # or one that stands alone, unfolded
        folded = is_long(cell["source"], docname)
        options = ""
        if "exports" not in found or folded:
            options += "\n:unseen:"
            if docname in looked_up():
                options += "\n:call:"
                if len(names) == 1 and not any(map(is_unseen, neighbours(cells, i))):
                    options += "\n:open:"
        blocks = [f"```{{api}} {module} {name}{options}\n```" for name in names]
        if missing:
            log.warning(
                f"{docname} exports {', '.join(missing)}, which {path.name} does not have in its __all__: run nbdev_export",
                location=docname,
            )
        entries = dict(
            cell_type="markdown",
            id=cell["id"] + "-api",
            metadata={},
            source="\n\n".join(blocks),
        )
        yield from (entries, cell) if folded else (cell, entries)


def neighbours(cells, i) -> list:
    "The cells before and after one that a page shows something of."
    kept = [
        cell
        for cell in cells
        if cell is cells[i]
        or cell["cell_type"] == "markdown"
        or not directives_of(cell["source"]).keys() & {"hide", "exporti", "default_exp"}
    ]
    place = kept.index(cells[i])
    return kept[max(place - 1, 0) : place] + kept[place + 1 : place + 2]


def is_unseen(cell) -> bool:
    "Whether a cell is for the library and its code not on the page."
    return cell["cell_type"] == "code" and "export" in directives_of(cell["source"])


def with_metadata(cell, folded=False):
    "The directives of a code cell as the metadata that MyST-NB reads; the directives themselves go. `folded`: its code is."
    found = directives_of(cell["source"])
    tags, options = [], {}
    if found.get("echo") == "false":
        tags.append("remove-input")
    if found.get("output") == "false":
        tags.append("remove-output")
    if folded or found.get("code-fold") == "true":
        tags.append("hide-input")
        what = "Show the code of the names above" if folded else "Show the code"
        options["code_prompt_show"] = what
        options["code_prompt_hide"] = what

    # these become classes, and book.css says what they look like
    tags += [flag for flag in ("exports", "slow", "cuda") if flag in found]

    if "fig-cap" in found:
        options["figure"] = dict(caption=words_of(found["fig-cap"]))
    if "fig-alt" in found:
        options["image"] = dict(alt=words_of(found["fig-alt"]))

    cell["source"] = without_directives(cell["source"])
    cell["metadata"] = {}
    if tags:
        cell["metadata"]["tags"] = tags
    if options:
        cell["metadata"]["mystnb"] = options
    return cell


def words_of(value: str) -> str:
    "The value of a directive, which may be quoted as in YAML."
    return str(yaml.safe_load(value)) if value[0] in "\"'" else value


def read_readme(app, relative_path, parent, content):
    """Sphinx's `include-read`: README.md is written for the repository. Its links to chapters and pages of `nbs/` become pages by
    the options in index.md; those to other files that exist lead to GitHub, since the site does not have them."""
    root = Path(app.config.book_package).parent

    def link(match):
        image, text, target = match.groups()
        page = target.startswith("nbs/") and target.endswith((".ipynb", ".md"))
        if image or page or not (root / target).exists():
            return match[0]
        kind = "tree" if (root / target).is_dir() else "blob"
        address = f"{app.config.book_repository}/{kind}/{app.config.book_branch}/{target}"
        return f"[{text}]({address}"  # the bracket that follows stays

    content[0] = re.sub(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)", link, content[0])


# ---- What a page has around its text ----


def dress(app, doctree):
    "Folded tests, the promise under the title, the number of the chapter, and where in the paper a quotation is."
    docname = app.env.docname
    place = place_in_book(docname)
    folding.fold_tests(doctree)
    for quote in list(doctree.findall(nodes.block_quote)):
        if place is not None and is_below_title(quote):
            quote["classes"].append("promise")
        else:
            link_paper(quote)
    for math in list(doctree.findall(nodes.math)):
        keep_with_punctuation(math)

    titles = list(doctree.findall(nodes.title))
    if place is None or not titles:
        return
    eyebrow = api_blocks.paragraph(nodes.Text(place), classes=["eyebrow"])
    titles[0].parent.insert(0, eyebrow)

    # the sidebar is made of these tables of contents; numbers show the order of the book there
    number = chapter_number(docname)
    if number is not None:
        entry = next(iter(app.env.tocs[docname].findall(nodes.reference)))
        entry.insert(0, nodes.inline("", number, classes=["chapter-number"]))


def chapter_number(docname) -> str | None:
    "`1_model/3_masks` is 1.3; what one looks up has no number."
    match = re.match(r"(\d+)_\w+/(\d+)_", docname)
    if match is None:
        return None
    return f"{match[1]}.{match[2]}"


def place_in_book(docname) -> str | None:
    "What stands above the title of a notebook: its chapter, or the part to look things up in."
    number = chapter_number(docname)
    if number is not None:
        return f"Chapter {number}"
    return looked_up().get(docname)


def is_below_title(quote) -> bool:
    "Whether a quotation is the first thing below the title of the page."
    section = quote.parent
    before = section[section.index(quote) - 1]
    return isinstance(before, nodes.title) and isinstance(section.parent, nodes.document)


PLACE = re.compile(r"\s*\(((?:section|table|figure|equation|abstract)\b[^()]*)\)\s*$", re.I)


def link_paper(quote):
    "Where a quotation ends with its place in the paper, as in (section 3.2), link that place."
    texts = list(quote.findall(nodes.Text))
    place = PLACE.search(texts[-1]) if texts else None
    if place is None:
        return
    link = nodes.reference("", place[1], refuri=paper_address(place[1]))
    cite = nodes.inline("", "", link, classes=["paper-place"])
    before = nodes.Text(texts[-1][: place.start()])
    texts[-1].parent.replace(texts[-1], [before, nodes.Text(" "), cite])


PAPER = "https://arxiv.org/abs/1706.03762"
SECTIONS_OF_PAPER = (
    "https://arxiv.org/html/1706.03762v7"  # a page, each section with an address
)
TABLES = {"1": "S4", "2": "S6", "3": "S6", "4": "S6"}  # the section of each table


def paper_address(place) -> str:
    "Where on the web `section 3.2.1` or `table 2` of the paper is: #S3.SS2.SSS1, #S6.T2."
    section = re.search(r"section (\d(?:\.\d){0,2})", place, re.I)
    if section:
        anchors = []
        for depth, number in enumerate(section[1].split("."), 1):
            anchors.append("S" * depth + number)
        return f"{SECTIONS_OF_PAPER}#{'.'.join(anchors)}"

    table = re.search(r"table (\d)", place, re.I)
    if table and table[1] in TABLES:
        return f"{SECTIONS_OF_PAPER}#{TABLES[table[1]]}.T{table[1]}"
    return PAPER


def keep_with_punctuation(math):
    "Keep a formula and the comma after it together: to a browser the formula is an image, after which a line may end."
    parent = math.parent
    i = parent.index(math)
    after = parent[i + 1] if i + 1 < len(parent) else None
    mark = re.match(r"[,.;:!?)]+", after) if isinstance(after, nodes.Text) else None
    if mark:
        together = nodes.inline("", "", math, nodes.Text(mark[0]), classes=["together"])
        parent[i : i + 2] = [together, nodes.Text(after[mark.end() :])]


# ---- The extension ----


def need_mathjax(app):
    "A page with raw TeX in place of its formulas is no page: without MathJax the build ends here, and says why."
    try:
        fetch_mathjax.fetch()
    except RuntimeError as error:
        raise ExtensionError(str(error)) from None


def all_pages(app, env):
    "Write all pages again when one has changed, because links depend on where other pages define their names."
    return env.found_docs


def setup(app):
    app.add_config_value("book_package", "", "env")
    app.add_config_value("book_repository", "", "env")
    app.add_config_value("book_branch", "", "env")
    folding.setup(app)
    app.add_directive("api", api_blocks.Api)
    app.add_post_transform(api_blocks.LinkNames)
    app.connect("builder-inited", need_mathjax)
    app.connect("source-read", read_notebook)
    app.connect("include-read", read_readme)
    # after Sphinx has collected titles and tables of contents
    app.connect("doctree-read", dress, priority=900)
    app.connect("env-updated", all_pages)

    # a change of these files makes every page out of date
    made_of = b""
    for module in (sys.modules[__name__], api_blocks, library, folding):
        made_of += Path(module.__file__).read_bytes()
    return dict(
        version="1",
        env_version=zlib.crc32(made_of),
        parallel_read_safe=True,
        parallel_write_safe=True,
    )
