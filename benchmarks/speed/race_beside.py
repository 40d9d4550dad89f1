"""The copy task of The Annotated Transformer, trained by its own code as it stands, in turns with the last rung of race.py.

    git clone https://github.com/harvardnlp/annotated-transformer ../annotated-transformer
    python benchmarks/speed/race_beside.py --clone ../annotated-transformer [--seeds 0,1,2]

Runs the code of that clone. Its task: nine symbols out of ten after one that is always the same; how long a copy is, its decoder is told. Ours: 5 to 12
symbols out of ten, and the model has to stop by itself. Counted on both sides are the seconds of training steps, without evaluation, and exact copies of sequences never seen.
Packages that its notebook imports for text and pictures are replaced by empty ones: the copy task uses none of them.
Writes results/race_beside_DEVICE.json.
"""

import contextlib
import importlib.util
import io
import statistics
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import MagicMock, patch

import torch
import torch._dynamo  # asks which packages there are, so it comes before the empty ones

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from speed.race import RUNGS
from support.machine import Results, arguments

from annotated_transformer.tasks.copy_task import CopyTaskConfig, run_copy_task

UNUSED = (
    "altair",
    "pandas",
    "spacy",
    "GPUtil",
    "torchtext",
    "torchtext.data",
    "torchtext.data.functional",
    "torchtext.vocab",
    "torchtext.datasets",
)


def load(clone: Path):
    "The notebook of a clone as a module. Its examples do not run on import."
    file = clone / "the_annotated_transformer.py"
    if not file.is_file():
        raise SystemExit(
            f"--clone: got {clone}, expected a clone with the_annotated_transformer.py"
        )
    spec = importlib.util.spec_from_file_location("the_annotated_transformer", file)
    module = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, {name: MagicMock() for name in UNUSED}):
        spec.loader.exec_module(module)
    return module


def run_theirs(theirs, seed: int, n_heldout: int) -> dict:
    "Its `example_simple_model`, unchanged; then copies by its `greedy_decode`, one after the other."
    kept, spent, make_model, run_epoch = [], [], theirs.make_model, theirs.run_epoch

    def keep_model(*sizes, **options):
        kept.append(make_model(*sizes, **options))
        return kept[-1]

    def timed(*parts, mode="train", **options):
        start = time.perf_counter()
        found = run_epoch(*parts, mode=mode, **options)
        if mode == "train":
            spent.append(time.perf_counter() - start)
        return found

    theirs.make_model, theirs.run_epoch = keep_model, timed
    torch.manual_seed(seed)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            theirs.example_simple_model()
    finally:
        theirs.make_model, theirs.run_epoch = make_model, run_epoch
    (model,) = kept
    sources = next(theirs.data_gen(11, n_heldout, 1)).src
    with torch.no_grad():
        right = sum(
            theirs.greedy_decode(
                model, one[None], torch.ones(1, 1, 10), max_len=10, start_symbol=1
            ).equal(one[None])
            for one in sources
        )
    return dict(
        seed=seed,
        exact=right,
        n_heldout=n_heldout,
        train_seconds=sum(spent),
        parameters=sum(p.numel() for p in model.parameters()),
    )


def run_ours(seed: int, device: str) -> dict:
    "The last rung of race.py."
    recipe = list(RUNGS.values())[-1]
    found = run_copy_task(CopyTaskConfig(seed=seed, **recipe), device=device).metrics
    exact = round(found["exact_match"] * found["n_heldout"])
    return dict(
        seed=seed,
        exact=exact,
        n_heldout=found["n_heldout"],
        train_seconds=found["train_seconds"],
        parameters=found["parameters"],
    )


def main(options):
    if options.device != "cpu":
        raise SystemExit("--device: its example trains on a CPU")
    results, theirs = Results(f"race_beside_{options.device}", options), load(options.clone)
    head = subprocess.run(
        ["git", "rev-parse", "--short=9", "HEAD"],
        cwd=options.clone,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    runs = dict(theirs=[], ours=[])
    for seed in map(int, options.seeds.split(",")):
        runs["theirs"].append(run_theirs(theirs, seed, options.heldout))
        runs["ours"].append(run_ours(seed, options.device))
        for side, found in runs.items():
            print(side, found[-1], flush=True)
    medians = {
        side: statistics.median(run["train_seconds"] for run in found)
        for side, found in runs.items()
    }
    print(
        "written to",
        results.save(
            source="harvardnlp/annotated-transformer",
            source_commit=head,
            median_seconds=medians,
            **runs,
        ),
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--clone",
        type=Path,
        required=True,
        help="a clone of harvardnlp/annotated-transformer; its code is run",
    )
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument(
        "--heldout", type=int, default=200, help="sequences that its model copies"
    )
    main(parser.parse_args())
