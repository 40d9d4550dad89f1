"""Windows and sentences of a text beyond what the page shows: other special tokens, and what is refused."""

import re

import pytest

from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.text.python_reference import (
    choose_topics,
    random_windows,
    read_corpus,
    sentences_of,
    shuffled_batches,
    sliding_windows,
    tokenize,
)


def test_token_0_may_be_a_word_like_any_other():
    other = SpecialTokens(pad_id=136, bos_id=135, eos_id=135)
    [batch] = sliding_windows([[0, 0, 7, 0, 135]], 5, special=other)
    assert batch.n_tokens == 5
    assert batch.inputs[0].tolist() == [[135, 0, 0, 7, 0]]
    batch = next(random_windows([[0, 0, 7, 135]], 4, 3, special=other))
    assert (batch.n_tokens, batch.special) == (12, other)


def test_sentences():
    words = ["a", '"', "for", '"', "-", "loop", ",", "isn", "’", "t", "it", "?"]
    assert tokenize('A "for"-loop, isn’t it?') == words
    text = (
        'Loops\n*****\n\nThe "for" loop takes items\none by one. It ends!\n\n'
        "   >>> A is not a sentence.\n\nx ::= Not one either.\n"
        "And this one stops before its"
    )
    assert sentences_of(text) == ['the " for " loop takes items one by one .']


@pytest.mark.parametrize(
    "call, wrong",
    [
        (
            lambda: next(random_windows([[3, 2], [6, 2]], 5, 1)),
            "documents: got 5, expected",
        ),
        (
            lambda: sliding_windows([[3, 2]], 4, special=SpecialTokens(pad_id=None)),
            "special: got SpecialTokens(pad_id=None",
        ),
        (lambda: choose_topics({"a": ["x"]}, 2), "n_topics: got 2, expected at most 1"),
        (lambda: read_corpus(n_heldout=9000), "n_heldout + n_labelled: got 9200"),
        (lambda: next(shuffled_batches([], 2)), "items: got 0"),
    ],
)
def test_what_is_refused(call, wrong):
    with pytest.raises(ValueError, match=re.escape(wrong)):
        call()
