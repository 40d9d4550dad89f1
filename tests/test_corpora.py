"""A corpus by the name of its files: its languages, its parts, and what is refused."""

import gzip
import os

import pytest

from annotated_transformer.text.corpora import open_parallel_text
from annotated_transformer.text.held_out import split_pairs

CATS = [(f"{n} cats", f"{n} Katzen") for n in range(2, 302)]
ENGLISH, GERMAN = ("\n".join(texts).encode() for texts in zip(*CATS))


@pytest.fixture
def folder(tmp_path):
    for name in ("a.en", "a.fr", "b.txt", "c.zh-TW"):
        (tmp_path / name).write_bytes(ENGLISH)
    for name in ("a.de.gz", "b.cs.gz"):
        (tmp_path / name).write_bytes(gzip.compress(GERMAN))
    (tmp_path / "c.zh-CN.txt").write_bytes(GERMAN)
    (tmp_path / "both.tsv").write_text("\n".join(map("\t".join, CATS)), encoding="utf-8")
    return tmp_path


def test_one_file_or_two_in_either_direction(folder):
    divided = split_pairs(CATS)
    assert open_parallel_text("a.en,a.de.gz", folder).train == divided.train
    both = open_parallel_text(f"{folder}/both.tsv")
    assert (both.train, both.test) == (divided.train, divided.test)
    german_first = dict(source="de", target="en", columns=(1, 0))
    assert open_parallel_text("both.tsv", folder, **german_first) == both.reversed()


@pytest.mark.parametrize(
    "files, given, languages",
    [
        ("a.fr,b.cs.gz", {}, ("fr", "cs")),
        ("a.fr,b.txt", {}, ("fr", "de")),
        ("a.fr,b.txt", dict(target="es"), ("fr", "es")),
        ("c.zh-TW,c.zh-CN.txt", {}, ("zh-TW", "zh-CN")),
        ("c.zh-TW,a.fr", dict(source="cmn", target="fr-CA"), ("cmn", "fr-CA")),
        ("both.tsv", {}, ("en", "de")),
    ],
)
def test_endings_say_the_languages(files, given, languages, folder):
    opened = open_parallel_text(files, folder, **given)
    assert (opened.source, opened.target) == languages


@pytest.mark.parametrize(
    "files, given, wrong",
    [
        ("a.en,a.de.gz", dict(source="de", target="en"), "the file in de first"),
        ("a.fr,b.cs.gz", dict(source="en", target="de"), "a.fr, b.cs.gz"),
        ("a.fr,b.cs.gz", dict(target="de"), "the file in fr first, then the one in de"),
        ("c.zh-TW,c.zh-CN.txt", dict(source="zh-CN", target="zh-TW"), "zh-CN first"),
        ("a.en,a.en", {}, "two different files"),
        ("b.txt,a.en", {}, "target: got 'en', expected a language other than"),
        ("both.tsv", dict(source="en", target="en"), "other than the source"),
        ("both.tsv", dict(target="klingon"), "target: got 'klingon', expected the code"),
        ("both.tsv", dict(source=""), "source: got '', expected the code"),
        ("both.tsv", dict(max_length=1), "300 pairs, all dropped"),
        ("both.tsv", dict(test="both.tsv"), "files for both, or for neither"),
        ("a.en,a.de.gz", dict(columns=(1, 0)), "none for two files"),
        ("no.tsv", {}, "no file"),
        ("a,b,c", {}, "two files"),
        ("", {}, "corpus: got ''"),
        (7, {}, "corpus: got 7"),
        ("numbers", dict(max_length=9), "max_length: got 9, expected none for numbers"),
        ("numbers", {}, "data_dir: got"),
        ("multi30k", dict(columns=(1, 2)), "columns: got (1, 2)"),
    ],
)
def test_what_is_refused(files, given, wrong, folder):
    with pytest.raises(ValueError) as refused:
        open_parallel_text(files, folder, **given)
    assert wrong in str(refused.value)


def test_a_folder_or_a_pipe_is_no_file(folder):
    "A pipe can't be read twice."
    names = [str(folder)]
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe")
        names.append("pipe")
    for name in names:
        with pytest.raises(ValueError, match="a folder or a pipe is not enough"):
            open_parallel_text(name, folder)
