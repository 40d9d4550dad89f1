"""Do the notebooks' claims hold on other processors? `python tests/on_other_processors.py [nbs/1_model/8_transformer.ipynb ...]`.

Processors and numbers of threads round differently, and a training turns the last digit into another model. Each
notebook runs, as its test does, under every setting: ATen and MKL, the libraries that PyTorch computes with, are told
to be on a processor of the named kind. A line is printed for each run that has ended, at the end a table.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PROCESSORS = {
    "own": {},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "default": {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"},
}


def trains(path: Path) -> bool:
    "Whether some cell trains a model."
    source = path.read_text(encoding="utf-8")
    return re.search(r"\b(train|run_copy_task)\(|\.backward\(", source) is not None


def run(path: Path, processor: str, threads: int) -> str:
    "'ok', or the line that says which cell failed and why."
    start = time.perf_counter()
    threading = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(
        [sys.executable, TESTS / "run_notebook.py", path],
        env=os.environ | PROCESSORS[processor] | threading,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )

    result = "ok"
    if done.returncode:
        cells = re.findall(r"^cell \d+ \(.*", done.stdout, re.M)
        result = (cells or done.stdout.splitlines() or ["failed without a word"])[-1]
    seconds = time.perf_counter() - start
    print(f"{path.name}, {processor}/{threads}, {seconds:.0f} s: {result}", flush=True)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "notebooks", nargs="*", type=Path, help="default: all that train a model"
    )
    parser.add_argument(
        "--processors", nargs="+", choices=PROCESSORS, default=list(PROCESSORS)
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument(
        "--at-once", type=int, default=2, help="notebooks that run together"
    )
    options = parser.parse_args()

    chapters = sorted((TESTS.parent / "nbs").glob("*/*.ipynb"))
    notebooks = [path.resolve() for path in options.notebooks or filter(trains, chapters)]
    settings = list(product(options.processors, options.threads))
    jobs = [(path, *setting) for setting in settings for path in notebooks]

    with ThreadPoolExecutor(options.at_once) as pool:
        results = dict(zip(jobs, pool.map(lambda job: run(*job), jobs)))

    names = [f"{processor}/{threads}" for processor, threads in settings]
    print("", "notebook".ljust(50) + " ".join(name.ljust(9) for name in names), sep="\n")
    for path in notebooks:
        found = [results[(path, *setting)] == "ok" for setting in settings]
        marks = [("ok" if ok else "failed").ljust(9) for ok in found]
        print(path.name.ljust(50) + " ".join(marks))
    sys.exit(any(result != "ok" for result in results.values()))
