"""The sentences of chapter 4.4, beyond what it shows."""

import pytest

from annotated_transformer.base.model_files import save_model
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.text.sentence_pairs import RUNNING_PAIR, sentence_pairs
from annotated_transformer.text.tokenizer import WordTokenizer


@pytest.mark.parametrize("share", [0, 0.5, 0.9])
def test_the_running_pair_is_always_held_out(share):
    train, test = sentence_pairs(share, seed=3)
    assert test[0] == RUNNING_PAIR and RUNNING_PAIR not in train
    assert len({*train, *test}) == len(train) + len(test) == 4800
    assert len(test) == max(1, 4800 * share)


def test_a_share_is_a_probability():
    with pytest.raises(ValueError, match="held_out"):
        sentence_pairs(held_out=2)


def test_model_and_vocabulary_are_saved_together(tmp_path):
    train, _ = sentence_pairs()
    vocabulary = WordTokenizer.of(train)
    config = TransformerConfig.preset("tiny", vocab_size=len(vocabulary))
    save_model(Transformer(config), tmp_path / "model", vocabulary)
    assert WordTokenizer.load(tmp_path / "model") == vocabulary
    ids = [1, vocabulary.ids["cat"], 2, 0]
    assert vocabulary.words(ids) == ["BOS", "cat", "EOS", "PAD"]
    with pytest.raises(ValueError, match="elephant"):
        vocabulary.encode("I have seen the elephant")
