"""Where a result came from, and the file that it is kept in: what all scripts of this folder share."""

import argparse
import datetime
import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
# folders whose Python files a result depends on
MEASURED = ("annotated_transformer", "benchmarks")


def arguments(doc: str) -> argparse.ArgumentParser:
    "A parser with the options of every script."
    parser = argparse.ArgumentParser(
        description=doc.splitlines()[0],
        epilog=doc.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--out",
        type=Path,
        default=RESULTS,
        help="folder for the results [default: benchmarks/results]",
    )
    parser.add_argument(
        "--commit", help="the commit of a copy that came without git's history"
    )
    parser.add_argument(
        "--dirty",
        action="store_true",
        help="measure a changed tree all the same; the result says so",
    )
    return parser


def git(*words: str) -> str | None:
    "What git says in this repository; None where there is no git, or no repository."
    try:
        return subprocess.run(
            ["git", *words], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def commit(said: str | None = None, dirty: bool = False) -> str:
    "The commit that is measured. Exits when the tree differs from it, or it is unknown, unless `dirty`."
    head = git("rev-parse", "--short=9", "HEAD") if (ROOT / ".git").exists() else None
    changed = head and git("status", "--porcelain", "--", ".", ":!benchmarks/results")
    if head and said and git("rev-parse", "--short=9", said) != head:
        raise SystemExit(f"--commit: got {said}, but the tree is {head}")
    if changed and not dirty:
        raise SystemExit(
            f"the tree differs from commit {head}; commit first, or say --dirty:\n{changed}"
        )
    if not head and not said and not dirty:
        raise SystemExit(
            "there is no git repository here; name the commit with --commit, or say --dirty"
        )
    return (head or said or "unknown") + ("-dirty" if changed else "")


def fingerprint(blobs: dict[str, str]) -> str:
    "One short hash of many files, from git's hash of each."
    return hashlib.sha1(
        "".join(f"{path} {blobs[path]}\n" for path in sorted(blobs)).encode()
    ).hexdigest()[:12]


def code() -> str:
    "The fingerprint of the library and these scripts as they are on the disk."
    files = [path for folder in MEASURED for path in (ROOT / folder).rglob("*.py")]
    contents = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files}
    return fingerprint(
        {
            name: hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()
            for name, text in contents.items()
        }
    )


def code_at(commit: str) -> str | None:
    "The fingerprint of the library and these scripts at a commit; None for an unknown one."
    listed = git("ls-tree", "-r", commit, "--", *MEASURED)
    if listed is None:
        return None
    entries = [line.partition("\t") for line in listed.splitlines()]
    return fingerprint(
        {path: meta.split()[2] for meta, _, path in entries if path.endswith(".py")}
    )


def processor() -> str:
    "The processor's name, where the system tells it."
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":")[1].strip()
                if name != "unknown":
                    return name
                break
    return platform.processor() or platform.machine()


def driver() -> str:
    "The version of the GPU's driver, or 'unknown'."
    try:
        words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(
            words, capture_output=True, text=True, check=True
        ).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def device_name(device: str) -> str:
    "The GPU's name, or the processor's with what is used of it."
    if device == "cuda":
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return f"{processor()}, {os.cpu_count()} cores, {threads} thread{'s' if threads > 1 else ''}"


def origin(device: str, said: str | None = None, dirty: bool = False) -> dict:
    "Device, driver, versions, date, commit, and the fingerprint of the code."
    gpu = dict(driver=driver(), cuda=torch.version.cuda) if device == "cuda" else {}
    return dict(
        device=device_name(device),
        **gpu,
        torch=torch.__version__,
        python=platform.python_version(),
        date=datetime.date.today().isoformat(),
        commit=commit(said, dirty),
        code=code(),
    )


def seconds(work: Callable[[], object], device: str) -> float:
    "Of one call, with all that it leaves the GPU to do."
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def product(size: int, device: str, dtype: torch.dtype) -> Callable[[], torch.Tensor]:
    "One product of two matrices, as a function: what a machine reaches at best."
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b


def rounded(x: float) -> float:
    return float(f"{x:.4g}")  # to four digits


def write_json(path: Path, content):
    "Replace a file as a whole, so that a run that is stopped leaves the old one."
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(beside, path)


class Results:
    "One file of results. Where they come from is noted, and checked, before anything is measured."

    def __init__(self, name: str, options: argparse.Namespace):
        self.path = options.out / f"{name}.json"
        self.origin = origin(options.device, options.commit, options.dirty)

    def save(self, **content) -> Path:
        write_json(self.path, dict(origin=self.origin, **content))
        return self.path

    def save_seeds(self, runs: list[dict]) -> Path:
        """Runs with a `seed` each; those of other seeds and the same configuration, which the file has from other days or
        machines, stay. Each says where it comes from."""
        kept = [dict(origin=self.origin) | run for run in runs]

        # a run without an origin of its own has that of its file
        if self.path.is_file():
            before = json.loads(self.path.read_text())
            seeds = {run["seed"] for run in runs}
            for run in before["runs"]:
                if run["seed"] not in seeds and recipe(run) == recipe(runs[0]):
                    kept.append(dict(origin=before["origin"]) | run)
        return self.save(runs=sorted(kept, key=lambda run: run["seed"]))


def recipe(run: dict) -> dict:
    "What two runs must have in common to be shown together: configuration, and what was measured, but not the seed."
    measured = sorted(run.keys() - {"origin"})
    return run.get("config", {}) | dict(seed=None, measured=measured)
