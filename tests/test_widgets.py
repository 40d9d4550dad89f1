"""The widgets of the chapters in a headless Chromium: they show Python's numbers, and anybody can use them."""

import math
import re

import pytest
import torch
from browsing import (
    HOSTS,
    phone,
    requested,
    show_in_host,
    system_theme,
    visit,
    wait_for_theme,
)
from test_access import RUN, axe  # noqa: F401

from annotated_transformer import Transformer, TransformerConfig
from annotated_transformer.core.attention import attention_weights
from annotated_transformer.text.sentence_pairs import sentence_pairs
from annotated_transformer.inspection.widgets import WIDGETS, save_page, widget
from annotated_transformer.core.recording import record_attention
from annotated_transformer.core.masks import causal_mask
from annotated_transformer.core.positions import sinusoids
from annotated_transformer.decoding.sampling import min_p_filter, top_k_filter, top_p_filter
from annotated_transformer.text.bpe import BPETokenizer

pytestmark = pytest.mark.site

QUERY, KEYS = [2.0, 1.0], [[1.0, 1.5], [-0.5, 1.0], [-1.0, -1.0]]
WORDS = "BOS ich habe die Katze gesehen".split()
TEXTS = [german for _, german in sentence_pairs()[0]] + ["zweihundert 看见了 its"] * 40
TOKENIZER = BPETokenizer.learn(TEXTS, 420)
BYTES_ALONE = BPETokenizer.learn(TEXTS, 260)
NEXT = {  # of a small language; greedy decoding takes nicht, and regrets it
    (): {"ich": 0.9, "Fisch": 0.1},
    ("ich",): {"nicht": 0.5, "gesehen": 0.3, "EOS": 0.2},
    ("ich", "nicht"): {"gesehen": 0.4, "EOS": 0.35, "Fisch": 0.25},
    ("ich", "gesehen"): {"EOS": 0.95, "Fisch": 0.05},
}


def next_words(words):
    probs = NEXT.get(tuple(words), {"EOS": 0.8, "Fisch": 0.2})
    return {word: math.log(p) for word, p in probs.items()}


ALPHABET = [*"abcdefghijkl"]
torch.manual_seed(0)
MODEL = Transformer(TransformerConfig.preset("tiny", vocab_size=12)).eval()
SRC, TGT = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[1, 7, 8]])

VOCABULARY = [f"w{i}" for i in range(40)]
LOG_PROBS = (
    (3 * torch.randn(40, generator=torch.Generator().manual_seed(0)))
    .log_softmax(-1)
    .tolist()
)
PRODUCTS = {
    d_k: (torch.randn(3, 1, d_k) * torch.randn(3, 10, d_k)).sum(-1) for d_k in (4, 64, 256)
}
TARGETS = "ich habe die Katze gesehen EOS".split()
DATA = {
    "attention-weights": dict(
        words="I have seen the cat".split(), fits="cat", strength=4, d_k=4
    ),
    "scaled-weights": dict(products=PRODUCTS),
    "query-arrows": dict(query=QUERY, keys=KEYS),
    "mask-rows": dict(words=WORDS, targets=TARGETS),
    "clocks": dict(words="I have seen the cat".split(), offset=3),
    "byte-pairs": dict(text="die Katzentür 🙂", tokenizer=TOKENIZER),
    "sampling": dict(words=VOCABULARY, log_probs=LOG_PROBS, fitting=VOCABULARY[::2]),
    "beam-tree": dict(next_words=next_words),
    "greedy-decoding": dict(next_words=next_words, source="I have not seen it"),
    "hidden-units": dict(
        phrases={
            "she has": (1, 1),
            "they have": (-1, -1),
            "she have": (1, -1),
            "they has": (-1, 1),
        },
        units=[[1, -1], [-1, 1]],
        weights=[1, 1],
    ),
    "model-stages": dict(model=MODEL, src=SRC, tgt=TGT, vocabulary=ALPHABET),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    "Name -> the address of a page with this widget alone; 'all' has all of them."
    folder = tmp_path_factory.mktemp("widgets")
    made = {name: widget(name, **DATA[name]) for name in WIDGETS}
    found = {name: made[name].save(folder / f"{name}.html") for name in WIDGETS}
    fragments = "".join(made[name].fragment for name in WIDGETS)
    found["all"] = save_page(folder / "all.html", "All widgets", fragments)
    return {name: path.as_uri() for name, path in found.items()}


def find(browser, selector: str):
    return browser.find_elements("css selector", f".book-widget {selector}")


def texts(browser, selector: str) -> list[str]:
    return [element.get_attribute("textContent") for element in find(browser, selector)]


def slide(browser, label: str, value):
    "Move the slider with this label, as a mouse does."
    browser.execute_script(
        """const slider = document.querySelector(`input[aria-label="${arguments[0]}"]`);
        slider.value = arguments[1];
        slider.dispatchEvent(new Event('input', {bubbles: true}))""",
        label,
        value,
    )


def bars(browser) -> list[float]:
    "The widths of all bars, as parts of their tracks."
    return browser.execute_script(
        "return [...document.querySelectorAll('.track > .bar')].map(bar => parseFloat(bar.style.width) / 100)"
    )


def press(browser, *keys):
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def click(browser, words: str):
    "The button or the label with these words."
    from selenium.webdriver.common.by import By

    path = f"//*[self::button or self::label][normalize-space()='{words}']"
    browser.find_element(By.XPATH, path).click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, pages, axe, scheme):  # noqa: F811
    with system_theme(browser, scheme):
        visit(browser, pages["all"])
        # axe takes a page without a background for a white one, in the dark too
        browser.execute_script("document.documentElement.style.background = 'Canvas'")
        browser.execute_script(axe)
        assert browser.execute_async_script(RUN) == []


def test_widgets_share_a_page_and_ask_no_host(browser, pages):
    visit(browser, pages["all"])
    assert len(find(browser, ".stage")) == len(WIDGETS)
    assert not any(still.is_displayed() for still in find(browser, ".still"))
    urls = requested(browser)
    assert urls and not [
        url for url in urls if not url.startswith(("file:", "data:", "about:"))
    ]
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_without_scripts_there_is_a_table(browser, pages):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", dict(value=True))
    try:
        browser.get(pages["all"])
        assert len(find(browser, ".still table")) == len(WIDGETS)
        assert all(still.is_displayed() for still in find(browser, ".still"))
        first = find(browser, ".still")[0].text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", dict(value=False))
    assert first.splitlines()[1:3] == ["word weight", "I 0.09"]
    assert "run the cell or trust the notebook" in first


def test_a_widget_without_its_data_keeps_its_table(browser, tmp_path):
    "Some hosts take all scripts out, also of a copy on the same page."
    whole = widget("query-arrows", **DATA["query-arrows"]).fragment
    bare = re.sub(r"<script.*?</script>", "", whole, flags=re.S)
    visit(browser, save_page(tmp_path / "page.html", "Both", bare + whole).as_uri())
    shown = [still.is_displayed() for still in find(browser, ".still")]
    assert shown == [True, False]


def test_no_label_becomes_markup(browser, tmp_path):
    hostile = "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>"
    made = widget("mask-rows", words=[hostile, "b"], targets=["b", "c"])
    visit(browser, made.save(tmp_path / "page.html").as_uri())
    assert browser.execute_script("return window.broken") is None
    assert hostile in texts(browser, ".mask .key")[0]


def test_fits_a_phone_in_letters_that_can_be_read(browser, pages):
    with phone(browser):
        visit(browser, pages["all"])
        assert browser.execute_script(
            "return document.documentElement.scrollWidth <= screen.width"
        )
        sizes = browser.execute_script(
            """const sizes = [];
            for (const e of document.querySelectorAll('.stage *')) {
              if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;
              const svg = e.closest('svg'), size = parseFloat(getComputedStyle(e).fontSize);
              sizes.push(svg ? size * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : size);
            }
            return sizes"""
        )
        assert sizes and min(sizes) >= 11


CONTRAST = """const light = css => { const c = document.createElement('canvas').getContext('2d'); c.fillStyle = css; c.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map(v => v / 255).map(v => v <= .04 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b };
  const root = getComputedStyle(document.querySelector('.book-widget'));
  const colours = ['--hot', '--warm', '--good', '--violet', '--muted'].map(name => root.getPropertyValue(name));
  return [getComputedStyle(document.body).backgroundColor, root.color, ...colours].map(light)"""


@pytest.mark.parametrize(
    "host, theme", [("jupyterlab", "light"), *((host, "dark") for host in HOSTS)]
)
def test_colours_follow_the_host(browser, tmp_path, host, theme):
    "Text and colours have the contrast that WCAG asks of text, whatever the system says."
    page = widget("query-arrows", **DATA["query-arrows"]).save(tmp_path / "page.html")
    show_in_host(page, host, theme)
    with system_theme(browser, "light" if theme == "dark" else "dark"):
        visit(browser, page.as_uri())
        assert_contrast(browser, theme)


def test_colours_of_a_saved_page_follow_the_system(browser, pages):
    "Also when it changes while the page is open."
    with system_theme(browser, "light"):
        visit(browser, pages["query-arrows"])
        browser.execute_script("document.body.style.background = 'Canvas'")
        for theme in ("light", "dark", "light"):
            with system_theme(browser, theme):
                wait_for_theme(browser, theme)
                assert_contrast(browser, theme)


def assert_contrast(browser, theme: str):
    "As WCAG asks of text, on a page of this theme."
    ground, *colours = browser.execute_script(CONTRAST)
    assert (ground < 0.1) == (theme == "dark")
    for colour in colours:
        assert (max(ground, colour) + 0.05) / (min(ground, colour) + 0.05) > 4.5


def test_steps_end_without_losing_the_focus(browser, pages):
    from selenium.webdriver import Keys

    visit(browser, pages["beam-tree"])
    for words in ("Next", "Back"):
        slide(browser, "Step", 1)
        click(browser, words)
        press(browser, *12 * [Keys.ENTER])
        focused = browser.switch_to.active_element
        assert focused.text == words
        assert focused.get_attribute("aria-disabled") == "true"
    assert nodes(browser) == []


# ---- attention-weights ----


@pytest.mark.parametrize("strength", [0, 2.8, 4, 8])
def test_weights_are_the_librarys(browser, pages, strength):
    query = torch.tensor([[0, 0, 0, float(strength)]])
    key = torch.zeros(5, 4)
    key[4, 3] = 1
    weights = attention_weights(query, key)[0].tolist()

    visit(browser, pages["attention-weights"])
    slide(browser, "Strength of the query", strength)
    assert bars(browser) == pytest.approx(weights, abs=1e-4)
    assert texts(browser, ".weights > :nth-child(3n)") == [f"{w:.2f}" for w in weights]
    assert texts(browser, "[aria-live]") == [
        f"Score of cat: {strength} / √4 = {strength / 2:.2f}. All other scores are 0,"
        f" so cat gets the weight {weights[4]:.2f}."
    ]


# ---- scaled-weights ----


def test_random_weights_with_and_without_the_division(browser, pages):
    from selenium.webdriver import Keys

    visit(browser, pages["scaled-weights"])
    for place, d_k in enumerate(PRODUCTS):
        slide(browser, "d_k, the length of a key", place)
        for draw in range(3):  # after the last comes the first
            products = PRODUCTS[d_k][draw]
            undivided, divided = products.softmax(-1), (products / d_k**0.5).softmax(-1)
            shown = bars(browser)
            assert shown[0::2] == pytest.approx(undivided.tolist(), abs=1e-4)
            assert shown[1::2] == pytest.approx(divided.tolist(), abs=1e-4)
            click(browser, "Other vectors")
        largest = [(PRODUCTS[d_k] / root).softmax(-1).amax(-1) for root in (1, d_k**0.5)]
        above, means = zip(*[(int((w > 0.9).sum()), w.mean()) for w in largest])
        assert texts(browser, ".stage > p")[-1] == (
            f"In all 3 draws with d_k = {d_k}, the largest weight is above 0.9 in {above[0]} without"
            f" the division and in {above[1]} with it. Its mean is {means[0]:.2f} without and"
            f" {means[1]:.2f} with it."
        )
    slider = find(browser, "input")[0]
    slider.send_keys(Keys.HOME)
    assert slider.get_attribute("aria-valuetext") == "4"


# ---- query-arrows ----


def expected_weights(query) -> list[float]:
    products = torch.tensor(KEYS) @ torch.tensor(query)
    return (products / 2**0.5).softmax(-1).tolist()


def shown_weights(browser) -> list[float]:
    "Weights of the three keys, from the widths of the bars."
    return browser.execute_script(
        "return [...document.querySelectorAll('.rows .bar')].map(bar => parseFloat(bar.style.width) / 100)"
    )


def numbers(browser, column: int) -> list[str]:
    "A column of the rows, without its head."
    found = texts(browser, f".rows > :nth-child(4n+{column})")[1:]
    return [text.replace("−", "-") for text in found]


def test_query_arrows_show_pythons_weights(browser, pages):
    visit(browser, pages["query-arrows"])
    assert shown_weights(browser) == pytest.approx(expected_weights(QUERY), abs=1e-4)
    for query in ([-1.5, 0.5], [0.0, 0.0], [3.0, -2.0]):
        slide(browser, "First number of the query", query[0])
        slide(browser, "Second number of the query", query[1])
        assert shown_weights(browser) == pytest.approx(expected_weights(query), abs=1e-4)
        products = [float(text) for text in numbers(browser, 2)]
        expected = torch.tensor(KEYS) @ torch.tensor(query)
        assert products == pytest.approx(expected.tolist(), abs=0.006)


def test_query_can_be_dragged_and_moved_by_keys(browser, pages):
    from selenium.webdriver import ActionChains, Keys

    visit(browser, pages["query-arrows"])
    (handle,) = find(browser, ".handle")
    unit = browser.execute_script(
        "return document.querySelector('.plane').clientWidth / 6.8"
    )
    ActionChains(browser).drag_and_drop_by_offset(
        handle, round(-2 * unit), round(-unit)
    ).perform()
    assert shown_weights(browser) == pytest.approx(expected_weights([0.0, 2.0]), abs=0.02)
    slide(browser, "First number of the query", 1)
    slide(browser, "Second number of the query", 1)
    # a notebook takes x for a command, and cuts the cell
    browser.execute_script(
        "window.keys = []; document.addEventListener('keydown', event => keys.push(event.key))"
    )
    handle.send_keys("x", Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_DOWN)
    assert browser.execute_script("return keys") == []
    assert shown_weights(browser) == pytest.approx(expected_weights([0.8, 0.9]), abs=1e-4)
    (said,) = texts(browser, "[aria-live]")
    assert said.endswith(f"to key 1: {expected_weights([0.8, 0.9])[0]:.2f}."), said


def test_query_can_be_dragged_with_a_finger(browser, pages):
    def touch(kind, *points):
        points = [dict(x=x, y=y) for x, y in points]
        browser.execute_cdp_cmd(
            "Input.dispatchTouchEvent", dict(type=kind, touchPoints=points)
        )

    with phone(browser):
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", dict(enabled=True))
        try:
            visit(browser, pages["query-arrows"])
            x, y, unit = browser.execute_script(
                """const box = document.querySelector('.handle').getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2, document.querySelector('.plane').clientWidth / 6.8]"""
            )
            touch("touchStart", (x, y))
            for part in (0.25, 0.5, 0.75, 1):
                touch("touchMove", (x - 3 * part * unit, y + part * unit))
            touch("touchEnd")
            expected = expected_weights([-1.0, 0.0])
            assert shown_weights(browser) == pytest.approx(expected, abs=0.05)

            # beside the handle, a finger leaves the query where it is
            touch("touchStart", (x, y))
            touch("touchMove", (x + 9, y - 60))
            touch("touchEnd")
            assert shown_weights(browser) == pytest.approx(expected, abs=0.05)
        finally:
            browser.execute_cdp_cmd(
                "Emulation.setTouchEmulationEnabled", dict(enabled=False)
            )


# ---- mask-rows ----


def shown_mask(browser) -> list[list[bool]]:
    "Which keys each row may attend to."
    cells = browser.execute_script(
        "return [...document.querySelectorAll('.mask .cell')].map(cell => cell.className)"
    )
    may_attend = [look.split()[1] != "no" for look in cells]
    n = len(WORDS)
    return [may_attend[i : i + n] for i in range(0, len(may_attend), n)]


def selected_row(browser) -> str:
    (row,) = texts(browser, ".mask .now > :first-child")
    return row


def test_mask_is_the_librarys(browser, pages):
    n = len(WORDS)
    visit(browser, pages["mask-rows"])
    assert shown_mask(browser) == causal_mask(n).tolist()
    assert not find(browser, ".mask .bad")
    click(browser, "causal mask")
    assert shown_mask(browser) == n * [n * [True]]
    answers = [row.find_elements("css selector", ".bad") for row in find(browser, ".pick")]
    assert [len(cells) for cells in answers] == [*(n - 1) * [1], 0], "the word to predict"
    n_later = len(find(browser, ".mask .later")) + n - 1
    assert n_later == int((~causal_mask(n)).sum())


def test_rows_of_a_mask_are_selected_by_click_and_by_keyboard(browser, pages):
    from selenium.webdriver import Keys

    visit(browser, pages["mask-rows"])
    assert selected_row(browser) == "ich → habe"
    (said,) = texts(browser, "[aria-live]")
    assert said == "ich may attend to: BOS, ich. It has to predict habe."
    click(browser, "causal mask")
    (said,) = texts(browser, "[aria-live]")
    assert said.endswith("habe. That’s the next word, so it can copy it.")

    find(browser, ".mask .pick")[3].click()
    assert selected_row(browser) == "die → Katze"
    click(browser, "Next")
    press(browser, Keys.ENTER)
    assert selected_row(browser) == "gesehen → EOS"
    (said,) = texts(browser, "[aria-live]")
    assert said.endswith("so there is nothing to copy.")
    click(browser, "Next")
    assert selected_row(browser) == "gesehen → EOS"
    find(browser, "input[type=range]")[0].send_keys(Keys.HOME)
    assert selected_row(browser) == "BOS → ich"
    assert shown_mask(browser) == 6 * [6 * [True]]


# ---- clocks ----


def tips(browser, which: str) -> torch.Tensor:  # 4 2
    "Where the hands point: to the right by the sine, up by the cosine."
    found = browser.execute_script(
        "return [...document.querySelectorAll(`.clocks ${arguments[0]}`)].map(tip => tip.getAttribute('points').split(' ')[0].split(',').map(x => x / 44))",
        which,
    )
    return torch.tensor(found).float() * torch.tensor([1, -1])


def test_hands_are_sinusoids(browser, tmp_path):
    visit(browser, widget("clocks", words=[]).save(tmp_path / "page.html").as_uri())
    table = sinusoids(121, 8)
    for position in (3, 44, 100, 0):
        slide(browser, "Position", position)
        words = " ".join(texts(browser, ".clocks > div > div:nth-child(n+3)"))
        found = [float(x) for x in re.findall(r"-?[\d.]+", words.replace("−", "-"))]
        assert found == pytest.approx(table[position].tolist(), abs=0.006)
        expected = table[position].view(4, 2)
        assert torch.allclose(tips(browser, "polygon:last-child"), expected, atol=1e-5)


def test_dot_product_of_two_positions(browser, pages):
    visit(browser, pages["clocks"])
    table = sinusoids(121, 8)
    for position, distance in ((3, 3), (44, 3), (100, 20), (0, 6), (5, 0)):
        slide(browser, "Position", position)
        slide(browser, "Distance of the second position", distance)
        second = table[position + distance]
        hands = tips(browser, "polygon").view(4, 2, 2)  # the second position, the first
        assert torch.allclose(hands[:, 0], second.view(4, 2), atol=1e-5)
        assert torch.allclose(hands[:, 1], table[position].view(4, 2), atol=1e-5)
        cosines = (table[position] * second).view(4, 2).sum(1)
        words = " ".join(texts(browser, ".clocks > div > div:nth-child(3)"))
        found = [float(x) for x in re.findall(r"-?[\d.]+", words.replace("−", "-"))]
        assert found == pytest.approx(cosines.tolist(), abs=0.006)
        assert texts(browser, "p b") == [f"{table[position] @ second:.2f}"]


# ---- byte-pairs ----

TYPED = [
    "die Katzentür 🙂",
    "ich habe die Katze gesehen",
    "It's 12 cats, they'll see 3.50!",
    "two  spaces   at the end  ",
    "看见了 a cat かな ばー ที่",
    "e\u0301 naïve Größe ﬁ",
    "x²½ _under_ <b>&amp;</b>",
    "",
]


def type_text(browser, text: str):
    browser.execute_script(
        """const input = document.querySelector('.stage input[type=text]');
        input.value = arguments[0];
        input.dispatchEvent(new Event('input', {bubbles: true}))""",
        text,
    )


def tokens_at(browser, step: int) -> list[str]:
    slide(browser, "Step", step)
    return texts(browser, ".cut")


def test_merges_are_the_tokenizers(browser, pages):
    visit(browser, pages["byte-pairs"])
    for text in TYPED:
        type_text(browser, text)
        expected = TOKENIZER.words(TOKENIZER.encode(text))
        assert texts(browser, ".cut") == expected, text
        bytes_alone = BYTES_ALONE.words(BYTES_ALONE.encode(text))
        assert tokens_at(browser, 0) == bytes_alone, text


def test_merges_of_characters_and_unknown_ones(browser, tmp_path):
    from selenium.webdriver import Keys

    merges = [("K", "a"), ("t", "z"), ("Ka", "tz"), ("a", "a"), ("Katz", "e")]
    page = widget("byte-pairs", text="Katze", merges=merges).save(tmp_path / "a.html")
    visit(browser, page.as_uri())
    assert texts(browser, ".cut") == ["Katze"]
    assert texts(browser, "[aria-live]") == [
        "4 of the 5 merges apply. The last one, number 5, joins Katz + e. 1 token."
    ]
    click(browser, "Back")
    press(browser, Keys.ENTER)
    assert texts(browser, ".cut") == ["Ka", "tz", "e"]
    assert texts(browser, ".cut.made") == ["tz"]
    assert texts(browser, "[aria-live]") == [
        "Step 2 joins t + z, number 2 of the 5 merges. 3 tokens."
    ]
    looks = [chip.get_attribute("class") for chip in find(browser, ".merges > span")]
    assert looks == ["used", "made", "muted", "muted", "muted"]
    assert tokens_at(browser, 0) == [*"Katze"]
    assert texts(browser, "[aria-live]") == ["5 characters, before any merge."]

    type_text(browser, "Katze aaaT")
    assert texts(browser, ".cut") == ["Katze", "aa", "a", "T"]
    (said,) = texts(browser, "[aria-live]")
    assert said.endswith("Unknown: T")
    type_text(browser, "")
    assert texts(browser, "[aria-live]") == ["Type something."]


def test_a_text_with_a_space_before_it(browser, tmp_path):
    made = widget("byte-pairs", text="habe die", tokenizer=TOKENIZER, spaced=True)
    visit(browser, made.save(tmp_path / "page.html").as_uri())
    for text in ("habe die", "Katze", "x"):
        type_text(browser, text)
        for tokenizer, step in ((TOKENIZER, 999), (BYTES_ALONE, 0)):
            slide(browser, "Step", step)
            for line, words in zip(
                find(browser, ".tokens"), (text, f" {text}"), strict=True
            ):
                cuts = line.find_elements("css selector", ".cut")
                expected = tokenizer.words(tokenizer.encode(words))
                assert [cut.text for cut in cuts] == expected
    type_text(browser, "")
    assert texts(browser, ".cut") == []


# ---- sampling ----


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(top_k=3),
        dict(top_p=0.7),
        dict(min_p=0.1),
        dict(temperature=1.5, top_k=8, top_p=0.9, min_p=0.05),
    ],
)
def test_what_can_be_drawn_is_the_samplers(browser, pages, options):
    given = torch.tensor([[round(x, 4) for x in LOG_PROBS]])
    kept = given / options.get("temperature", 1.0)
    before = kept.softmax(-1)[0]
    if "top_k" in options:
        kept = top_k_filter(kept, options["top_k"])
    if "top_p" in options:
        kept = top_p_filter(kept, options["top_p"])
    if "min_p" in options:
        kept = min_p_filter(kept, options["min_p"])
    order = given[0].argsort(descending=True)
    probs, is_left = kept.softmax(-1)[0, order], kept[0, order].isfinite()

    visit(browser, pages["sampling"])
    for label, value in options.items():
        slide(browser, label.capitalize().replace("_", "-"), value)
    words = texts(browser, ".choices > span:nth-child(3n+1)")
    assert words[:7] == [VOCABULARY[i] for i in order[:7]]
    for look, expected in (("bar", probs), ("before", before[order])):
        widths = browser.execute_script(
            "return [...document.querySelectorAll('.' + arguments[0])].map(bar => parseFloat(bar.style.width) / 100)",
            look,
        )
        together = [*expected[:7].tolist(), expected[7:].sum().item()]
        assert widths == pytest.approx(together, abs=1e-4), look
    n_left = int(is_left.sum())
    (said, _) = texts(browser, "[aria-live]")
    cut_off = before[order][~is_left].sum()
    left = [VOCABULARY[i] for i in order[:n_left]]
    names = ": " + ", ".join(left) if n_left <= 20 else ""
    assert said == (
        "None of the 40 tokens is cut."
        if n_left == 40
        else f"{n_left} of 40 tokens {'is' if n_left == 1 else 'are'} left{names}. Those that are cut had {cut_off:.2f} together."
    )
    cut = [text == "–" for text in texts(browser, ".choices > span:nth-child(3n)")]
    assert cut == [*(~is_left[:7]).tolist(), n_left <= 7]

    click(browser, "Draw 20 words")
    drawn, n_fit = drawn_words(browser)
    assert sum(drawn.values()) == 20
    assert set(drawn) <= {VOCABULARY[i] for i in order[is_left]}
    fitting = [word for word in drawn if word in VOCABULARY[::2]]
    assert sorted(texts(browser, ".drawn b")) == sorted(fitting)
    assert n_fit == sum(drawn[word] for word in fitting)


def drawn_words(browser) -> tuple[dict[str, int], int]:
    "Of the last draw: how often each word came, and how many words fit."
    said = texts(browser, ".drawn")[0]
    pairs, fit = re.fullmatch(r"At .*?: (.*)\. (\d+) of 20 fit\.", said).groups()
    counts = dict(pair.split() for pair in pairs.split(", "))
    return {word: int(n) for word, n in counts.items()}, int(fit)


def test_a_draw_stays_to_be_compared_with_the_next(browser, pages):
    visit(browser, pages["sampling"])
    click(browser, "Draw 20 words")
    latest, before = find(browser, ".drawn")
    first = latest.text
    assert first.startswith("At temperature 1.0: ") and before.text == ""
    slide(browser, "Top-p", 0.5)
    click(browser, "Draw 20 words")
    assert latest.text.startswith("At temperature 1.0, top-p 0.50: ")
    assert before.text == f"Before that, a{first[1:]}"
    click(browser, "Reset the sliders")
    assert texts(browser, "[aria-live]")[0] == "None of the 40 tokens is cut."


# ---- beam-tree ----


def nodes(browser) -> list[tuple]:
    "State, word and probability of each box but BOS."
    found = browser.execute_script(
        """return [...document.querySelectorAll('.scroll .node')].map(node =>
        [node.getAttribute('class').split(' ')[1], ...[...node.querySelectorAll('text')].map(t => t.textContent)])"""
    )
    return [(state, word, float(p)) for state, word, p in found[1:]]


def answer_of(browser) -> list[tuple]:
    return [(word, p) for state, word, p in nodes(browser) if state == "answer"]


def test_tree_of_greedy_decoding_and_of_a_beam(browser, pages):
    visit(browser, pages["beam-tree"])
    assert nodes(browser) == [("kept", "ich", 0.9), ("kept", "Fisch", 0.1)]
    slide(browser, "Step", 99)
    beam_answer = [("ich", 0.9), ("gesehen", 0.27), ("EOS", 0.257)]
    assert answer_of(browser) == beam_answer
    assert nodes(browser)[-2:] == [("beaten", "gesehen", 0.18), ("answer", "EOS", 0.257)]
    assert [state for state, *_ in nodes(browser)].count("answer") == 3
    said = texts(browser, "[aria-live] p")
    assert said == [
        "Finished: ich gesehen EOS 0.257.",
        "Best alive, but can't win any more: ich nicht gesehen 0.180.",
        "The answer is ich gesehen, with 0.257.",
    ]
    click(browser, "Beam of 3")
    assert texts(browser, "[aria-live] p")[0] == (
        "Finished: ich gesehen EOS 0.257; ich EOS 0.180; ich nicht EOS 0.158."
    ), "those of earlier steps too"
    click(browser, "Beam of 2")
    slide(browser, "Step", 0)
    assert nodes(browser) == []
    click(browser, "Next")
    assert nodes(browser) == [("kept", "ich", 0.9), ("kept", "Fisch", 0.1)]
    click(browser, "Next")
    assert nodes(browser)[2:] == [
        ("kept", "nicht", 0.45),
        ("kept", "gesehen", 0.27),
        ("dropped", "EOS", 0.18),
    ]
    said = texts(browser, "[aria-live] p")
    assert said == [
        "Kept: ich nicht 0.450; ich gesehen 0.270.",
        "Dropped: ich EOS 0.180.",
    ]

    # the step stays when the size changes, and the end stays the end
    click(browser, "Greedy")
    assert nodes(browser)[2:] == [("kept", "nicht", 0.45), ("dropped", "gesehen", 0.27)]
    slide(browser, "Step", 99)
    assert answer_of(browser) == [
        ("ich", 0.9),
        ("nicht", 0.45),
        ("gesehen", 0.18),
        ("EOS", 0.144),
    ]
    click(browser, "Beam of 2")
    assert answer_of(browser) == beam_answer
    click(browser, "Greedy")
    assert len(answer_of(browser)) == 4


# ---- greedy-decoding ----


def choices(browser) -> dict[str, str]:
    "Word -> probability, of the next words that are shown."
    shown = [row for row in find(browser, ".next-words > *") if row.is_displayed()]
    return dict(row.text.splitlines() for row in shown)


def test_greedy_decoding_step_by_step(browser, pages):
    visit(browser, pages["greedy-decoding"])
    written = []
    while len(written) < 4:
        assert texts(browser, ".written") == [" ".join(["Written: BOS", *written])]
        probs = {word: math.exp(p) for word, p in next_words(written).items()}
        expected = {word: f"{p:.2f}" for word, p in probs.items()}
        assert choices(browser) == {**expected, "all others": "0.00"}
        best = max(probs, key=probs.get)
        pressed = texts(browser, "[aria-pressed=true] .word")
        assert pressed == [best]
        widths = browser.execute_script(
            "return [...document.querySelectorAll('.next-words button:not([hidden]) .bar')].map(bar => parseFloat(bar.style.width) / 100)"
        )
        assert widths == pytest.approx(sorted(probs.values(), reverse=True), abs=1e-6)
        click(browser, "Next")
        written.append(best)
    assert written == ["ich", "nicht", "gesehen", "EOS"]
    (said,) = texts(browser, "[aria-live]")
    assert said.startswith("The translation is: ich nicht gesehen. Its probability")
    assert said.endswith(" is 0.144.")


def test_greedy_decoding_goes_on_from_another_word(browser, pages):
    from selenium.webdriver import Keys

    def take(word):
        names = texts(browser, ".next-words button .word")
        find(browser, ".next-words button")[names.index(word)].send_keys(Keys.ENTER)

    visit(browser, pages["greedy-decoding"])
    click(browser, "Next")
    take("gesehen")
    assert texts(browser, ".other") == ["gesehen"]
    take("EOS")
    assert browser.switch_to.active_element.text == "Back", "the focus is lost"
    (said,) = texts(browser, "[aria-live]")
    own, greedy = [float(p) for p in re.findall(r"0\.\d+", said)]
    assert own == pytest.approx(0.9 * 0.3 * 0.95, abs=0.001) and greedy == 0.144
    assert said.endswith("with: ich nicht gesehen.")

    # back at the place, the first word gives the greedy answer again
    slide(browser, "Step", 1)
    assert texts(browser, "[aria-live]") == [
        "You took gesehen. The most probable word was nicht."
    ]
    take("nicht")
    slide(browser, "Step", 99)
    assert texts(browser, "[aria-live]")[0].endswith(" is 0.144.")
    click(browser, "Start again")
    assert texts(browser, ".written") == ["Written: BOS"]


def test_greedy_decoding_says_what_is_not_stored(browser, pages):
    visit(browser, pages["greedy-decoding"])
    for word in ("Fisch", "Fisch"):
        find(browser, ".next-words button")[1].click()
    assert texts(browser, ".unknown .word") == ["Fisch"]
    find(browser, ".next-words .unknown")[0].click()
    (said,) = texts(browser, "[aria-live]")
    assert said.startswith("What comes after Fisch isn't stored here. You can take 2 words")
    assert texts(browser, ".written") == ["Written: BOS Fisch Fisch"]


# ---- hidden-units ----


def test_hidden_units_compute_as_in_the_chapter(browser, pages):
    visit(browser, pages["hidden-units"])
    w1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    for place in ([1.0, -1.0], [-1.0, 1.0], [0.5, 0.5], [-1.7, 0.3]):
        for axis, value in zip(("subject s", "verb v"), place):
            slide(browser, axis, value)
        hidden = (torch.tensor(place) @ w1).clamp(min=0)
        shown = [float(text) for text in texts(browser, ".sums b")]
        expected = [*hidden.tolist(), hidden.sum().item()]
        assert shown == pytest.approx(expected, abs=0.051)


def test_hidden_units_switched_off_and_uncut(browser, pages):
    from selenium.webdriver import ActionChains, Keys

    visit(browser, pages["hidden-units"])
    click(browser, "hidden unit 1")
    assert texts(browser, ".sums b") == ["off", "0.0", "0.0"]
    (handle,) = find(browser, ".handle")
    width = browser.execute_script("return document.querySelector('.plane').clientWidth")
    unit = width / 3.4
    ActionChains(browser).drag_and_drop_by_offset(
        handle, round(-2 * unit), round(-2 * unit)
    ).perform()
    assert texts(browser, ".sums b") == ["off", "2.0", "2.0"]  # they has
    handle.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert texts(browser, ".sums b") == ["off", "1.8", "1.8"]
    click(browser, "hidden unit 1")
    click(browser, "hidden unit 2")
    click(browser, "negatives become 0 (ReLU)")
    assert texts(browser, ".sums b") == ["−1.8", "off", "−1.8"]
    grey = find(browser, "[fill='var(--edge)']")
    assert len(grey) == 34 * 33 / 2, "the half in which unit 1 is below 0"
    click(browser, "hidden unit 2")
    assert texts(browser, ".sums b") == ["−1.8", "1.8", "0.0"]
    fills = browser.execute_script(
        "return [...document.querySelectorAll('[fill-opacity]')].map(cell => +cell.getAttribute('fill-opacity'))"
    )
    assert max(fills) < 0.001, "without the cut the units cancel everywhere"


# ---- model-stages ----


def opacities(browser, grid: int) -> list[float]:
    "Of the cells of one of the grids that are shown."
    return browser.execute_script(
        "return [...document.querySelectorAll('.panel svg')[arguments[0]].querySelectorAll('rect')].map(cell => +cell.getAttribute('fill-opacity'))",
        grid,
    )


def test_stages_show_what_the_model_computes(browser, pages):
    with torch.no_grad(), record_attention(MODEL) as records:
        memory, memory_mask = MODEL.encode(SRC)
        hidden = MODEL.decode(TGT, memory, memory_mask)
        probs = MODEL.output.logits(hidden).softmax(-1)[0]

    visit(browser, pages["model-stages"])
    (said,) = texts(browser, "[aria-live]")
    assert said.startswith("Encoder, layer 1: self-attention, 4 × 64.")
    slide(browser, "Stage", 0)
    assert texts(browser, ".lines span") == ["e", "4", "f", "5", "g", "6", "c", "2"]
    buttons = texts(browser, ".map button")
    assert buttons[:4] == ["ids", "embedding", "1 self-attention", "1 feed-forward"]
    assert len(buttons) == 15

    def go(n):
        find(browser, ".map button")[n].click()

    go(5)  # the memory
    (said,) = texts(browser, "[aria-live]")
    assert said.startswith("Encoder, layer 2: feed-forward, 4 × 64.")
    scaled = (memory[0] / memory.abs().max()).abs().flatten().tolist()
    assert opacities(browser, 0) == pytest.approx(scaled, abs=0.011)

    assert said.endswith("every cross-attention reads (stages 10 and 13).")

    go(8)  # the decoder's first self-attention
    assert len(find(browser, ".masked")) == 3
    go(12)
    assert not find(browser, ".masked")
    weights = records["decoder.layers.1.cross_attention"][0][0].mean(0)  # T S
    assert opacities(browser, 0) == pytest.approx(weights.flatten().tolist(), abs=0.011)
    percents = [float(text) for text in texts(browser, ".panel svg .small")[4:]]
    expected = (100 * weights).flatten().tolist()
    assert percents == pytest.approx(expected, abs=0.71)  # bytes, then whole numbers
    (said,) = texts(browser, "[aria-live]")
    assert "the memory of stage 6." in said

    click(browser, "Next")
    click(browser, "Next")
    best = probs.topk(3)
    expected = [
        ", ".join(f"{ALPHABET[i]} {100 * round(p, 3):.1f} %" for i, p in zip(ids, ps))
        for ids, ps in zip(best.indices.tolist(), best.values.tolist())
    ]
    assert texts(browser, ".lines span")[1::2] == expected
    pressed = [b.get_attribute("aria-pressed") for b in find(browser, ".map button")]
    assert pressed == 14 * ["false"] + ["true"]
