"""The documentation site: it builds without a warning, and a reader gets what `docs/` promises.

The first half reads the built pages. The second half looks at them in a headless Chromium; it is skipped, with the reason,
where there is no browser. Both look at one build, made here from the working tree by the same command as anywhere else.
"""

import ast
import builtins
import importlib
import os
import re
import sys
from collections import Counter
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urldefrag

import pytest
from building import need_tools

need_tools()
from browsing import phone, switch_theme, visit, wait_for, window
from bs4 import BeautifulSoup
from project import ROOT, chapters, modules, parts, public, settings, tree

sys.path.insert(0, str(ROOT / "docs"))
from old_addresses import MOVED, address_from

pytestmark = pytest.mark.site

BLOB = f"{settings()['git_url']}/blob/{settings()['branch']}"


# ---- What is there to document ----


def defined(module: ast.Module) -> dict[str, ast.stmt]:
    "Top-level name -> statement."
    found = {}
    for statement in module.body:
        if hasattr(statement, "name"):
            found[statement.name] = statement
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        for target in filter(None, targets):
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    found[node.id] = statement
    return found


def exports() -> list[tuple[str, str, str]]:
    "(chapter, module, public name) for each name that a cell exports."
    found = []
    for chapter in chapters():
        for cell in chapter.cells:
            if cell.exported:
                module = cell.directive("exports?") or chapter.module
                names = defined(cell.tree).keys() & {*public(tree(modules()[module]))}
                found += [(chapter.name, module, name) for name in sorted(names)]
    return found


EXPORTS = exports()
COUNTS = Counter(name for *_, name in EXPORTS)
UNIQUE = {name: chapter for chapter, _, name in EXPORTS if COUNTS[name] == 1}


def without_directives(source: str) -> str:
    "What a page shows of a cell."
    return re.sub(r"^#\|.*\n?|^.*#\|\s*hide_line\s*$\n?|^%.*\n?", "", source, flags=re.M)


def spaceless(text: str) -> str:
    "Without spaces and backticks, and with the typewriter's quotes and dots instead of the printer's."
    printed = "’‘“”"
    typed = "''\"\""
    text = text.translate(str.maketrans(printed, typed))
    text = text.replace("…", "...").replace("—", "---").replace("–", "--")
    return re.sub(r"[\s`]+", "", text)


def listings(page, selector="div.cell_input pre") -> list[str]:
    return [spaceless(pre.text) for pre in page.select(selector)]


@pytest.fixture(scope="session")
def pages(site):
    "Page name, such as 1_model/2_attention -> its parsed HTML."
    found = {}
    for path in sorted([*site.glob("*.html"), *site.glob("[0-9a-z]*/*.html")]):
        name = path.relative_to(site).with_suffix("").as_posix()
        if name not in MOVED:
            text = path.read_text(encoding="utf-8")
            found[name] = BeautifulSoup(text, "html.parser")
    return found


@pytest.fixture
def docs(monkeypatch):
    "Import a file of docs/."
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module


# ---- The build, and the order of the book ----


def test_build_has_no_warnings(build):
    _, code, complaints = build

    assert code == 0 and not complaints.strip(), complaints


def test_chapters_have_a_page_with_their_title_and_number(pages):
    for chapter in chapters():
        title = re.match(r"# (.+)", chapter.cells[0].source)[1]
        article = pages[chapter.name].select_one("article")
        heading = "".join(part.text for part in article.h1.contents if part.text != "#")

        assert spaceless(heading) == spaceless(title.replace("*", "")), chapter.name
        above = article.select_one(".eyebrow").text
        if chapter.number:
            assert above == f"Chapter {chapter.number}"
        else:
            assert chapter.name in parts()[above]
        assert article.select_one("blockquote.promise"), chapter.name


def test_sidebar_has_the_chapters_in_order(pages):
    menu = pages["index"].select_one("nav.bd-links")
    links = [a["href"] for a in menu.select("li.toctree-l1 > a")]
    numbers = [number.text for number in menu.select("li.toctree-l1 > a > .chapter-number")]
    captions = [caption.text.strip() for caption in menu.select("p.caption")]

    assert captions == [part for part, names in parts().items() if names]
    order = [name for names in parts().values() for name in names]
    assert [link for link in links if link != "#"] == [
        *(f"{name}.html" for name in order),
        "genindex.html",
    ]
    notebooks = {chapter.name: chapter for chapter in chapters()}
    shown = [notebooks[name].number for name in order if name in notebooks]
    assert numbers == [number for number in shown if number]


# ---- What a chapter shows ----


def is_shown(cell) -> bool:
    return (
        cell.is_code
        and not cell.hidden
        and cell.directive("export") is None
        and cell.directive("exporti") is None
        and cell.directive("echo") != "false"
    )


def test_pages_show_the_code_that_is_not_hidden(pages):
    "Cell by cell: nothing hidden is seen, nothing visible is missing, and no directive is left in."
    for chapter in chapters():
        sources = [
            without_directives(cell.source) for cell in chapter.cells if is_shown(cell)
        ]
        expected = [spaceless(source) for source in sources if source.strip()]

        assert listings(pages[chapter.name]) == expected, chapter.name


def has_picture(cell) -> bool:
    kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
    return bool(kinds & {"image/png", "image/svg+xml"})


def test_figures_have_their_captions_and_descriptions(pages):
    for chapter in chapters():
        page = pages[chapter.name]
        drawn = [
            cell
            for cell in chapter.cells
            if has_picture(cell)
            and not cell.hidden
            and cell.directive("output") != "false"
            and cell.directive("fig-cap") is not None
        ]
        figures = page.select(".cell_output figure")
        assert len(figures) == len(drawn), chapter.name

        for figure, cell in zip(figures, drawn):
            caption = cell.directive("fig-cap")
            if not re.search(r"[$\\]", caption):
                shown = figure.select_one(".caption-text").text
                assert re.sub(r"\W", "", shown) == re.sub(r"\W", "", caption)
            # a drawing is part of the page
            said = figure.img["alt"] if figure.img else figure.svg["aria-label"]
            assert said == cell.directive("fig-alt")

        bare = [img for img in page.select(".cell_output img") if not img.get("alt")]
        assert not bare, f"{chapter.name}: a picture without `#| fig-alt:`"


def test_solutions_are_folded(pages):
    for chapter in chapters():
        texts = [cell.source for cell in chapter.cells if not cell.is_code]
        for cell in chapter.cells:  # a long table may be folded, too
            for output in cell.outputs:
                texts.append("".join(output.get("data", {}).get("text/markdown", "")))
        folded = sum(len(re.findall(r"^<details>", text, re.M)) for text in texts)
        details = [
            d for d in pages[chapter.name].select("article details") if not d.get("class")
        ]

        assert len(details) == folded, chapter.name
        for block in details:
            assert not block.has_attr("open")
            assert len(block.text) > len(block.summary.text)


def test_formulas_in_tables_are_drawn(pages):
    "In tables that a cell wrote, too."
    drawn, raw = 0, []
    for name, page in pages.items():
        for cell in page.select("article :is(th, td)"):
            drawn += len(cell.select(".math"))
            words = "".join(text for text in cell.strings if not text.find_parent("code"))
            if words.count("$") > 1:
                raw.append(f"{name}: {words.strip()}")

    assert drawn > 10
    assert not raw, "\n".join(raw)


# ---- What is folded ----


def code_by_text(chapter) -> dict:
    "Code as a page shows it -> its cell."
    return {
        spaceless(without_directives(cell.source)): cell
        for cell in chapter.cells
        if cell.is_code
    }


def test_only_tests_are_folded_and_say_how_many(pages, docs):
    checks = docs("folding").checks

    for chapter in chapters():
        cells = code_by_text(chapter)
        for block in pages[chapter.name].select("details.tests"):
            assert not block.has_attr("open")
            found = [cells[text] for text in listings(block)]
            assert not any(cell.outputs for cell in found)
            for cell in found:  # models for the tests may be there, too
                assert checks(cell.source) or cell.directive("code-fold") == "true"

            number = sum(checks(cell.source) for cell in found)
            said = re.match(r"Tests\s*(\d+)\s*check", block.summary.text.strip())
            assert int(said[1]) == number > 0, chapter.name


def test_shown_code_needs_nothing_that_is_folded_under_tests(pages, docs):
    names = docs("folding").names

    for chapter in chapters():
        page = pages[chapter.name]
        folded = {*listings(page, "details.tests div.cell_input pre")}
        shown = {*listings(page)} - folded
        found = {text: names(cell.source) for text, cell in code_by_text(chapter).items()}

        elsewhere = {*dir(builtins), "display"}
        for text in found.keys() - folded:
            elsewhere |= {*found[text].defined, *found[text].imported}

        for text in found.keys() & shown:
            missing = found[text].needed - elsewhere
            assert not missing, f"{chapter.name}: {missing} in\n{text}"


def test_which_cells_are_folded(docs):
    "Of the cells that check: those that show nothing, define nothing that is needed further down, and no test by name."
    folded = {
        "x = 1": False,
        "assert x": True,
        "y = 2; assert y": False,
        "test_eq(y, 2)": True,
        "def test_it(): assert x": False,
        "with expect_fail(): x.z": True,
        "assert x; print(x)": False,
        "for i in [x]: assert i": True,
        "i = 3; print(i + y)": False,
    }
    cells = [
        dict(
            cell_type="code",
            source=source,
            metadata={},
            outputs=["1"] if "print" in source else [],
        )
        for source in folded
    ]
    apart = [
        dict(cell_type="code", source=source, metadata={"tags": ["hide-input"]}, outputs=[])
        for source in ("z = 3", "assert x", "z = 2", "k = 1")
    ]
    test = dict(cell_type="code", source="assert k", metadata={}, outputs=[])
    shown = dict(cell_type="code", source="z", metadata={}, outputs=[])

    docs("folding").mark_tests([*cells, *apart, test, shown])

    found = ["tests" in cell["metadata"].get("tags", []) for cell in cells]
    assert found == list(folded.values())
    assert [cell["metadata"]["tags"] for cell in apart[:3]] == [["hide-input"]] * 3
    # what is for tests alone is beside them
    assert apart[3]["metadata"]["tags"] == ["tests"]


def test_long_exported_code_of_the_reference_is_folded_below_its_blocks(pages):
    folds = 0
    for name in parts()["Reference"]:
        for cell in pages[name].select("div.cell.tag_exports"):
            long = len(cell.pre.text.strip("\n").splitlines()) > 45
            assert bool(cell.select("details.hide")) == long, name
            if long:
                above = cell.find_previous_sibling("div")
                assert "api-entry" in above["class"], name
                folds += 1

    assert folds > 10


def import_statements(module: ast.Module) -> list[str]:
    return [
        ast.unparse(node)
        for node in module.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]


def test_hidden_imports_are_folded_before_the_first_code(pages):
    for chapter in chapters():
        expected = []
        for cell in chapter.cells:
            hidden = cell.hidden or cell.directive("export") is not None
            if cell.is_code and hidden and cell.id != "colab":
                expected += import_statements(cell.tree)

        blocks = pages[chapter.name].select("details.imports")
        assert len(blocks) == bool(expected), chapter.name
        for block in blocks:
            assert not block.has_attr("open")
            assert not block.find_all_previous("div", class_="cell_input")
            assert import_statements(ast.parse(block.pre.text)) == expected


def test_a_column_of_words_or_numbers_is_a_table_and_a_sentence_is_none(docs):
    in_columns = docs("folding").in_columns
    sentence = "a sentence that says what was found, " * 2

    assert in_columns("word   id\ncat     7\n" + "dog     8  " * 30)
    assert not in_columns("one line   alone")
    assert not in_columns(f"leak   {sentence}\nnone   nothing")


# ---- Links ----


def test_quotations_link_the_paper(pages, docs):
    address = docs("book").paper_address
    assert address("section 3.2.1") == "https://arxiv.org/html/1706.03762v7#S3.SS2.SSS1"
    assert address("Section 4; table 1") == "https://arxiv.org/html/1706.03762v7#S4"
    assert address("table 3") == "https://arxiv.org/html/1706.03762v7#S6.T3"
    assert address("abstract") == "https://arxiv.org/abs/1706.03762"

    links = [
        a for page in pages.values() for a in page.select("blockquote .paper-place > a")
    ]
    assert links
    for link in links:
        assert link["href"] == address(link.text)


def test_colab_opens_the_notebook_and_download_gives_it(site, pages):
    own = settings()
    colab = "https://colab.research.google.com/github"
    folder = f"{colab}/{own['user']}/{own['repo']}/blob/{own['branch']}/nbs"

    for chapter in chapters():
        page = pages[chapter.name]
        links = {a["href"] for a in page.select(".article-header-buttons a[href]")}

        assert f"{folder}/{chapter.name}.ipynb" in links
        assert f"{BLOB}/nbs/{chapter.name}.ipynb" in {link.split("?")[0] for link in links}
        download = f"_sources/{chapter.name}.ipynb"
        assert f"../{download}" in links
        assert (site / download).read_bytes() == chapter.path.read_bytes()


def test_local_links_lead_somewhere(site, pages):
    ids = {name: {tag["id"] for tag in page.select("[id]")} for name, page in pages.items()}
    broken = []

    for name, page in pages.items():
        for link in page.select("a[href]"):
            target, anchor = urldefrag(unquote(link["href"]))
            if re.match(r"[a-z]+:", target):
                continue
            target = normpath(join(dirname(name), target)) if target else f"{name}.html"
            known = ids.get(target.removesuffix(".html"))
            if not (site / target).exists():
                broken.append(f"{name}: {link['href']}")
            elif anchor and known is not None and anchor not in known:
                broken.append(f"{name}: {link['href']}")

    assert not broken, "\n".join(broken)


def test_old_addresses_lead_on(site, pages):
    assert len(MOVED) > 100

    for old, new in MOVED.items():
        page = BeautifulSoup(
            (site / f"{old}.html").read_text(encoding="utf-8"), "html.parser"
        )
        assert page.a["href"] == address_from(old, new)
        assert (site / old).parent.joinpath(page.a["href"]).resolve() == (
            site.resolve() / f"{new}.html"
        )
        assert new in pages


# ---- Exported names ----


def line_of(href: str) -> str:
    "The line of the working tree that a source link points to."
    match = re.fullmatch(re.escape(BLOB) + r"/(.+)#L(\d+)", href)
    assert match, href
    lines = (ROOT / match[1]).read_text(encoding="utf-8").splitlines()
    return lines[int(match[2]) - 1]


def test_exported_names_have_a_block_and_their_source(pages):
    assert len(EXPORTS) > 200

    for chapter, module, name in EXPORTS:
        block = pages[chapter].find("details", id=f"api-{name}")
        assert block is not None, f"{chapter} has no block for {name}"

        source = block.find_next_sibling("p").select_one("a.api-source")["href"]
        assert f"/{modules()[module].name}#" in source
        definition = rf"(?:(?:async )?def|class) {name}\b|[\w, ]*\b{name}\b.*="
        assert re.match(definition, line_of(source)), source

        for method in block.select("p.api-method"):
            short = method["id"].rpartition(".")[2]
            line = line_of(method.a["href"])
            assert re.match(rf"\s+(?:async )?def {short}\b", line), line

        statement = defined(tree(modules()[module]))[name]
        if hasattr(statement, "name"):
            purpose = (ast.get_docstring(statement) or "").split(".")[0]
            assert spaceless(purpose) in spaceless(block.summary.text), name


def test_a_block_has_a_table_of_parameters(pages):
    "With what the comments say of them, and what comes back."
    block = pages["1_model/2_attention"].find(id="api-scaled_dot_product_attention")
    rows = [[td.text for td in tr.select("td")] for tr in block.select("tbody tr")]

    table = {name: " ".join(rest) for name, *rest in rows}
    assert [*table][:3] == ["query", "key", "value"] and "returns" in table
    assert "*batch Q Dk" in table["query"]
    assert "*batch K Dv" in table["value"]


def test_names_in_backticks_are_links(pages):
    places = "article p > code, article li > code, article td > code, article p > a > code"
    linked = 0

    for chapter in chapters():
        for code in pages[chapter.name].select(places):
            if code.find_parent("details", class_="api") or code.text not in UNIQUE:
                continue
            link = code.find_parent("a")
            assert link is not None, f"{chapter.name}: `{code.text}` is not a link"
            page, anchor = urldefrag(link["href"])
            page = normpath(join(dirname(chapter.name), page)) if page else chapter.name
            assert page.removesuffix(".html") == UNIQUE[code.text]
            assert anchor == f"api-{code.text}"
            linked += 1

    assert linked > 0


# ---- Drawings ----


def drawn_by(chapter) -> int:
    "How many drawings a chapter's cells have made."
    pictures = [
        "".join(output.get("data", {}).get("image/svg+xml", ""))
        for cell in chapter.cells
        for output in cell.outputs
    ]
    return sum('class="diagram"' in picture for picture in pictures)


def test_drawings_are_part_of_the_page(pages):
    "There they follow its switch for light and dark. Each says in words what it shows, and none can collide with another."
    expected = {chapter.name: drawn_by(chapter) for chapter in chapters()}

    for name, number in expected.items():
        page = pages[name]
        assert len(page.select("article .drawing > svg.diagram")) == number, name
        assert not page.select("article img[src$='.svg']"), name

        for svg in page.select("article svg.diagram"):
            assert svg["role"] == "img" and svg["aria-label"]
            assert not svg.select("[id]")
            style = svg.find("style").text
            assert 'html[data-theme="dark"] .diagram .d-page' in style
            assert "prefers-color-scheme" not in style


def test_chapters_say_where_they_are_in_the_model(pages, docs):
    here = docs("drawings").HERE
    assert here

    for chapter in chapters():
        small = pages[chapter.name].select("article h1 ~ .here > svg.diagram")
        assert len(small) == (chapter.number in here), chapter.name
        for svg in small:
            assert svg["aria-label"] == f"You are here: {here[chapter.number][1]}"
            assert svg.select("g.lit rect, g.lit circle")


# ---- Nothing from elsewhere ----

ELSEWHERE = r"(?:https?:)?//"
# <link>s with one of these load nothing
LINKS_ONLY = {"canonical", "index", "search", "next", "prev", "author", "license"}


def loaded_by(page) -> list[str]:
    "The addresses that a browser asks for when it opens a page."
    found = []
    for tag in page.find_all(True):
        found += [
            tag[name] for name in ("src", "srcset", "data", "poster") if tag.has_attr(name)
        ]
        found += re.findall(r"url\([\"']?([^)]*)", tag.get("style", ""))
    for link in page.find_all("link", href=True):
        if not set(link["rel"]) & LINKS_ONLY:
            found.append(link["href"])
    return found


def test_pages_load_nothing_from_other_hosts(pages):
    for name, page in pages.items():
        found = loaded_by(page)
        assert len(found) > 10, "a page loads at least its scripts and style sheets"
        foreign = [url for url in found if re.match(ELSEWHERE, url.strip())]
        assert not foreign, f"{name}: {foreign}"


# ---- MathJax ----


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a shell script")
def test_mathjax_that_is_not_the_right_one_is_refused(docs, tmp_path, monkeypatch):
    script = "mkdir -p package/es5; echo evil > package/es5/tex-svg.js; tar czf mathjax.tgz package"
    (tmp_path / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    target = tmp_path / "kept" / "tex-svg.js"

    with pytest.raises(RuntimeError, match="checksum"):
        docs("fetch_mathjax").fetch(target)

    assert not target.exists()


# ---- In a browser ----


def test_every_formula_of_the_book_can_be_set(browser, address, pages):
    "All of them on one page, because loading seventy pages takes minutes."
    formulas = set()
    for page in pages.values():
        formulas |= {str(tag) for tag in page.select("article .math")}
    assert len(formulas) > 500

    visit(browser, f"{address}1_model/2_attention.html")
    drawn, faults = browser.execute_async_script(
        """const done = arguments[1], place = document.querySelector('article');
        place.innerHTML = arguments[0];
        MathJax.typesetPromise([place]).then(() => done(
            ['.math mjx-container > svg', 'mjx-merror, [data-mjx-error]'].map(selector =>
                [...place.querySelectorAll(selector)].map(e => e.closest('.math').outerHTML.slice(0, 200)))));""",
        "\n".join(sorted(formulas)),
    )

    assert not faults, "\n".join(faults)
    assert len(drawn) == len(formulas)


def test_search_finds_a_name(browser, address):
    name = "masked_softmax"
    visit(browser, f"{address}search.html?q={name}")

    links = wait_for(
        browser,
        """const links = [...document.querySelectorAll('#search-results li a')].map(a => a.href);
        return links.length && /found|matching/.test(document.querySelector('#search-results').textContent) ? links : null""",
    )

    expected = rf"/{UNIQUE[name]}\.html(?:\?[^#]*)?#api-{name}$"
    assert any(re.search(expected, link) for link in links), links


def test_link_to_a_name_unfolds_its_block(browser, address):
    page = f"{address}reference/devices.html"
    is_open = "return document.getElementById('api-pick_device').open"

    visit(browser, page)
    assert browser.execute_script(is_open) is False

    visit(browser, f"{page}#api-pick_device")
    assert browser.execute_script(is_open) is True


def test_link_into_tests_unfolds_them_and_paper_shows_everything(browser, address):
    opened = "return [...document.querySelectorAll('article details')].map(d => d.open)"
    visit(browser, f"{address}1_model/2_attention.html")
    assert not any(browser.execute_script(opened))

    browser.execute_script(
        "document.querySelector('details.tests pre').id = 'inside'; location.hash = 'inside'"
    )
    wait_for(browser, "return document.querySelector('details.tests').open")
    assert sum(browser.execute_script(opened)) == 1

    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert all(browser.execute_script(opened))


def test_dark_mode_switches_and_stays(browser, address):
    visit(browser, f"{address}1_model/2_attention.html")
    look = """const light = e => { const [r, g, b] = getComputedStyle(e).color.match(/[\\d.]+/g); return (+r + +g + +b) / 765 };
        const ground = getComputedStyle(document.documentElement).backgroundColor.match(/[\\d.]+/g);
        const ofBody = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g);
        const [r, g, b] = ofBody.length == 4 && +ofBody[3] == 0 ? ground : ofBody;
        return [document.documentElement.dataset.theme, (+r + +g + +b) / 765, light(document.querySelector('article p:not(.eyebrow)')),
                light(document.querySelector('article mjx-container svg'))]"""

    def click(selector):
        for button in browser.find_elements("css selector", selector):
            if button.is_displayed():
                return button.click()
        raise AssertionError(f"no {selector} to be seen")

    def switch_to(theme):
        "As a reader does it: open the menu, choose."
        click(".theme-switch-button")
        click(f".theme-change-button[data-mode='{theme}']")
        browser.execute_async_script("setTimeout(arguments[0], 500)")  # colours fade over
        return browser.execute_script(look)

    theme, ground, text, formula = switch_to("light")
    assert theme == "light"
    assert ground > 0.9 and text < 0.4 and formula < 0.4

    theme, ground, text, formula = switch_to("dark")
    assert theme == "dark"
    assert ground < 0.2 and text > 0.6 and formula > 0.6

    visit(browser, f"{address}1_model/3_masks.html")
    assert browser.execute_script(look)[0] == "dark"


IN_SIGHT = """const link = document.querySelector(arguments[0]), box = link.getBoundingClientRect();
    const found = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return link.contains(found) == arguments[1]"""


@pytest.mark.parametrize("width", [390, 1024])
def test_menus_open_and_close(browser, address, width):
    "Where the sidebar is beside the text, its button folds it away instead."
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.action_builder import ActionBuilder
    from selenium.webdriver.common.keys import Keys

    chapters = "nav.bd-links a[href='3_masks.html']"
    contents = "nav.page-toc a"
    is_beside = width >= 992

    def tap(button):
        browser.find_element("css selector", f".bd-header-article {button}").click()

    def wait_until(seen, link):
        wait_for(browser, IN_SIGHT, link, seen, seconds=5)

    with window(browser, width, 840):
        visit(browser, f"{address}1_model/2_attention.html")
        wait_until(is_beside, chapters)
        tap(".primary-toggle")
        wait_until(not is_beside, chapters)

        if is_beside:
            tap(".primary-toggle")
        else:
            ActionChains(browser).send_keys(Keys.ESCAPE).perform()
        wait_until(is_beside, chapters)

        if width < 1200:
            tap(".secondary-toggle")
            wait_until(True, contents)

            outside = ActionBuilder(browser)
            outside.pointer_action.move_to_location(10, 600).click()
            outside.perform()
        wait_until(width >= 1200, contents)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_drawings_follow_the_theme(browser, address, theme):
    visit(browser, f"{address}reference/diagrams.html")
    switch_theme(browser, theme)

    page, ink, box = browser.execute_script(
        """const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + +b / 765, 0);
        const svg = document.querySelector('.drawing svg'), fill = s => getComputedStyle(svg.querySelector(s)).fill;
        return [fill('.d-page'), light(fill('text.d-ink')), light(fill('rect.d-attention'))]"""
    )

    assert page == "none"  # the page is the ground
    if theme == "light":
        assert ink < 0.3 and box > 0.7
    else:
        assert ink > 0.7 and box < 0.3


def test_words_of_drawings_can_be_read_on_a_phone(browser, address):
    drawn = [chapter.name for chapter in chapters() if drawn_by(chapter)]

    with phone(browser):
        for page in ("index", *drawn[:3]):
            visit(browser, f"{address}{page}.html")
            sizes = browser.execute_script(
                """return [...document.querySelectorAll('.drawing svg')].flatMap(svg => {
                const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
                return [...svg.querySelectorAll('text')].map(text => scale * text.getAttribute('font-size')) })"""
            )
            assert sizes and min(sizes) > 9.9, page
