"""The interactive view of chapter 4.5, in a headless Chromium: mouse, keyboard, light and dark, no script, no other host."""

import re

import pytest
import torch
from browsing import (
    HOSTS,
    assert_readable,
    phone,
    requested,
    show_in_host,
    system_theme,
    visit,
    wait_for_theme,
)
from test_access import RUN, axe  # noqa: F401

from annotated_transformer.inspection.attention_maps import AttentionMaps
from annotated_transformer.inspection.attention_view import AttentionView, attention_view

pytestmark = pytest.mark.site

HOSTILE = "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>"
READ, WRITTEN = ["the", "cat", HOSTILE, "EOS"], ["die", "Katze", "EOS"]


START = 2, 1  # the middle rows of the encoder and of the decoder, on which a view begins


def example() -> AttentionMaps:
    "Two layers of three heads; each part with weights of its own."
    torch.manual_seed(0)
    sizes = {
        "encoder self": (READ, READ),
        "decoder self": (WRITTEN, ["BOS", *WRITTEN[:-1]]),
        "decoder cross": (WRITTEN, READ),
    }
    weights = {
        part: (4 * torch.randn(2, 3, len(q), len(k))).softmax(-1)
        for part, (q, k) in sizes.items()
    }
    return AttentionMaps(
        weights,
        {part: q for part, (q, _) in sizes.items()},
        {part: k for part, (_, k) in sizes.items()},
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    "The address of a saved view."
    return (
        attention_view(example())
        .save(tmp_path_factory.mktemp("view") / "view.html")
        .as_uri()
    )


def shown(browser, view=0) -> list[list[float]]:
    "What the grids show: for each part, the weights of all cells."
    return browser.execute_script(
        """return [...document.querySelectorAll('.attention-view')[arguments[0]].querySelectorAll('.grid')]
        .map(grid => [...grid.querySelectorAll('.cell')].map(cell => +cell.style.getPropertyValue('--w')))""",
        view,
    )


def expected(part: str, query: int) -> list[float]:
    return (255 * example().weights[part][:, :, query]).round().div(255).flatten().tolist()


def buttons(browser, row: int, view=0):
    return (
        browser.find_elements("css selector", ".attention-view")[view]
        .find_elements("css selector", ".bar")[row]
        .find_elements("css selector", "button")
    )


def pressed(browser, row: int) -> list[int]:
    return [
        i
        for i, button in enumerate(buttons(browser, row))
        if button.get_attribute("aria-pressed") == "true"
    ]


def test_every_head_answers_for_the_token_under_the_mouse(browser, page):
    from selenium.webdriver import ActionChains

    visit(browser, page)
    first, second = START
    assert shown(browser) == [
        pytest.approx(expected(part, row), abs=1e-6)
        for part, row in zip(example().weights, (first, second, second))
    ]
    ActionChains(browser).move_to_element(buttons(browser, 1)[2]).perform()
    encoder, own, cross = shown(browser)
    assert encoder == pytest.approx(expected("encoder self", first), abs=1e-6)
    assert own == pytest.approx(expected("decoder self", 2), abs=1e-6)
    assert cross == pytest.approx(expected("decoder cross", 2), abs=1e-6)
    assert pressed(browser, 1) == [second], "pointing does not choose"
    ActionChains(browser).move_to_element(
        browser.find_element("css selector", ".head")
    ).perform()
    assert shown(browser)[2] == pytest.approx(
        expected("decoder cross", second), abs=1e-6
    ), "back to the chosen token"


def test_each_head_says_in_words_what_it_reads_most(browser, page):
    visit(browser, page)
    rows = example().weights["encoder self"][:, :, START[0]].flatten(0, 1)
    grid = browser.find_element("css selector", ".grid")
    said = [
        element.get_attribute("textContent")
        for element in grid.find_elements("css selector", ".said")
    ]
    assert said == [
        f"{READ[row.argmax()]}, {round(100 * round(255 * row.max().item()) / 255)} %"
        for row in rows
    ]
    assert [
        bar.get_attribute("aria-label")
        for bar in browser.find_elements("css selector", ".bar")
    ] == [
        "encoder self, from",
        "decoder self and decoder cross, from",
    ]


def test_keyboard_reaches_every_token(browser, page):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys):
        ActionChains(browser).send_keys(*keys).perform()

    visit(browser, page)
    press(Keys.TAB)
    assert browser.switch_to.active_element == buttons(browser, 0)[START[0]]
    press(Keys.ARROW_LEFT)
    assert pressed(browser, 0) == [1] and shown(browser)[0] == pytest.approx(
        expected("encoder self", 1), abs=1e-6
    )
    press(Keys.END)
    assert pressed(browser, 0) == [3]
    press(Keys.ARROW_RIGHT)
    assert pressed(browser, 0) == [3], "there is nothing after the last"
    press(Keys.HOME, Keys.TAB)
    assert pressed(browser, 0) == [0]
    assert browser.switch_to.active_element == browser.find_element(
        "css selector", ".scroll"
    ), "one stop of Tab for each row"
    press(Keys.TAB)
    assert browser.switch_to.active_element == buttons(browser, 1)[START[1]]


def test_view_asks_no_host_and_no_label_becomes_markup(browser, page):
    visit(browser, page)
    urls = requested(browser)
    assert urls and not [
        url for url in urls if not url.startswith(("file:", "data:", "about:"))
    ]
    assert browser.execute_script("return window.broken") is None
    assert buttons(browser, 0)[2].text == HOSTILE
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_colours_follow_the_system(browser, page):
    with system_theme(browser, "light"):
        visit(browser, page)
        assert_readable(browser, dark=False)
        with system_theme(browser, "dark"):
            wait_for_theme(browser, "dark")
            assert_readable(browser, dark=True)


@pytest.mark.parametrize(
    "host, theme", [("jupyterlab", "light"), *((host, "dark") for host in HOSTS)]
)
def test_colours_follow_the_host(browser, tmp_path, host, theme):
    path = attention_view(example()).save(tmp_path / "page.html")
    show_in_host(path, host, theme)
    with system_theme(browser, "light" if theme == "dark" else "dark"):
        visit(browser, path.as_uri())
        assert_readable(browser, theme == "dark")


def test_keys_stay_in_the_view(browser, page):
    "A notebook takes x for a command, and cuts the cell."
    from selenium.webdriver import Keys

    visit(browser, page)
    root = browser.find_element("css selector", ".attention-view")
    assert root.get_attribute("data-lm-suppress-shortcuts") == "true"
    browser.execute_script(
        "window.keys = []; document.addEventListener('keydown', event => keys.push(event.key))"
    )
    buttons(browser, 0)[START[0]].send_keys("bx", Keys.ARROW_LEFT)
    assert pressed(browser, 0) == [START[0] - 1]
    assert browser.execute_script("return keys") == []
    browser.find_element("css selector", "body").send_keys("b")
    assert browser.execute_script("return keys") == ["b"]


def test_axe_finds_nothing(browser, page, axe):  # noqa: F811
    visit(browser, page)
    browser.execute_script(axe)
    assert browser.execute_async_script(RUN) == []


def test_views_without_their_scripts_are_left_alone(browser, tmp_path):
    whole = attention_view(example()).fragment
    bare = re.sub(r"<script.*?</script>", "", whole, flags=re.S)
    visit(browser, AttentionView(bare + whole).save(tmp_path / "bare.html").as_uri())
    assert [
        still.is_displayed() for still in browser.find_elements("css selector", ".still")
    ] == [True, False]
    assert len(browser.find_elements("css selector", ".grid")) == 3


def test_without_scripts_there_is_a_picture(browser, page):
    visit(browser, page)
    for part in (".still", ".about-still"):
        assert not browser.find_element("css selector", part).is_displayed()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", dict(value=True))
    try:
        browser.get(page)
        picture = browser.find_element("css selector", ".still")
        assert (
            picture.is_displayed()
            and picture.size["width"] > 200
            and picture.get_attribute("alt")
        )
        assert browser.find_element("css selector", ".about-still").is_displayed()
        assert not browser.find_elements("css selector", ".grid")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", dict(value=False))


def test_two_views_on_a_page_are_apart(browser, tmp_path):
    fragment = attention_view(example()).fragment
    visit(browser, AttentionView(fragment + fragment).save(tmp_path / "two.html").as_uri())
    assert len(browser.find_elements("css selector", ".grid")) == 6
    buttons(browser, 0, view=1)[1].click()
    assert shown(browser, 0)[0] == pytest.approx(
        expected("encoder self", START[0]), abs=1e-6
    )
    assert shown(browser, 1)[0] == pytest.approx(expected("encoder self", 1), abs=1e-6)


def test_view_of_sixty_tokens_fits_a_phone(browser, tmp_path):
    words = [f"word{i}" for i in range(60)]
    large = AttentionMaps(
        {"self": torch.rand(6, 8, 60, 60).softmax(-1)}, {"self": words}, {"self": words}
    )
    with phone(browser):
        visit(browser, attention_view(large).save(tmp_path / "large.html").as_uri())
        assert browser.execute_script(
            "return document.documentElement.scrollWidth <= screen.width"
        )
        assert browser.execute_script(
            "const s = document.querySelector('.scroll'); return s.scrollWidth > s.clientWidth"
        )
        assert len(shown(browser)[0]) == 6 * 8 * 60


def test_labels_stand_upright_in_every_script(browser, tmp_path):
    "Latin labels lie on their side and are read upwards; Chinese, Japanese and Korean ones run downwards."
    labels = ["the", "▁cat", "看见了", "ねこ", "고양이", "猫a"]
    weights = torch.full((1, 1, 1, len(labels)), 1 / len(labels))
    view = attention_view(AttentionMaps({"all": weights}, {"all": ["q"]}, {"all": labels}))
    browser.get(view.save(tmp_path / "view.html").as_uri())
    styles = browser.execute_script(
        """return [...document.querySelectorAll('.key')].filter(key => key.textContent)
        .map(key => getComputedStyle(key)).map(style => [style.textOrientation, style.transform])"""
    )
    assert len(styles) == len(labels)
    for label, (orientation, transform) in zip(labels, styles):
        if label.strip("▁").isascii():
            assert orientation == "sideways" and transform.startswith("matrix(-1"), label
        else:
            assert (orientation, transform) == ("mixed", "none"), label
