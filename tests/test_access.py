"""Everybody can read the site: each page is whole, and open by keyboard, by ear, with weak eyes, in a narrow window, on a phone.

axe-core, which knows the rules of WCAG, looks at each page with everything unfolded, in light and in dark. It is one file of
an npm package, fetched like MathJax and kept in pytest's cache; without npm, or a browser, these tests are skipped. To load a
page and to set its formulas is what takes the time, so that all is asked of a page in one visit.
"""

import importlib
import queue
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from building import need_tools

need_tools()
from browsing import narrow, open_browser, requested, visit
from project import ROOT, chapters

PAGES = [
    *(chapter.name for chapter in chapters()),
    *(path.stem for path in sorted((ROOT / "nbs").glob("*.md"))),
    "genindex",
    "search",
]
ON_A_PHONE = ["02_attention", "08_transformer", "84_interop.weight_map", "index"]
ASKED = [
    "formulas",
    "pictures",
    "from elsewhere",
    "errors",
    "on a phone",
    "sideways",
    "cut off",
    "barred",
    "faint in light",
    "faint in dark",
]
WINDOW = (
    1300  # pixels; a line of code of WIDEST characters can be read in it without scrolling
)
WIDEST = 92
AXE = dict(
    package="axe-core@4.14.1",
    member="package/axe.min.js",
    sha256="29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
    need="The tests for readers need axe-core",
)

# Most of the site is alike, and looking at all of it takes minutes. Of the coloured words of the listings one of each kind stays,
# formulas are drawn in the colour of their text, and of texts that have the same ancestors one stands for all, on this page and
# on those that the browser has seen before.
SAMPLE = """const known = new Set(arguments[0]), spans = new Set(), texts = new Set();
document.querySelectorAll('.highlight span').forEach(e => {
  const kind = e.className + '|' + e.closest('.highlight').parentElement.className;
  if (spans.has(kind)) e.replaceWith(...e.childNodes); else spans.add(kind);
});
document.querySelectorAll('mjx-container > svg').forEach(e => e.replaceChildren());
const sample = [...document.querySelectorAll('body *')].filter(e => {
  if (e.closest('svg, script, style, mjx-container') || ![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) return false;
  let kind = '';
  for (let x = e; x; x = x.parentElement) kind += `${x.tagName}.${x.className}${x.getAttribute('style') || ''} `;
  return !known.has(kind) && !texts.has(kind) && texts.add(kind);
});
sample.forEach(e => e.setAttribute('data-sample', ''));
axe.configure({rules: [{id: 'color-contrast', selector: '[data-sample]'}]});
return [...texts]"""
RUN = """const done = arguments[1], only = arguments[0] && {runOnly: {type: 'rule', values: [arguments[0]]}};
axe.run({resultTypes: ['violations'], ...only}).then(result => done(result.violations
  .filter(v => ['serious', 'critical'].includes(v.impact))
  .map(v => `${v.id}: ${v.help}\\n` + v.nodes.slice(0, 5).map(n => `    ${n.target.join(' ')}  ${n.html.slice(0, 120)}`).join('\\n'))))"""


@pytest.fixture(scope="session")
def axe(request, tmp_path_factory):
    "The text of axe-core."
    sys.path.insert(0, str(ROOT / "docs"))
    fetch = importlib.import_module("fetch_mathjax").fetch
    kept = getattr(request.config, "cache", None)
    path = (
        kept.mkdir("axe-core") if kept else tmp_path_factory.mktemp("axe-core")
    ) / "axe.min.js"
    try:
        fetch(path, **AXE)
    except RuntimeError as reason:
        pytest.skip(str(reason))
    return path.read_text(encoding="utf-8")


def unfold(browser):
    browser.execute_script(
        """document.querySelectorAll('details').forEach(d => { d.open = true });
        document.head.append(Object.assign(document.createElement('style'), {textContent: '* { transition: none !important }'}))"""
    )
    settle(browser)


def settle(browser):
    "Wait until sizes are known."
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0]))")


def sample(browser, axe, known=()) -> list[str]:
    "Load axe-core, and choose one text of each kind that is not yet known; returns the new kinds."
    browser.execute_script(axe)
    return browser.execute_script(SAMPLE, list(known))


def complaints(browser, theme="light", only="") -> list[str]:
    "What axe-core, or one rule of it, finds in a page; only what it calls serious or critical. Of colours it sees the sample."
    browser.execute_script(
        "const root = document.documentElement; root.dataset.theme = root.dataset.mode = arguments[0]",
        theme,
    )
    return browser.execute_async_script(RUN, only)


def lines_cut_off(browser) -> list[str]:
    "Of listings, each with a line of WIDEST characters at its end. Printed tables may scroll, if they are wider."
    return browser.execute_script(
        """document.querySelectorAll('article pre').forEach(pre => pre.append('\\n' + 'm'.repeat(arguments[0])));
        const wide = [...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth && !e.closest('.columns'));
        return wide.map(e => `${e.scrollWidth} > ${e.clientWidth}: ` + e.textContent.split('\\n').sort((a, b) => b.length - a.length)[0])""",
        WIDEST,
    )


def what_is_missing(browser, address) -> dict[str, list]:
    "Of a page that was just visited: formulas, pictures, and what it asked of others than its own host."
    formulas, drawn, faults = browser.execute_script(
        """return ['.math', '.math mjx-container > svg', 'mjx-merror, [data-mjx-error]']
        .map(s => document.querySelectorAll('article ' + s.replaceAll(', ', ', article ')).length)"""
    )
    urls = requested(browser)
    assert any(url.startswith(address) for url in urls), "the log is empty"
    return {
        "formulas": [f"{drawn} of {formulas} drawn, {faults} faulty"]
        if drawn < formulas or faults
        else [],
        "pictures": browser.execute_script(
            "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        ),
        "from elsewhere": [
            url for url in urls if not url.startswith((address, "data:", "blob:", "about:"))
        ],
        "errors": [
            entry["message"]
            for entry in browser.get_log("browser")
            if entry["level"] == "SEVERE"
        ],
    }


def too_wide_for_a_phone(browser, width=390) -> list[str]:
    "What a reader would have to push aside, and what is cut off at the right."
    with narrow(browser, width, 840, mobile=True):
        settle(browser)
        # a page that is too wide makes a phone's window wider, too
        found = browser.execute_script(
            "return [innerWidth, document.documentElement.scrollWidth].filter(x => x > arguments[0])",
            width,
        )
        return found + browser.execute_script(
            """return [...document.querySelectorAll('article :is(p, li, img, h1, h2, h3, summary)')]
            .filter(e => e.getBoundingClientRect().right > arguments[0] + 1
                && !e.closest('pre, mjx-container, .pst-scrollable-table-container, .cell_output, div.math'))
            .map(e => e.textContent.slice(0, 80))""",
            width,
        )


def look_at(browser, address, page, axe, known: set) -> dict[str, list]:
    "All that is asked of one page; what kinds of text it has are known from then on."
    visit(browser, f"{address}{page}.html")
    found = what_is_missing(browser, address)
    unfold(browser)
    found["on a phone"] = too_wide_for_a_phone(browser)
    with narrow(browser, WINDOW, 1000):
        settle(browser)
        found |= {
            "sideways": browser.execute_script(
                "const all = document.documentElement; return all.scrollWidth > innerWidth ? [all.scrollWidth] : []"
            ),
            "cut off": lines_cut_off(browser),
        }
        new = sample(browser, axe, known)
        known.update(new)
        light, colours = complaints(browser), "color-contrast"
        return found | {
            "barred": [words for words in light if not words.startswith(colours)],
            "faint in light": [words for words in light if words.startswith(colours)],
            "faint in dark": complaints(browser, "dark", only=colours) if new else [],
        }


@pytest.fixture(scope="module")
def found(request, address, browser, axe, tmp_path_factory):
    "Page -> a promise of what was found there, by two browsers at once; only pages that some test will ask for."
    pages = [
        item.callspec.params["page"]
        for item in request.session.items
        if "found" in getattr(item, "fixturenames", ())
    ]
    second = open_browser(tmp_path_factory.mktemp("second"))
    free = queue.SimpleQueue()
    for one in (browser, second):
        free.put((one, set()))

    def look(page):
        mine, known = free.get()
        try:
            return look_at(mine, address, page, axe, known)
        finally:
            free.put((mine, known))

    with ThreadPoolExecutor(2) as pool:
        yield {page: pool.submit(look, page) for page in dict.fromkeys(pages)}
    second.quit()


def test_each_fault_would_be_seen(browser, address):
    "What is asked of pages finds something in a page that has it all."
    visit(browser, f"{address}index.html")
    browser.execute_async_script(
        """document.querySelector('article').insertAdjacentHTML('beforeend', `<p style="width: 900px">wide</p>
            <img alt="" src="nowhere.png"><mjx-merror></mjx-merror>`);
        fetch('http://nowhere.invalid/').catch(() => setTimeout(arguments[0], 300))"""
    )
    found = what_is_missing(browser, address)
    found["on a phone"] = too_wide_for_a_phone(browser)
    assert all(found.values()) and len(found) == 5, found


@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("page", PAGES)
def test_page_is_for_everybody(found, page, what):
    complaints = found[page].result()[what]
    assert not complaints, "\n".join(map(str, complaints))


@pytest.mark.parametrize("name", ON_A_PHONE)
def test_nothing_bars_a_reader_with_a_phone(browser, address, axe, name):
    "Here code and formulas are wider than the page: they scroll, can be reached by keyboard, and have a name."
    with narrow(browser, 390, 840, mobile=True):
        visit(browser, f"{address}{name}.html")
        unfold(browser)
        sample(browser, axe)
        wide = browser.execute_script(
            "return [...document.querySelectorAll('[data-wide]')].map(e => [e.tabIndex, e.getAttribute('aria-label')])"
        )
        assert wide and all(index == 0 and label for index, label in wide)
        found = complaints(browser)
        assert not found, "\n".join(found)
