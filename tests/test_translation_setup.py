"""The setup of a translator: options that are refused, what is minimised, and a run's own corpus."""

from dataclasses import replace

import pytest

pytest.importorskip("tokenizers", reason="translation needs its extra")
from annotated_transformer.tasks.translation_setup import (
    TranslationConfig,
    column_numbers,
    keep_corpus,
)
from annotated_transformer.text.bpe import BPETokenizer
from annotated_transformer.text.parallel_text import ParallelText
from annotated_transformer.training.chunked_loss import chunked_sequence_loss, r_drop_loss
from annotated_transformer.training.loss import sequence_loss


@pytest.mark.parametrize(
    "wrong",
    [
        dict(epochs=0),
        dict(patience=-1),
        dict(beam_size=0),
        dict(dropout=1.0),
        dict(model="tyni"),
        dict(lowercase="yes"),
        dict(nfkc="yes"),
        dict(whitespace_as_suffix=1),
        dict(length_penalty=-1.0),
        dict(max_tokens=0),
        dict(schedule="sudden"),
        dict(bpe_dropout=1.0),
        dict(norm="late"),
        dict(r_drop=5.0),
        dict(r_drop=-1.0, dropout=0.1),
        dict(test="a.en,a.de"),
        dict(validation="a.en,a.de"),
        dict(test="a.tsv", validation="b.tsv"),
        dict(ema_decay=1.0),
        dict(compile="yes"),
        dict(columns="2"),
        dict(columns="0,1"),
        dict(columns="a,b"),
    ],
    ids=str,
)
def test_what_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TranslationConfig(**wrong)


def test_columns_are_counted_from_1():
    assert column_numbers("2, 3") == (1, 2) and column_numbers(None) is None


@pytest.mark.parametrize(
    "chunked, loss", [(False, sequence_loss), (True, chunked_sequence_loss)]
)
def test_what_is_minimised(chunked, loss):
    config = TranslationConfig(chunked_loss=chunked, label_smoothing=0.2)
    assert config.heldout_loss_fn() == loss
    assert config.loss_fn().func == loss
    assert config.loss_fn().keywords == dict(label_smoothing=0.2)

    twice = TranslationConfig(chunked_loss=chunked, r_drop=5.0, dropout=0.1).loss_fn()
    assert twice.func == r_drop_loss
    assert twice.keywords == dict(label_smoothing=0.0, weight=5.0)


def test_a_run_keeps_its_corpus(tmp_path):
    pairs = [("the cat", "die Katze"), ("the dog", "der Hund")]
    text = ParallelText(pairs, pairs[:1], pairs[1:], "en", "de", {})
    other = replace(text, test=[])
    tokenizer = BPETokenizer.learn(["the cat"], 262)

    keep_corpus(text, tokenizer, tmp_path)
    keep_corpus(text, tokenizer, tmp_path)  # the same one
    assert BPETokenizer.load(tmp_path) == tokenizer
    with pytest.raises(ValueError, match="corpus: got 'other pairs'"):
        keep_corpus(other, tokenizer, tmp_path)

    (tmp_path / "corpus.txt").write_text("")  # the disk was full
    keep_corpus(text, tokenizer, tmp_path)
    with pytest.raises(ValueError, match="corpus: got 'other pairs'"):
        keep_corpus(other, tokenizer, tmp_path)
