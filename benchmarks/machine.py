"""What every result of this folder says about where it came from."""
import datetime
import json
import os
import platform
import subprocess
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    "The processor's name, where the system tells it."
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0] if names and names[0] != "unknown" else platform.processor() or platform.machine()


def git(*words: str) -> str:
    "What git says in this repository, or 'unknown'."
    try:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=RESULTS.parents[1]).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def commit() -> str:
    "The commit that was measured, marked when something other than results had changed."
    changed = git("status", "--porcelain", "--", ".", ":!benchmarks/results")
    return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


def origin(device: str) -> dict:
    "Device, versions, date and commit."
    return dict(
        device=torch.cuda.get_device_name() if device == "cuda" else f"{processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
        torch=torch.__version__,
        python=platform.python_version(),
        date=datetime.date.today().isoformat(),
        commit=commit(),
    )


def save(name: str, device: str, **content) -> Path:
    "Write results/NAME.json with its origin first."
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(dict(origin=origin(device), **content), indent=1) + "\n")
    return path
