"Generating text: pieces as they come, stop strings however they are cut, options that are refused, and models from folders."

import random
from itertools import combinations, product
from os.path import commonprefix

import pytest
import torch

from annotated_transformer import (
    GPT,
    GPTConfig,
    Transformer,
    TransformerConfig,
    generate,
    load_language_model,
    save_model,
)
from annotated_transformer.generation import (
    cut_at_stop,
    ids_without_token,
    stream_pieces,
    stream_text,
)
from annotated_transformer.text.bpe import BPETokenizer
from annotated_transformer.text.tokenizer import CharTokenizer
from annotated_transformer.text.tokenizer import WordTokenizer

WORDS = WordTokenizer.of([("the cat has seen a dog and a horse", "")])
SMALL = dict(d_model=16, d_ff=16, n_heads=2, n_layers=1, max_len=12)


def untrained(**options):
    torch.manual_seed(0)
    return GPT(GPTConfig(**{**SMALL, "vocab_size": len(WORDS), **options})).eval()


# ---- Pieces ----


class Bytes:
    "An id is a byte, and half a character is shown as a replacement sign."

    def decode(self, ids):
        return bytes(ids).decode("utf-8", errors="replace")


class Tidied:
    "An id is a character, and some texts are replaced by others."

    def __init__(self, *replaced):
        self.replaced = replaced

    def decode(self, ids):
        text = "".join(map(chr, ids))
        for old, new in self.replaced:
            text = text.replace(old, new)
        return text


class Stripped(Tidied):
    def decode(self, ids):
        return super().decode(ids).strip()


BLANKS = [(" .", "."), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 've", "'ve")]


def assert_streams(tokenizer, ids, n_prompt):
    "The pieces are what comes after the prompt."
    prompt, ids = list(ids[:n_prompt]), list(ids)
    before, whole = tokenizer.decode(prompt), tokenizer.decode(ids)
    expected = whole[len(commonprefix([before, whole])) :]
    pieces = stream_pieces(tokenizer, prompt, iter(ids[n_prompt:]))
    assert "".join(pieces) == expected


@pytest.mark.parametrize(
    "tokenizer, ids",
    [
        (Bytes(), "für 🐈, 你好 naïve 🐈🐈".encode()),
        (Bytes(), b"a\xf0\x9fb\xff\xe4\xbdc\xf0"),  # not UTF-8
        (Tidied(*BLANKS), b"I do n't , you ' ve , we 've . do n n' nt . "),
        (Tidied(("(c)", "©"), ("...", "…")), b"(c) (c (c) ... . .. ....(c)"),
        (Stripped(), b"  two  words   "),
    ],
)
def test_pieces_are_the_text_wherever_the_prompt_ends(tokenizer, ids):
    for n_prompt, n_ids in combinations(range(len(ids) + 1), 2):
        assert_streams(tokenizer, ids[:n_ids], n_prompt)


def test_pieces_of_random_texts():
    rng = random.Random(0)
    for _ in range(2000):
        ids = [ord(rng.choice(" .,'ntve(c)")) for _ in range(rng.randrange(12))]
        assert_streams(Tidied(*BLANKS, ("(c)", "©")), ids, rng.randrange(len(ids) + 1))


def test_what_changes_late_stays_as_it_was_shown():
    class Shouting(Bytes):
        def decode(self, ids):
            text = super().decode(ids)
            return text.upper() if "!" in text else text

    pieces = stream_pieces(Shouting(), list(b"he"), iter(b"llo there!"))
    assert "".join(pieces) == "llo thERE!"


def test_a_text_that_stops_within_a_character_says_so():
    tokenizer = BPETokenizer.learn(["a few words to learn from"], 270)
    [*_, last] = stream_pieces(tokenizer, [], iter(tokenizer.encode("a🐈")[:-1]))
    assert last.endswith("\ufffd")


# ---- Stop strings ----


def every_cut(text):
    "All ways to cut a text into pieces."
    if not text:
        yield []
    for n in range(1, len(text) + 1):
        for others in every_cut(text[n:]):
            yield [text[:n], *others]


def cut_by_hand(text, stop):
    for end in range(1, len(text) + 1):
        longest = max((len(word) for word in stop if text[:end].endswith(word)), default=0)
        if longest:
            return text[: end - longest]
    return text


@pytest.mark.parametrize(
    "stop", [("bc", "abcd"), ("a", "aab", "bb"), ("ab", "ba", "aba"), ("abab", "ba")]
)
def test_stop_strings_however_the_text_is_cut(stop):
    for length in range(6):
        for letters in product("abcd" if "bc" in stop else "ab", repeat=length):
            text = "".join(letters)
            found = {"".join(cut_at_stop(iter(cut), stop)) for cut in every_cut(text)}
            assert found == {cut_by_hand(text, stop)}


# ---- Options ----


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(max_new_tokens=0), "max_new_tokens: got 0"),
        (dict(max_new_tokens=13), "max_new_tokens: got 13, expected at most 12"),
        (dict(prompt="cat " * 13), "prompt: got '13 tokens', expected at most 12"),
        (dict(prompt=5), "prompt: got 5"),
        (dict(prompt=[dict(role="user", content="x")]), "no chat template"),
        (dict(seed=-1), "seed: got -1"),
        (dict(seed=True), "seed: got True"),
        (dict(stop=""), "stop: got ''"),
        (dict(stop=5), "stop: got 5"),
        (dict(stop=[None]), "stop: got None"),
        (dict(tokenizer="words"), "tokenizer: got 'str'"),
        (dict(model=torch.nn.Linear(2, 2)), "model: got 'Linear'"),
        (dict(model=untrained().train()), "evaluation mode"),
        (dict(model=untrained(vocab_size=5)), "expected at most 5, as the model has"),
    ],
)
def test_bad_options_are_refused(options, message):
    given = dict(model=untrained(), tokenizer=WORDS, prompt="the") | options
    with pytest.raises(ValueError, match=message):
        generate(**given)


@pytest.mark.parametrize("n", [1, 10, 12])
def test_as_many_tokens_as_there_are_positions_for(n):
    prompt = " ".join(["cat"] * n)
    model = untrained()
    generate(model, WORDS, prompt, seed=0)
    generate(model, WORDS, prompt, seed=0, max_new_tokens=13 - n)
    with pytest.raises(ValueError, match=f"expected at most {13 - n}, as many"):
        stream_text(model, WORDS, prompt, max_new_tokens=14 - n)
    rotary = untrained(positions="rotary")
    generate(rotary, WORDS, prompt, seed=0, max_new_tokens=30)


def test_ids_without_a_token_are_never_written():
    padded = untrained(vocab_size=2 * len(WORDS))
    n = len(WORDS)
    assert ids_without_token(padded, WORDS, {2 * n - 1}) == [*range(n, 2 * n - 1)]
    for temperature, seed in product((0, 1), range(4)):
        generate(padded, WORDS, "the", seed=seed, temperature=temperature)


# ---- Models from folders ----


@pytest.mark.parametrize(
    "tokenizer",
    [WORDS, CharTokenizer.of(["abc"]), BPETokenizer.learn(["a few words"], 270)],
)
def test_a_saved_model_comes_back_with_its_tokenizer(tokenizer, tmp_path):
    model = untrained(vocab_size=len(tokenizer))
    save_model(model, tmp_path / "model", tokenizer)
    again, its_tokenizer = load_language_model(tmp_path / "model", "cpu")
    assert type(its_tokenizer) is type(tokenizer)
    expected = generate(model, tokenizer, "a", seed=3)
    assert generate(again, its_tokenizer, "a", seed=3) == expected


def test_folders_without_a_language_model_are_refused(tmp_path):
    save_model(untrained(), tmp_path / "bare")
    translator = Transformer(TransformerConfig.preset("tiny", vocab_size=20))
    save_model(translator, tmp_path / "translator")
    for name, message in {
        "bare": "vocab.json",
        "translator": "Transformer",
        "nothing": "nothing",
        "": "config.json",
    }.items():
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            load_language_model(tmp_path / name)
