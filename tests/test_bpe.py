"""Byte pairs beyond what chapter 5.1 shows: any text, files of others, refusals, scripts without spaces, cuts at random."""

import json
import pickle
import random
import re
import sys
import tempfile
import tracemalloc
from collections import Counter
from itertools import product
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings, strategies as st

tokenizers = pytest.importorskip(
    "tokenizers", reason="byte pairs are learned with tokenizers: pip install tokenizers"
)
num2words = pytest.importorskip(
    "num2words", reason="numbers are written with num2words"
).num2words
from annotated_transformer.base.atomic_folders import write_folder
from annotated_transformer.text.bpe import (
    SMALLEST,
    BPETokenizer,
    SampledPairs,
    byte_letters,
    drop_merges,
    require_tokenizers,
)
from annotated_transformer.text.python_reference import (
    deduplicate,
    load_python_reference,
    split_text,
)
from annotated_transformer.text.sentence_pairs import RUNNING_PAIR, sentence_pairs

ByteLevel = tokenizers.pre_tokenizers.ByteLevel

# the texts of the chapter
numbers = random.Random(0).sample(range(1_000_000), 2000)
english = [num2words(n, lang="en") for n in numbers]
german = [num2words(n, lang="de").replace("einstausend", "eintausend") for n in numbers]
train_pairs, test_pairs = sentence_pairs()
prose = [
    [p for text in texts for p in text.strip().split("\n\n")]
    for texts in split_text(deduplicate(load_python_reference()))
]
corpora = {  # name -> texts for training, texts held out
    "English prose": prose,
    "English numbers": (english[:1800], english[1800:]),
    "German numbers": (german[:1800], german[1800:]),
    "German sentences": [
        [pair[1] for pair in pairs] for pairs in (train_pairs, test_pairs)
    ],
    "English sentences": [
        [pair[0] for pair in pairs] for pairs in (train_pairs, test_pairs)
    ],
}
training = [text for texts, _ in corpora.values() for text in texts]
tokenizer = BPETokenizer.learn(training, vocab_size=1000)
learn = BPETokenizer.learn


def cut_text(tokenizer, text):
    "The pieces of a text, in its own letters."
    letters = byte_letters()
    return [
        bytes(letters[letter] for letter in piece).decode("utf-8")
        for piece in tokenizer.pre_tokenize(text)
    ]


def refused(why, function, *args, **options):
    with pytest.raises(ValueError, match=re.escape(why)):
        function(*args, **options)


def refuses(change, why):
    "A tokenizer isn't loaded from a file after this change of its text."
    with tempfile.TemporaryDirectory() as folder:
        path = tokenizer.save(folder)
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
        for words in ("tokenizer.json holds", why):
            with pytest.raises(ValueError, match=re.escape(words)):
                BPETokenizer.load(folder)


def changed(**parts):
    "A change of some parts of the JSON."
    return lambda text: json.dumps({**json.loads(text), **parts})


def test_where_merges_may_not_join():
    assert tokenizer.pre_tokenize("It has 12 cats, not 3.") == [
        "It",
        "Ġhas",
        "Ġ12",
        "Ġcats",
        ",",
        "Ġnot",
        "Ġ3",
        ".",
    ]
    assert tokenizer.pre_tokenize("a  b\n") == ["a", "Ġ", "Ġb", "Ċ"]
    for text in ("  two  blanks ", "a <pad> b</s>", "e\u0301"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_letters_of_bytes_are_those_of_the_library():
    assert sorted(byte_letters().values()) == [*range(256)]
    assert set(byte_letters()) == set(ByteLevel.alphabet())  # the same as the library's
    ((written, _),) = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(
        "ü 🙂"
    )
    assert bytes(byte_letters()[letter] for letter in written).decode("utf-8") == "ü 🙂"


def test_labels_and_special_tokens():
    ids = [1, *tokenizer.encode(" Katze"), *tokenizer.encode("猫")[:2], 2, 0]
    assert tokenizer.words(ids) == ["BOS", "▁Katze", "\\xe7", "\\x8c", "EOS", "PAD"]
    assert tokenizer.decode(ids) == " Katze\ufffd"
    assert tokenizer.decode([]) == ""
    assert tokenizer.decode([0, 1, 2, 3]) == ""
    assert tokenizer.words(range(4)) == ["PAD", "BOS", "EOS", "UNK"]
    assert tokenizer.words(tokenizer.encode("\n")) == ["\\n"]
    assert tokenizer.words(tokenizer.encode("猫")) == ["\\xe7", "\\x8c", "\\xab"]
    special = tokenizer.special
    assert (special.pad_id, special.bos_id, special.eos_id) == (0, 1, 2)
    assert tokenizer.unk_id == 3
    assert tokenizer.encode_pairs([RUNNING_PAIR]) == [
        (tokenizer.encode(RUNNING_PAIR[0]), tokenizer.encode(RUNNING_PAIR[1]))
    ]
    assert BPETokenizer.learn(training, vocab_size=1000) == tokenizer  # deterministic


def test_two_languages_share_small_pieces():
    def used(tokenizer, language):  # the tokens of the training texts in one language
        texts = (
            text
            for name in (f"{language} numbers", f"{language} sentences")
            for text in corpora[name][0]
        )
        return {i for ids in tokenizer.encode_all(texts) for i in ids}

    of_size = {V: learn(training, vocab_size=V) for V in (350, 1000)}

    # small pieces serve both languages, whole words one of them
    shared = {
        V: len(used(of_size[V], "English") & used(of_size[V], "German"))
        for V in (350, 1000)
    }
    assert shared[350] > 20 > shared[1000]


def test_chinese_in_runs_and_by_characters():
    new = "她看见了鱼。"
    chinese = [
        f"{who}{did}了{what}。"
        for who, did, what in product(
            "我你他她", ("看见", "买"), ("鱼", "猫", "那只狗", "一本书")
        )
    ]
    chinese.remove(new)
    tokens_in = {}  # in runs, by characters
    for sentence in (new, "我看见了那只羊。"):  # whose sheep is in no training sentence
        for V in (280, 400):
            cuts = [
                BPETokenizer.learn(chinese, V, split_unspaced=split)
                for split in (False, True)
            ]
            tokens_in[sentence, V] = [cut.words(cut.encode(sentence)) for cut in cuts]
    in_runs_400, by_characters_400 = tokens_in[new, 400]
    assert "看见了鱼" in in_runs_400
    assert by_characters_400 == [*new]
    fragments = (
        tokens_in["我看见了那只羊。", 400][0] + tokens_in["我看见了那只羊。", 280][0]
    )
    assert {"那只\\xe7", "\\xa3\\xe5"} <= {*fragments}
    for _, by_characters_V in tokens_in.values():  # no token has parts of two characters
        for token in by_characters_V:
            assert len(re.sub(r"(\\x..)+", "?", token)) == 1


def test_saved_and_loaded():
    with tempfile.TemporaryDirectory() as folder:
        with write_folder(f"{folder}/model") as new_folder:
            tokenizer.save(new_folder)
        loaded = BPETokenizer.load(f"{folder}/model")
        path = tokenizer.save(f"{folder}/plain")
        assert loaded == tokenizer == BPETokenizer.load(path.parent)


def test_files_that_are_no_tokenizers():
    refuses(lambda text: text[: len(text) // 2], "line")
    refuses(lambda text: "", "Expecting value: line 1")
    refuses(lambda text: "[]", "TypeError")
    refuses(lambda text: '{"tokens": ["a"]}', "KeyError('model')")
    refuses(lambda text: "[" * 100_000, "holds no tokenizer")
    refuses(
        lambda text: text.replace("<eos>", "</s>"), "expected <pad>, <bos>, <eos>, <unk>"
    )
    refuses(changed(added_tokens=[]), "added tokens")
    cutting = "normalizer, pre_tokenizer, decoder: got"
    refuses(changed(pre_tokenizer=None), f"{cutting} [None, None, 'ByteLevel']")
    refuses(changed(decoder=None), cutting)
    refuses(changed(normalizer={"type": "NFC"}), f"{cutting} ['NFC', ")


def test_vocabularies_are_checked():
    bpe = json.loads(tokenizer.tokenizer.to_str())["model"]
    vocab = bpe["vocab"]

    def model(**options):
        return changed(model={**bpe, **options})

    refuses(model(type="WordPiece"), "model: got 'WordPiece', expected 'BPE'")
    refuses(model(ignore_merges=True), "ignore_merges: got True")
    refuses(model(dropout=0.1), "dropout: got 0.1")
    refuses(model(vocab={**vocab, "<pad>": 4}), "the ids 0, 1, 2 and 3")
    refuses(model(vocab={token: i for token, i in vocab.items() if token != "q"}), "'q'")
    refuses(model(vocab={**vocab, "new": 5000}), "each once")
    refuses(model(vocab={**vocab, "new": 1.5}), "each once")
    refuses(model(vocab={**vocab, "a b": len(vocab)}), "letters of bytes")
    refuses(model(merges=[*bpe["merges"], ["q", "q"]]), "merges: got ('q', 'q')")
    refuses(model(merges=[*bpe["merges"], 5]), "TypeError")


def test_older_files():
    bpe = json.loads(tokenizer.tokenizer.to_str())["model"]
    cut = json.loads(tokenizer.tokenizer.to_str())
    cut["truncation"] = dict(
        direction="Right", max_length=2, strategy="LongestFirst", stride=0
    )
    cut["model"]["merges"] = [
        " ".join(pair) for pair in bpe["merges"]
    ]  # as older files have it
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tokenizer.json").write_text(json.dumps(cut))
        assert BPETokenizer.load(folder) == tokenizer


def test_missing_and_damaged_files(tmp_path):
    for folder, why in (
        ("nowhere", "no such folder"),
        (tmp_path, "tokenizer.json is missing"),
    ):
        with pytest.raises(FileNotFoundError, match=re.escape(why)):
            BPETokenizer.load(folder)
    with tempfile.TemporaryDirectory() as folder:
        with write_folder(f"{folder}/model") as new:
            path = tokenizer.save(new)
        path = Path(folder) / "model" / path.name
        path.write_text(
            path.read_text(encoding="utf-8").replace("Ġ", "Ķ"), encoding="utf-8"
        )
        with pytest.raises(ValueError, match=re.escape("its CRC-32 is not")):
            BPETokenizer.load(path.parent)
        path.write_bytes(b"\xff" + path.read_bytes())
        with pytest.raises(ValueError, match=re.escape("tokenizer.json")):
            BPETokenizer.load(path.parent)
    for again in (BPETokenizer(tokenizer.tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert again == tokenizer
        assert again.decode(again.encode("<pad>")) == "<pad>"
    with patch.dict(sys.modules, tokenizers=None):
        with pytest.raises(ImportError, match=re.escape('pip install -e ".[translation]"')):
            BPETokenizer.learn(["a"])


def test_other_programs_give_the_same_ids():
    transformers = pytest.importorskip("transformers")
    with tempfile.TemporaryDirectory() as folder:
        theirs = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(tokenizer.save(folder))
        )
    text = "die Katze <pad>"
    for _, held_out in corpora.values():
        assert theirs(held_out).input_ids == tokenizer.encode_all(held_out)
        assert theirs.decode(tokenizer.encode(held_out[0])) == held_out[0]
    assert theirs(text).input_ids != tokenizer.encode(text)
    assert theirs(text, split_special_tokens=True).input_ids == tokenizer.encode(text)
    assert len(theirs) == len(tokenizer)


def test_characters_of_scripts_without_spaces():
    assert cut_text(tokenizer, "Tom和3只猫 ok") == ["Tom", "和", "3", "只", "猫", " ok"]
    assert cut_text(tokenizer, "スーパー") == ["ス", "ー", "パ", "ー"]
    assert cut_text(tokenizer, "か\u3099く") == ["か\u3099", "く"]  # two signs for one kana
    assert cut_text(tokenizer, "ﾊﾞ") == ["ﾊ", "ﾞ"]  # of half width
    assert cut_text(tokenizer, "ที่บ้าน") == ["ที่", "บ้", "า", "น"]
    assert cut_text(tokenizer, "ខ្ញុំ") == ["ខ្", "ញុំ"]
    assert cut_text(tokenizer, "가는 고양이") == ["가는", " 고양이"]
    assert cut_text(tokenizer, "二〇二六年々") == [*"二〇二六年々"]


gpt2 = ByteLevel(add_prefix_space=False)


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(st.text(st.characters(max_codepoint=0x7FF)) | st.text("a1 '\ns,\u0301\u00a0"))
def test_cuts_other_scripts_as_gpt2(text):
    assert tokenizer.pre_tokenize(text) == [p for p, _ in gpt2.pre_tokenize_str(text)]


mixed = ["Tom和猫", "猫x是Tom的。", "他说“ok”！", "ab 猫 cd", "買う。", "ที่นี่ 2 คน", "가는"]


def test_nothing_is_joined_across_scripts():
    for whitespace_as_suffix in (False, True):
        small = BPETokenizer.learn(
            mixed * 9, 900, whitespace_as_suffix=whitespace_as_suffix
        )
        for token in small.words(range(SMALLEST, len(small))):  # nothing is joined across
            letters = re.sub(r"\\x..", "", token)  # without bytes of characters
            han_or_kana = re.findall("[\u3040-\u9fff]", letters)
            thai = re.findall("[\u0e00-\u0e7f]", letters)
            assert len(han_or_kana) <= 1, token
            if han_or_kana or thai:
                assert not re.search("[A-Za-z0-9▁‿]", letters), token
        for text in [*mixed, *map("".join, product("猫a。 か", repeat=4))]:
            ids = small.encode(text)
            assert small.decode(ids) == text  # no space and no joiner too many
        for text in ("我看见了鱼", "ที่นี่"):  # nor while the ids are alone
            assert not {"▁", "‿"} & {*"".join(small.words(small.encode(text)))}


def test_files_from_before_cut_as_they_did():
    # a file from before: neither part of it names characters, and it cuts as it did
    before = {
        "plain": dict(
            normalizer=None,
            pre_tokenizer=dict(
                type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True
            ),
        ),
        "suffix": dict(
            pre_tokenizer=dict(
                type="Sequence",
                pretokenizers=[
                    dict(
                        type="Split",
                        pattern={
                            "Regex": r"[\p{L}\p{M}\p{N}]+ ?|[^\s\p{L}\p{M}\p{N}]+ ?|\s+"
                        },
                        behavior="Isolated",
                        invert=False,
                    ),
                    dict(
                        type="ByteLevel",
                        add_prefix_space=False,
                        trim_offsets=True,
                        use_regex=False,
                    ),
                ],
            )
        ),
    }
    for name, parts in before.items():
        earlier = BPETokenizer.learn(
            mixed * 9, 900, whitespace_as_suffix=name == "suffix", split_unspaced=False
        )
        written = json.loads(earlier.tokenizer.to_str())
        assert {key: written[key] for key in parts} == parts
        with tempfile.TemporaryDirectory() as folder:
            earlier.save(folder)
            loaded_again = BPETokenizer.load(folder)
        assert loaded_again == earlier
        assert cut_text(loaded_again, "Tom和猫")[0].strip(" \u2060") == "Tom和猫"


def test_spaces_after_words():
    suffix = BPETokenizer.learn(training, vocab_size=1000, whitespace_as_suffix=True)
    hard = [
        "",
        " ",
        "a",
        "a ",
        " a",
        "it's",
        '"a", b-c.',
        "3.5 %",
        "(a)(b)",
        "a . b",
        "\n\ta",
        "e\u0301.",
        "猫。犬",
        "<pad>",
        "u-bahn",
        "...a",
        "a...",
        "🙂a🙂",
    ]
    for text in hard:
        assert suffix.decode(suffix.encode(text)) == text
    for _, held_out in corpora.values():
        assert [suffix.decode(ids) for ids in suffix.encode_all(held_out)] == held_out
    assert suffix.decode(suffix.encode("a\u2060b")) == "ab"  # what nobody sees
    with tempfile.TemporaryDirectory() as folder:
        suffix.save(folder)
        assert BPETokenizer.load(folder) == suffix
        assert BPETokenizer.load(folder) != tokenizer


def test_merges_are_dropped():
    merges = [
        ("K", "a"),
        ("t", "z"),
        ("Ka", "tz"),
        ("Katz", "e"),
        ("H", "a"),
        ("u", "s"),
        ("Ha", "us"),
    ]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    rng = random.Random(0)
    for word in ["Katze", "Haustür", "Katzentüren", "Türen", ""]:
        for p in (0.3, 1.0):
            assert "".join(drop_merges(word, ranks, p, rng)) == word
    assert drop_merges("Haus", ranks, 1.0, rng) == ["H", "a", "u", "s"]
    cuts = Counter(len(drop_merges("Ka", ranks, 0.1, rng)) for _ in range(10_000))
    assert 850 < cuts[2] < 1150  # a word with one merge stays whole nine times of ten
    assert drop_merges("Katzen", ranks, 0.0, rng) == ["Katze", "n"]  # nothing passed over


def test_cuts_at_random():
    texts = [*zip(english, german)][:200]
    usual = tokenizer.encode_pairs(texts)
    assert [*SampledPairs(tokenizer, texts, 0.0)] == usual
    sampled = SampledPairs(tokenizer, texts, 0.1, seed=3)
    first, second = [*sampled], [*sampled]
    assert first != second and len(sampled) == len(first) == 200
    for _ in range(20):
        list(sampled)
    assert all(1 <= len(cuts) <= 16 for cuts in sampled.cuts.values())
    assert max(map(len, sampled.cuts.values())) == 16
    assert [*SampledPairs(tokenizer, texts, 0.1, seed=3)] == first
    assert [*SampledPairs(tokenizer, texts, 0.1, seed=4)] != first
    for pair, text in zip(first + second, texts + texts):
        assert tuple(map(tokenizer.decode, pair)) == text
    n_usual, n_first = (
        sum(len(side) for pair in ids for side in pair) for ids in (usual, first)
    )
    assert 1.05 * n_usual < n_first < 1.8 * n_usual
    short = [*SampledPairs(tokenizer, texts, 0.5, max_len=30)]
    assert all(
        side == same
        for pair, usual_pair in zip(short, usual)
        for side, same in zip(pair, usual_pair)
        if len(side) > 30
    )
    assert any(pair != same for pair, same in zip(short, usual))
    strange = " 猫 <pad>  Tür\n🙂"
    for ids in sum(SampledPairs(tokenizer, [(strange, strange)] * 5, 0.5), ()):
        assert tokenizer.decode(ids) == strange
    lower = BPETokenizer.learn(["Die Katze die Katze"], vocab_size=300, lowercase=True)
    pairs = [("DIE", "KATZE")]
    assert [*SampledPairs(lower, pairs, 0.0)] == lower.encode_pairs(pairs)
    with pytest.raises(ValueError, match=re.escape("dropout: got")):
        SampledPairs(tokenizer, texts, 1.5)


def test_ids_take_little_memory():
    for texts, _ in corpora.values():
        tracemalloc.start()
        ids_of_texts = tokenizer.encode_all(texts)
        n_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        n_tokens = sum(map(len, ids_of_texts))
        # 8 bytes a token, an eighth more where a list grows, and a list for each text
        assert n_bytes < 8 * 9 / 8 * n_tokens + 100 * len(texts) + 100_000


def test_what_is_learned_from_is_checked():
    refused("vocab_size: got 259, expected at least 260", learn, ["a"], vocab_size=259)
    refused("vocab_size: got", learn, ["a"], vocab_size=10**9)  # more than there is memory
    refused("vocab_size", learn, ["a"], vocab_size="many")
    refused("min_frequency", learn, ["a"], min_frequency=0)
    refused("lowercase", learn, ["a"], lowercase="no")
    refused("texts: got 'none'", learn, iter([]))
    refused("texts: got 'one text', expected a list of texts", learn, "one text")
    refused("texts: got 5", learn, 5)
    refused("text 1: got b'b', expected a text", learn, ["a", b"b"])
    refused("text 1: got", learn, ["a", "\udc80"])
    library = require_tokenizers()
    empty = library.Tokenizer(library.models.BPE())
    refused("pre_tokenizer, decoder: got", BPETokenizer, empty)


def test_texts_and_ids_are_checked():
    refused("lone surrogates", tokenizer.encode, "a\ud800b")
    refused("text 0: got None", tokenizer.encode_all, [None])
    refused("texts: got", tokenizer.encode_all, "abc")
    refused("pairs", tokenizer.encode_pairs, [("a", "b", "c")])
    for pair in ("ab", None):
        refused("pairs", tokenizer.encode_pairs, [pair])
    for ids in (["a"], [0.5], 7, None):
        refused("ids", tokenizer.decode, ids)
    for ids in ([-1], [len(tokenizer)]):
        for method in (tokenizer.decode, tokenizer.words):
            refused("ids from 0", method, ids)
    assert len(learn(["a"], vocab_size=260)) == 260
    assert len(learn([""])) == 260
    small = learn(["Die Katze die Katze"], vocab_size=300, lowercase=True)
    assert small.decode(small.encode("DIE KATZE")) == "die katze"
    assert learn(["Die"], 300) != learn(["Die"], 300, lowercase=True)


def test_full_width_letters():
    for lowercase, whitespace_as_suffix in product((False, True), repeat=2):
        options = dict(lowercase=lowercase, whitespace_as_suffix=whitespace_as_suffix)
        usual = BPETokenizer.learn(["ABC 123 ＡＢＣ"] * 5, 300, **options)
        wide = BPETokenizer.learn(["ABC 123 ＡＢＣ"] * 5, 300, nfkc=True, **options)
        with tempfile.TemporaryDirectory() as folder:
            wide.save(folder)
            again = BPETokenizer.load(folder)
        assert again == wide
        for one in (wide, again):
            assert one.encode("ＡＢＣ　１２３") == one.encode("ABC 123")
            assert one.encode("ｶﾞ") == one.encode("ガ")
            assert one.decode(one.encode("ＡＢＣ")) == ("abc" if lowercase else "ABC")
        assert usual.encode("ＡＢＣ") != usual.encode("ABC")
        assert usual.decode(usual.encode("ＡＢＣ")) == ("ａｂｃ" if lowercase else "ＡＢＣ")
        texts = ["ＡＢＣ　１２３", "猫。", "ABC, 1"]
        sampled = SampledPairs(wide, [(text, text) for text in texts], 0.0)
        assert [*sampled] == wide.encode_pairs([(text, text) for text in texts])
    refused("nfkc", learn, ["a"], nfkc="yes")
    refused("split_unspaced", learn, ["a"], split_unspaced=None)
    refuses(
        changed(normalizer={"type": "Sequence", "normalizers": []}), "what BPETokenizer"
    )
