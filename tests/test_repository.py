"What is committed: a changelog, a licence, nothing large, and no trace of the machine it was written on."

import re

from project import PACKAGE, ROOT, repository, settings

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
    assert heading.search(path.read_text(encoding="utf-8")), f"CHANGELOG.md has no heading for {version}"


def test_licence_is_the_one_that_settings_name():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert settings()["license"] == "apache2" and "Apache License" in text and "END OF TERMS AND CONDITIONS" in text


def test_no_large_files():
    large = [f"{path}: {size:,} bytes" for path in repository() if (size := (ROOT / path).stat().st_size) > LARGEST]
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


def test_package_has_no_folders():
    "setup.py lists one package, so a folder in it would be left out of the wheel."
    assert {path.parent.name for path in repository() if path.parts[0] == PACKAGE.name} == {PACKAGE.name}
