"""Each notebook is one test, `nbs/02_attention.ipynb`, in a process of its own: seeds, threads and dtypes cannot leak.

`NBFLAGS="slow cuda"` in the environment runs the cells with these flags too.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parent.parent / "tests" / "run_notebook.py"
LIMIT = 600  # seconds for one notebook; slow cells take the time they need


def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".ipynb" and file_path.name[0] not in "_.":
        return NotebookFile.from_parent(parent, path=file_path)


class NotebookFailed(Exception):
    "Carries what the runner printed."


class NotebookFile(pytest.File):
    def collect(self):
        # the file's own id, so that the item reads as a path and can be pasted back to pytest
        yield Notebook.from_parent(self, name=self.path.name, nodeid=self.nodeid)


class Notebook(pytest.Item):
    def runtest(self):
        flags = os.environ.get("NBFLAGS", "").replace(",", " ").split()
        try:
            done = subprocess.run(
                [sys.executable, RUNNER, self.path, *flags],
                env=environment(),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=None if flags else LIMIT,
            )
        except subprocess.TimeoutExpired as late:
            raise NotebookFailed(f"{self.nodeid} had not ended after {late.timeout:.0f} seconds") from None
        if done.returncode:
            raise NotebookFailed(f"{done.stdout}{done.stderr}".strip() or f"the process ended with {done.returncode}")

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if excinfo.errisinstance(NotebookFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"notebook {self.path.stem}"


def environment() -> dict:
    "As many threads as there are processors for each of pytest's workers; more only get into each other's way."
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    return {"OMP_NUM_THREADS": threads, "OMP_WAIT_POLICY": "passive", **os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
