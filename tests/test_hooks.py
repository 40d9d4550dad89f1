"What `make hooks` installs: notebooks are cleaned before a commit, the library is exported, and both sides of a merge survive."

import copy
import json
import os
import shutil
import subprocess
import sys

import pytest
from project import ROOT

pytestmark = pytest.mark.slow

FILES = (
    "settings.ini",
    "setup.py",
    "README.md",
    ".gitattributes",
    ".gitignore",
    ".pre-commit-config.yaml",
    "tools/git_hooks.py",
)
NOTEBOOK = "nbs/01_numbers.ipynb"
MODULE = "annotated_transformer/numbers.py"


def cell(number: int) -> dict:
    source = f"#| export\nnumber_{number} = {number}"
    if number == 0:
        source = "#| default_exp numbers"
    return dict(
        cell_type="code",
        id=f"c{number}",
        metadata={},
        execution_count=None,
        outputs=[],
        source=[source],
    )


def environment(home) -> dict[str, str]:
    "No activated environment, no network, no settings of whoever runs the tests."
    mine = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT", "PYTHON"))
        and name not in ("IN_TEST", "VIRTUAL_ENV", "SKIP")
    }
    return mine | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }


class Clone:
    "A git repository with the files that the hooks need and one notebook."

    def __init__(self, folder, home):
        self.folder = folder
        self.env = environment(home)
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        (folder / "annotated_transformer").mkdir()
        (folder / "nbs").mkdir()

        self.git("init", "-q", "-b", "main")
        self.write([cell(number) for number in range(6)])
        self.hook("clean", NOTEBOOK)
        self.hook("export")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "start")

    def run(self, *words, check=True):
        done = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True
        )
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def git(self, *words, check=True):
        return self.run("git", *words, check=check)

    def hook(self, *words):
        return self.run(sys.executable, "tools/git_hooks.py", *words, check=False)

    def commit(self, message="change", check=True):
        return self.git("commit", "-q", "-a", "-m", message, check=check)

    def write(self, cells, **metadata):
        notebook = dict(cells=cells, metadata=metadata, nbformat=4, nbformat_minor=5)
        text = json.dumps(notebook, indent=1, sort_keys=True)
        (self.folder / NOTEBOOK).write_text(text + "\n", encoding="utf-8")

    def read(self) -> dict:
        return json.loads((self.folder / NOTEBOOK).read_text(encoding="utf-8"))

    def sources(self) -> list[str]:
        return ["".join(part["source"]) for part in self.read()["cells"]]

    def change(self, index, source, **more):
        found = self.read()
        found["cells"][index] |= dict(source=[source], **more)
        self.write(found["cells"], **found["metadata"])

    def merge(self, ours: dict, theirs: dict):
        "Each side changes the cells that it names, exports and commits; then theirs is merged into ours."
        # an apostrophe, which nbdev_merge would hand to the shell
        subject = "Don't drop what this side did"
        for branch, changes in (("theirs", theirs), ("ours", ours)):
            self.git("checkout", "-q", "-b", branch, "main")
            for index, source in changes.items():
                self.change(index, source)
            self.hook("export")
            self.commit(subject)
        return self.git("merge", "--no-edit", "theirs", check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    "After `make hooks`, in a folder with a blank and an apostrophe in its name."
    top = tmp_path_factory.mktemp("hooks")
    folder = top / "some one's clone"
    home = top / "home"
    folder.mkdir()
    home.mkdir()

    made = Clone(folder, home)
    done = made.hook("install")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture
def clone(installed, tmp_path):
    "A copy, because git does not care where a repository is."
    made = copy.copy(installed)
    made.folder = tmp_path / installed.folder.name
    shutil.copytree(installed.folder, made.folder, symlinks=True)
    return made


def test_a_dirty_notebook_is_cleaned_and_the_commit_refused_once(clone):
    clone.change(1, "dirty = 1", execution_count=7, metadata=dict(scrolled=True))

    done = clone.commit(check=False)
    assert done.returncode
    assert "is clean now" in done.stdout + done.stderr
    found = clone.read()["cells"][1]
    assert found["metadata"] == {}
    assert found["execution_count"] is None
    assert clone.sources()[1] == "dirty = 1"

    clone.commit()
    assert clone.git("status", "--porcelain").stdout == ""


def test_the_library_is_exported(clone):
    clone.change(1, "#| export\nnumber_1 = 100")

    assert clone.commit(check=False).returncode, "the module was not what is exported"
    clone.commit()

    assert "number_1 = 100" in clone.git("show", f"HEAD:{MODULE}").stdout


def test_a_new_module_belongs_to_its_commit(clone):
    clone.change(0, "#| default_exp figures")

    done = clone.commit(check=False)

    assert done.returncode
    assert "git add annotated_transformer/figures.py" in done.stdout + done.stderr


def test_different_cells_merge(clone):
    done = clone.merge(
        ours={1: "#| export\nnumber_1 = 'ours'"},
        theirs={4: "#| export\nnumber_4 = 'theirs'"},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert clone.sources()[1].endswith("'ours'")
    assert clone.sources()[4].endswith("'theirs'")
    assert len(clone.sources()) == 6


def test_one_cell_changed_twice_is_a_conflict_in_a_valid_notebook(clone):
    done = clone.merge(
        ours={1: "one = 'ours'", 3: "three = 'ours'"},
        theirs={1: "one = 'theirs'", 5: "five = 'theirs'"},
    )

    assert done.returncode
    sources = clone.sources()
    assert {"one = 'ours'", "one = 'theirs'"} <= set(sources)
    assert {"three = 'ours'", "five = 'theirs'"} <= set(sources)

    clone.git("add", ".")
    done = clone.commit(check=False)
    assert done.returncode
    assert "holds cells in conflict" in done.stdout + done.stderr
