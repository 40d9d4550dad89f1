"The site as it is built from the working tree, once for all tests, and a server for it."

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest
from filelock import FileLock
from project import ROOT

PACKAGES = (
    "sphinx",
    "myst_nb",
    "sphinx_book_theme",
    "sphinx_design",
    "sphinx_copybutton",
    "bs4",
)


def need_tools():
    "Skip a file of tests where the site cannot be built."
    for package in PACKAGES:
        reason = f"the site needs {package}: pip install -e '.[docs]'"
        pytest.importorskip(package, reason=reason)


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    "The folder of the site, and how sphinx-build ended: its exit code, and what it complained of."
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent  # shared by the workers: who comes second waits for the first

    target = ROOT / "docs" / "_build" / "html"  # as `make docs`
    ended = base / "site.json"
    words = "-W --keep-going -q -b html -c docs nbs".split()

    with FileLock(base / "site.lock"):
        if not ended.exists():
            shutil.rmtree(target, ignore_errors=True)  # all warnings come again
            done = subprocess.run(
                [sys.executable, "-m", "sphinx", *words, target],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            ended.write_text(json.dumps([done.returncode, done.stderr]), encoding="utf-8")

    return target, *json.loads(ended.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def site(build):
    target, _, complaints = build
    assert (target / "index.html").exists(), complaints
    return target


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address(site):
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
