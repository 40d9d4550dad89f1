"""The documentation site: it builds without a warning, and a reader gets what `docs/` promises.

The first half reads the built pages. The second half looks at them in a headless Chromium; it is skipped, with the reason,
where there is no browser. Both look at one build, made here from the working tree by the same command as anywhere else.
"""

import ast
import builtins
import configparser
import importlib
import json
import os
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from building import need_tools

need_tools()
from browsing import assert_readable, visit, wait_for
from bs4 import BeautifulSoup
from project import Cell

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "nbs").glob("[0-9]*.ipynb"))
CHAPTERS = [path.stem for path in NOTEBOOKS]
PARTS = (
    "The model",
    "Training",
    "Decoding",
    "First task, and looking inside",
    "Translation",
    "Descendants",
    "Since 2017",
    "Speed and scale",
    "In practice",
    "Tools",
)  # a decade of numbers each
SETTINGS = configparser.ConfigParser(delimiters=["="])
SETTINGS.read(ROOT / "settings.ini", encoding="utf-8")
SETTINGS = SETTINGS["DEFAULT"]
BLOB = f"{SETTINGS['git_url']}/blob/{SETTINGS['branch']}"


# ---- What is there to document ----


def statements(module: Path) -> dict:
    "Top-level name -> statement."
    found = {}
    for statement in ast.parse(module.read_text(encoding="utf-8")).body:
        if hasattr(statement, "name"):
            found[statement.name] = statement
        for target in getattr(statement, "targets", [getattr(statement, "target", None)]):
            found |= (
                {t.id: statement for t in ast.walk(target) if isinstance(t, ast.Name)}
                if target
                else {}
            )
    return found


def exports():
    "(module file, chapter, public name) for each entry of each `__all__`."
    for module in sorted((ROOT / SETTINGS["lib_path"]).rglob("*.py")):
        source = re.search(
            r"File to edit: [./]*/nbs/([\w.]+)\.ipynb", module.read_text(encoding="utf-8")
        )
        if source is None or "__all__" not in (tree := statements(module)):
            continue
        for name in ast.literal_eval(tree["__all__"].value):
            yield module, source[1], name


def dotted(module: Path) -> str:
    "`models.gpt`"
    return ".".join(module.relative_to(ROOT / SETTINGS["lib_path"]).with_suffix("").parts)


EXPORTS = list(exports())
UNIQUE = {
    name: chapter
    for _, chapter, name in EXPORTS
    if Counter(n for *_, n in EXPORTS)[name] == 1
}


def cells(chapter):
    return [
        cell | {"source": "".join(cell["source"])}
        for cell in json.loads(
            (ROOT / "nbs" / f"{chapter}.ipynb").read_text(encoding="utf-8")
        )["cells"]
    ]


def directive(cell, name):
    match = re.search(rf"^#\|\s*{name}(?::\s*(.*?))?\s*$", cell["source"], re.M)
    return match and (match[1] or "").strip("\"'")


def spaceless(text):
    "Text without spaces and backticks, and with the typewriter's quotes and dots instead of the printer's."
    for printed, typed in {
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "…": "...",
        "–": "--",
        "—": "---",
    }.items():
        text = text.replace(printed, typed)
    return re.sub(r"[\s`]+", "", text)


# ---- The build ----


@pytest.fixture(scope="session")
def pages(site):
    "Page name -> its parsed HTML."
    return {
        path.stem: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in site.glob("*.html")
    }


def test_build_has_no_warnings(build):
    _, code, complaints = build
    assert code == 0 and not complaints.strip(), complaints


# ---- The order of the book ----


def shown_number(chapter):
    return chapter[:2].lstrip("0") or "0"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_has_a_page_with_its_title_and_number(pages, chapter):
    title = re.match(r"# (.+)", cells(chapter)[0]["source"])[1]
    page = pages[chapter].select_one("article")
    heading = page.h1
    heading.find("a", class_="headerlink").extract()
    assert spaceless(heading.text) == spaceless(title.replace("`", "").replace("*", ""))
    assert page.select_one(".eyebrow").text == f"Chapter {shown_number(chapter)}"
    assert page.select_one("blockquote.promise"), (
        "the block quote below the title is the chapter's promise"
    )


def test_sidebar_has_the_parts_in_order(pages):
    expected = {}
    for chapter in CHAPTERS:
        expected.setdefault(PARTS[int(chapter[0])], []).append(f"{chapter}.html")
    menu = pages["index"].select_one("nav.bd-links")
    found = {
        caption.text.strip(): [
            a["href"]
            for a in caption.find_next_sibling("ul").select("li.toctree-l1 > a")
            if a["href"][0].isdigit()
        ]
        for caption in menu.select("p.caption")
    }
    assert [part for part in found.items() if part[0] != "Reference"] == list(
        expected.items()
    )
    numbers = [number.text for number in menu.select("li.toctree-l1 > a > .chapter-number")]
    assert numbers == [shown_number(chapter) for chapter in CHAPTERS]


# ---- What a chapter shows ----


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_page_shows_the_code_that_is_not_hidden(pages, chapter):
    "Cell by cell: nothing hidden is seen, nothing visible is missing, and no directive is left in."
    hidden = ("hide", "export", "exporti", "default_exp .*")
    shown = [
        c
        for c in cells(chapter)
        if c["cell_type"] == "code"
        and not any(directive(c, d) is not None for d in hidden)
        and directive(c, "include") != "false"
        and directive(c, "echo") != "false"
    ]
    expected = [
        re.sub(r"^#\|.*\n?|^.*#\|\s*hide_line\s*$\n?|^%.*\n?", "", c["source"], flags=re.M)
        for c in shown
    ]
    listings = [pre.text for pre in pages[chapter].select("div.cell_input pre")]
    assert [spaceless(text) for text in listings] == [
        spaceless(text) for text in expected if text.strip()
    ]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_figures_have_their_captions_and_descriptions(pages, chapter):
    drawn = [
        c
        for c in cells(chapter)
        if any(
            {"image/png", "image/svg+xml"} & {*o.get("data", {})}
            for o in c.get("outputs", [])
        )
        and directive(c, "hide") is None
        and directive(c, "include") != "false"
        and directive(c, "output") != "false"
    ]
    said = lambda figure: (
        figure.img["alt"] if figure.img else figure.svg["aria-label"]
    )  # a drawing is part of the page
    figures = [
        (re.sub(r"\W", "", f.select_one(".caption-text").text), said(f))
        for f in pages[chapter].select(".cell_output figure")
    ]
    with_caption = [c for c in drawn if directive(c, "fig-cap")]
    assert len(figures) == len(with_caption)
    for (caption, alt), cell in zip(figures, with_caption):
        plain = directive(cell, "fig-cap")
        if not re.search(r"[$\\]", plain):
            assert caption == re.sub(r"\W", "", plain)
        assert alt == directive(cell, "fig-alt")
    assert all(img.get("alt") for img in pages[chapter].select(".cell_output img")), (
        "a picture without `#| fig-alt:`"
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_solutions_are_folded(pages, chapter):
    folded = sum(
        len(re.findall(r"^<details>", c["source"], re.M))
        for c in cells(chapter)
        if c["cell_type"] == "markdown"
    )
    details = [d for d in pages[chapter].select("article details") if not d.get("class")]
    assert len(details) == folded and not any(d.has_attr("open") for d in details)
    assert all(d.summary and len(d.text) > len(d.summary.text) for d in details)
    assert ":::" not in pages[chapter].select_one("article").text.replace("[:::", "")


# ---- What is folded ----


def code_cells(chapter):
    return [
        cell
        for data in cells(chapter)
        if data["cell_type"] == "code" and data["source"].strip()
        for cell in [Cell(data)]
    ]


def listings(page, selector):
    return [spaceless(pre.text) for pre in page.select(selector)]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_only_tests_are_folded_and_say_how_many(pages, docs, chapter):
    by_text = {
        spaceless(re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)): cell
        for cell in code_cells(chapter)
    }
    for block in pages[chapter].select("details.tests"):
        assert not block.has_attr("open") and not block.select(".cell_output")
        found = [by_text[text] for text in listings(block, "div.cell_input pre")]
        assert found and all(cell.tests and not cell.outputs for cell in found)
        number = sum(docs("folding").checks(cell.source) for cell in found)
        on_gpu = sum(
            docs("folding").checks(cell.source)
            for cell in found
            if re.search(r"^#\|\s*cuda\s*$", cell.source, re.M)
        )
        words = (
            f"Tests {number} check{'s' * (number > 1)}"
            + f", {on_gpu} on a GPU, not run for this page" * (on_gpu > 0)
        )
        assert spaceless(block.summary.text) == spaceless(words)
        assert "tests" not in (
            (block.find_next_sibling() or block.parent).get("class") or []
        ), "two blocks, where one would do"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_shown_code_needs_nothing_that_is_folded_under_tests(pages, docs, chapter):
    folding = docs("folding")
    folded = {*listings(pages[chapter], "details.tests div.cell_input pre")}
    shown = {*listings(pages[chapter], "div.cell_input pre")} - folded
    found = {
        spaceless(re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)): folding.names(
            cell.source
        )
        for cell in code_cells(chapter)
    }
    elsewhere = {
        name
        for text, names in found.items()
        if text not in folded
        for name in names.defined | names.imported
    }
    for text in found.keys() & shown:
        missing = found[text].needed - elsewhere - {*dir(builtins), "display"}
        assert not missing, f"{missing}: defined in tests alone, and used by\n{text}"


def test_which_cells_are_folded(docs):
    "Of the cells that check: those that show nothing, define nothing that is needed further down, and no test by name."
    sources = {
        "x = 1": 0,
        "assert x": 1,
        "y = 2; assert y": 0,
        "test_eq(y, 2)": 1,
        "def test_it(): assert x": 0,
        "with expect_fail(): x.z": 1,
        "assert x; print(x)": 0,
        "for i in [x]: assert i": 1,
        "i = 3; print(i + y)": 0,
    }
    code = [
        dict(
            cell_type="code",
            source=source,
            metadata={},
            outputs=["1"] * ("print" in source),
        )
        for source in sources
    ]
    apart = dict(
        cell_type="code", source="assert x", metadata={"tags": ["hide-input"]}, outputs=[]
    )
    docs("folding").mark_tests([*code, apart])
    assert [("tests" in cell["metadata"].get("tags", [])) for cell in code] == [
        bool(folded) for folded in sources.values()
    ]
    assert apart["metadata"]["tags"] == ["hide-input"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_imports_stand_folded_before_the_first_code(pages, chapter):
    unseen = [
        cell
        for cell in code_cells(chapter)
        if cell.id != "colab" and (cell.hidden or "export" in cell.directives)
    ]
    expected = [
        ast.unparse(node)
        for cell in unseen
        for node in cell.tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    blocks = pages[chapter].select("details.imports")
    assert len(blocks) == bool(expected)
    for block in blocks:
        assert block.summary.text == "Imports and helpers" and not block.has_attr("open")
        assert not block.find_all_previous(
            "div", class_="cell_input"
        ) and block.find_all_next("div", class_="cell_input")
        tree = ast.parse(block.pre.text)
        assert [
            ast.unparse(node)
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
        ] == expected
        assert "google.colab" not in block.text


def test_a_column_of_words_or_numbers_is_a_table_and_a_sentence_is_none(docs):
    in_columns = docs("folding").in_columns
    assert in_columns("word   id\ncat     7\n" + "dog     8  " * 30) and not in_columns(
        "one line   alone"
    )
    assert not in_columns(
        "leak   " + "a sentence that says what was found, " * 2 + "\nnone   nothing"
    )


# ---- Quotations ----


def test_quotations_link_the_paper(pages, docs):
    address = docs("book").paper_address
    assert address("section 3.2.1") == "https://arxiv.org/html/1706.03762v7#S3.SS2.SSS1"
    assert address("Section 4; table 1") == "https://arxiv.org/html/1706.03762v7#S4"
    assert address("table 3") == "https://arxiv.org/html/1706.03762v7#S6.T3"
    assert address("abstract") == "https://arxiv.org/abs/1706.03762"
    links = [
        link
        for page in pages.values()
        for link in page.select("blockquote .paper-place > a")
    ]
    quotes = [
        c["source"]
        for chapter in CHAPTERS
        for c in cells(chapter)
        if c["cell_type"] == "markdown"
    ]
    assert (
        len(links)
        == sum(
            len(
                re.findall(
                    r"^>.*\((?:section|table|figure|equation|abstract)[^()]*\)$",
                    q,
                    re.M | re.I,
                )
            )
            for q in quotes
        )
        > 0
    )
    assert {link["href"] for link in links} <= {address(link.text) for link in links}


# ---- Buttons ----


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_colab_opens_the_notebook_and_download_gives_it(site, pages, chapter):
    links = {a["href"]: a for a in pages[chapter].select(".article-header-buttons a[href]")}
    assert (
        f"https://colab.research.google.com/github/{SETTINGS['user']}/{SETTINGS['repo']}/blob/{SETTINGS['branch']}/nbs/{chapter}.ipynb"
        in links
    )
    assert f"{BLOB}/nbs/{chapter}.ipynb" in {h.split("?")[0] for h in links}
    assert f"_sources/{chapter}.ipynb" in links
    assert (site / "_sources" / f"{chapter}.ipynb").read_bytes() == (
        ROOT / "nbs" / f"{chapter}.ipynb"
    ).read_bytes()


# ---- Exported names ----


def line_of(href) -> str:
    "The line of the working tree that a source link points to."
    match = re.fullmatch(re.escape(BLOB) + r"/(.+)#L(\d+)", href)
    assert match, href
    return (ROOT / match[1]).read_text(encoding="utf-8").splitlines()[int(match[2]) - 1]


@pytest.mark.parametrize(
    "module,chapter,name", EXPORTS, ids=[f"{dotted(m)}.{n}" for m, _, n in EXPORTS]
)
def test_exported_name_has_a_block_and_its_source(pages, module, chapter, name):
    block = pages[chapter].find(id=f"api-{name}")
    assert block is not None and block.name == "details", "no API block"
    source = block.find_next_sibling("p").select_one("a.api-source")["href"]
    assert not block.summary.a, "a link inside a button cannot be reached"
    assert f"/{module.name}#" in source
    assert re.match(
        rf"(?:(?:async )?def|class) {name}\b|[\w, ]*\b{name}\b.*=", line_of(source)
    ), line_of(source)
    for method in block.select("p.api-method"):
        assert re.match(
            rf"\s+(?:async )?def {method['id'].rpartition('.')[2]}\b",
            line_of(method.a["href"]),
        )
    first = (
        (ast.get_docstring(statements(module)[name]) or "").split(".")[0]
        if hasattr(statements(module)[name], "name")
        else ""
    )
    assert spaceless(first) in spaceless(block.summary.text), (
        "the purpose is on the folded line"
    )


def rows(table):
    head = [th.text for th in table.select("th")]
    return [
        dict(zip(head, (td.text for td in tr.select("td"))))
        for tr in table.select("tbody tr")
    ]


@pytest.mark.parametrize("module", sorted({m for m, *_ in EXPORTS}), ids=dotted)
def test_tables_say_what_docments_says(pages, module):
    "The site reads the syntax tree; fastcore reads the living function. They have to agree."
    docments = pytest.importorskip("fastcore.docments").docments
    pytest.importorskip("torch")
    living = importlib.import_module(f"{SETTINGS['lib_path']}.{dotted(module)}")
    compared = 0
    for _, chapter, name in (e for e in EXPORTS if e[0] == module):
        statement, thing = statements(module)[name], getattr(living, name)
        if not hasattr(statement, "name"):
            continue
        own = (
            isinstance(statement, ast.FunctionDef)
            or hasattr(thing, "__dataclass_fields__")
            or "__init__" in vars(thing)
        )
        table = (
            pages[chapter]
            .find(id=f"api-{name}")
            .find(["table", "p"], class_=["api-table", "api-method"])
        )
        shown = rows(table) if table is not None and table.name == "table" else []
        shown = {
            row["parameter"].lstrip("*"): row.get("meaning", "")
            for row in shown
            if row["parameter"] != "returns"
        }
        said = docments(thing, full=True, args_kwargs=True) if own else {}
        for base in (
            b
            for b in getattr(thing, "__mro__", ())[1:]
            if hasattr(b, "__dataclass_fields__")
        ):  # says what it hands down
            for key, doc in docments(base, full=True).items():
                if key in said and not said[key]["docment"]:
                    said[key]["docment"] = doc["docment"]
        # a command's options carry their meaning in `Annotated[..., typer.Option(help='...')]`
        helps = {
            key: re.search(r"\bhelp=(['\"])(.*?)\1", str(doc["anno"]))
            for key, doc in said.items()
        }
        expected = {
            key: doc["docment"] or (helps[key][2] if helps[key] else "")
            for key, doc in said.items()
            if key not in ("self", "cls", "return")
        }
        assert {k: spaceless(v) for k, v in shown.items()} == {
            k: spaceless(v) for k, v in expected.items()
        }, name
        compared += len(expected)
    assert compared > 0


def test_names_in_backticks_are_links(pages):
    linked = 0
    for chapter in CHAPTERS:
        for code in pages[chapter].select(
            "article p > code, article li > code, article td > code, article p > a > code"
        ):
            if code.find_parent("details", class_="api") or code.text not in UNIQUE:
                continue
            link = code.find_parent("a")
            assert link is not None, f"{chapter}: `{code.text}` is not a link"
            page, anchor = urldefrag(link["href"])
            assert (page.removesuffix(".html") or chapter, anchor) == (
                UNIQUE[code.text],
                f"api-{code.text}",
            )
            linked += 1
    assert linked > 0


def test_contents_of_a_page_are_its_sections(pages):
    for chapter in CHAPTERS:
        assert not pages[chapter].select(".bd-sidebar-secondary a[href^='#api-']")
        headings = [
            h
            for c in cells(chapter)
            if c["cell_type"] == "markdown"
            for h in re.findall(
                r"^##{1,2} ",
                re.sub(r"^```.*?^```", "", c["source"], flags=re.M | re.S),
                re.M,
            )
        ]
        assert len(
            pages[chapter].select(".bd-sidebar-secondary .page-toc a.nav-link")
        ) == len(headings)


def test_local_links_lead_somewhere(site, pages):
    ids = {name: {tag["id"] for tag in page.select("[id]")} for name, page in pages.items()}
    for name, page in pages.items():
        for link in page.select("a[href]"):
            target, anchor = urldefrag(unquote(link["href"]))
            if re.match(r"[a-z]+:", target):
                continue
            assert not target or (site / target).exists(), f"{name}: {link['href']}"
            page_name = target.removesuffix(".html") or name
            if anchor and page_name in ids:
                assert anchor in ids[page_name], f"{name}: {link['href']}"


def test_no_source_link_without_a_line(site):
    for path in site.glob("*.html"):
        assert "LNone" not in path.read_text(encoding="utf-8"), path.name


# ---- Drawings ----


def drawn_by(chapter):
    outputs = [output for cell in cells(chapter) for output in cell.get("outputs", ())]
    return [
        text
        for output in outputs
        if 'class="diagram"'
        in (text := "".join(output.get("data", {}).get("image/svg+xml", "")))
    ]


@pytest.mark.parametrize("chapter", [*CHAPTERS, "index"])
def test_drawings_are_part_of_the_page(pages, chapter):
    "There they follow its switch for light and dark. Each says in words what it shows, and none can collide with another."
    drawn = pages[chapter].select("article .drawing > svg.diagram")
    assert len(drawn) == (1 if chapter == "index" else len(drawn_by(chapter)))
    assert not pages[chapter].select("article img[src$='.svg']")
    for svg in pages[chapter].select("article svg.diagram"):
        assert (
            svg["role"] == "img"
            and len(svg["aria-label"].split()) > 2
            and not svg.select("[id]")
        )
        style = svg.find("style").text
        assert (
            'html[data-theme="dark"] .diagram .d-page' in style
            and "prefers-color-scheme" not in style
        )


def test_chapters_say_where_they_stand(pages, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    here = importlib.import_module("drawings").HERE
    assert all(number[0] in "012" for number in here)  # the model, training, decoding
    for chapter in CHAPTERS:
        small = pages[chapter].select("article h1 ~ .here > svg.diagram")
        assert len(small) == (chapter[:2] in here), chapter
        for svg in small:
            assert svg[
                "aria-label"
            ] == f"You are here: {here[chapter[:2]][1]}" and not svg.select("text")
            assert svg.select("g.lit rect, g.lit circle") and svg.select("g[opacity]")


# ---- Nothing from elsewhere ----

ELSEWHERE = r"(?:https?:)?//"


def test_pages_load_nothing_from_other_hosts(pages):
    links_only = {
        "canonical",
        "index",
        "search",
        "next",
        "prev",
        "author",
        "license",
    }  # rel of <link>s that load nothing
    for name, page in pages.items():
        loads = [
            tag[a]
            for tag in page.find_all(True)
            for a in ("src", "srcset", "data", "poster")
            if tag.has_attr(a)
        ]
        loads += [
            link["href"]
            for link in page.find_all("link")
            if link.has_attr("href") and not set(link["rel"]) & links_only
        ]
        loads += [
            url
            for tag in page.find_all(True)
            if tag.has_attr("style")
            for url in re.findall(r"url\([\"']?([^)]*)", tag["style"])
        ]
        assert len(loads) > 10, "a page loads at least its scripts and style sheets"
        assert not [url for url in loads if re.match(ELSEWHERE, url.strip())], name
        for style in page.find_all("style"):
            assert not re.search(r"(?:@import|url\()[\s\"']*" + ELSEWHERE, style.text), name


def test_style_sheets_load_nothing_from_other_hosts(site):
    sheets = list(site.rglob("*.css"))
    assert any(sheet.name == "book.css" for sheet in sheets)
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(
            r"(?:@import\s*(?:url\()?|url\()\s*[\"']?" + ELSEWHERE, text
        ), sheet.name


# ---- MathJax ----


@pytest.fixture
def docs(monkeypatch):
    "Import a file of docs/."
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module


@pytest.fixture
def fetcher(docs):
    return docs("fetch_mathjax")


def test_mathjax_is_fetched_once(fetcher, site, monkeypatch):
    monkeypatch.setenv("PATH", "")  # so that npm cannot be called
    assert fetcher.fetch() is False  # the build has brought it
    assert fetcher.digest((site / "_static" / "tex-svg.js").read_bytes()) == fetcher.SHA256


def test_mathjax_without_npm_says_what_to_do(fetcher, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="npm.*not on the PATH"):
        fetcher.fetch(tmp_path / "tex-svg.js")


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a shell script")
@pytest.mark.parametrize(
    "script,message",
    [
        (
            "mkdir -p package/es5; echo evil > package/es5/tex-svg.js; tar czf mathjax.tgz package",
            "checksum",
        ),
        ("echo no network >&2; exit 1", "no network"),
    ],
)
def test_mathjax_that_is_not_the_right_one_is_refused(
    fetcher, tmp_path, monkeypatch, script, message
):
    (tmp_path / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    target = tmp_path / "kept" / "tex-svg.js"
    with pytest.raises(RuntimeError, match=message):
        fetcher.fetch(target)
    assert not target.exists()


# ---- In a browser ----


def test_formulas_are_drawn(browser, address):
    "tests/test_access.py looks at the formulas of all pages; this one has some."
    visit(browser, f"{address}02_attention.html")
    assert (
        browser.execute_script(
            "return document.querySelectorAll('article .math mjx-container > svg').length"
        )
        > 5
    )


@pytest.mark.parametrize("name", ["masked_softmax", "TransformerConfig"])
def test_search_finds_a_name(browser, address, name):
    chapter = UNIQUE[name]
    visit(browser, f"{address}search.html?q={name}")
    links = wait_for(
        browser,
        """const links = [...document.querySelectorAll('#search-results li a')].map(a => a.href);
        return links.length && /found|matching/.test(document.querySelector('#search-results').textContent) ? links : null""",
    )
    assert any(
        re.search(rf"/{chapter}\.html(?:\?[^#]*)?#api-{name}$", link) for link in links
    ), links


def test_link_to_a_name_unfolds_its_block(browser, address):
    page = f"{address}02_attention.html"
    is_open = "return document.getElementById('api-masked_softmax').open"
    visit(browser, page)
    assert browser.execute_script(is_open) is False
    visit(browser, f"{page}#api-masked_softmax")
    assert browser.execute_script(is_open) is True


def test_link_into_tests_unfolds_them_and_paper_shows_everything(browser, address):
    visit(browser, f"{address}02_attention.html")
    opened = "return [...document.querySelectorAll('article details')].map(d => d.open)"
    assert not any(browser.execute_script(opened))
    browser.execute_script(
        "document.querySelector('details.tests pre').id = 'inside'; location.hash = 'inside'"
    )
    wait_for(browser, "return document.querySelector('details.tests').open")
    assert sum(browser.execute_script(opened)) == 1
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert all(browser.execute_script(opened))


def test_dark_mode_switches_and_stays(browser, address):
    visit(browser, f"{address}02_attention.html")
    look = """const light = e => { const [r, g, b] = getComputedStyle(e).color.match(/[\\d.]+/g); return (+r + +g + +b) / 765 };
        const ground = getComputedStyle(document.documentElement).backgroundColor.match(/[\\d.]+/g);
        const ofBody = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g);
        const [r, g, b] = ofBody.length == 4 && +ofBody[3] == 0 ? ground : ofBody;
        return [document.documentElement.dataset.theme, (+r + +g + +b) / 765, light(document.querySelector('article p:not(.eyebrow)')),
                light(document.querySelector('article mjx-container svg'))]"""

    def switch_to(theme):
        "As a reader does it: open the menu, choose."
        for selector in (
            ".theme-switch-button",
            f".theme-change-button[data-mode='{theme}']",
        ):
            next(
                button
                for button in browser.find_elements("css selector", selector)
                if button.is_displayed()
            ).click()
        browser.execute_async_script("setTimeout(arguments[0], 500)")  # colours fade over
        return browser.execute_script(look)

    theme, ground, text, formula = switch_to("light")
    assert theme == "light" and ground > 0.9 and text < 0.4 and formula < 0.4
    theme, ground, text, formula = switch_to("dark")
    assert theme == "dark" and ground < 0.2 and text > 0.6 and formula > 0.6
    visit(browser, f"{address}03_masks.html")
    assert browser.execute_script(look)[0] == "dark"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_drawings_follow_the_theme(browser, address, theme):
    visit(browser, f"{address}95_figures.diagrams.html")
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    browser.execute_async_script("setTimeout(arguments[0], 500)")  # colours fade over
    page, ink, box = (
        browser.execute_script("""const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + +b / 765, 0);
        const svg = document.querySelector('.drawing svg'), fill = s => getComputedStyle(svg.querySelector(s)).fill;
        return [fill('.d-page'), light(fill('text.d-ink')), light(fill('rect.d-attention'))]""")
    )
    assert page == "none"  # the page is the ground
    assert ink < 0.3 and box > 0.7 if theme == "light" else ink > 0.7 and box < 0.3


def test_words_of_drawings_can_be_read_on_a_phone(browser, address):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        dict(width=390, height=840, deviceScaleFactor=1, mobile=True),
    )
    try:
        for page in ("index", *(chapter for chapter in CHAPTERS if drawn_by(chapter))):
            visit(browser, f"{address}{page}.html")
            letters = browser.execute_script("""return [...document.querySelectorAll('.drawing svg')].flatMap(svg => {
                const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
                return [...svg.querySelectorAll('text')].map(text => scale * text.getAttribute('font-size')) })""")
            assert letters and min(letters) > 10.9, page
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_pictures_of_several_panels_scroll_on_a_phone_and_fade_where_they_go_on(
    browser, address
):
    look = """return [...document.querySelectorAll('article figure img')].filter(img => img.naturalWidth > 700).map(img => {
        const place = img.closest('.drawing');
        return [img.getBoundingClientRect().width / img.naturalWidth, place.dataset.wide, getComputedStyle(place).maskImage != 'none'] })"""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        dict(width=390, height=840, deviceScaleFactor=1, mobile=True),
    )
    try:
        visit(browser, f"{address}53_models.bert.html")
        found = browser.execute_script(look)
        assert found and all(
            scale > 0.64 and wide == "Drawing" and fades for scale, wide, fades in found
        ), found
        browser.execute_script(
            "document.querySelectorAll('[data-wide]').forEach(e => e.scrollTo(1e5, 0))"
        )
        browser.execute_async_script("setTimeout(arguments[0], 300)")
        assert not any(fades for _, _, fades in browser.execute_script(look))
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_attention_view_follows_the_theme(browser, address, theme):
    visit(browser, f"{address}34_inspection.attention_view.html")
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    browser.execute_async_script("setTimeout(arguments[0], 500)")  # colours fade over
    assert_readable(browser, theme == "dark")
