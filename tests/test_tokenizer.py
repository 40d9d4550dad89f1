"""All kinds of tokenizers by their common interface, and byte pairs beyond what chapter 5.1 shows: any text, any ids, damaged files, other processes."""

import json
import os
import pickle
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip(
    "tokenizers", reason="byte pairs are learned with tokenizers: pip install tokenizers"
)
from annotated_transformer import Transformer, TransformerConfig, save_model
from annotated_transformer.base.config import import_extra
from annotated_transformer.text.bpe import TOKENIZER_FILE, BPETokenizer
from annotated_transformer.text.tokenizer import (
    BertWordTokenizer,
    CharTokenizer,
    Tokenizer,
    WordTokenizer,
    checked_ids,
    checked_texts,
)
from annotated_transformer.base.atomic_folders import write_folder
from project import ROOT

TEXTS = [
    "die Katze und die Haustür",
    "the cat and the front door, not the <pad>",
    "Straße, Maß und Gruß 2 000 000",
    "ein Hund\nzwei Hunde",
] * 3
TOKENIZER = BPETokenizer.learn(TEXTS, 300)
SUFFIX = BPETokenizer.learn(TEXTS, 300, whitespace_as_suffix=True)
PICKLED = pickle.loads(pickle.dumps(TOKENIZER))


KNOWN = "the cat and the front door"
UNKNOWN = {  # what each kind makes of a word that it does not know
    WordTokenizer: None,  # an error
    BertWordTokenizer: "the [UNK]",
    CharTokenizer: "the \ufffde\ufffdra",
    BPETokenizer: "the zebra",
}
KINDS = {
    "words": WordTokenizer.of([(KNOWN, "die Katze")]),
    "words for BERT": BertWordTokenizer(sorted(set(KNOWN.split()))),
    "characters": CharTokenizer.of([KNOWN]),
    "byte pairs": TOKENIZER,
    "byte pairs, blank after": SUFFIX,
}


def hugging_face_tokenizer(folder):
    transformers = pytest.importorskip("transformers")
    from annotated_transformer.interop.hf_tokenizer import HuggingFaceTokenizer

    path = str(TOKENIZER.save(folder))
    names = dict(pad_token="<pad>", bos_token="<bos>", eos_token="<eos>")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=path, **names)
    return HuggingFaceTokenizer(theirs)


@pytest.fixture(params=[*KINDS, "Hugging Face"])
def kind(request, tmp_path):
    if request.param == "Hugging Face":
        return hugging_face_tokenizer(tmp_path / "theirs")
    return KINDS[request.param]


def test_every_kind_has_the_interface(kind, tmp_path):
    assert isinstance(kind, Tokenizer)
    ids = kind.encode(KNOWN)
    assert all(0 <= i < len(kind) for i in ids) and kind.decode(ids) == KNOWN
    assert kind.encode_all([KNOWN, "cat"]) == [ids, kind.encode("cat")]
    assert kind.encode_pairs([(KNOWN, "cat")]) == [(ids, kind.encode("cat"))]
    assert kind.encode_all([]) == [] and kind.encode_pairs([]) == []

    special = [kind.special.pad_id, kind.special.bos_id, kind.special.eos_id]
    assert all(0 <= i < len(kind) for i in special) and not {*special} & {*ids}
    assert kind.decode([*special, *ids, *special]) == KNOWN  # they are not shown
    labels = kind.words([*special, *ids])
    assert len(labels) == len(special + ids) and all(
        label.isprintable() for label in labels
    )
    for wrong in (-1, len(kind)):
        with pytest.raises(ValueError, match=f"got {wrong}"):
            kind.words([wrong])

    with write_folder(tmp_path / "model") as folder:
        kind.save(folder)
    again = type(kind).load(tmp_path / "model")
    assert len(again) == len(kind) and again.encode(KNOWN) == ids
    assert again.special == kind.special


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_says_what_it_does_with_an_unknown_word(name):
    kind = KINDS[name]
    expected = UNKNOWN[type(kind)]
    if expected is None:
        with pytest.raises(ValueError, match="zebra"):
            kind.encode("the zebra")
    else:
        assert kind.decode(kind.encode("the zebra")) == expected


@pytest.mark.parametrize(
    "content, why",
    [
        (
            '{"tokenizer": "WordTokenizer", "tokens": []}',
            "got 'WordTokenizer', expected one",
        ),
        ('{"tokenizer": "CharTokenizer", "tokens": ["a"', "holds no CharTokenizer"),
        ('{"tokenizer": "CharTokenizer", "tokens": ["a", "b", "a"]}', "tokens: got 'a'"),
        ('{"tokenizer": "CharTokenizer", "tokens": [1]}', "expected texts"),
        ("[]", "holds no CharTokenizer"),
    ],
)
def test_a_vocabulary_of_another_kind_or_damaged_is_refused(content, why, tmp_path):
    with write_folder(tmp_path / "model") as folder:
        (folder / "vocab.json").write_text(content)
    with pytest.raises(ValueError, match=why):
        CharTokenizer.load(tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        CharTokenizer.load(tmp_path / "nowhere")


def test_texts_and_ids_are_checked():
    assert [*checked_texts(["a", "b"])] == ["a", "b"]
    assert checked_ids((1, 2), vocab_size=3) == [1, 2]
    for texts, why in (
        ("abc", "a list of texts"),
        ([None], "text 0: got None"),
        (["\udc80"], "lone"),
    ):
        with pytest.raises(ValueError, match=why):
            [*checked_texts(texts)]
    for ids, why in (
        ([3], "ids from 0 to 2"),
        ([-1], "ids: got -1"),
        (["a"], "a list of ids"),
    ):
        with pytest.raises(ValueError, match=why):
            checked_ids(ids, vocab_size=3)


def test_the_package_tokenizers_is_still_hugging_faces():
    found = import_extra("tokenizers", "byte pairs are learned with", "translation")
    assert found.__name__ == "tokenizers" and hasattr(found, "pre_tokenizers")
    assert "annotated_transformer" not in found.__file__


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    TOKENIZER.save(folder)
    return BPETokenizer.load(folder)


@settings(max_examples=300, deadline=None)
@given(
    st.text()
    | st.text("a1猫犬々かーがﾊﾞ\u3099ที่นขម្မ고。，（ \ufe0f")
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
@given(
    st.text()
    | st.text("ab,. -\n\u0301\u2060")
    | st.text("a1猫犬々かーがﾊﾞ\u3099ที่นขម្မ고。，（ \ufe0f\u2060")
)
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


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("saved", [TOKENIZER, SUFFIX], ids=["before", "after"])
def test_damaged_files_are_refused_or_harmless(tmp_path, seed, saved):
    saved.save(tmp_path)
    path = tmp_path / TOKENIZER_FILE
    text = path.read_text(encoding="utf-8")
    rng = random.Random(seed)
    damaged = (
        text[: rng.randrange(len(text))]
        if seed % 5 == 0
        else json.dumps(changed(json.loads(text), rng))
    )
    path.write_text(damaged, encoding="utf-8")
    try:
        tokenizer = BPETokenizer.load(tmp_path)
    except ValueError as error:
        assert TOKENIZER_FILE in str(error)
    else:
        assert tokenizer.decode(tokenizer.encode("die Katze <pad>")) == "die Katze <pad>"


def test_every_process_learns_the_same(tmp_path):
    code = f"from annotated_transformer.text.bpe import BPETokenizer; BPETokenizer.learn({TEXTS!r}, 300).save({str(tmp_path)!r})"
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
    assert BPETokenizer.load(folder) == TOKENIZER
    path = folder / TOKENIZER_FILE
    path.write_text(
        path.read_text(encoding="utf-8").replace("Katze", "Katzen", 1) + " ",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="damaged"):
        BPETokenizer.load(folder)


def test_many_texts_are_encoded_in_blocks_and_share_their_numbers():
    many = [
        f"{text} {i}" for i in range(1100) for text in TEXTS[:4]
    ]  # more than are encoded at once
    found = TOKENIZER.encode_all(iter(many))
    assert found == [TOKENIZER.encode(text) for text in many]
    assert len({id(i) for ids in found for i in ids}) <= len(TOKENIZER)


# ---- Tokenizers of Hugging Face ----


@pytest.fixture
def theirs(tmp_path):
    found = hugging_face_tokenizer(tmp_path / "tokenizer")
    found.theirs.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}<eos>{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    return found


def test_a_prompt_keeps_what_is_in_front_and_loses_what_would_end_it(theirs):
    from tokenizers.processors import TemplateProcessing

    bos, eos = theirs.theirs.bos_token_id, theirs.theirs.eos_token_id
    theirs.theirs.backend_tokenizer.post_processor = TemplateProcessing(
        single="<bos> $A <eos>", special_tokens=[("<bos>", bos), ("<eos>", eos)]
    )
    assert theirs.encode_prompt("cat") == [bos, *theirs.encode("cat")]
    assert eos not in theirs.encode("one <eos> two")  # nor are they read from a text


def test_chats_are_written_by_the_template_or_refused(theirs):
    chat = theirs.encode_chat([{"role": "user", "content": "cat"}])
    assert theirs.theirs.decode(chat) == "user: cat<eos>assistant:"
    for wrong in (["text"], [{"role": "user"}], [{"role": "user", "content": 3}]):
        with pytest.raises(ValueError):
            theirs.encode_chat(wrong)
    theirs.theirs.chat_template = None
    with pytest.raises(ValueError, match="no chat template"):
        theirs.encode_chat([{"role": "user", "content": "Hi"}])


def test_a_folder_with_code_or_without_a_tokenizer_is_refused(theirs, tmp_path):
    with pytest.raises(
        ValueError, match="theirs: got 'BPETokenizer', expected a tokenizer"
    ):
        type(theirs)(TOKENIZER)
    for wrong in ([("one",)], ["ab"], [("a", "b", "c")]):
        with pytest.raises(ValueError, match="pairs: got"):
            theirs.encode_pairs(wrong)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no readable tokenizer"):
        type(theirs).load(tmp_path / "empty")
    folder = theirs.save(tmp_path / "harm")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config |= dict(tokenizer_class="Harm", auto_map={"AutoTokenizer": ["harm.Harm", None]})
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "harm.py").write_text("raise SystemExit('it was run')")
    with pytest.raises(ValueError, match="holds no readable tokenizer"):
        type(theirs).load(folder)


def test_a_translator_needs_a_tokenizer_that_fits(theirs, tmp_path):
    from annotated_transformer.interop.hf_tokenizer import load_translator

    transformers = pytest.importorskip("transformers")
    sizes = dict(encoder_layers=1, decoder_layers=1, d_model=32, scale_embedding=True)
    config = transformers.MarianConfig(
        vocab_size=40, pad_token_id=39, decoder_start_token_id=39, **sizes
    )
    small = tmp_path / "small"
    transformers.MarianMTModel(config).save_pretrained(small)
    theirs.save(small)
    with pytest.raises(ValueError, match="tokens', expected at most 41"):
        load_translator(small, "cpu")

    gpt = transformers.GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=400)
    transformers.GPT2LMHeadModel(gpt).save_pretrained(small)
    with pytest.raises(ValueError, match="model: got 'GPT', expected an encoder-decoder"):
        load_translator(small, "cpu")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_translator(tmp_path / "nowhere", "cpu")

    model = Transformer(TransformerConfig.preset("tiny", vocab_size=len(theirs)))
    ours = save_model(model, tmp_path / "ours", theirs)
    assert len(load_translator(ours, "cpu").tokenizer) == len(theirs)
    path = ours / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(ValueError, match="is damaged"):
        load_translator(ours, "cpu")
