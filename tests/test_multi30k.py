"""Multi30k without a network: a small corpus under its names, fetched from a folder, checked, and refused where it differs."""

import gzip
from itertools import permutations

import pytest

from annotated_transformer.base.atomic_folders import sha256
from annotated_transformer.text import multi30k as module
from annotated_transformer.text.multi30k import (
    MULTI30K_LANGUAGES,
    MULTI30K_SHA256,
    MULTI30K_TESTS,
    multi30k,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    "A folder with two lines in each file, and their checksums in the place of the real ones."
    published = tmp_path / "published"
    published.mkdir()
    for name in MULTI30K_SHA256:
        text = f"{name} 1\n{name} 2\n".encode()
        (published / name).write_bytes(gzip.compress(text, mtime=0))
    checksums = {name: sha256(published / name) for name in MULTI30K_SHA256}
    monkeypatch.setattr(module, "MULTI30K_SHA256", checksums)
    monkeypatch.setattr(module, "MULTI30K_URL", published.as_uri())
    monkeypatch.setenv("ANNOTATED_TRANSFORMER_DATA", str(tmp_path / "data"))
    return published


def test_languages_and_tests(folder):
    for source, target in permutations(MULTI30K_LANGUAGES, 2):
        for test, files in MULTI30K_TESTS.items():
            options = dict(source=source, target=target, test=test)
            if test in ("2017", "mscoco") and "cs" in (source, target):
                with pytest.raises(ValueError, match="'2016', '2018'"):
                    multi30k(folder, **options)
                continue
            text = multi30k(folder, **options)
            assert (text.source, text.target) == (source, target)
            assert text.test[0] == (f"{files}.{source}.gz 1", f"{files}.{target}.gz 1")
            assert text.train[1] == (f"train.{source}.gz 2", f"train.{target}.gz 2")


def test_files_are_fetched_once_and_checked(folder, tmp_path):
    fetched = multi30k()
    for path in folder.iterdir():
        path.unlink()
    cache = tmp_path / "data" / "multi30k"
    assert multi30k() == fetched == multi30k(cache)  # nothing is fetched again

    (cache / "val.de.gz").write_bytes(b"something else")
    with pytest.raises(ValueError, match="SHA-256 of this one"):
        multi30k(cache)
    with pytest.raises(OSError, match="--data-dir"):
        multi30k()  # would fetch it anew
    (cache / "val.de.gz").unlink()
    with pytest.raises(ValueError, match="folder with val.de.gz"):
        multi30k(cache)


@pytest.mark.parametrize(
    "options, wrong",
    [
        (dict(target="it"), "target: got"),
        (dict(source="it"), "source: got"),
        (dict(source="fr", target="fr"), "target: got"),
        (dict(test="2019"), "test of en and de: got"),
    ],
)
def test_what_is_refused(options, wrong, folder):
    with pytest.raises(ValueError, match=wrong):
        multi30k(folder, **options)
