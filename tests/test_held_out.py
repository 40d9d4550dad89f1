"""Held-out data beyond what chapter 9.7 shows: any order, either direction, giants, and what is refused."""

import random
import re

import pytest

from annotated_transformer.text.held_out import split_pairs

CATS = [
    pair
    for n in range(2, 502)
    for pair in ((f"n{n} cats", f"{n} Katzen"), (f"{n} cats", f"{n} Katzen"))
]
SHARES = dict(validation=0.02, test=0.1)
DIVIDED = split_pairs(CATS, **SHARES)


def test_whatever_the_order_and_the_direction():
    assert split_pairs(CATS[::-1], **SHARES) == DIVIDED
    assert split_pairs(iter(random.Random(0).sample(CATS, len(CATS))), **SHARES) == DIVIDED
    assert split_pairs(CATS, **SHARES, seed=1).test != DIVIDED.test
    other_way = [(german, english) for english, german in CATS]
    swapped = split_pairs(other_way, **SHARES, source="de", target="en")
    assert swapped == DIVIDED.reversed()


def test_a_giant_goes_to_training():
    giant = [("yes", str(i)) for i in range(50)]
    giant += [(f"no {i}", f"nein {i}") for i in range(50)]
    divided = split_pairs(giant, validation=0.1, test=0.1)
    assert {english[:2] for english, _ in divided.test} == {"no"}
    assert split_pairs(giant, validation=0, test=0.1).validation == []


@pytest.mark.parametrize(
    "pairs, options, wrong",
    [
        (CATS, dict(test=1), "test"),
        (CATS, dict(validation=-0.1), "validation"),
        (CATS, dict(test=0.6, validation=0.6), "less than 1"),
        (CATS, dict(seed=0.5), "seed"),
        ([], {}, "enough small groups to have some for train"),
        ([("a", "b")], {}, "enough small groups to have some for"),
        (
            [(f"a cat {i}", "Eine Katze.") for i in range(300)] + [("dog", "Hund")],
            {},
            "301 in 2 groups that share texts, the largest of 300",
        ),
    ],
)
def test_what_is_refused(pairs, options, wrong):
    with pytest.raises(ValueError, match=re.escape(wrong)):
        split_pairs(pairs, **options)
