"""The tokenizer of chapter 40 beyond what the chapter shows: any text, any ids, damaged files, other processes."""

import json
import os
import pickle
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip(
    "tokenizers", reason="byte pairs are learnt with tokenizers: pip install tokenizers"
)
from annotated_transformer import Transformer, TransformerConfig, save_model
from annotated_transformer.tokenizers.bpe import TOKENIZER_FILE, Tokenizer
from project import ROOT

TEXTS = [
    "die Katze und die Haustür",
    "the cat and the front door, not the <pad>",
    "Straße, Maß und Gruß 2 000 000",
    "ein Hund\nzwei Hunde",
] * 3
TOKENIZER = Tokenizer.learn(TEXTS, 300)
SUFFIX = Tokenizer.learn(TEXTS, 300, whitespace_as_suffix=True)
PICKLED = pickle.loads(pickle.dumps(TOKENIZER))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    TOKENIZER.save(folder)
    return Tokenizer.load(folder)


@settings(max_examples=300, deadline=None)
@given(
    st.text()
    | st.sampled_from(
        ["<pad>", "<bos>a", " <eos>\t", "<unk>", "\u0000", "a\u0301", "👩‍👩‍👧"]
    )
)
def test_any_text_comes_back(loaded, text):
    for tokenizer in (TOKENIZER, loaded, PICKLED):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert all(3 < id < len(tokenizer) for id in ids)
    assert TOKENIZER.encode_all([text, text]) == [ids, ids]


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text("ab,. -\n\u0301\u2060"))
def test_words_that_end_with_a_blank_lose_nothing_but_joiners(text):
    for tokenizer in (SUFFIX, pickle.loads(pickle.dumps(SUFFIX))):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text.replace("\u2060", "")
        assert all(3 < id < len(tokenizer) for id in ids)
    assert SUFFIX.encode_all([text]) == [ids]


def test_a_word_is_the_same_token_wherever_it_stands():
    for text in ("die Katze", "die Katze.", "Katze", "(Katze)", "Katze \n"):
        assert "KatzeĠ" in SUFFIX.pre_tokenize(text), text


@settings(deadline=None)
@given(st.lists(st.integers(0, 299)))
def test_any_ids_are_some_text(ids):
    for tokenizer in (TOKENIZER, SUFFIX):
        known = [id for id in ids if id < len(tokenizer)]
        tokenizer.decode(known).encode("utf-8")
        labels = tokenizer.words(known)
        assert len(labels) == len(known) and all(
            label.isprintable() and label for label in labels
        )


def changed(content, rng):
    "The content with one of its values replaced by another kind of value, or left out."
    node = content
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = rng.choice(keys)
        if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        if rng.random() < 0.3:
            del node[key]
        else:
            node[key] = rng.choice([None, -1, "", [], {}, "Ġx", True, 10**12, ["a", "b"]])
        return content


@pytest.mark.parametrize("saved", [TOKENIZER, SUFFIX], ids=["before", "after"])
def test_damaged_files_are_refused_or_harmless(tmp_path, saved):
    "One hundred of them: every fifth ends too early, in the others a value is wrong or missing."
    saved.save(tmp_path)
    path = tmp_path / TOKENIZER_FILE
    text = path.read_text(encoding="utf-8")

    for seed in range(100):
        rng = random.Random(seed)
        if seed % 5 == 0:
            damaged = text[: rng.randrange(len(text))]
        else:
            damaged = json.dumps(changed(json.loads(text), rng))
        path.write_text(damaged, encoding="utf-8")

        try:
            tokenizer = Tokenizer.load(tmp_path)
        except ValueError as error:
            assert TOKENIZER_FILE in str(error), seed
        else:
            ids = tokenizer.encode("die Katze <pad>")
            assert tokenizer.decode(ids) == "die Katze <pad>", seed


def test_every_process_learns_the_same(tmp_path):
    code = f"from annotated_transformer.tokenizers.bpe import Tokenizer; Tokenizer.learn({TEXTS!r}, 300).save({str(tmp_path)!r})"
    written = []
    for seed, threads in ((0, 1), (1, 4)):
        env = {
            **os.environ,
            "PYTHONHASHSEED": str(seed),
            "RAYON_NUM_THREADS": str(threads),
            "PYTHONPATH": str(ROOT),
        }
        subprocess.run([sys.executable, "-c", code], check=True, env=env)
        written.append((tmp_path / TOKENIZER_FILE).read_bytes())
    assert written[0] == written[1]


def test_it_lies_beside_a_model_and_is_in_its_manifest(tmp_path):
    model = Transformer(TransformerConfig.preset("tiny", vocab_size=len(TOKENIZER)))
    folder = save_model(model, tmp_path / "model", TOKENIZER)
    assert Tokenizer.load(folder) == TOKENIZER
    path = folder / TOKENIZER_FILE
    path.write_text(
        path.read_text(encoding="utf-8").replace("Katze", "Katzen", 1) + " ",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="damaged"):
        Tokenizer.load(folder)


def test_many_texts_are_encoded_in_blocks_and_share_their_numbers():
    many = [
        f"{text} {i}" for i in range(1100) for text in TEXTS[:4]
    ]  # more than are encoded at once
    found = TOKENIZER.encode_all(iter(many))
    assert found == [TOKENIZER.encode(text) for text in many]
    assert len({id(i) for ids in found for i in ids}) <= len(TOKENIZER)
