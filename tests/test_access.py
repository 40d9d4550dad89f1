"""Everybody can read the site: by keyboard, by ear, with weak eyes, in a narrow window, on a phone.

axe-core, which knows the rules of WCAG, looks at one page of each kind with everything unfolded. It is one file of an npm
package, fetched like MathJax and kept in pytest's cache. Without npm, or a browser, these tests are skipped.
"""

import importlib
import sys

import pytest
from building import need_tools

need_tools()
from browsing import phone, requested, visit, window
from project import ROOT

pytestmark = pytest.mark.site

PAGES = [
    "index",
    "1_model/2_attention",  # formulas, code and tests
    "4_copy_task/5_attention_view",  # a picture that moves
    "9_practice/3_check_transformer",  # tables, and a report in plain text
    "reference/hugging_face_families",  # wide tables
    "reference/diagrams",  # drawings
    "genindex",  # made by Sphinx alone
]
AXE = dict(
    package="axe-core@4.14.1",
    member="package/axe.min.js",
    sha256="29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
    need="The tests for readers need axe-core",
)

# A page is mostly alike, and looking at all of it takes a minute. Of the coloured words of the listings one of each kind
# stays, formulas are drawn in the colour of their text, and of texts that have the same ancestors one stands for all.
SAMPLE = """const spans = new Set(), texts = new Set();
document.querySelectorAll('.highlight span').forEach(e => {
  const kind = e.className + '|' + e.closest('.highlight').parentElement.className;
  if (spans.has(kind)) e.replaceWith(...e.childNodes); else spans.add(kind);
});
document.querySelectorAll('mjx-container > svg').forEach(e => e.replaceChildren());
document.querySelectorAll('body *').forEach(e => {
  if (e.closest('svg, script, style, mjx-container') || ![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) return;
  let kind = '';
  for (let x = e; x; x = x.parentElement) kind += `${x.tagName}.${x.className}${x.getAttribute('style') || ''} `;
  if (!texts.has(kind)) e.setAttribute('data-sample', '');
  texts.add(kind);
});
axe.configure({rules: [{id: 'color-contrast', selector: '[data-sample]'}]})"""
RUN = """const done = arguments[0];
axe.run({resultTypes: ['violations']}).then(result => done(result.violations
  .filter(v => ['serious', 'critical'].includes(v.impact))
  .map(v => `${v.id}: ${v.help}\\n` + v.nodes.slice(0, 5).map(n => `    ${n.target.join(' ')}  ${n.html.slice(0, 120)}`).join('\\n'))))"""


@pytest.fixture(scope="session")
def axe(request, tmp_path_factory):
    "The text of axe-core."
    sys.path.insert(0, str(ROOT / "docs"))
    fetch = importlib.import_module("fetch_mathjax").fetch

    cache = getattr(request.config, "cache", None)
    folder = cache.mkdir("axe-core") if cache else tmp_path_factory.mktemp("axe-core")
    path = folder / "axe.min.js"
    try:
        fetch(path, **AXE)
    except RuntimeError as reason:
        pytest.skip(str(reason))
    return path.read_text(encoding="utf-8")


def settle(browser):
    "Wait until sizes are known."
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0]))")


def unfold(browser):
    "And show what is seen only under the mouse, or after scrolling."
    browser.execute_script(
        """document.querySelectorAll('details').forEach(d => { d.open = true });
        document.head.append(Object.assign(document.createElement('style'), {textContent:
            '* { transition: none !important } .headerlink { visibility: visible !important } #pst-back-to-top { display: block !important }'}))"""
    )
    settle(browser)


def complaints(browser, axe, theme="light") -> list[str]:
    "What axe-core finds in a page, of what it calls serious or critical."
    browser.execute_script(axe)
    browser.execute_script(SAMPLE)
    browser.execute_script(
        "const root = document.documentElement; root.dataset.theme = root.dataset.mode = arguments[0]",
        theme,
    )
    return browser.execute_async_script(RUN)


def is_too_wide(browser) -> bool:
    "Whether a reader has to push the page aside."
    return browser.execute_script(
        "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )


def too_wide_for_a_phone(browser) -> list:
    "The width of a page that makes the phone's window wider, and all that goes on at its right where nothing scrolls."
    return browser.execute_script(
        """const width = screen.width;
        const whole = [innerWidth, document.documentElement.scrollWidth].filter(x => x > width);
        const parts = [...document.querySelectorAll('article :is(p, li, img, h1, h2, h3, summary)')]
            .filter(e => e.getBoundingClientRect().right > width + 1
                && !e.closest('pre, mjx-container, .pst-scrollable-table-container, .cell_output, div.math'));
        return whole.concat(parts.map(e => e.textContent.slice(0, 80) || e.src))"""
    )


def missing_pictures(browser) -> list[str]:
    return browser.execute_script(
        "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    )


def asked_elsewhere(browser, address) -> list[str]:
    urls = requested(browser)
    assert any(url.startswith(address) for url in urls), "the log is empty"
    return [
        url for url in urls if not url.startswith((address, "data:", "blob:", "about:"))
    ]


def errors(browser) -> list[str]:
    return [
        entry["message"]
        for entry in browser.get_log("browser")
        if entry["level"] == "SEVERE"
    ]


def test_each_fault_would_be_seen(browser, address, axe):
    "A page that has them all."
    with phone(browser):
        visit(browser, f"{address}index.html")
        browser.execute_async_script(
            """document.querySelector('article').insertAdjacentHTML('beforeend',
                `<p style="width: 900px; color: #eee; background: #fff">wide</p><img src="nowhere.png">`);
            fetch('http://nowhere.invalid/').catch(() => setTimeout(arguments[0], 300))"""
        )

        assert len(too_wide_for_a_phone(browser)) > 1
        assert missing_pictures(browser)
        assert asked_elsewhere(browser, address)
        assert errors(browser)
        found = "\n".join(complaints(browser, axe))
        assert "color-contrast" in found
        assert "image-alt" in found


@pytest.mark.parametrize("page", PAGES)
def test_page_is_whole_and_can_be_read_in_light_and_dark(browser, address, axe, page):
    visit(browser, f"{address}{page}.html")
    unfold(browser)

    assert not missing_pictures(browser)
    assert not asked_elsewhere(browser, address)
    assert not errors(browser)

    for theme in ("light", "dark"):
        found = complaints(browser, axe, theme)
        assert not found, f"{theme}\n" + "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_page_fits_a_phone(browser, address, axe, page):
    "Code and formulas that are wider scroll, can be reached by keyboard, and have a name."
    with phone(browser):
        visit(browser, f"{address}{page}.html")
        unfold(browser)

        assert not too_wide_for_a_phone(browser)

        wide = browser.execute_script(
            "return [...document.querySelectorAll('[data-wide]')].map(e => [e.tabIndex, e.getAttribute('aria-label')])"
        )
        for index, label in wide:
            assert index == 0 and label
        assert wide or page in ("index", "genindex")

        found = complaints(browser, axe)
        assert not found, "\n".join(found)


def test_page_fits_a_small_window(browser, address):
    with window(browser, 1024, 768):
        visit(browser, f"{address}reference/hugging_face_families.html")
        unfold(browser)

        assert not is_too_wide(browser)
