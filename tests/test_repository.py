"What is committed: a changelog, a licence, nothing large, and no trace of the machine it was written on."

import json
import re

import on_other_processors
import yaml
from project import ROOT, chapters, make, repository, settings

LARGEST = 1_000_000  # bytes
# someone's home, a package folder, a kernel's temporary file
TRACES = re.compile(
    rb"/(?:root|home|Users|work)/[\w.-]+/?|[\w./-]*/site-packages[/]|/tmp/(?:ipykernel|pytest|tmp)[\w.-]*"
)


def test_changelog_has_this_version():
    path = ROOT / "CHANGELOG.md"
    assert path.exists(), "there is no CHANGELOG.md"
    version = settings()["version"]
    heading = re.compile(rf"^##\s+\[?v?{re.escape(version)}\b", re.M)
    assert heading.search(path.read_text(encoding="utf-8")), (
        f"CHANGELOG.md has no heading for {version}"
    )


def test_licence_is_the_one_that_settings_name():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert (
        settings()["license"] == "apache2"
        and "Apache License" in text
        and "END OF TERMS AND CONDITIONS" in text
    )


def test_ci_tries_both_ends_of_what_settings_allow():
    path = ROOT / ".github" / "workflows" / "test.yml"
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    library = workflow["jobs"]["library"]
    matrix = library["strategy"]["matrix"]
    assert matrix["python"][0] == settings()["min_python"]

    lowest, highest = re.search(
        r"torch>=([\d.]+),<([\d.]+)", settings()["requirements"]
    ).groups()
    major, minor = highest.split(".")
    newest = f"{major}.{int(minor) - 1}"
    tried = [version.rpartition(".")[0] for version in matrix["torch"]]
    assert tried == [lowest, newest]

    # what the tests in the list need is there
    command = library["steps"][-1]["run"].split()
    missing = [word for word in command[2:] if not (ROOT / word).exists()]
    assert command[0] == "pytest" and not missing, missing


def test_ci_runs_what_make_test_leaves_out():
    said = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for target in ("lint", "test", "site", "long"):
        assert f"\nmake {target}\n" in said, target


def test_nightly_rounds_like_every_processor():
    path = ROOT / ".github" / "workflows" / "nightly.yml"
    job = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["processors"]
    assert job["strategy"]["matrix"]["processor"] == list(on_other_processors.PROCESSORS)
    assert "tests/on_other_processors.py --processors" in job["steps"][-1]["run"]

    tried = [
        chapter.name for chapter in chapters() if on_other_processors.trains(chapter.path)
    ]
    assert {"1_model/8_transformer", "4_copy_task/3_attention_maps"} <= {*tried}
    assert "1_model/2_attention" not in tried


def test_issue_forms_are_forms():
    "GitHub ignores a form without these, and says so to nobody."
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name != "config.yml":
            assert form["name"] and form["description"] and form["body"], path.name


def test_no_large_files():
    large = [
        f"{path}: {size:,} bytes"
        for path in repository()
        if (size := (ROOT / path).stat().st_size) > LARGEST
    ]
    assert not large, "\n".join(large)


def test_no_traces_of_a_machine():
    found = [
        f"{path}: {match[0].decode()}"
        for path in repository()
        if path.suffix not in (".png", ".jpg")
        for match in [TRACES.search((ROOT / path).read_bytes())]
        if match
    ]
    assert not found, "\n".join(found)


def test_nothing_built_is_committed():
    built = [
        str(path)
        for path in repository()
        if path.suffix in (".pyc", ".whl", ".pt", ".pth")
        or {"_build", "_docs", "_proc", "build", "dist"} & set(path.parts[:-1])
    ]
    assert not built, built


def test_citation_says_what_settings_say():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    expected = settings()
    licence = {"apache2": "Apache-2.0"}[expected["license"]]
    same = {
        "cff-version": "1.2.0",
        "title": expected["title"],
        "version": expected["version"],
        "license": licence,
        "repository-code": expected["git_url"],
        "authors": [{"name": expected["author"]}],
        "keywords": expected["keywords"].split(),
    }
    assert {name: found[name] for name in same} == same
    assert found["message"] and found["abstract"].rstrip(".") == expected["description"]


def test_citation_names_the_paper():
    (paper,) = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))[
        "references"
    ]
    assert paper["title"] == "Attention Is All You Need" and paper["year"] == 2017
    assert "1706.03762" in paper["url"] and len(paper["authors"]) == 8
    assert paper["authors"][0] == {"family-names": "Vaswani", "given-names": "Ashish"}


def test_container_is_made_by_make():
    found = json.loads(
        (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    )
    program, *targets = found["postCreateCommand"].split()
    helped = [line.split()[1] for line in make("help").stdout.splitlines()]
    assert program == "make" and targets and set(targets) <= set(helped)
    assert re.fullmatch(
        r"mcr\.microsoft\.com/devcontainers/python:3\.1[12]", found["image"]
    )
    assert {"ms-python.python", "ms-toolsai.jupyter"} <= set(
        found["customizations"]["vscode"]["extensions"]
    )


def test_notebooks_merge_with_the_driver_that_make_hooks_installs():
    lines = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    rules = {
        line.split()[0]: line.split()[1:]
        for line in lines
        if line and not line.startswith("#")
    }
    assert "merge=nbdev-merge" in rules["*.ipynb"]
    assert "merge.nbdev-merge.driver" in (ROOT / "tools" / "git_hooks.py").read_text(
        encoding="utf-8"
    )
