"""Each notebook is one test, `nbs/1_model/2_attention.ipynb`, in a process of its own: seeds, threads and dtypes cannot leak.

The processes are forked from one that has imported what takes seconds. `NBFLAGS="slow cuda"` in the environment runs the
cells with these flags too.
"""

import multiprocessing
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent / "tests"
LIMIT = 600  # seconds for one notebook; slow cells take the time they need
# These take longer than 25 seconds each, most of it to train: `make long` runs them, and `make test` where they are named.
LONG = (
    "1_model/1_why_attention",
    "1_model/9_one_page",
    "2_training/3_optimizer",
    "2_training/4_training",
    "4_copy_task/2_copy_task",
    "4_copy_task/4_sentence_pairs",
    "5_translation/3_training_a_translator",
    "6_descendants/2_language_model",
    "6_descendants/4_topic_classification",
    "6_descendants/6_image_classification",
    "6_descendants/8_captioning",
    "7_since_2017/3_llama",
    "8_speed/4_distributed",
    "9_practice/2_bugs_in_training",
    "9_practice/3_check_transformer",
    "9_practice/4_from_a_blog_post",
)
for name in LONG:
    assert (TESTS.parent / "nbs" / f"{name}.ipynb").exists(), f"LONG has no notebook {name}"


def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".ipynb" and file_path.name[0] not in "_.":
        return NotebookFile.from_parent(parent, path=file_path)


class NotebookFailed(Exception):
    "Carries what the runner printed."


class NotebookFile(pytest.File):
    def collect(self):
        # the file's own id, so that the item reads as a path and can be pasted back to pytest
        notebook = Notebook.from_parent(self, name=self.path.name, nodeid=self.nodeid)
        if f"{self.path.parent.name}/{self.path.stem}" in LONG:
            notebook.add_marker("long")
        yield notebook


class Notebook(pytest.Item):
    def runtest(self):
        flags = os.environ.get("NBFLAGS", "").replace(",", " ").split()
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder) / "said.txt"
            process = start(self.path, flags, said)
            process.join(None if flags else LIMIT)
            if process.exitcode is None:
                process.kill()
                process.join()
                raise NotebookFailed(f"{self.nodeid} had not ended after {LIMIT} seconds")
            if process.exitcode:
                words = (
                    said.read_text(encoding="utf-8", errors="replace").strip()
                    if said.exists()
                    else ""
                )
                raise NotebookFailed(words or f"the process ended with {process.exitcode}")

    def repr_failure(self, excinfo, style=None):
        return (
            str(excinfo.value)
            if excinfo.errisinstance(NotebookFailed)
            else super().repr_failure(excinfo, style)
        )

    def reportinfo(self):
        return self.path, None, f"notebook {self.path.stem}"


@cache
def processes():
    "Where new processes come from: copies of one that has imported much and computed nothing, or new ones where nothing forks."
    # as many threads as there are processors for each of pytest's workers; more only get into each other's way
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.path.insert(0, str(TESTS))
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # torch._dynamo is what the first optimizer of a process imports, in two seconds
    context.set_forkserver_preload(
        ["run_notebook", "torch", "torch._dynamo", "matplotlib.pyplot"]
    )
    return context


def start(path: Path, flags: list, said: Path):
    context = processes()
    from run_notebook import run_apart

    process = context.Process(target=run_apart, args=(path.resolve(), flags, said))
    process.start()
    return process
