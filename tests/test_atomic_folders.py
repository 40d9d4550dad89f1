"A folder is replaced whole or not at all; what is damaged, torn or somebody else's is told."

import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import pytest
from project import ROOT

from annotated_transformer.base.atomic_folders import (
    MANIFEST,
    check_files,
    check_replaceable,
    describe_files,
    fetch_file,
    foreign_files,
    lock_folder,
    read_folder,
    sha256,
    wait_for_folder,
    write_folder,
)


def write(folder, **files):
    with write_folder(folder) as new:
        for name, text in files.items():
            (new / name).write_text(text)


def names(folder) -> list:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path) -> Path:
    "One that this library wrote."
    write(tmp_path / "result", a="12345", b="")
    return tmp_path / "result"


@pytest.mark.parametrize(
    "change, kind, why",
    [
        (lambda f: (f / "a").write_text("1234"), ValueError, "has 4 bytes"),
        (lambda f: (f / "a").write_text("12346"), ValueError, "its CRC-32 is not"),
        (lambda f: (f / "b").unlink(), FileNotFoundError, "b is missing"),
        (lambda f: (f / MANIFEST).unlink(), FileNotFoundError, "manifest.json is missing"),
        *(
            (lambda f, text=text: (f / MANIFEST).write_text(text), ValueError, "is damaged")
            for text in ("", "[]", "{}", '{"files": {"a": {}}}', '{"files": {"a": 3}}')
        ),
    ],
)
def test_what_is_damaged_is_named(change, kind, why, folder):
    check_files(folder)
    change(folder)
    with pytest.raises(kind, match=why):
        check_files(folder)
    with pytest.raises(kind, match=why):
        read_folder(folder, names)


def test_what_else_goes_wrong_is_not_ours_to_judge(folder):
    assert read_folder(folder, lambda f: (f / "a").read_text()) == "12345"
    with pytest.raises(ZeroDivisionError):
        read_folder(folder, lambda f: 1 / 0)


def test_some_folders_are_never_replaced(tmp_path):
    (tmp_path / "here").symlink_to(Path.cwd())
    for never in ("", ".", "..", "/", Path.cwd(), tmp_path / "here"):
        with pytest.raises(ValueError, match="cannot be replaced"):
            check_replaceable(never, overwrite=True)

    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="a folder; this is a file"):
        check_replaceable(tmp_path / "file", overwrite=True)
    with pytest.raises(ValueError, match="a name of at most 240 bytes"):
        check_replaceable(tmp_path / ("ä" * 121))
    assert check_replaceable(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    write(tmp_path / ("a" * 240))


def test_files_of_others_are_kept(tmp_path):
    folder = tmp_path / "result"
    (folder / "deep").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "deep" / "mine.txt").write_text("kept")
    (folder / "a").write_text("old")
    with pytest.raises(ValueError, match="it holds a, deep/mine.txt, notes.txt"):
        write(folder)

    with write_folder(folder, overwrite=True) as new:
        (new / "a").write_text("new")
    found = [(folder / name).read_text() for name in ("a", "notes.txt", "deep/mine.txt")]
    assert found == ["new", "mine", "kept"]
    assert names(folder) == ["a", "deep", MANIFEST, "notes.txt"]


def test_what_comes_while_the_new_one_is_written_is_not_lost(folder):
    with pytest.raises(ValueError, match="it holds theirs.txt"):
        with write_folder(folder) as new:
            (new / "a").write_text("newer")
            (folder / "theirs.txt").write_text("mine")
    assert (folder / "a").read_text() == "12345"
    assert (folder / "theirs.txt").read_text() == "mine"


def test_a_failure_leaves_the_old_folder_alone(folder):
    with pytest.raises(KeyError):
        with write_folder(folder) as new:
            (new / "a").write_text("half")
            raise KeyError
    with mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "no space left")):
        with pytest.raises(OSError, match="no space left"):
            write(folder, a="half")

    check_files(folder)
    assert (folder / "a").read_text() == "12345" and names(folder.parent) == ["result"]


@pytest.mark.parametrize(
    "number, why", [(errno.EBUSY, "can be renamed"), (errno.ENOTEMPTY, "no other process")]
)
def test_what_cannot_be_renamed_is_told(number, why, tmp_path):
    with mock.patch("os.rename", side_effect=OSError(number, "no")):
        with pytest.raises(ValueError, match=why):
            write(tmp_path / "run")


def test_a_link_stays_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    write(tmp_path / "link", a="new")
    assert (tmp_path / "link").is_symlink() and not folder.is_symlink()
    assert (folder / "a").read_text() == "new"


def test_a_kill_between_the_renamings_is_repaired(folder):
    os.rename(folder, folder.with_name(".result.old"))
    assert (wait_for_folder(folder) / "a").read_text() == "12345"
    with pytest.raises(FileNotFoundError, match="no such folder"):
        wait_for_folder("nowhere")


def test_a_kill_while_writing_leaves_the_old_folder(folder):
    code = f"""
import os, signal
from annotated_transformer.base.atomic_folders import write_folder
with write_folder({str(folder)!r}) as new:
    (new / "a").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT)
    assert (folder / "a").read_text() == "12345"

    # what it left is removed when it is a day old: until then somebody may be writing
    (unfinished,) = folder.parent.glob(".result.new-*")
    for days, left in ((0, 2), (2, 1)):
        then = time.time() - days * 24 * 60 * 60
        os.utime(unfinished, (then, then))
        write(folder, a="newer")
        assert len(names(folder.parent)) == left


def together(work, *arguments):
    threads = [threading.Thread(target=work, args=(one,)) for one in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("place", ["run", "run[1]"])  # signs that a pattern reads otherwise
def test_nothing_of_one_version_gets_into_the_next(place, tmp_path):
    "Each of three writers has files of its own names."
    folder = tmp_path / place
    faults = []

    def write_often(name):
        for n in range(20):
            try:
                write(folder, **{f"{name}{i}": str(n) for i in range(4)})
            except Exception as error:
                faults.append(error)

    together(write_often, "x", "y", "z")
    assert not faults
    check_files(folder)
    assert len(names(folder)) == 5 and foreign_files(folder) == []
    assert names(tmp_path) == [place]


def test_readers_see_one_version(tmp_path):
    folder = tmp_path / "model"
    write(folder, config="0", weights="0")
    stop = threading.Event()
    torn = []

    def keep_writing():
        n = 1
        while not stop.is_set():
            write(folder, config=str(n), weights=str(n))
            n += 1

    def read(_):
        for _ in range(25):
            a, b = read_folder(
                folder, lambda f: ((f / "config").read_text(), (f / "weights").read_text())
            )
            if a != b:
                torn.append((a, b))

    writer = threading.Thread(target=keep_writing)
    writer.start()
    together(read, *range(4))
    stop.set()
    writer.join()
    assert torn == []


def test_one_writer_locks_out_another_process(tmp_path):
    code = f"""
from annotated_transformer.base.atomic_folders import lock_folder
try:
    with lock_folder({str(tmp_path / "run")!r}):
        print("free")
except ValueError as error:
    print(error)
"""

    def other():
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout

    with lock_folder(tmp_path / "run"):
        assert "no other process is writing to" in other()
    assert other() == "free\n"

    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="a folder that can be made"):
        with lock_folder(tmp_path / "file" / "run"):
            pass


def test_a_file_is_fetched_whole_or_not_at_all(tmp_path):
    there, here = tmp_path / "there", tmp_path / "cache" / "here"
    there.write_bytes(3 * (1 << 20) * b"ab")
    with pytest.raises(OSError, match="SHA-256.*by hand to .*here, or else"):
        fetch_file(there.as_uri(), here, 64 * "0", ", or else")
    assert names(here.parent) == []

    here.write_text("before")
    with pytest.raises(OSError, match="SHA-256"):
        fetch_file(there.as_uri(), here, 64 * "0")
    assert here.read_text() == "before"
    fetch_file(there.as_uri(), here, sha256(there))
    assert here.read_bytes() == there.read_bytes() and names(here.parent) == ["here"]


def test_a_manifest_lists_files_at_any_depth(folder):
    with write_folder(folder) as new:
        (new / "deep").mkdir()
        (new / "deep" / "c").write_bytes(b"ich habe die Katze gesehen")
    files = json.loads((folder / MANIFEST).read_text())["files"]
    assert files == describe_files(folder)
    assert files["deep/c"] == dict(size=26, crc32="2b7d34d3")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("target", ["../elsewhere.txt", "nowhere.txt"])
def test_links_of_others_are_kept_as_they_are(tmp_path, target):
    (tmp_path / "elsewhere.txt").write_text("a")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "link").symlink_to(target)

    with write_folder(tmp_path / "run", overwrite=True) as new:
        (new / "ours.txt").write_text("b")

    assert os.readlink(tmp_path / "run" / "link") == target
    assert (tmp_path / "run" / "ours.txt").read_text() == "b"


def test_a_disk_that_is_full_at_the_last_moment_is_an_oserror(tmp_path, monkeypatch):
    write(tmp_path / "run", a="1")

    def full(old, new):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path / "run", a="2")

    assert (tmp_path / "run" / "a").read_text() == "1"
