"""Everything that this project wants to know of a GPU, by one command that can be stopped and called again.

    python benchmarks/support/gpu.py --minutes 9           the stages in their order, as many jobs as fit
    python benchmarks/support/gpu.py --list                stages, jobs, expected minutes, and what is done
    python benchmarks/support/gpu.py --only decoding       one stage
    python benchmarks/support/gpu.py --rehearse            every job in small on a CPU, in two minutes, through the same code
    python benchmarks/support/gpu.py --take FOLDER         check results that were made elsewhere with --out, and keep them

A job whose result for this device and this code is there is not done again. What was never done comes before what has a result of
earlier code. A job starts if its expected minutes are left; one that fails is recorded with its traceback, and the others go on. It
installs nothing and needs no network. Each stage runs in processes of its own, because an error on a GPU can leave a process useless.
Results lie in FOLDER/gpu_STAGE.json, by default in benchmarks/results; what was said is in FOLDER/gpu.log.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import RESULTS, ROOT, arguments, code, code_at, origin, write_json
from support.stages import STAGES, Context, Job, Stage

LEFT_OVER = 30  # seconds before the end at which a job is told to stop
GRACE = 15  # seconds that it then has


def file_of(folder: Path, stage: str) -> Path:
    return folder / f"gpu_{stage}.json"


def read_rows(folder: Path, stage: str) -> list[dict]:
    "The results of a stage, those of all devices and of earlier code too."
    path = file_of(folder, stage)
    return json.loads(path.read_text()) if path.is_file() else []


def keep_row(folder: Path, row: dict):
    "Put a result to the others. It replaces what it makes obsolete: a good one all of the same job and device."

    def obsolete(old: dict) -> bool:
        if old["job"] != row["job"] or old["origin"]["device"] != row["origin"]["device"]:
            return False
        if is_good(row):
            return True
        same_code = old["origin"]["code"] == row["origin"]["code"]
        return same_code and not is_good(old)

    rows = [old for old in read_rows(folder, row["stage"]) if not obsolete(old)]
    write_json(file_of(folder, row["stage"]), [*rows, row])


def is_good(row: dict) -> bool:
    "Whether a result is one: no error, and no training that was stopped."
    return "result" in row and not row["result"].get("metrics", {}).get("interrupted")


def best_row(rows: list[dict], job: str, device: str | None = None) -> dict | None:
    "The newest good result of a job, else its newest failure; of one device, or of any."
    found = [
        row
        for row in rows
        if row["job"] == job and device in (None, row["origin"]["device"])
    ]
    for row in reversed(found):
        if is_good(row):
            return row
    return found[-1] if found else None


def state(row: dict | None, now: str) -> str:
    "In words, for the list."
    if row is None:
        return "owed"
    words = "{device}, {date}, {commit}".format(**row["origin"])
    if not is_good(row):
        words = ("failed: " if "error" in row else "stopped early: ") + words
    return words + ("" if row["origin"]["code"] == now else "; the code has changed since")


def listing(folder: Path) -> str:
    "All stages and jobs."
    now = code()
    context = Context("cuda", good_results(folder))
    lines = [f"{'stage':14} {'job':32} {'minutes':>7}  state"]
    for stage in STAGES:
        rows = read_rows(folder, stage.name)
        for job in stage.jobs:
            row = best_row(rows, job.name)
            owed = state(row, now) if row or job.wanted(context) else "not needed"
            lines.append(f"{stage.name:14} {job.name:32} {job.minutes:7.1f}  {owed}")
    return "\n".join(lines)


def is_done(rows: list[dict], job: Job, whence: dict) -> bool:
    row = best_row(rows, job.name, whence["device"])
    return row is not None and is_good(row) and row["origin"]["code"] == whence["code"]


def plan(folder: Path, whence: dict, only: str | None) -> list[tuple[Stage, Job]]:
    "What is to be done, in order: never done before done with earlier code, and last what is marked so."
    rows = {stage.name: read_rows(folder, stage.name) for stage in STAGES}
    todo = [
        (stage, job)
        for stage in STAGES
        if only in (None, stage.name)
        for job in stage.jobs
        if not is_done(rows[stage.name], job, whence)
    ]

    def turn(entry) -> tuple:
        stage, job = entry
        row = best_row(rows[stage.name], job.name, whence["device"])
        return job.last, row is not None and is_good(row)

    return sorted(todo, key=turn)  # stable: within these the order stays


def missing(job: Job) -> list[str]:
    return [name for name in job.needs if importlib.util.find_spec(name) is None]


def serve(connection, log: str, device: str):
    "The other process's part: do the jobs that are asked for, one by one. What they print goes into the log."
    for stream in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), stream)
    sys.path.insert(0, str(ROOT))  # the library may not be installed
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background programs ignore it
    while True:
        try:
            run, settings, results = connection.recv()
            answer = dict(result=run(Context(device, results), **settings))
        except (EOFError, KeyboardInterrupt) as end:  # asked to stop
            if not hasattr(end, "history"):
                return
            history = end.history  # of a training: say how far it came
            answer = dict(
                result=dict(
                    metrics=dict(interrupted=True, steps=history.steps),
                    history=history.rows,
                )
            )
        except Exception:
            answer = dict(error=traceback.format_exc())
        connection.send(answer)


class Worker:
    "A process of its own for jobs, because an error on a GPU can leave a process useless."

    def __init__(self, log: Path, device: str):
        processes = multiprocessing.get_context(
            "forkserver"
        )  # a GPU does not survive the fork of a process that has used it
        processes.set_forkserver_preload(
            ["torch", "torch._dynamo"]
        )  # the second is what optimizers import; both leave the GPU alone
        self.connection, other = processes.Pipe()
        self.process = processes.Process(target=serve, args=(other, str(log), device))
        self.process.start()
        other.close()  # so that a dead process reads as an end

    def do(self, run, settings: dict, results: dict, seconds: float) -> dict:
        "A result, an error with its traceback, or, when the seconds are over, nothing."
        try:
            self.connection.send((run, settings, results))
            if not self.connection.poll(seconds):
                os.kill(
                    self.process.pid, signal.SIGINT
                )  # a training stops, and says how far it came
                return self.connection.recv() if self.connection.poll(GRACE) else {}
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join(GRACE)
            if self.process.exitcode == 0:
                return {}  # it was interrupted
            return dict(error=f"the process ended with exit code {self.process.exitcode}")

    def close(self):
        self.connection.close()  # it ends by itself, if it can
        self.process.join(5)
        self.process.kill()
        self.process.join()


def good_results(folder: Path, device: str | None = None) -> dict:
    "(stage, job) -> result, for jobs that build on others; of one device, or of any."
    rows = [
        row for stage in STAGES for row in read_rows(folder, stage.name) if is_good(row)
    ]
    return {
        (row["stage"], row["job"]): row["result"]
        for row in rows
        if device in (None, row["origin"]["device"])
    }


def why_not(job: Job, context: Context, seconds: float) -> str | None:
    "What speaks against starting a job now."
    if gone := missing(job):
        return f"skipped, needs {', '.join(gone)}"
    if lacks := job.lacks(context):
        return f"skipped, {lacks}"
    if not job.wanted(context):
        return "not needed"
    return f"put off, takes {job.minutes} minutes" if 60 * job.minutes > seconds else None


def run_all(
    todo: list[tuple[Stage, Job]], options: argparse.Namespace, whence: dict, say
) -> int:
    "Each job in turn, a new process for each stage and after each failure. Returns the number of failures."
    deadline, worker, before, failures = (
        time.time() + 60 * options.minutes - LEFT_OVER,
        None,
        None,
        0,
    )
    try:
        for stage, job in todo:
            results, left = (
                good_results(options.out, whence["device"]),
                deadline - time.time(),
            )
            reason = why_not(job, Context(options.device, results), left)
            if reason:
                say(f"{stage.name} / {job.name}: {reason}")
                continue
            if worker and before is not stage:
                worker.close()
                worker = None
            worker, before = (
                worker or Worker(options.out / "gpu.log", options.device),
                stage,
            )
            settings = (
                {**job.settings, **job.rehearsal} if options.rehearse else job.settings
            )
            start = time.time()
            answer = worker.do(job.run, settings, results, left)
            seconds = round(time.time() - start, 1)
            if answer:
                keep_row(
                    options.out,
                    dict(
                        stage=stage.name,
                        job=job.name,
                        origin=whence,
                        settings=settings,
                        seconds=seconds,
                        **answer,
                    ),
                )
            say(
                f"{stage.name} / {job.name}: {'FAILED' if 'error' in answer else 'done' if answer else 'no time left'} after {seconds:.0f} s"
            )
            if "result" not in answer:
                worker.close()
                worker = None
            if "error" in answer:
                say(answer["error"])
                failures += 1
    finally:
        if worker:
            worker.close()
    return failures


def take(folder: Path):
    "Keep results that were made elsewhere, if their code is that of the commit that they name."
    if not any(file_of(folder, stage.name).is_file() for stage in STAGES):
        raise SystemExit(f"{folder} holds no file gpu_STAGE.json")
    for stage in STAGES:
        known = read_rows(RESULTS, stage.name)
        for row in [row for row in read_rows(folder, stage.name) if row not in known]:
            name, whence = f"{stage.name} / {row['job']}", row["origin"]
            if whence.get("rehearsal"):
                raise SystemExit(f"{name} is a rehearsal")
            if code_at(whence["commit"]) != whence["code"]:
                raise SystemExit(
                    f"{name}: its code is not that of commit {whence['commit']}"
                )
            keep_row(RESULTS, row)
            print(
                f"{name}: {whence['device']}, {whence['date']}, {whence['commit']}: {'kept' if is_good(row) else 'kept, no good result'}"
            )


def main(options: argparse.Namespace) -> int:
    if options.take:
        take(options.take)
        return 0
    if options.rehearse:
        options.device, options.minutes = "cpu", 60
        options.out = (
            Path(tempfile.mkdtemp(prefix="rehearsal-"))
            if options.out == RESULTS
            else options.out
        )
        os.environ.setdefault(
            "TORCHDYNAMO_DISABLE", "1"
        )  # compiling takes minutes; 0 rehearses that as well
        os.environ["OMP_NUM_THREADS"] = (
            "1"  # of the other process; small products on many threads take longer
        )
    options.out.mkdir(parents=True, exist_ok=True)
    for stage in STAGES:  # to go on where an earlier call stopped, also with another folder
        known, here = file_of(RESULTS, stage.name), file_of(options.out, stage.name)
        if known.is_file() and not here.exists() and not options.rehearse:
            shutil.copy(known, here)
    if options.list:
        print(listing(options.out))
        return 0
    if options.device == "cuda" and not has_gpu():
        raise SystemExit(
            "no GPU is to be had here; --list shows what is owed, --rehearse tries everything in small"
        )
    whence = origin(options.device, options.commit, options.dirty) | (
        dict(rehearsal=True) if options.rehearse else {}
    )
    todo = plan(options.out, whence, options.only)
    with open(options.out / "gpu.log", "a", encoding="utf-8") as log:

        def say(line: str):
            print(line, flush=True)
            print(time.strftime("%H:%M:%S"), line, file=log, flush=True)

        say(f"{len(todo)} jobs to do in {options.minutes:g} minutes; {whence}")
        try:
            failures = run_all(todo, options, whence, say)
        except KeyboardInterrupt:
            say("stopped; what is done is kept, and the same command goes on")
            return 130
        left = len(plan(options.out, whence, options.only))
        say(f"{failures} failed; {left} left or not needed; results in {options.out}")
    return 1 if failures else 0


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def parse() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.set_defaults(device="cuda")
    parser.add_argument(
        "--minutes", type=float, default=9, help="when to be over [default: 9]"
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="show stages and jobs with their state, and do nothing",
    )
    parser.add_argument(
        "--only", choices=[stage.name for stage in STAGES], help="one stage"
    )
    parser.add_argument(
        "--rehearse", action="store_true", help="every job in small, on a CPU"
    )
    parser.add_argument(
        "--take", type=Path, metavar="FOLDER", help="keep the results in this folder"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(parse()))
