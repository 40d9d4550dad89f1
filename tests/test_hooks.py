"What `make hooks` installs: notebooks are cleaned before a commit, the library is exported, and both sides of a merge survive."

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from project import ROOT, settings

FILES = (
    "settings.ini",
    "setup.py",
    "README.md",
    ".gitattributes",
    ".gitignore",
    ".pre-commit-config.yaml",
    "nbs/git_hooks.py",
)
SUBJECT = (
    "Don't drop what this side did"  # an apostrophe, which nbdev_merge hands to the shell
)


class Clone:
    "A git repository with the files that the hooks need and one notebook."

    notebook, module = "nbs/01_numbers.ipynb", "annotated_transformer/numbers.py"

    def __init__(self, folder, home):
        self.folder = folder
        mine = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GIT", "PYTHON"))
        }
        self.env = {
            **{
                name: value
                for name, value in mine.items()
                if name not in ("IN_TEST", "VIRTUAL_ENV", "SKIP")
            },
            **dict(
                HOME=str(home),
                XDG_CONFIG_HOME=str(home),
                PRE_COMMIT_HOME=str(home / "pre-commit"),
                GIT_CONFIG_NOSYSTEM="1",
            ),
            **{
                f"GIT_{who}_{what}": "a@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
            "PATH": "/usr/local/bin:/usr/bin:/bin",  # no activated environment
            "http_proxy": "http://127.0.0.1:9",  # and no network
            "https_proxy": "http://127.0.0.1:9",
        }
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        (folder / "annotated_transformer").mkdir()
        self.git("init", "-q", "-b", "main")
        self.write([cell(number) for number in range(6)])
        self.python("nbs/git_hooks.py", "clean", self.notebook)
        self.python("nbs/git_hooks.py", "export")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "start")

    def python(self, *words, check=False):
        return self.run(sys.executable, *words, check=check)

    def run(self, *words, check=True):
        done = subprocess.run(
            [*words], cwd=self.folder, env=self.env, capture_output=True, text=True
        )
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def git(self, *words, check=True):
        return self.run("git", *words, check=check)

    def write(self, cells, **metadata):
        text = json.dumps(
            dict(cells=cells, metadata=metadata, nbformat=4, nbformat_minor=5),
            indent=1,
            sort_keys=True,
        )
        (self.folder / self.notebook).write_text(text + "\n", encoding="utf-8")

    def read(self):
        return json.loads((self.folder / self.notebook).read_text(encoding="utf-8"))

    def sources(self):
        return ["".join(part["source"]) for part in self.read()["cells"]]

    def change(self, index, source, **more):
        found = self.read()
        found["cells"][index] |= dict(source=[source], **more)
        self.write(found["cells"], **found["metadata"])

    def commit(self, message="change", check=True):
        return self.git("commit", "-q", "-a", "-m", message, check=check)

    def branches(self, ours, theirs):
        "Each side changes the cells that it names, exports and commits."
        self.git("checkout", "-q", "-b", "theirs")
        for changes, message in ((theirs, SUBJECT), (ours, "ours")):
            if changes is ours:
                self.git("checkout", "-q", "main")
            for index, source in changes.items():
                self.change(index, source)
            self.python("nbs/git_hooks.py", "export")
            self.commit(message)


def cell(number):
    source = (
        ["#| default_exp numbers"]
        if number == 0
        else ["#| export\n", f"number_{number} = {number}"]
    )
    return dict(
        cell_type="code",
        id=f"c{number}",
        metadata={},
        execution_count=None,
        outputs=[],
        source=source,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    "After `make hooks`, twice, in a folder with a blank and an apostrophe in its name."
    top = tmp_path_factory.mktemp("hooks")
    folder, home = top / "some one's clone", top / "home"
    folder.mkdir()
    home.mkdir()
    made = Clone(folder, home)
    states = []
    for _ in range(2):
        done = made.python("nbs/git_hooks.py", "install")
        assert done.returncode == 0, done.stdout + done.stderr
        states.append(
            [
                made.git("config", "--local", "--list").stdout,
                *(path.read_text() for path in hooks(made)),
            ]
        )
    assert states[0] == states[1] and len(states[0]) == 2
    return made


@pytest.fixture
def clone(installed, tmp_path):
    "A copy, because git does not care where a repository is."
    made = copy.copy(installed)
    made.folder = tmp_path / installed.folder.name
    shutil.copytree(installed.folder, made.folder, symlinks=True)
    return made


def hooks(clone):
    return [
        path
        for path in (clone.folder / ".git" / "hooks").iterdir()
        if path.suffix != ".sample"
    ]


def test_make_hooks_calls_the_installer():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(
        r'^hooks: \$\(VENV\)/\.dev ## .+\n\t"\$\(BIN\)/python" nbs/git_hooks\.py install$',
        text,
        re.M,
    )


def test_configuration_fetches_nothing():
    found = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert {repo["repo"] for repo in found["repos"]} == {"local"}
    assert {hook["language"] for repo in found["repos"] for hook in repo["hooks"]} == {
        "system"
    }
    assert {hook["id"] for repo in found["repos"] for hook in repo["hooks"]} == {
        "nbdev-clean",
        "nbdev-export",
    }


def test_only_the_clone_is_changed(clone):
    assert settings()["jupyter_hooks"] == "False"
    assert not Path(clone.env["HOME"], ".jupyter").exists(), "Jupyter saves as it did"
    assert clone.git("status", "--porcelain").stdout == ""


def test_without_a_clone_nothing_is_installed(tmp_path):
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    command = [sys.executable, ROOT / "nbs" / "git_hooks.py", "install"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (
        done.returncode
        and "nothing was installed" in done.stderr
        and not list(tmp_path.iterdir())
    )


def test_a_dirty_notebook_is_cleaned_and_the_commit_refused_once(clone):
    clone.change(1, "dirty = 1", execution_count=7, metadata=dict(scrolled=True))
    clone.write(clone.read()["cells"], language_info=dict(version="3.11.2"))
    done = clone.commit(check=False)
    assert done.returncode and "is clean now" in done.stdout + done.stderr
    found = clone.read()
    assert found["metadata"] == {} and found["cells"][1]["metadata"] == {}
    assert (
        found["cells"][1]["execution_count"] is None and clone.sources()[1] == "dirty = 1"
    )
    clone.commit()
    assert clone.git("status", "--porcelain").stdout == ""
    assert json.loads(clone.git("show", f"HEAD:{clone.notebook}").stdout) == found


def test_the_library_is_exported(clone):
    clone.change(1, "#| export\nnumber_1 = 100")
    assert clone.commit(check=False).returncode, (
        "the module was not what the notebook exports"
    )
    clone.commit()
    assert "number_1 = 100" in clone.git("show", f"HEAD:{clone.module}").stdout


def test_a_new_module_belongs_to_its_commit(clone):
    clone.change(0, "#| default_exp figures")
    done = clone.commit(check=False)
    assert (
        done.returncode
        and "git add annotated_transformer/figures.py" in done.stdout + done.stderr
    )


def test_what_is_not_staged_is_left_alone(clone):
    clone.change(1, "not_staged = 1", execution_count=7)
    before = (clone.folder / clone.notebook).read_bytes()
    (clone.folder / "README.md").write_text("changed\n", encoding="utf-8")
    clone.git("commit", "-q", "-m", "words", "README.md")
    assert (clone.folder / clone.notebook).read_bytes() == before


@pytest.mark.parametrize(
    "text,words",
    [("<<<<<<< HEAD\n{}\n=======\n>>>>>>> b\n", "nbdev_fix"), ("[]", "is not a notebook")],
)
def test_what_is_no_notebook_is_refused(clone, text, words):
    (clone.folder / clone.notebook).write_text(text, encoding="utf-8")
    done = clone.commit(check=False)
    assert done.returncode and words in done.stdout + done.stderr
    assert (clone.folder / clone.notebook).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_different_cells_merge(clone, how):
    clone.branches(
        ours={1: "#| export\nnumber_1 = 'ours'"},
        theirs={4: "#| export\nnumber_4 = 'theirs'"},
    )
    if how == "rebase":
        clone.git("checkout", "-q", "theirs")
    clone.git(how, *(["--no-edit", "theirs"] if how == "merge" else ["main"]))
    assert clone.sources()[1].endswith("'ours'") and clone.sources()[4].endswith("'theirs'")
    assert len(clone.sources()) == 6 and "<<<<" not in (
        clone.folder / clone.notebook
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_one_cell_changed_twice_is_a_conflict_in_a_valid_notebook(clone, how):
    clone.branches(
        ours={1: "one = 'ours'", 3: "three = 'ours'"},
        theirs={1: "one = 'theirs'", 5: "five = 'theirs'"},
    )
    if how == "rebase":
        clone.git("checkout", "-q", "theirs")
    assert clone.git(how, "theirs" if how == "merge" else "main", check=False).returncode
    sources = clone.sources()
    assert {"one = 'ours'", "one = 'theirs'", "three = 'ours'", "five = 'theirs'"} <= set(
        sources
    )
    assert any(source.startswith("`<<<<<<<") for source in sources)
    clone.git("add", ".")
    done = clone.commit(check=False)
    assert done.returncode and "holds cells in conflict" in done.stdout + done.stderr


def test_cells_put_in_one_place_by_both_sides_are_both_kept(clone):
    base = clone.read()["cells"]
    clone.git("checkout", "-q", "-b", "theirs")
    clone.write([*base, cell(7)])
    clone.python("nbs/git_hooks.py", "export")
    clone.commit("theirs")
    clone.git("checkout", "-q", "main")
    clone.write([*base, cell(8)])
    clone.python("nbs/git_hooks.py", "export")
    clone.commit("ours")
    clone.git("merge", "theirs", check=False)
    assert {"number_7 = 7", "number_8 = 8"} <= {
        source.splitlines()[-1] for source in clone.sources()
    }


def test_without_the_environment_git_merges_text(clone):
    clone.branches(
        ours={1: "#| export\nnumber_1 = 'ours'"},
        theirs={4: "#| export\nnumber_4 = 'theirs'"},
    )
    driver = clone.git("config", "merge.nbdev-merge.driver").stdout
    gone = driver.replace("/python", "/no-python").strip()
    clone.git("config", "merge.nbdev-merge.driver", gone)
    assert gone != driver.strip()
    clone.git("merge", "--no-edit", "theirs")
    assert clone.sources()[1].endswith("'ours'") and clone.sources()[4].endswith("'theirs'")
