"What is committed: nothing large, and no trace of the machine it was written on. What is promised to run is tried."

import re

import yaml
from project import ROOT, repository, settings

LARGEST = 1_000_000  # bytes
# someone's home, a package folder, a kernel's temporary file
TRACES = re.compile(
    rb"/(?:root|home|Users|work)/[\w.-]+/?|[\w./-]*/site-packages[/]|/tmp/(?:ipykernel|pytest|tmp)[\w.-]*"
)


def test_ci_tries_the_oldest_that_settings_allow():
    path = ROOT / ".github" / "workflows" / "test.yml"
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["library"]["strategy"]["matrix"]
    assert matrix["python"][0] == settings()["min_python"]

    lowest = re.search(r"torch>=([\d.]+)", settings()["requirements"])[1]
    assert matrix["torch"][0].rpartition(".")[0] == lowest


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
