"""Numbers in words beyond what the page shows: Chinese read back by other rules, which numbers are drawn, and what is refused."""

import random
import re
import sys
from unittest import mock

import pytest

pytest.importorskip("num2words", reason="numbers are written with num2words")
from annotated_transformer.text.number_words import (
    CHINESE_DIGITS,
    draw_numbers,
    number_pairs,
    spell_chinese,
    spell_number,
)

FEW = dict(n_train=300, n_validation=20, n_test=30)


def read_chinese(text):
    "The number of a spelling, by other rules than it was written."
    total = group = digit = 0
    for character in text.replace("两", "二"):
        if character in "亿万":
            total += (group + digit) * {"亿": 10**8, "万": 10**4}[character]
            group = digit = 0
        elif character in "千百十":
            group += (digit or 1) * {"千": 1000, "百": 100, "十": 10}[character]
            digit = 0
        else:
            digit = CHINESE_DIGITS.index(character)
    return total + group + digit


def test_chinese_is_read_back():
    rng = random.Random(0)
    some = [*range(20_000), *(rng.randrange(10**9) for _ in range(5_000))]
    some += [
        a * 10**i + b for a in (1, 2, 10, 12) for i in range(8) for b in (0, 1, 2, 10, 2000)
    ]
    for number in some:
        text = spell_chinese(number)
        assert read_chinese(text) == number
        assert not re.search("零零|零[亿万千百十]|零$", text) or number == 0, text
        assert not re.search("^一十|二千|两[百十零]|两$|^二[万亿]", text), text


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "零"),
        (12, "十二"),
        (102, "一百零二"),
        (112, "一百一十二"),
        (1001, "一千零一"),
        (2222, "两千二百二十二"),
        (10_010, "一万零一十"),
        (22_000, "两万两千"),
        (101_000, "十万一千"),
        (202_020, "二十万两千零二十"),
        (1_020_304, "一百零二万零三百零四"),
        (100_010_000, "一亿零一万"),
        (220_000_000, "两亿两千万"),
        (999_999_999, "九亿九千九百九十九万九千九百九十九"),
    ],
)
def test_known_spellings(number, text):
    assert spell_chinese(number) == text


def test_names_of_chinese_and_what_is_refused():
    for code in ("zh", "zh-CN", "zh_Hans", "ZH", "cmn"):
        assert spell_number(21, code) == "二十一"
    for wrong in (-1, 10**9, 1.5, "1", True):
        with pytest.raises(ValueError, match="number: got"):
            spell_number(wrong, "zh")
    for code, wrong in (("zh-TW", "language: got 'zh-TW'"), ("dee", "did you mean 'de'")):
        with pytest.raises(ValueError, match=wrong):
            spell_number(1, code)
    with pytest.raises(ValueError, match="number: got"):
        spell_number("one", "de")
    with mock.patch.dict(sys.modules, num2words=None):
        assert spell_number(1, "zh") == "一"
        with pytest.raises(ImportError, match=re.escape(".[translation]")):
            spell_number(1, "de")


@pytest.mark.parametrize(
    "sizes, limit", [([700, 100, 200], 1000), ([10, 5, 5], 20), ([50, 5, 5], 10**6)]
)
def test_numbers_are_all_different(sizes, limit):
    parts = draw_numbers(sizes, limit=limit, seed=0)
    assert [len(part) for part in parts] == sizes
    assert len(set().union(*parts)) == sum(sizes)
    assert max(max(part) for part in parts) < limit


def test_small_numbers_are_in_training_or_held_out():
    train, *held_out = draw_numbers([20_000, 500, 2_000], limit=10**6, seed=0)
    assert set(range(1000)) <= {*train, *sum(held_out, [])}


def test_the_seed_decides_and_the_direction_does_not():
    assert number_pairs(**FEW) == number_pairs(**FEW)
    assert number_pairs(**FEW).test != number_pairs(**FEW, seed=1).test
    swapped = number_pairs(**FEW, source="de", target="en")
    assert swapped == number_pairs(**FEW).reversed()


@pytest.mark.parametrize(
    "options, wrong",
    [
        (dict(n_train=0), "n_train"),
        (dict(seed=-1), "seed"),
        (dict(limit=10**16), "limit"),
        (dict(limit=300), "limit: got 300, expected 350"),
        (dict(target="en"), "target"),
        (dict(source="xx"), "language"),
        (dict(target="zh", limit=10**12), "from 0 to 999,999,999"),
    ],
)
def test_what_is_refused(options, wrong):
    with pytest.raises(ValueError, match=wrong):
        number_pairs(**FEW | options)
