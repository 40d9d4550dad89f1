"""The page "Touch a Transformer": its model computes what Python computes, whole and with a part taken away, and its controls work.

All of it runs in a headless Chromium, on the page opened as a file, as by someone who has the site on a disk.
"""

import copy
import importlib
import json
import random

import pytest
import torch
from building import need_tools

need_tools()
from browsing import phone, requested, switch_theme, visit, wait_for, window
from bs4 import BeautifulSoup
from project import ROOT
from test_access import axe, complaints, errors, too_wide_for_a_phone  # noqa: F401

from annotated_transformer import load_pretrained, trace_attention
from annotated_transformer.text.number_words import spell_number
from annotated_transformer.text.sentence_pairs import sentence_pairs
from annotated_transformer.decoding.greedy import generate_ids
from annotated_transformer.core.positions import NoPositions
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.translator import PRETRAINED, pretrained_names

pytestmark = pytest.mark.site

NAMES = pretrained_names()
N_INPUTS = {"cat": 400, "copier": 250, "numbers-en-de": 250, "numbers-en-zh": 100}
TOLERANCE = 1e-3  # of logits; both sides have the same weights, float16 made float32


def inputs(name: str, count: int) -> list[str]:
    "Sentences that a model can read, the same every time."
    rng = random.Random(0)
    if name == "cat":
        training, held_out = sentence_pairs()
        return [source for source, _ in rng.sample(training + held_out, count)]
    if name == "copier":
        rows = [
            [rng.randint(3, 12) for _ in range(rng.randint(1, 14))] for _ in range(count)
        ]
        return [" ".join(map(str, row)) for row in rows]

    num2words = pytest.importorskip("num2words").num2words
    numbers = [rng.randrange(10 ** rng.randint(1, 6)) for _ in range(count)]
    return [num2words(number).replace(",", "") for number in numbers]


@pytest.fixture(scope="module")
def page(site):
    return (site / "touch.html").as_uri()


def open_page(browser, page):
    visit(browser, page)
    wait_for(browser, "return document.documentElement.dataset.touch === 'ready'")


def in_page(browser, page, script: str, *arguments):
    "What a script returns that may use `model`, of the name that is its first argument."
    if not browser.current_url.startswith(page):
        open_page(browser, page)
    found = browser.execute_async_script(
        f"""const done = arguments[arguments.length - 1], given = JSON.parse(arguments[1]);
        AnnotatedTransformer.load(arguments[0]).then(model => done({{value: (() => {{ {script} }})()}}))
          .catch(error => done({{error: String(error.stack)}}))""",
        arguments[0],
        json.dumps(arguments[1:]),
    )
    assert "error" not in found, found["error"]
    return found["value"]


def without_end(ids):
    return ids[:-1] if ids[-1:] == [2] else ids


# ---- The same numbers as in Python ----


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_python(browser, page, name):
    "A thousand inputs over all models; what the beam finds for some of them."
    texts = inputs(name, N_INPUTS.get(name, 100))
    translator = load_pretrained(name, "cpu")
    sources = translator.encode(texts)

    ids, greedy, beams = in_page(
        browser,
        page,
        """const [texts, few] = given, sources = texts.map(text => model.source(text));
        return [sources, sources.map(src => model.greedy_decode(src)).map(({ids, text}) => [ids, text]),
          sources.slice(0, few).map(src => model.beam_search(src, {beam_size: 3}).answers.map(answer => answer.ids))]""",
        name,
        texts,
        25,
    )

    assert ids == [[*source, 2] for source in sources]
    expected = generate_ids(translator.model, sources)
    assert [without_end(answer) for answer, _ in greedy] == expected
    decoded = [translator.tokenizer.decode(answer) for answer in expected]
    assert [text for _, text in greedy] == decoded

    found = translator.search(sources[:25], beam_size=3, n_best=3)
    assert [without_end(answers[0]) for answers in beams] == [best[0] for best in found]


def close(found, expected):
    "Equal up to the tolerance, which grows with the numbers."
    found = torch.tensor(found).reshape(expected.shape)

    # Without layer norm logits reach 20,000, and Python's own rounding 0.1: a part of the largest is what can be asked.
    atol = TOLERANCE * max(1, expected.abs().max().item() / 100)
    torch.testing.assert_close(found, expected, atol=atol, rtol=1e-4)


def pairs(name: str, count: int) -> list[tuple[list[int], list[int]]]:
    "Sources with EOS, and the beginnings of targets: right ones, and one of random ids."
    translator = load_pretrained(name, "cpu")
    sources = translator.encode(inputs(name, count))
    targets = generate_ids(translator.model, sources)
    rng = random.Random(1)
    targets[-1] = [rng.randrange(3, len(translator.tokenizer)) for _ in range(9)]
    return [([*src, 2], [1, *tgt]) for src, tgt in zip(sources, targets)]


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_attention_are_those_of_python(browser, page, name):
    translator = load_pretrained(name, "cpu")
    examples = pairs(name, 20)

    found = in_page(
        browser,
        page,
        """return given[0].map(([src, tgt]) => {
          const encoded = model.encode(src), decoded = model.decode(tgt, encoded);
          const attention = {...encoded.attention, ...decoded.attention};
          const numbers = Object.entries(attention).map(([part, layers]) => [part, layers.map(heads => heads.map(m => [...m.data]))]);
          return [[...decoded.logits.data], Object.fromEntries(numbers)] })""",
        name,
        examples,
    )

    for (src, tgt), (logits, attention) in zip(examples, found):
        with torch.no_grad():
            expected = translator.model(torch.tensor([src]), torch.tensor([tgt]))[0]
        close(logits, expected)

        # what is written last doesn't matter: the model reads all before it
        maps = trace_attention(translator.model, src[:-1], [*tgt[1:], 2])
        assert attention.keys() == maps.weights.keys()
        for part, weights in attention.items():
            close(weights, maps.weights[part])


# ---- A part taken away ----


def without_positions(model):
    for embed in (model.src_embed, model.tgt_embed):
        embed.positions = NoPositions()


def without_cross_attention(model):
    for layer in model.decoder.layers:
        layer.cross_attention.register_forward_hook(lambda module, given, out: 0 * out)


def without_residuals(model):
    "norm(f(x)) instead of norm(x + f(x)): the sum is taken back before each norm."
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        sublayers = ["self_attention", "cross_attention", "feed_forward"]
        sublayers = [getattr(layer, name) for name in sublayers if hasattr(layer, name)]
        norms = [layer.norm1, layer.norm2, getattr(layer, "norm3", None)]
        for sublayer, norm in zip(sublayers, norms):
            kept = {}
            sublayer.register_forward_hook(
                lambda module, given, out, kept=kept: kept.update(out=out)
            )
            norm.register_forward_pre_hook(lambda module, given, kept=kept: kept["out"])


def without_scale(model):
    "Larger queries make up for the division."
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        for name in ("self_attention", "cross_attention"):
            if hasattr(layer, name):
                attention = getattr(layer, name)
                d_k = model.config.d_model // attention.n_heads
                attention.q_proj.weight.data *= d_k**0.5


def without_layer_norm(model):
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        for name in ("norm1", "norm2", "norm3"):
            if hasattr(layer, name):
                setattr(layer, name, torch.nn.Identity())


def without_head(model):
    "The first head of the decoder's first cross-attention: W^O no longer reads it."
    attention = model.decoder.layers[0].cross_attention
    d_v = attention.v_proj.out_features // attention.n_heads
    attention.out_proj.weight.data[:, :d_v] = 0


HEAD = {"part": "decoder cross", "layer": 0, "head": 0}
CHANGES = {
    "positions": without_positions,
    "cross_attention": without_cross_attention,
    "residuals": without_residuals,
    "scale": without_scale,
    "layer_norm": without_layer_norm,
    "head": without_head,
    "causal_mask": None,
    "padding_mask": None,
}
N_PADS = 5


def logits_without(model, part: str, src: list[int], tgt: list[int]) -> torch.Tensor:
    "T V: what the library's model computes when a part is missing."
    model = copy.deepcopy(model)
    if CHANGES[part]:
        CHANGES[part](model)

    src, tgt = torch.tensor([src]), torch.tensor([tgt])
    with torch.no_grad():
        memory, mask = model.encode(src)
        if part == "padding_mask":
            memory, mask = model.encoder(model.src_embed(src)), None
        x = model.tgt_embed(tgt)
        for layer in model.decoder.layers:
            x = layer(x, memory, mask, is_causal=part != "causal_mask")
        hidden = model.decoder.final_norm(x)
        return model.output.logits(hidden)[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_part_taken_away_changes_what_it_changes_in_python(browser, page, name):
    "Sources end in padding, which only the model without a padding mask sees."
    model = load_pretrained(name, "cpu").model
    examples = [([*src, *[0] * N_PADS], tgt) for src, tgt in pairs(name, 5)]

    found = in_page(
        browser,
        page,
        """const [examples, parts] = given;
        return parts.map(without => examples.map(([src, tgt]) => [...model.decode(tgt, model.encode(src, without), without).logits.data]))""",
        name,
        examples,
        [{part: HEAD if part == "head" else True} for part in CHANGES],
    )

    for part, results in zip(CHANGES, found):
        for (src, tgt), logits in zip(examples, results):
            expected = logits_without(model, part, src, tgt)
            close(logits, expected)
            with torch.no_grad():
                whole = model(torch.tensor([src]), torch.tensor([tgt]))[0]
            assert (expected - whole).abs().max() > 0.01, part


# ---- A beam that begins with given words ----


def beginnings(name: str, count: int) -> list[tuple[list[int], list[int]]]:
    "Sources with EOS, and beginnings of one to four tokens; the last of them isn't what the model would write."
    rng = random.Random(2)
    vocab_size = len(load_pretrained(name, "cpu").tokenizer)
    found = []
    for src, tgt in pairs(name, count):
        length = rng.randint(0, 3)
        found.append((src, [*tgt[1 : 1 + length], rng.randrange(4, vocab_size)]))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_score_is_the_log_probability_of_what_was_not_given(browser, page, name):
    "Of every answer, divided by the length penalty of all its tokens. All begin as they were told to."
    model = load_pretrained(name, "cpu").model
    examples = beginnings(name, 6)
    found = in_page(
        browser,
        page,
        """return given[0].map(([src, begin]) => model.beam_search(src, {begin, max_length: 16}).answers)""",
        name,
        examples,
    )

    for (src, begin), answers in zip(examples, found):
        for answer in answers:
            ids = answer["ids"]
            assert ids[: len(begin)] == begin
            with torch.no_grad():
                logits = model(torch.tensor([src]), torch.tensor([[1, *ids[:-1]]]))[0]
            log_probs = logits.log_softmax(-1)[torch.arange(len(ids)), ids]
            expected = log_probs[len(begin) :].sum() / ((5 + len(ids)) / 6) ** 0.6
            assert answer["score"] == pytest.approx(expected.item(), abs=1e-3)


def test_the_beam_keeps_what_underflows_in_a_softmax(browser, page):
    "A probability of e^-200 is 0 as a float32; its logarithm isn't lost."
    [log_probs, expected] = in_page(
        browser,
        page,
        """const logits = Float32Array.from({length: 60}, (_, i) => -4 * i);
        const found = model.next_log_probs({logits: {rows: 1, row: () => logits}});
        return [[...found].map(x => x === -Infinity ? null : x), [...logits]]""",
        "cat",
    )
    assert log_probs[0] is None and log_probs[1] is None
    expected = torch.tensor(expected).float().log_softmax(-1)[2:].tolist()
    assert log_probs[2:] == pytest.approx(expected, abs=1e-4)


# ---- Numbers in words ----


def test_the_values_of_numbers_are_right(browser, page):
    "Chinese and German ones are understood, and English ones written; what is no number has no value."
    pytest.importorskip("num2words")
    rng = random.Random(0)
    numbers = [*range(1000), 1000, 1001, 2000, 10_000, 101_000, 110_000, 200_002, 999_999]
    numbers += [rng.randrange(1_000_000) for _ in range(500)]
    wrong = ["", "一百千", "七七", "万", "十万零"]
    wrong += ["vierhunderteinzig", "ul", "zehnundzwanzig"]
    no_english = ["", "and", "hundred", "one one", "forty two", "one hundred two", "abc"]

    chinese, german, english, none, is_english = in_page(
        browser,
        page,
        """const [zh, de, numbers, wrong, no_english] = given, {chinese, german, english, is_english} = NumberWords;
        return [zh.map(chinese), de.map(german), numbers.map(english), wrong.flatMap(text => [chinese(text), german(text)]),
          [numbers.map(english), no_english].map(texts => texts.map(is_english))]""",
        "cat",
        [spell_number(n, "zh") for n in numbers],
        [spell_number(n, "de") for n in numbers],
        numbers,
        wrong,
        no_english,
    )

    assert chinese == numbers
    assert german == numbers
    assert english == [spell_number(n, "en").replace(",", "") for n in numbers]
    assert not any(none) and 0 not in none
    assert all(is_english[0]) and not any(is_english[1])


# ---- What the page says of the running example ----


def test_the_things_to_try_come_out_as_the_page_says(browser, page):
    answers, looks_at = in_page(
        browser,
        page,
        """const src = model.source("I have seen the cat"), head = {part: "decoder cross", layer: 1, head: 2};
        const after = (text, without) => model.greedy_decode(src, {begin: model.tokenizer.encode(text)}, without).text;
        const {steps} = model.greedy_decode(src);
        const weight = (step, head, key) => steps[step].attention["decoder cross"][1][head].row(step)[key];
        return [[after("sie"), after("ich habe das"), after("", {head}), after("", {head: {...head, head: 1}})],
          [weight(4, 1, 2), weight(0, 2, 0)]]""",
        "cat",
    )

    assert answers == [
        "sie haben die Katze gesehen",
        "ich habe das Schaf gesehen",
        "sie haben die Katze gesehen",
        "ich habe die Katze gesehen",
    ]
    assert looks_at[0] > 0.985 and looks_at[1] > 0.9

    translator = load_pretrained("numbers-en-zh", "cpu")
    [src] = translator.encode(["three hundred and forty-two"])
    without_positions(translator.model)
    [ids] = generate_ids(translator.model, [src])
    assert translator.tokenizer.decode(ids) == "二百四十三"


def test_greedy_decoding_is_sure_of_every_sentence_of_the_kind(browser, page):
    "So sure that no other answer could have a better score: the beam must agree with it."
    training, held_out = sentence_pairs()
    sentences = sorted({english for english, _ in training + held_out})
    assert len(sentences) == 4800

    model = load_pretrained("cat", "cpu")
    sources = model.encode(sentences)
    answers = generate_ids(model.model, sources)
    src = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor([*ids, 2]) for ids in sources], batch_first=True
    )
    tgt = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor([1, *ids, 2]) for ids in answers], batch_first=True
    )
    with torch.no_grad():
        probabilities = model.model(src, tgt[:, :-1]).softmax(-1)
    written = probabilities.gather(-1, tgt[:, 1:, None])[..., 0]
    assert written[tgt[:, 1:] != 0].min() > 0.99


# ---- Models that the page cannot run ----


@pytest.mark.parametrize("option, value", [("positions", "rotary"), ("eos_id", 3)])
def test_a_model_of_another_kind_is_refused(tmp_path, monkeypatch, option, value):
    monkeypatch.syspath_prepend(ROOT / "docs")
    export_models = importlib.import_module("export_models")
    config = json.loads((PRETRAINED / "cat" / "config.json").read_text(encoding="utf-8"))
    config[option] = value
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")

    with pytest.raises(ValueError, match=f"{option} = {value!r}"):
        export_models.read_config(tmp_path)


# ---- The page ----


def press(browser, element, how: str = "mouse"):
    "By mouse or by keyboard."
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    if how == "mouse":
        element.click()
    else:
        browser.execute_script("arguments[0].focus()", element)
        browser.switch_to.active_element.send_keys("\n")


def control(browser, key: str):
    return browser.find_element("css selector", f'.touch [data-key="{key}"]')


def click(browser, key: str):
    press(browser, control(browser, key))


def texts_of(browser, selector: str) -> list[str]:
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)",
        selector,
    )


def answer(browser) -> str:
    return browser.execute_script(
        "return State.decoded(State.written()) || document.querySelector('.touch-answer > span:nth-child(2)').textContent"
    )


def type_text(browser, text: str):
    field = browser.find_element("id", "touch-text")
    field.clear()
    field.send_keys(text + "\n")


def fault(browser) -> str:
    [found] = texts_of(browser, ".touch-fault")
    return found


def choose(browser, name: str):
    click(browser, f"Model {name}")
    wait_for(
        browser,
        "return document.querySelector('.touch-models [aria-pressed=true]').dataset.key === `Model ${arguments[0]}`",
        name,
    )


def test_it_opens_with_an_answer_from_a_file(browser, page, site):
    "It asks nobody else, its files are small, and the window may change its size meanwhile."
    resize = (
        "addEventListener('DOMContentLoaded', () => dispatchEvent(new Event('resize')))"
    )
    added = browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": resize}
    )
    open_page(browser, page)
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)

    assert answer(browser) == "ich habe die Katze gesehen"
    assert not errors(browser)
    asked = [url for url in requested(browser) if not url.startswith(("file:", "data:"))]
    assert not asked

    files = [site / "touch.html", site / "_static" / "touch.css"]
    files += [site / "_static" / "transformer.js"]
    soup = BeautifulSoup(files[0].read_text(encoding="utf-8"), "html.parser")
    named = [script["src"] for script in soup.select("script[src^='_static/touch/']")]
    scripts = sorted((site / "_static" / "touch").glob("*.js"))
    assert sorted(site / name for name in named) == scripts
    models = sorted((site / "_static" / "models").glob("*.js"))
    assert [model.stem for model in models] == sorted(NAMES)
    files += [*scripts, *models]
    assert sum(file.stat().st_size for file in files) < 3e6


@pytest.mark.parametrize("how", ["mouse", "keyboard"])
def test_every_control_works(browser, page, how):
    open_page(browser, page)

    def click(key):
        press(browser, control(browser, key), how)

    # a sentence of one's own, and one with a word that isn't known
    field = browser.find_element("id", "touch-text")
    field.clear()
    field.send_keys("she has not fed a horse\n")
    assert answer(browser) == "sie hat ein Pferd nicht gefüttert"
    field.clear()
    field.send_keys("she has not fed a unicorn")
    press(browser, browser.find_element("css selector", ".touch-form button"), how)
    assert "unicorn" in texts_of(browser, ".touch-fault")[0]
    click("I have seen the cat")
    assert answer(browser) == "ich habe die Katze gesehen"
    assert texts_of(browser, ".touch-fault") == [""]

    # word by word
    click("next")
    assert answer(browser) == "…"
    click("next")
    click("next")
    assert answer(browser) == "ich habe"
    click("rest")
    assert answer(browser) == "ich habe die Katze gesehen"

    # another word than the model's; it goes on from there
    click("query 2")
    assert texts_of(browser, ".touch-bars em") == ["ich habe"]
    [*_, other] = texts_of(browser, ".touch-bar-word")[:2]
    click("bar 1")
    assert answer(browser).split()[:3] == ["ich", "habe", other]
    click("I have seen the cat")

    # attention: a word of the answer, a word of the sentence, a part, a head
    click("token 4")
    assert texts_of(browser, ".touch-caption")[0].startswith(
        "To choose gesehen, the model looks at seen"
    )
    click("key 2")
    assert "seen is looked at by gesehen" in texts_of(browser, ".touch-caption")[0]
    click("Attention of encoder self")
    click("query 1")
    click("head 0 1")
    assert texts_of(browser, ".touch-caption")[0].startswith(
        "Head 2 of layer 1: have looks at"
    )

    # all that can be taken away, and put back
    for part in CHANGES:
        click(part)
        assert control(browser, part).get_attribute("aria-checked") == "true"
        assert len(texts_of(browser, ".touch-pane .touch-tokens")) == 2
        click(part)
        assert control(browser, part).get_attribute("aria-checked") == "false"

    # the two answers: one word of each
    click("head")
    click("broken 1")
    assert texts_of(browser, ".touch-strip-says em") == ["habe", "haben"]
    click("whole 0")
    assert control(browser, "broken 0").get_attribute("aria-pressed") == "true"
    click("head")

    click("cross_attention")
    broken = answer(browser)
    click("she has not fed a horse")
    assert answer(browser) == broken
    click("restore")
    assert answer(browser) == "sie hat ein Pferd nicht gefüttert"

    # the beam, once that of the whole model is there again
    wait_for(
        browser,
        "return document.querySelector('.touch-answers button > span')?.textContent === 'sie hat ein Pferd nicht gefüttert'",
    )
    click("Beam size 2")
    wait_for(browser, "return document.querySelectorAll('.touch-answers li').length === 2")
    click("answer 1")
    assert control(browser, "answer 1").get_attribute("aria-pressed") == "true"
    click("beam example")
    wait_for(
        browser,
        "return document.querySelector('.touch-greedy').textContent.includes('something else')",
    )
    assert not errors(browser)


def test_each_model_can_be_chosen(browser, page):
    open_page(browser, page)

    for name in NAMES:
        choose(browser, name)
        text = browser.find_element("id", "touch-text").get_property("value")
        assert (
            answer(browser)
            == load_pretrained(name, "cpu").translate([text], beam_size=1)[0]
        )


def test_the_answers_of_the_beam_are_shown(browser, page):
    open_page(browser, page)
    wait_for(browser, "return document.querySelector('.touch-answers li')")

    shown = texts_of(browser, ".touch-answers button > span")
    [expected] = load_pretrained("cat", "cpu").translate(
        ["I have seen the cat"], beam_size=4, n_best=4
    )
    assert shown == expected


def test_the_example_of_the_beam_is_one(browser, page):
    "A row that is longer than those the Copier learned: the beam copies it, and greedy decoding doesn't."
    open_page(browser, page)
    wait_for(browser, "return document.querySelector('[data-key=\"beam example\"]')")
    click(browser, "beam example")
    wait_for(
        browser, "return document.querySelector('#touch-text').value.startsWith('4 3 3')"
    )

    text = browser.find_element("id", "touch-text").get_property("value")
    copier = load_pretrained("copier", "cpu")
    [best] = copier.translate([text], beam_size=4)
    [greedy] = copier.translate([text], beam_size=1)
    assert best == text != greedy
    wait_for(
        browser,
        "return document.querySelector('.touch-answers button > span').textContent === arguments[0]",
        best,
    )
    assert (
        "rows of 5 to 12 numbers, and yours has 13" in texts_of(browser, ".touch-remark")[0]
    )

    # where the two part
    assert texts_of(browser, ".touch-greedy em") == ["EOS", greedy.split()[13]]
    assert "They part at number 14" in texts_of(browser, ".touch-greedy")[0]

    # a sentence that leaves it unsure: several answers, and no score far from the best
    click(browser, "beam unsure")
    wait_for(
        browser, "return document.querySelector('#touch-text').value === 'I have seen a'"
    )
    translator = load_pretrained("cat", "cpu")
    [expected] = translator.translate(["I have seen a"], beam_size=4, n_best=3)
    wait_for(
        browser,
        "return document.querySelector('.touch-answers button > span').textContent === arguments[0]",
        expected[0],
    )
    assert texts_of(browser, ".touch-answers button > span") == expected


def test_the_tree_has_all_answers_of_the_list(browser, page):
    "An answer that ended and isn't among the best is dashed, like a beginning that was given up."
    open_page(browser, page)
    click(browser, "query 2")
    bars = texts_of(browser, ".touch-bar-word")
    click(browser, f"bar {bars.index('das')}")
    wait_for(browser, "return document.querySelectorAll('.touch-beam_of p').length === 2")

    ends = [text for text in texts_of(browser, ".touch-box > span") if text == "EOS"]
    kept = texts_of(browser, ".touch-box:not(.dead) > span").count("EOS")
    assert len(ends) > kept == len(texts_of(browser, ".touch-answers li"))


def test_the_beam_begins_with_what_was_picked(browser, page):
    "And forgets it with a new sentence."
    open_page(browser, page)
    click(browser, "query 2")
    bars = texts_of(browser, ".touch-bar-word")
    click(browser, f"bar {bars.index('das')}")
    wait_for(browser, "return document.querySelectorAll('.touch-beam_of p').length === 2")

    assert "begin with ich habe das, up to" in texts_of(browser, ".touch-beam_of")[0]
    shown = texts_of(browser, ".touch-answers button > span")
    assert shown[0] == "ich habe das Schaf gesehen"
    assert all(text.startswith("ich habe das") for text in shown)
    assert texts_of(browser, ".touch-box small")[:3] == ["100\u00a0%"] * 3
    assert (
        "Now its answer is ich habe das Schaf gesehen (I have the sheep seen)."
        in texts_of(browser, ".touch-bars")[0]
    )

    # word by word it goes on from there
    click(browser, "next")
    assert answer(browser) == "ich habe das"

    type_text(browser, "she has not fed a horse")
    wait_for(browser, "return document.querySelectorAll('.touch-beam_of p').length === 1")
    [first, *_] = texts_of(browser, ".touch-answers button > span")
    assert first == "sie hat ein Pferd nicht gefüttert"


def test_a_head_names_its_strongest_link(browser, page):
    "What the chosen word looks at, or who looks at it; as in Python."
    open_page(browser, page)
    translator = load_pretrained("cat", "cpu")
    [src] = translator.encode(["I have seen the cat"])
    [ids] = generate_ids(translator.model, [src])
    weights = trace_attention(translator.model, src, [*ids, 2]).weights["decoder cross"]
    words = [*"I have seen the cat".split(), "EOS"]

    click(browser, "token 4")
    for layer in (0, 1):
        for head in range(4):
            row = weights[layer, head, 4]
            expected = f"{words[row.argmax()]} ({round(100 * row.max().item())}\u00a0%)"
            [link] = texts_of(browser, f"[data-key='head {layer} {head}'] .touch-link")
            assert link == expected
    name = control(browser, "head 1 1").accessible_name
    assert name.replace("\u00a0", " ") == "Layer 2, head 2 seen (99 %)"

    click(browser, "key 2")
    assert texts_of(browser, "[data-key='head 1 1'] .touch-link")[0].startswith("gesehen (")


LINES = """return [...document.querySelectorAll(`.touch-pane.${arguments[0]} .touch-between path`)]
  .map(path => [Number(path.dataset.q), Number(path.dataset.k), Number(path.style.getPropertyValue('--weight'))])"""


def test_the_compared_answers_show_their_attention(browser, page):
    "With the weights of Python, of the part and the head that are chosen."
    open_page(browser, page)
    click(browser, "head")
    translator = load_pretrained("cat", "cpu")
    [src] = translator.encode(["I have seen the cat"])

    def expected(model, keep):
        [ids] = generate_ids(model, [src])
        maps = trace_attention(model, src, [*ids, 2])
        mean = maps.weights["decoder cross"][1, keep].mean(0)
        return {(q, k): w for q, row in enumerate(mean.tolist()) for k, w in enumerate(row)}

    broken = copy.deepcopy(translator.model)
    attention = broken.decoder.layers[1].cross_attention
    d_v = attention.v_proj.out_features // attention.n_heads
    attention.out_proj.weight.data[:, 2 * d_v : 3 * d_v] = 0
    for kind, model, keep in (
        ("whole", translator.model, [0, 1, 2, 3]),
        ("broken", broken, [0, 1, 3]),
    ):
        weights = expected(model, keep)
        drawn = browser.execute_script(LINES, kind)
        assert len(drawn) == sum(weight >= 0.05 for weight in weights.values())
        assert all(weights[q, k] == pytest.approx(w, abs=2e-3) for q, k, w in drawn)

    # the first word that differs stands out, and says what it looks at
    assert texts_of(browser, ".touch-strip-says em") == ["ich", "sie"]
    assert "looks at I (" in texts_of(browser, ".touch-strip-says")[0]


def test_lines_join_words_in_a_window_of_any_size(browser, page):
    "Each begins in the middle of a word above, and ends in the middle of a word below, once it is drawn anew."
    joined = """const distances = [...document.querySelectorAll('.touch-pane')].flatMap(pane => {
        const middle = word => { const r = word.getBoundingClientRect(); return r.x + r.width / 2 };
        const above = [...pane.querySelectorAll('.touch-strip-words > span')].map(middle);
        const below = [...pane.querySelectorAll('.touch-tokens > button')].map(middle);
        const x = pane.querySelector('.touch-between').getBoundingClientRect().x;
        return [...pane.querySelectorAll('path')].map(path => {
          const [from, to] = [0, path.getTotalLength()].map(at => path.getPointAtLength(at).x + x);
          return Math.max(Math.abs(from - above[path.dataset.k]), Math.abs(to - below[path.dataset.q])) }) });
      return distances.length > 0 && Math.max(...distances) < 1.5"""
    open_page(browser, page)
    click(browser, "padding_mask")
    wait_for(browser, joined, seconds=5)
    for width in (1100, 390, 600, 400):  # the same page, made narrower and wider
        with window(browser, width, 840, mobile=width < 760):
            wait_for(browser, joined, seconds=5)


def test_a_switch_can_be_tried_where_it_shows_best(browser, page):
    open_page(browser, page)
    click(browser, "try positions")
    wait_for(browser, "return !document.querySelector('[data-key=\"try positions\"]')")
    assert "The answer changes" in texts_of(browser, ".touch-verdict")[0]
    assert "= 342" in texts_of(browser, ".touch-pane.whole")[0]
    assert "= 243" in texts_of(browser, ".touch-pane.broken")[0]
    assert focused(browser) == "positions"


@pytest.mark.parametrize("part", [part for part in CHANGES if part != "head"])
def test_each_switch_says_what_it_did_or_leads_to_where_it_does_something(
    browser, page, part
):
    "At the switch itself, and with one more click at most the answer changes."
    open_page(browser, page)
    click(browser, part)

    [outcome] = texts_of(browser, ".touch-outcome")
    [heading] = texts_of(browser, ".touch-pane.broken h3")
    if outcome.startswith("The same answer"):
        assert heading.endswith(": the same answer")
        keys = ("try another", f"try {part}")
        [offer, *_] = [
            found
            for key in keys
            for found in browser.find_elements("css selector", f'[data-key="{key}"]')
        ]
        press(browser, offer)
        wait_for(
            browser,
            "return document.querySelector('.touch-outcome').textContent.startsWith('The answer changes')",
        )
        assert focused(browser) == part
        [heading] = texts_of(browser, ".touch-pane.broken h3")

    assert heading.endswith(": another answer")
    assert not errors(browser)


def test_the_heads_that_an_answer_needs_are_marked(browser, page):
    "They are those without which greedy decoding writes something else."
    open_page(browser, page)
    for name in NAMES:
        choose(browser, name)
        expected, found = browser.execute_script(
            """const src = State.source(), max_length = State.max_length(src), {model} = State.state;
            const text = without => model.greedy_decode(src, {max_length}, without).text;
            const needed = Parts.heads(State.config()).filter(head => text({head}) !== text({}));
            return [needed, State.needed_heads()].map(heads => heads.map(Parts.name_of_head))"""
        )
        assert found == expected

    choose(browser, "cat")
    assert not any("★" in text for text in texts_of(browser, ".touch-card option"))
    select = browser.find_element("css selector", ".touch-card select")
    browser.execute_script("arguments[0].focus()", select)
    needed = "Cross-attention, layer 2, head 3"
    marked = [text for text in texts_of(browser, ".touch-card option") if "★" in text]
    assert marked == [f"★ {needed}"]
    assert texts_of(browser, "#touch-needed")[0].startswith("1 of the 24 heads changes")


def test_another_model_lacks_the_same_parts(browser, page):
    "Also a head, which may be another one there."
    open_page(browser, page)
    for part in ("scale", "head"):
        click(browser, part)
    for name in ("copier", "cat"):
        choose(browser, name)
        for part in ("scale", "head"):
            assert control(browser, part).get_attribute("aria-checked") == "true"
        assert len(texts_of(browser, ".touch-outcome")) == 2
    click(browser, "restore")
    assert answer(browser) == "ich habe die Katze gesehen"


def test_all_padding_is_counted_together(browser, page):
    "And a word that reads much of it stands out."
    open_page(browser, page)
    click(browser, "padding_mask")
    assert "the 8 PADs together (" in texts_of(browser, ".touch-strip-says")[1]


def test_no_visible_change_is_said(browser, page):
    "Nor is there one in the lines; or there is."
    open_page(browser, page)
    click(browser, "layer_norm")
    [verdict] = texts_of(browser, ".touch-verdict")
    assert verdict.startswith("No change in the answer")
    assert "But look at the lines." in verdict
    click(browser, "restore")

    choose(browser, "copier")
    click(browser, "causal_mask")
    [verdict] = texts_of(browser, ".touch-verdict")
    assert verdict.startswith("No change in the answer, nor in its probabilities.")


def test_nothing_is_drawn_for_what_was_taken_away(browser, page):
    "All of cross-attention, and one head; the others are still there."
    open_page(browser, page)

    def n_lines(selector: str) -> int:
        return len(browser.find_elements("css selector", f"{selector} path"))

    click(browser, "cross_attention")
    assert not n_lines(".touch-lines") and not n_lines(".touch-heads")

    click(browser, "restore")
    click(browser, "head")
    assert texts_of(browser, ".touch-heads .gone") == ["Layer 2, head 3, gone "]
    assert "Average of the other 3 heads" in texts_of(browser, ".touch-caption")[0]
    click(browser, "head 1 2")
    assert not n_lines(".touch-lines")


def test_words_see_later_ones_without_the_causal_mask(browser, page):
    open_page(browser, page)
    click(browser, "Attention of decoder self")
    later = "return [...document.querySelectorAll('.touch-lines path')].some(path => Number(path.dataset.k) > Number(path.dataset.q))"
    assert not browser.execute_script(later)
    click(browser, "causal_mask")
    assert browser.execute_script(later)


def test_the_beam_lacks_what_was_taken_away(browser, page):
    open_page(browser, page)
    click(browser, "cross_attention")
    wait_for(browser, "return document.querySelectorAll('.touch-beam_of p').length === 2")

    translator = load_pretrained("cat", "cpu")
    [src] = translator.encode(["I have seen the cat"])
    model = copy.deepcopy(translator.model)
    without_cross_attention(model)
    found = beam_search(model, torch.tensor([[*src, 2]]), 16, beam_size=4, n_best=4)
    expected = [translator.tokenizer.decode(ids.tolist()) for ids in found.ids[0]]
    assert texts_of(browser, ".touch-answers button > span") == expected

    click(browser, "restore")
    wait_for(browser, "return document.querySelectorAll('.touch-beam_of p').length === 1")
    [first, *_] = texts_of(browser, ".touch-answers button > span")
    assert first == "ich habe die Katze gesehen"


def test_a_forced_word_stays_when_a_switch_is_flipped(browser, page):
    open_page(browser, page)
    click(browser, "query 2")
    bars = texts_of(browser, ".touch-bar-word")
    click(browser, f"bar {bars.index('das')}")
    assert answer(browser) == "ich habe das Schaf gesehen"

    for flip in ("layer_norm", "head", "restore"):
        click(browser, flip)
        assert answer(browser).startswith("ich habe das")
    assert answer(browser) == "ich habe das Schaf gesehen"

    type_text(browser, "I have seen the cat")
    assert answer(browser) == "ich habe die Katze gesehen"


def test_what_is_typed_may_have_capitals_and_a_full_stop(browser, page):
    open_page(browser, page)
    type_text(browser, "  i Have SEEN the Cat. ")
    assert answer(browser) == "ich habe die Katze gesehen"

    choose(browser, "numbers-en-zh")
    type_text(browser, "Three Hundred and forty-two!")
    assert answer(browser) == "三百四十二"
    assert "= 342" in texts_of(browser, ".touch-answer")[0]


def test_all_that_is_wrong_with_a_text_is_said(browser, page):
    "The old answer says whose it is, until there is a new one."
    open_page(browser, page)
    type_text(browser, "she has seen a unicorn and the unicorn and the wug")
    assert fault(browser).startswith("“unicorn”, “and” and “wug” aren't words")
    assert browser.find_elements("css selector", "#touch.stale")
    assert "Its answer to I have seen the cat" in texts_of(browser, ".touch-answer")[0]

    type_text(browser, "I have seen the Katze")
    assert fault(browser).startswith("“Katze” is German.")
    type_text(browser, "she has seen the cat")
    assert not fault(browser)
    assert not browser.find_elements("css selector", "#touch.stale")

    choose(browser, "numbers-en-de")
    type_text(browser, "42")
    assert fault(browser) == "Write 42 as “forty-two”."
    below_a_million = (
        "This model reads whole numbers from zero to below a million, in words."
    )
    for number in ("1,234,567", "3.14", "-5"):
        type_text(browser, number)
        assert fault(browser) == below_a_million
    type_text(browser, "12 12 1,000")
    assert fault(browser) == "Write 12 as “twelve” and 1,000 as “one thousand”."

    choose(browser, "copier")
    type_text(browser, "7")
    assert "yours has 1" in texts_of(browser, ".touch-remark")[0]
    type_text(browser, "42")
    assert fault(browser).startswith("“42” isn't a number")
    assert fault(browser).endswith("It knows 3, 4, 5, 6, 7, 8, 9, 10, 11 and 12.")
    assert texts_of(browser, ".touch-remark") == [""]


def test_a_text_of_another_kind_is_answered_with_a_warning(browser, page):
    open_page(browser, page)
    for text in ("the cat has seen the dog", "he have seen the dog", "the the the"):
        type_text(browser, text)
        assert (
            "isn't a sentence of the form it learned"
            in texts_of(browser, ".touch-remark")[0]
        )
    type_text(browser, "he has not seen the dog")
    assert texts_of(browser, ".touch-remark") == [""]

    choose(browser, "numbers-en-de")
    assert texts_of(browser, ".touch-remark") == [""]
    type_text(browser, "abc")
    assert "this isn't one" in texts_of(browser, ".touch-remark")[0]
    type_text(browser, "twenty one")
    assert "to read this as “twenty-one”" in texts_of(browser, ".touch-remark")[0]


def test_a_text_that_was_not_sent_yet_is_not_the_one_answered(browser, page):
    open_page(browser, page)
    field = browser.find_element("id", "touch-text")
    field.send_keys(" today")
    assert "Its answer to I have seen the cat" in texts_of(browser, ".touch-answer")[0]
    field.send_keys("\n")
    assert "Its answer: " in texts_of(browser, ".touch-answer")[0]


def test_the_english_words_are_those_of_the_sentences(browser, page):
    open_page(browser, page)
    training, held_out = sentence_pairs()
    expected = {word for english, _ in training + held_out for word in english.split()}

    [english] = [
        text for text in texts_of(browser, ".touch-about p") if text.startswith("English: ")
    ]
    listed = english.removeprefix("English: ").replace(";", ",").split(", ")
    assert sorted(listed) == sorted(expected)


def test_pointing_at_a_word_shows_its_numbers(browser, page):
    from selenium.webdriver.common.action_chains import ActionChains

    open_page(browser, page)
    before = texts_of(browser, ".touch-caption")
    query = control(browser, "query 0")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", query)
    ActionChains(browser).move_to_element(query).perform()
    assert "To choose ich," in texts_of(browser, ".touch-caption")[0]
    ActionChains(browser).move_to_element(control(browser, "next")).perform()
    assert texts_of(browser, ".touch-caption") == before


def test_a_word_is_looked_at_by_all_only_if_it_is(browser, page):
    open_page(browser, page)
    for key in ("Attention of encoder self", "head 0 0", "key 2"):
        click(browser, key)
    [caption] = texts_of(browser, ".touch-caption")
    assert "seen is looked at by have (13\u00a0%), seen (11\u00a0%) and " in caption


def focused(browser) -> str | None:
    return browser.execute_script("return document.activeElement.dataset.key")


def test_the_focus_stays_where_a_button_goes_away(browser, page):
    open_page(browser, page)
    press(browser, control(browser, "next"), "keyboard")
    press(browser, control(browser, "rest"), "keyboard")
    assert focused(browser) == "next"

    press(browser, control(browser, "positions"), "keyboard")
    press(browser, control(browser, "try another"), "keyboard")
    assert focused(browser) == "positions"


def test_an_example_of_a_model_that_was_given_up_is_not_shown(browser, page):
    "Another model is chosen while that of the example is still loading."
    open_page(browser, page)
    wait_for(browser, "return document.querySelector('[data-key=\"beam example\"]')")
    text = browser.execute_async_script(
        """const done = arguments[0], press = key => document.querySelector(`[data-key="${key}"]`).click();
        press("beam example");
        press("Model cat");
        AnnotatedTransformer.load("copier").then(() => setTimeout(() => done(document.querySelector("#touch-text").value)))"""
    )
    assert text == "I have seen the cat"
    assert not fault(browser)


def test_a_model_that_cannot_be_read_may_be_tried_again(browser, page):
    open_page(browser, page)
    browser.execute_script(
        """document.head.append = script => {
          delete document.head.append;
          script.src = "missing.js";
          document.head.append(script);
        }"""
    )
    click(browser, "Model copier")
    wait_for(browser, "return document.querySelector('.touch-fault').textContent")
    assert fault(browser) == "The model “Copier” can't be loaded. Try again."
    assert answer(browser) == "ich habe die Katze gesehen"

    choose(browser, "copier")
    assert not fault(browser)


@pytest.mark.parametrize("missing", ["transformer", "touch/page"])
def test_the_picture_is_back_where_a_script_is_missing(browser, site, tmp_path, missing):
    html = (site / "touch.html").read_text(encoding="utf-8")
    html = html.replace("<head>", f'<head><base href="{site.as_uri()}/">', 1)
    html = html.replace(f"_static/{missing}.js", "_static/missing.js")
    copy_of_page = tmp_path / "touch.html"
    copy_of_page.write_text(html, encoding="utf-8")

    browser.get(copy_of_page.as_uri())
    wait_for(browser, "return document.querySelector('.touch-still').offsetHeight > 0")
    assert not browser.execute_script(
        "return document.querySelector('#touch').offsetHeight"
    )


def test_the_text_follows_the_model(browser, page):
    "Where it says what to try, it leads back to the model that it's for."
    open_page(browser, page)
    assert not browser.find_elements("css selector", "#touch-start button")
    choose(browser, "copier")
    assert texts_of(browser, "#touch-now") == ["A small Transformer copies 7 3 9 9 4 12."]

    click(browser, "begin with cat")
    wait_for(browser, "return !document.querySelector('#touch-start button')")
    assert answer(browser) == "ich habe die Katze gesehen"


def test_the_copier_shows_what_layer_norm_is_for(browser, page):
    "It is as sure of what is wrong as the page says."
    open_page(browser, page)
    click(browser, "try layer_norm")
    wait_for(browser, "return !document.querySelector('[data-key=\"try layer_norm\"]')")
    assert "The answer changes" in texts_of(browser, ".touch-verdict")[0]
    changed = ".touch-pane.{} .touch-tokens .changed small"
    assert texts_of(browser, changed.format("whole"))[0] == "91\u00a0%"
    assert texts_of(browser, changed.format("broken"))[0] == "100\u00a0%"


def test_one_voice_speaks(browser, page):
    "Of the answer and of what a switch did to it; beside it there is only the alert."
    open_page(browser, page)
    assert len(browser.find_elements("css selector", ".touch [aria-live]")) == 1
    click(browser, "positions")
    [said] = texts_of(browser, "p.touch-said")
    assert said.startswith("Its answer: ich habe die Katze gesehen. The same answer")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(browser, page, axe, theme):  # noqa: F811
    "Also with a fault, and with something taken away."
    open_page(browser, page)
    for part in ("positions", "head"):
        click(browser, part)
    click(browser, "next")
    field = browser.find_element("id", "touch-text")
    field.send_keys(" unicorn\n")
    switch_theme(browser, theme)

    found = complaints(browser, axe, theme)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["cat", "numbers-en-zh"])
def test_it_fits_a_phone(browser, page, name):
    with phone(browser):
        open_page(browser, page)
        bottom = (
            "return document.querySelector('.touch-answer').getBoundingClientRect().bottom"
        )
        assert browser.execute_script(bottom) < 840, "the answer isn't on the first screen"
        choose(browser, name)
        chips = browser.find_elements("css selector", ".touch-chips button")
        longest = max(chips, key=lambda chip: len(chip.text))
        press(browser, longest)
        browser.execute_async_script(
            "setTimeout(arguments[0], 500)"
        )  # the beam comes later
        assert not too_wide_for_a_phone(browser)
        for part in ("positions", "padding_mask"):
            click(browser, part)

        # what stays in sight while one scrolls takes little of it
        height = browser.execute_script(
            "return document.querySelector('.touch-pane.broken').getBoundingClientRect().height / innerHeight"
        )
        assert height < 0.25
        assert not too_wide_for_a_phone(browser)
        cut = browser.execute_script(
            """return [...document.querySelectorAll('.touch :is(button, p, input, select)')].filter(e => !e.closest('.touch-scroll, .touch-chips, .touch-said')
              && !e.matches('.touch-said') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100))"""
        )
        assert not cut


def test_without_a_script_there_is_a_picture(site):
    "And a sentence that says where the model runs. Nothing hides them but a script."
    html = (site / "touch.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(html, "html.parser")
    still = soup.select_one(".touch-still")

    assert still.select_one("svg.diagram, img")
    assert still.select_one("a[href$='touch.html']")
    assert "touch-runs" not in soup.html.get("class", [])
