"""What git does with notebooks: `python tools/git_hooks.py install` in a clone, which `make hooks` calls.

`clean` and `export` are called before a commit (`.pre-commit-config.yaml`), `merge` by git wherever both sides changed
a notebook (`.gitattributes`). The work is done by nbdev's tools.

`nbdev_install_hooks` is not used: it changes Jupyter's settings for all projects of its user, cleans nothing before a
commit, needs an activated environment, and fails in a linked worktree. Saving in Jupyter changes nothing here either way:
settings.ini says `jupyter_hooks = False`.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

MARKER = re.compile(r"^`?(<{7}|={7}|>{7})( |`|$)", re.M)


def git(*words: str) -> str:
    "What git answers."
    return subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True
    ).stdout


def install():
    "Tell git about this environment; a second time changes nothing."
    tools = Path(sys.executable).absolute().parent
    python = shlex.quote(str(tools / "python"))
    try:
        os.chdir(git("rev-parse", "--show-toplevel").removesuffix("\n"))
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(
            "make hooks needs git and a clone: this folder is not one, and nothing was installed"
        ) from None
    # Without the environment, or on a commit older than this file, git merges notebooks as it merges other text.
    driver = f"if [ -x {python} ] && [ -f tools/git_hooks.py ]; then {python} tools/git_hooks.py merge %O %A %B %P; else git merge-file %A %O %B; fi"
    git("config", "--local", "merge.nbdev-merge.name", "merge notebooks by cells")
    git("config", "--local", "merge.nbdev-merge.driver", driver)
    git("config", "--local", "notebooks.python", str(tools / "python"))
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "install", "--allow-missing-config"]
    )
    if done.returncode:
        raise SystemExit(
            "pre-commit could not install its hook (see above); the merge driver is installed"
        )


def faults(path: Path) -> str:
    "Why a notebook cannot be committed, or nothing."
    text = path.read_text(encoding="utf-8")
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError):
        if MARKER.search(text):
            return f"holds conflict markers: {shlex.quote(str(Path(sys.executable).parent / 'nbdev_fix'))} {path} turns them into cells"
        return "is not a notebook: it cannot be read as JSON with cells"
    if any(
        MARKER.search("".join(cell["source"]))
        for cell in cells
        if cell["cell_type"] == "markdown"
    ):
        return "holds cells in conflict: keep one side of each, and delete the cells with <<<<<<<, ======= and >>>>>>>"
    return ""


def clean(*paths: str) -> int:
    "nbdev_clean, in words; 1 if a notebook was changed or cannot be committed."
    from nbdev.clean import nbdev_clean

    failed = 0
    for path in map(Path, paths):
        fault, before = faults(path), path.read_bytes()
        if not fault:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter(
                        "error", UserWarning
                    )  # all that nbdev_clean does about a failure is warn
                    nbdev_clean.__wrapped__(fname=str(path))
            except UserWarning as warning:
                fault = f"cannot be cleaned: {warning.__context__ or warning}"
            if path.read_bytes() != before:
                fault = f"is clean now: look at it, then git add {path}"
        if fault:
            print(f"{path} {fault}")
            failed = 1
    return failed


def export() -> int:
    "nbdev_export; 1 if git does not know a module that it wrote. pre-commit sees the modules that it changed."
    from nbdev.config import get_config
    from nbdev.doclinks import nbdev_export

    nbdev_export.__wrapped__(path=None, procs=None)
    new = git(
        "ls-files", "--others", "--exclude-standard", "--", str(get_config().lib_path)
    ).splitlines()
    for path in new:
        print(f"{path} was exported and is not in git: git add {path}")
    return int(bool(new))


def merge(base: str, ours: str, theirs: str, name: str) -> int:
    """Merge `theirs` into `ours`: as text, and where that fails as cells; 1 if something is left to decide.

    nbdev_merge does the same, but gives the shell a command with the subject of a commit in it: an apostrophe there,
    and all that the other side did is dropped as if it had been merged.
    """
    from nbdev.merge import nbdev_fix

    done = subprocess.run(
        [
            "git",
            "merge-file",
            "-L",
            "HEAD",
            "-L",
            "BASE",
            "-L",
            "THEIRS",
            ours,
            base,
            theirs,
        ]
    )
    if not 0 <= done.returncode < 128:
        return done.returncode
    try:
        if done.returncode:
            return int(nbdev_fix.__wrapped__(ours, noprint=True))
        json.loads(Path(ours).read_text(encoding="utf-8"))
        return 0
    except Exception as error:  # what git made of it stays, and is a conflict
        print(
            f"{name}: cannot be merged by cells ({type(error).__name__}: {error})",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    os.environ.pop("IN_TEST", None)  # nbdev exports nothing while it is set
    command, *words = sys.argv[1:] or ["no command"]
    commands = dict(install=install, clean=clean, export=export, merge=merge)
    if command not in commands:
        raise SystemExit(f"{command}: not one of {', '.join(commands)}")
    sys.exit(commands[command](*words))
