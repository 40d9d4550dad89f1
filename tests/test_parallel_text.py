"""Parallel text beyond what chapter 5.2 shows: invisible characters, files of other programs, damaged ones."""

import bz2
import gzip
import lzma
import re
from pathlib import Path

import pytest

from annotated_transformer.text.pair_files import read_text_files, read_tsv
from annotated_transformer.text.parallel_text import clean_pairs, fold_text, has_text

DIRTY = [
    ("the cat", "die Katze"),
    ("the cat ", "die\u00a0Katze"),  # other spaces: a duplicate after cleaning
    ("the door", "die Tu\u0308r"),  # u and two dots
    ("the door", "die Tür"),
    ("the sheep", ""),
    ("  ", "das Schaf"),
    ("yes", "ja"),
    ("yes", "jawohl"),  # two translations: no duplicate
    ("no", "Dieser Satz gehört eine Zeile weiter oben hin, nicht hierher."),
]
PAIRS = "the cat\tdie Katze\nthe dog\tder Hund\n"
EXPECTED = [("the cat", "die Katze"), ("the dog", "der Hund")]


def write(folder, **texts):
    "Files by name, in which a dot is written __; compressed where they end in gz."
    for name, text in texts.items():
        path = Path(folder) / name.replace("__", ".")
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture
def files(tmp_path):
    "Paths of files with marks, other ends of lines, bytes of another encoding, and a damaged one."
    folder = tmp_path
    write(
        folder,
        a__en="\ufeffone\u2028line\r\ntwo",
        b__de__gz="eins\nzwei\n",
        c="1\n2\n3\n",
        bad=b"fine\nf\xfcr\n",
        t__tsv="0\ta\tb\nno tabs\n",
    )
    Path(folder, "cut.gz").write_bytes(gzip.compress(b"text\n" * 1000)[:-20])
    a, b, c, bad, t, cut = (
        f"{folder}/{name}" for name in ("a.en", "b.de.gz", "c", "bad", "t.tsv", "cut.gz")
    )
    return a, b, c, bad, t, cut


def test_what_cannot_be_seen():
    unseen = ["", "\u200b", "\ufeff\u200e \u2060", "\u00ad\u200d\u0007"]
    assert [has_text(text) for text in unseen] == [False] * 4
    assert [has_text(text) for text in ("a", "\u200b猫", ".", "\u200d🙂")] == [True] * 4
    assert fold_text("TÜR") == "tür"
    assert fold_text("STRASSE") == fold_text("Straße")
    for unseen_in in (
        "she sa\u00adid",
        "she sa\u200bid",
        "she said\u200f",
        "\u2060she said",
    ):
        assert fold_text(unseen_in) == "she said"
        assert [*clean_pairs([(unseen_in, "a"), ("she said", "a")])[0]] == [
            (unseen_in, "a")
        ]


def test_nothing_is_lost_silently():
    kept, report = clean_pairs(DIRTY)
    thin = [("a", "\u200b"), ("\ufeff", "b"), ("\u200e", "\u2060"), ("\u200ba", "b")]
    kept_thin, report_thin = clean_pairs(thin)
    assert (len([*kept_thin]), report_thin["dropped"]["empty"]) == (1, 3)
    assert report["read"] == 0  # nothing is read before somebody takes a pair
    kept = list(kept)
    assert report["dropped"] == {
        "empty": 2,
        "too long": 0,
        "lengths too different": 0,
        "duplicate": 2,
    }
    assert report["changed"] == 1
    assert kept[1] == ("the door", "die Tür")
    for options in (dict(), dict(max_ratio=2.5, max_length=9), dict(deduplicate=False)):
        kept, report = clean_pairs(DIRTY, **options)  # nothing is lost silently
        assert len(list(kept)) == report["kept"]
        assert report["read"] == len(DIRTY)
        assert report["kept"] + sum(report["dropped"].values()) == report["read"]
    assert [
        *clean_pairs(kept := list(clean_pairs(DIRTY)[0]))[0]
    ] == kept  # clean stays clean


def test_options_and_pairs_are_checked():
    for option in (dict(max_length=0), dict(max_ratio=0.9), dict(deduplicate=1)):
        with pytest.raises(ValueError, match=re.escape([*option][0])):
            clean_pairs([], **option)
    for pair in (("one",), ("a", "b", "c"), ("a", None)):
        with pytest.raises(ValueError, match=re.escape("pair 1")):
            [*clean_pairs([pair])[0]]


def test_lines_end_at_newlines_only(files):
    a, b, c, bad, t, cut = files
    # a mark at the beginning, a line separator inside, other ends of lines, compressed
    assert [*read_text_files(a, b)] == [("one\u2028line", "eins"), ("two", "zwei")]


def test_columns(tmp_path):
    folder = tmp_path
    write(folder, three__tsv="0\ta\tb\n", ids__tsv="7\tcat\t9\tKatze\n8\t1\t9\t2\n")
    assert [*read_tsv(f"{folder}/three.tsv", (2, 1))] == [("b", "a")]
    assert [*read_tsv(f"{folder}/ids.tsv")] == [("cat", "Katze"), ("1", "2")]
    assert next(read_tsv(f"{folder}/ids.tsv", (0, 2))) == ("7", "9")
    for columns in ((-1, 1), (1, 1), (0, 1, 2), (0.0, 1)):
        with pytest.raises(ValueError, match="columns: got"):
            next(read_tsv(f"{folder}/ids.tsv", columns))


def test_texts_are_not_in_the_first_columns(tmp_path):
    folder = tmp_path
    # which columns: scores or addresses first, and a tab too many
    texts = "\tthe cat\tdie Katze\n"
    write(folder, score__tsv="score\ten\tde\n" + f"-0.06{texts}1e-05{texts}17{texts}")
    write(folder, url__tsv=f"https://a.de/?b=1\thttp://b{texts}" * 2)
    for name, column in (("score", 1), ("url", 2)):
        with pytest.raises(ValueError, match=re.escape("choose two columns")):
            [*read_tsv(f"{folder}/{name}.tsv")]
        pairs = [*read_tsv(f"{folder}/{name}.tsv", (column, column + 1))]
        assert pairs[-1] == ("the cat", "die Katze")
    write(folder, two__tsv="12\tzwölf\n")
    with pytest.raises(ValueError, match="column 1 has numbers or addresses in 1 of 1"):
        [*read_tsv(f"{folder}/two.tsv")]
    assert [*read_tsv(f"{folder}/two.tsv", (0, 1))] == [("12", "zwölf")]
    write(folder, more__tsv="a\tb\nc\td\t\n\ne\t\na man\twalks\tein Mann geht\n")
    with pytest.raises(
        ValueError, match=re.escape("line 5: 3 columns with tabs between, expected 2,")
    ):
        [*read_tsv(f"{folder}/more.tsv")]
    write(folder, less__tsv="a\tb\tAnn\nc\td\t\nthe cat die Katze\tBob\n")
    with pytest.raises(
        ValueError, match=re.escape("line 3: 2 columns with tabs between, expected 3,")
    ):
        [*read_tsv(f"{folder}/less.tsv")]
    write(folder, csv__csv="the cat,die Katze\n")
    with pytest.raises(ValueError, match="line 1: 1 columns .*, expected 2 or more.*CSV"):
        [*read_tsv(f"{folder}/csv.csv")]


def test_files_are_refused_with_a_reason(tmp_path, files):
    folder = tmp_path
    a, b, c, bad, t, cut = files
    write(folder, gap__tsv="a\tb\n\nc\td\n", mac__tsv="a\tb\rc\td\r")
    assert [*read_tsv(f"{folder}/gap.tsv")] == [("a", "b"), ("", ""), ("c", "d")]
    for pairs, message in (
        (read_text_files(b, c), "b.de.gz has 2 lines and"),
        (read_text_files(c, b), "c has 3 lines and"),
        (read_text_files(a, bad), "bad, line 2: "),
        (read_text_files(bad, a), "can't decode byte 0xfc"),
        (read_text_files(bad, a), "expected text in UTF-8"),
        (read_tsv(t), "t.tsv, line 2: 1 columns"),
        (read_tsv(cut), "cut.gz is damaged"),
        (read_tsv(f"{folder}/mac.tsv"), "line 1: it has a carriage"),
        (read_text_files(a, folder), "a file that exists"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            list(pairs)


def test_compressed_files(tmp_path):
    path = tmp_path
    packers = {"gz": gzip, "GZ": gzip, "gzip": gzip, "bz2": bz2, "xz": lzma, "XZ": lzma}
    for ending, packer in packers.items():
        packed = packer.compress(PAIRS.encode() * 500)
        (path / f"p.tsv.{ending}").write_bytes(packed)
        assert [*read_tsv(path / f"p.tsv.{ending}")] == 500 * EXPECTED
        for damaged in (packed[:-20], packed[:30] + b"?" + packed[31:]):
            (path / f"p.{ending}").write_bytes(damaged)
            with pytest.raises(ValueError, match=re.escape(f"p.{ending} is damaged")):
                [*read_tsv(path / f"p.{ending}")]


def test_what_is_no_text_is_refused(tmp_path):
    "Compressed files under a wrong name, archives, and other encodings."
    for data in (
        *(packer.compress(PAIRS.encode()) for packer in (gzip, bz2, lzma)),
        b"\x28\xb5\x2f\xfd\x04\x58",  # zstd
        b"PK\x03\x04\x14\x00...",  # zip, spreadsheets
        *(PAIRS.encode(f"utf-{name}") for name in ("16", "16-le", "16-be", "32", "32-be")),
    ):
        (tmp_path / "p.tsv").write_bytes(data)
        with pytest.raises(ValueError, match="line 1: .*expected text in UTF-8"):
            [*read_tsv(tmp_path / "p.tsv")]


def test_marks_in_joined_files(tmp_path):
    path = tmp_path
    # marks in files that were joined with cat
    joined = ("\ufeff" + PAIRS).encode() * 2
    (path / "joined.tsv").write_bytes(joined)
    assert [*read_tsv(path / "joined.tsv")] == 2 * EXPECTED
    for name, lines in (("a", "the cat\nthe dog\n"), ("b", "die Katze\nder Hund\n")):
        (path / name).write_bytes(("\ufeff" + lines).encode() * 2)
    assert [*read_text_files(path / "a", path / "b")] == 2 * EXPECTED
    kept, report = clean_pairs(read_tsv(path / "joined.tsv"))
    assert ([*kept], report["dropped"]["duplicate"]) == (EXPECTED, 2)
