"""A corpus in three parts, each in files of its own: what is read, and what is refused."""

import os

import pytest

from annotated_transformer.text.streamed_text import open_divided_text

PARTS = dict(
    train=[
        ("The cat eats.", "Die Katze frisst."),
        ("The cow eats.", ""),
        ("The goat runs.", "Die Ziege rennt."),
        ("The goat runs.", "Die Ziege rennt."),
    ],
    validation=[("The horse sleeps.", "Das Pferd schläft.")],
    test=[("The dog barks.", "Der Hund bellt."), ("The pig eats.", "Das Schwein frisst.")],
)
TWO_FILES = {part: f"{part}.en,{part}.de" for part in PARTS}
ONE_FILE = {part: f"{part}.tsv" for part in PARTS}
LEARNT = [PARTS["train"][0], PARTS["train"][2]]


@pytest.fixture
def folder(tmp_path):
    for part, pairs in PARTS.items():
        for language, texts in zip(("en", "de"), zip(*pairs)):
            written = "".join(text + "\n" for text in texts)
            (tmp_path / f"{part}.{language}").write_text(written, encoding="utf-8")
        rows = "".join("\t".join(pair) + "\n" for pair in pairs)
        (tmp_path / f"{part}.tsv").write_text(rows, encoding="utf-8")
    (tmp_path / "test.fr").write_text("un\ndeux\n")
    (tmp_path / "train.fr").write_bytes((tmp_path / "train.de").read_bytes())
    (tmp_path / "none.tsv").write_text("")
    return tmp_path


@pytest.mark.parametrize("names", [TWO_FILES, ONE_FILE])
def test_parts_are_in_one_file_or_in_two(names, folder):
    text = open_divided_text(**names, data_dir=folder)
    assert [*text.train] == LEARNT
    assert (text.validation, text.test) == (PARTS["validation"], PARTS["test"])


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(test="no.en,no.de"), "test: got"),
        (dict(train="no.tsv"), "corpus: got"),
        (dict(validation=TWO_FILES["train"]), "validation, line 2: got"),
        (dict(train=TWO_FILES["test"]), "all dropped"),
        (dict(test="none.tsv"), "test: got 'none.tsv', expected at least one pair"),
        (dict(source="de", target="en"), "the file in de first"),
        # every part is in the languages of the corpus
        (dict(test="test.de,test.en"), "test: got 'test.de, test.en'"),
        (dict(test="test.en,test.fr"), "test: got 'test.en, test.fr'"),
        (dict(validation="test.de,test.en"), "validation: got 'test.de, test.en'"),
        (dict(validation="test.en,test.fr"), "validation: got 'test.en, test.fr'"),
        (dict(train="train.en,train.fr", test="test.en,test.fr"), "validation: got"),
    ],
)
def test_what_is_refused(changes, message, folder):
    with pytest.raises(ValueError) as refusal:
        open_divided_text(**{**TWO_FILES, **changes}, data_dir=folder)
    assert message in str(refusal.value)


def test_an_ending_after_the_language_does_not_hide_it(folder):
    (folder / "test.fr.txt").write_text("un\n")
    names = dict(
        train="train.en,train.fr",
        validation="validation.en,test.fr.txt",
        test="test.en,test.fr",
    )
    text = open_divided_text(**names, data_dir=folder)
    assert (text.source, text.target) == ("en", "fr")


def test_held_out_texts_have_one_form_of_blanks_and_letters(folder):
    (folder / "odd.tsv").write_text("the  pig\tdas To\u0308r \n", encoding="utf-8")
    odd = open_divided_text(**{**ONE_FILE, "test": "odd.tsv"}, data_dir=folder)
    assert odd.test == [("the pig", "das Tör")]


def test_files_that_have_changed_are_noticed(folder):
    german_first = dict(source="de", target="en", columns=(1, 0))
    text = open_divided_text(**ONE_FILE, data_dir=folder, **german_first)
    assert [*text.train] == [(german, english) for english, german in LEARNT]

    path = folder / "train.tsv"  # other texts, as many pairs
    path.write_text(path.read_text(encoding="utf-8").replace("goat", "calf"), "utf-8")
    os.utime(path, ns=(0, 0))  # as if it were another day
    with pytest.raises(ValueError, match="train.tsv was written to"):
        list(text.train)
