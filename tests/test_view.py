"""The interactive view of chapter 13b, in a headless Chromium: mouse, keyboard, light and dark, no script, no other host."""

import pytest
import torch
from browsing import requested, visit

from annotated_transformer.inspect import Attended
from annotated_transformer.view import AttentionView, attention_view

HOSTILE = "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>"
READ, WRITTEN = ["the", "cat", HOSTILE, "EOS"], ["die", "Katze", "EOS"]


def example() -> Attended:
    "Two layers of three heads; each part with weights of its own."
    torch.manual_seed(0)
    sizes = {"encoder self": (READ, READ), "decoder self": (WRITTEN, ["BOS", *WRITTEN[:-1]]), "decoder cross": (WRITTEN, READ)}
    weights = {part: (4 * torch.randn(2, 3, len(q), len(k))).softmax(-1) for part, (q, k) in sizes.items()}
    return Attended(weights, {part: q for part, (q, _) in sizes.items()}, {part: k for part, (_, k) in sizes.items()})


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    "The address of a saved view."
    return attention_view(example()).save(tmp_path_factory.mktemp("view") / "view.html").as_uri()


def shown(browser, view=0) -> list[list[float]]:
    "What the grids show: for each part, the weights of all cells."
    return browser.execute_script(
        """return [...document.querySelectorAll('.attention-view')[arguments[0]].querySelectorAll('.grid')]
        .map(grid => [...grid.querySelectorAll('.cell')].map(cell => +cell.style.getPropertyValue('--w')))""", view
    )


def expected(part: str, query: int) -> list[float]:
    return (255 * example().weights[part][:, :, query]).round().div(255).flatten().tolist()


def buttons(browser, row: int, view=0):
    return browser.find_elements("css selector", ".attention-view")[view].find_elements("css selector", ".bar")[row].find_elements("css selector", "button")


def test_every_head_answers_for_the_token_under_the_mouse(browser, page):
    from selenium.webdriver import ActionChains

    visit(browser, page)
    assert shown(browser) == [pytest.approx(expected(part, 0), abs=1e-6) for part in example().weights]
    ActionChains(browser).move_to_element(buttons(browser, 1)[1]).perform()
    encoder, own, cross = shown(browser)
    assert encoder == pytest.approx(expected("encoder self", 0), abs=1e-6)
    assert own == pytest.approx(expected("decoder self", 1), abs=1e-6)
    assert cross == pytest.approx(expected("decoder cross", 1), abs=1e-6)
    ActionChains(browser).move_to_element(browser.find_element("css selector", "output")).perform()
    assert shown(browser)[2] == pytest.approx(expected("decoder cross", 0), abs=1e-6), "back to the chosen token"


def test_strongest_cell_is_said_in_words(browser, page):
    visit(browser, page)
    maps = example().weights["encoder self"][:, :, 0]
    layer, head, key = (int(i) for i in (maps == maps.max()).nonzero()[0])
    said = browser.find_elements("css selector", "output")[0].text
    assert said == f"strongest: layer {layer + 1}, head {head + 1}: the reads {READ[key]}, {round(100 * maps.max().item())} %"


def test_keyboard_reaches_every_token(browser, page):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys): ActionChains(browser).send_keys(*keys).perform()

    def chosen(row): return [button.get_attribute("aria-pressed") for button in buttons(browser, row)].index("true")

    visit(browser, page)
    press(Keys.TAB)
    assert browser.switch_to.active_element == buttons(browser, 0)[0]
    press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert chosen(0) == 2 and shown(browser)[0] == pytest.approx(expected("encoder self", 2), abs=1e-6)
    press(Keys.END)
    assert chosen(0) == 3
    press(Keys.ARROW_RIGHT)
    assert chosen(0) == 3, "there is nothing after the last"
    press(Keys.HOME, Keys.TAB)
    assert chosen(0) == 0 and browser.switch_to.active_element == buttons(browser, 1)[0], "one stop of Tab for each row"


def test_view_asks_no_host_and_no_label_becomes_markup(browser, page):
    visit(browser, page)
    urls = requested(browser)
    assert urls and not [url for url in urls if not url.startswith(("file:", "data:", "about:"))]
    assert browser.execute_script("return window.broken") is None
    assert buttons(browser, 0)[2].text == HOSTILE
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system(browser, page, scheme):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dict(features=[dict(name="prefers-color-scheme", value=scheme)]))
    try:
        visit(browser, page)
        ground, text, hot, on_hot = browser.execute_script(
            """const light = css => { const c = document.createElement('canvas').getContext('2d'); c.fillStyle = css; c.fillRect(0, 0, 1, 1);
              const [r, g, b] = c.getImageData(0, 0, 1, 1).data.map(v => v / 255).map(v => v <= .04 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
              return .2126 * r + .7152 * g + .0722 * b };
            const button = document.querySelector('button[aria-pressed=true]'), style = getComputedStyle(button);
            const canvas = document.body.appendChild(document.createElement('div')); canvas.style.background = 'Canvas';
            return [getComputedStyle(canvas).backgroundColor, getComputedStyle(document.querySelector('.attention-view')).color,
                    style.backgroundColor, style.color].map(light)"""
        )
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dict(features=[]))
    assert (ground < 0.1) == (scheme == "dark")
    for one, other in ((ground, text), (hot, on_hot), (ground, hot)): # the least that WCAG asks of text is 4.5
        assert (max(one, other) + 0.05) / (min(one, other) + 0.05) > 4.5


def test_without_scripts_there_is_a_picture(browser, page):
    visit(browser, page)
    assert not browser.find_element("css selector", ".still").is_displayed()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", dict(value=True))
    try:
        browser.get(page)
        picture = browser.find_element("css selector", ".still")
        assert picture.is_displayed() and picture.size["width"] > 200 and picture.get_attribute("alt")
        assert not browser.find_elements("css selector", ".grid")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", dict(value=False))


def test_two_views_on_a_page_are_apart(browser, tmp_path):
    fragment = attention_view(example()).fragment
    visit(browser, AttentionView(fragment + fragment).save(tmp_path / "two.html").as_uri())
    assert len(browser.find_elements("css selector", ".grid")) == 6
    buttons(browser, 0, view=1)[1].click()
    assert shown(browser, 0)[0] == pytest.approx(expected("encoder self", 0), abs=1e-6)
    assert shown(browser, 1)[0] == pytest.approx(expected("encoder self", 1), abs=1e-6)


def test_view_of_sixty_tokens_fits_a_window(browser, tmp_path):
    words = [f"word{i}" for i in range(60)]
    large = Attended({"self": torch.rand(6, 8, 60, 60).softmax(-1)}, {"self": words}, {"self": words})
    visit(browser, attention_view(large).save(tmp_path / "large.html").as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert len(shown(browser)[0]) == 6 * 8 * 60
