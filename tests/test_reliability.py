"""What the chapter on reliability promises: kills, full disks, flipped bits, readers beside writers.

Short here; with `make test NBFLAGS=slow` each is tried many more times. `COUNTS` is what the chapter prints.
"""

import csv
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from project import ROOT, call

from annotated_transformer.training.checkpoint import Checkpoints
from annotated_transformer.base.model_files import load_model, save_model, write_model
from annotated_transformer.base.atomic_folders import MANIFEST, write_folder
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.training.data import batch_pairs
from annotated_transformer.training.loop import Callback, TrainConfig, train

pytestmark = pytest.mark.slow

SLOW = "slow" in os.environ.get("NBFLAGS", "")
COUNTS = {  # name -> tries by default, tries with the slow flag
    "kills": (3, 20),
    "flipped bits": (60, 2000),
    "configurations": (40, 1000),
    "reads beside a writer": (40, 1000),
    "bad command lines": (24, 100),
}
TINY = TransformerConfig.preset("tiny", vocab_size=13)
TRAIN = """
import sys
from annotated_transformer.tasks.copy_task import COPY_TASK, CopyTaskConfig
from annotated_transformer.tasks.runs import run_and_save
config = CopyTaskConfig(steps=int(sys.argv[2]), batch_size=4, n_heldout=30, seed=3)
run_and_save(COPY_TASK, config, sys.argv[1], resume=True, every_minutes=1e-4, device="cpu", progress=False)
"""


RESULTS = ROOT / "benchmarks" / "results" / "reliability.json"


def train_tiny(callbacks, steps=2):
    torch.manual_seed(0)
    model = Transformer(TINY)
    batches = batch_pairs(synthetic_pairs(), 2)
    config = TrainConfig(steps=steps, log_every=1)
    return model, train(model, batches, config, callbacks=callbacks)


def tries(name: str) -> int:
    return COUNTS[name][SLOW]


def record(name: str, held: int):
    "Of the long runs, what held: the chapter shows it."
    if SLOW:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        ).stdout.strip()
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        stored[name] = dict(
            tries=tries(name), held=held, commit=commit, date=time.strftime("%Y-%m-%d")
        )
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


def process(folder: Path, steps: int) -> subprocess.Popen:
    # one thread: how sums are split among threads is not the same each time
    settings = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    return subprocess.Popen(
        [sys.executable, "-c", TRAIN, folder, str(steps)],
        cwd=ROOT,
        env=settings,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(folder: Path) -> list[dict]:
    "The history without what depends on the clock."
    with open(folder / "history.csv", encoding="utf-8") as file:
        return [
            {name: value for name, value in row.items() if name != "tokens_per_second"}
            for row in csv.DictReader(file)
        ]


def newest(checkpoints: Path) -> str:
    try:
        return max((path.name for path in checkpoints.glob("step-*")), default="")
    except FileNotFoundError:  # an empty one is removed, and made again, when a run begins
        return ""


def test_killed_and_resumed_it_ends_as_if_nothing_had_happened(tmp_path):
    "SIGKILL at random moments, many of them while a checkpoint is written."
    steps, rng, kills = 40 + 25 * tries("kills"), random.Random(0), 0
    (tmp_path / "killed.checkpoints").mkdir()
    while kills < tries("kills"):
        before, child = (
            newest(tmp_path / "killed.checkpoints"),
            process(tmp_path / "killed", steps),
        )
        while child.poll() is None and newest(tmp_path / "killed.checkpoints") <= before:
            time.sleep(0.005)  # it has to come further than the one before
        time.sleep(0.3 * rng.random())
        child.kill()
        assert child.wait() == -signal.SIGKILL, (
            f"done before it was killed {tries('kills')} times: {child.stderr.read()}"
        )
        kills += 1
    last, whole = process(tmp_path / "killed", steps), process(tmp_path / "whole", steps)
    assert (last.wait(), whole.wait()) == (0, 0), last.stderr.read() + whole.stderr.read()
    ours, theirs = tmp_path / "killed", tmp_path / "whole"
    assert (ours / "model.safetensors").read_bytes() == (
        theirs / "model.safetensors"
    ).read_bytes()
    assert rows(ours) == rows(theirs) and len(rows(ours)) >= steps // 10
    metrics = [
        json.loads((folder / "metrics.json").read_text()) for folder in (ours, theirs)
    ]
    assert (
        metrics[0]["exact_match"] == metrics[1]["exact_match"]
        and metrics[0]["steps"] == steps
    )
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == [
        "killed",
        "whole",
    ]
    record("kills", kills)


def test_each_signal_stops_a_training_after_a_whole_step(tmp_path, usual_signals):
    children = {
        number: process(tmp_path / signal.Signals(number).name, 10**6)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        for number, child in children.items():
            checkpoints = tmp_path / f"{signal.Signals(number).name}.checkpoints"
            while child.poll() is None and not newest(checkpoints):
                time.sleep(0.01)
            child.send_signal(number)
            child.wait(60)
            said = child.stderr.read()
            assert f"Interrupted: {signal.Signals(number).name} after step" in said, said
            assert load_model(checkpoints / newest(checkpoints), Transformer)
            assert not (tmp_path / signal.Signals(number).name).exists()
    finally:
        for child in children.values():
            child.kill()


def test_ctrl_c_in_an_inner_training_ends_the_whole_run(
    tmp_path, monkeypatch, usual_signals
):
    "BERT's run trains four models, one after the other."
    from annotated_transformer.tasks import topic_classification
    from annotated_transformer.tasks.runs import run_and_save
    from annotated_transformer.training.distributed import train_together
    from annotated_transformer.training.loop import Interrupted

    trained, stops = [], [True]

    def train_and_stop(model, batches, *args, **kwargs):
        trained.append(type(model).__name__)
        if len(trained) == 2 and stops:

            def stopping():
                for n, batch in enumerate(batches):
                    if n == 1:
                        stops.clear()
                        os.kill(os.getpid(), signal.SIGINT)
                    yield batch

            return train_together(model, stopping(), *args, **kwargs)
        return train_together(model, batches, *args, **kwargs)

    monkeypatch.setattr(topic_classification, "train_together", train_and_stop)
    config = topic_classification.TopicClassificationConfig(
        steps=2, finetune_steps=3, n_topics=2, n_labelled=8, n_heldout=10
    )
    bert = topic_classification.TOPIC_CLASSIFICATION
    with pytest.raises(Interrupted, match="SIGINT after step 2"):
        run_and_save(bert, config, tmp_path / "bert", device="cpu", progress=False)
    assert (
        trained == ["MaskedLanguageModel", "SentenceClassifier"]
        and not (tmp_path / "bert").exists()
    )
    resumed = run_and_save(
        bert, config, tmp_path / "bert", resume=True, device="cpu", progress=False
    )
    whole = run_and_save(bert, config, tmp_path / "whole", device="cpu", progress=False)
    assert (
        resumed.predictions == whole.predictions
        and resumed.metrics["masked_loss"] == whole.metrics["masked_loss"]
    )


def test_processes_that_read_different_checkpoints_do_not_go_on(tmp_path, monkeypatch):
    from annotated_transformer.training import checkpoint

    monkeypatch.setattr(checkpoint, "gather_values", lambda step: [step, 100])
    with pytest.raises(
        ValueError,
        match=r"folder: got .* can read the steps \[0, 100\]', expected one that all",
    ):
        train_tiny([Checkpoints(tmp_path)])


def limited(action, limit: int) -> str:
    "What an action says in a process whose files may not be larger than `limit` bytes, as on a disk that is full."
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n{action}"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_a_full_disk_loses_neither_the_model_nor_the_last_checkpoint(tmp_path):
    torch.manual_seed(0)
    old = Transformer(TINY)
    save_model(old, tmp_path / "model")
    said = limited(
        f"""
from annotated_transformer import Checkpoints, TrainConfig, Transformer, TransformerConfig
from annotated_transformer import batch_pairs, save_model, synthetic_pairs, train
model = Transformer(TransformerConfig.preset("tiny", vocab_size=13, d_ff=300))
try: save_model(model, {str(tmp_path / "model")!r})
except OSError as error: print("refused:", error)
checkpoints = Checkpoints({str(tmp_path / "run")!r}, every_steps=2)
history = train(model, batch_pairs(synthetic_pairs(), 2), TrainConfig(steps=3), callbacks=[checkpoints])
print("goes on to step", history.steps)
""",
        500_000,
    )
    assert "refused: " in said and "large" in said, said
    assert "no checkpoint of step 2, and there is none before" in said, said
    assert "goes on to step 3" in said, said
    back = load_model(tmp_path / "model", Transformer)
    assert all(torch.equal(a, b) for a, b in zip(back.parameters(), old.parameters()))
    assert not list(tmp_path.glob(".*")) and not list((tmp_path / "run").glob("*")), (
        "nothing half-written is left"
    )


class FullDisk(Callback):
    "No file may grow large after some of the steps."

    order = 1  # before the checkpoint

    def __init__(self, steps):
        self.steps = steps
        self.usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    def after_step(self, run):
        soft, hard = self.usual
        soft = 100_000 if run.step in self.steps else soft
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def close(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.usual)


def test_a_training_survives_a_disk_that_is_full_for_a_while(tmp_path):
    "The last good checkpoint stays, and the run resumes from it."
    checkpoints = Checkpoints(tmp_path / "run", every_steps=1)
    with pytest.warns(UserWarning, match="no checkpoint of step 4, step 3 is kept"):
        train_tiny([checkpoints, FullDisk([4])], steps=4)
    assert checkpoints.steps() == [3, 2]
    assert not list((tmp_path / "run").glob(".*"))

    whole, history = train_tiny([], steps=4)
    resumed, again = train_tiny([checkpoints], steps=4)  # there is room again
    assert checkpoints.steps() == [4, 3]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters()))
    assert again.column("loss") == history.column("loss")


def test_flipped_bits_are_found(tmp_path):
    "Whatever bit of whatever file: refused, or the same model."
    torch.manual_seed(0)
    model, rng, found = Transformer(TINY), random.Random(1), 0
    folder = save_model(model, tmp_path / "model")
    names = ["model.safetensors", "config.json", MANIFEST]
    for n in range(tries("flipped bits")):
        file = folder / names[n % 3]
        whole = file.read_bytes()
        spoilt, bit = bytearray(whole), rng.randrange(8 * len(whole))
        spoilt[bit // 8] ^= 1 << bit % 8
        file.write_bytes(spoilt)
        try:
            back = load_model(folder, Transformer)
        except (ValueError, FileNotFoundError):
            found += 1
        else:
            assert file.name == MANIFEST, f"bit {bit} of {file.name} passed unnoticed"
            assert all(
                torch.equal(a, b) for a, b in zip(back.parameters(), model.parameters())
            )
        file.write_bytes(whole)
    assert found >= 2 * tries("flipped bits") // 3
    record("flipped bits", n + 1)
    load_model(folder, Transformer)


def judge(folder: Path, model: Transformer) -> float:
    "Load a folder that somebody edited: it is refused, or has the shapes of `model`. Returns the seconds of work."
    start = time.process_time()
    try:
        back = load_model(folder, Transformer)
    except ValueError as error:
        assert len(str(error)) < 2000, error
    else:
        assert all(
            a.shape == b.shape
            for a, b in zip(back.parameters(), model.parameters(), strict=True)
        )
    return time.process_time() - start


def test_edited_configurations_are_refused_or_fit_the_weights(tmp_path):
    "With a right manifest: somebody edited config.json and wrote the folder anew. None costs more than 1,000 loads of a good folder."
    rng, model, folder = random.Random(2), Transformer(TINY), tmp_path / "model"
    values = [
        0,
        -1,
        1,
        3,
        10**9,
        10**30,
        0.5,
        -0.1,
        True,
        None,
        "x",
        "64",
        [],
        {},
        float("inf"),
    ]
    usual = min(judge(save_model(model, tmp_path / "good"), model) for _ in range(3))
    for _ in range(tries("configurations")):
        with write_folder(folder) as new:
            write_model(model, new)
            config = json.loads((new / "config.json").read_text())
            name = rng.choice([*config, "unheard_of"])
            config[name] = rng.choice(values)
            (new / "config.json").write_text(json.dumps(config))
        # the quicker of two: the first may import what only a refusal needs, or meet a machine that stands still
        seconds = min(judge(folder, model) for _ in range(2))
        assert seconds < 1000 * usual, (
            f"{name} = {config[name]} took {seconds / usual:.0f} times as long as a good folder"
        )
    record("configurations", tries("configurations"))


def test_reads_beside_a_writer_are_of_one_model(tmp_path):
    "Another process replaces the model again and again; whoever reads gets one of the two, whole."
    code = f"""
import sys, torch
from annotated_transformer.base.model_files import save_model
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig
models = [Transformer(TransformerConfig.preset("tiny", vocab_size=13, n_layers=n)) for n in (1, 2)]
for n, model in enumerate(models, 1): [p.data.fill_(n) for p in model.parameters()]
while True:
    for model in models: save_model(model, {str(tmp_path / "model")!r})
"""
    writer = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        while not (tmp_path / "model").exists():
            assert writer.poll() is None
            time.sleep(0.05)
        seen = set()
        for _ in range(tries("reads beside a writer")):
            model = load_model(tmp_path / "model", Transformer)
            values = {float(p.detach().unique()) for p in model.parameters()}
            assert values == {float(model.config.n_layers)}, (
                "configuration and weights of two models"
            )
            seen |= values
        assert writer.poll() is None and seen == {1.0, 2.0}
        record("reads beside a writer", tries("reads beside a writer"))
    finally:
        writer.kill()
        writer.wait()


def test_bad_command_lines_are_refused_in_words(tmp_path, monkeypatch):
    "One option with a wrong value, or a nasty one: exit status 0 or 2, an explanation, no traceback, nothing left lying about."
    nasty = [
        "",
        " ",
        "-1",
        "0",
        "1e9",
        "nan",
        "inf",
        "x",
        "\x1b[31m",
        "\u2603",
        "cpu:x",
        "tiny ",
        "../..",
        "/dev/null",
        "/proc/x",
        "9" * 400,
        "None",
        "True",
        "[]",
        "$HOME",
    ]
    options = {
        "copy-task": [
            "--task",
            "--preset",
            "--seed",
            "--steps",
            "--heldout",
            "--device",
            "--out",
            "--checkpoint-minutes",
        ],
        "gpt": [
            "--text",
            "--preset",
            "--seed",
            "--steps",
            "--heldout",
            "--device",
            "--out",
        ],
        "bert": ["--preset", "--seed", "--steps", "--heldout", "--device", "--out"],
        "vit": [
            "--data",
            "--preset",
            "--seed",
            "--steps",
            "--heldout",
            "--device",
            "--out",
        ],
        "captioning": ["--preset", "--seed", "--steps", "--heldout", "--device", "--out"],
        "decode": [
            "--model",
            "--beam",
            "--n-best",
            "--length-penalty",
            "--max-len",
            "--attention",
        ],
    }
    rng = random.Random(3)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # some of these are names of folders
    model = save_model(Transformer(TINY), tmp_path / "model")
    for n in range(tries("bad command lines")):
        command, name = rng.choice(
            [(command, name) for command, names in options.items() for name in names]
        )
        value, out = rng.choice(nasty), tmp_path / str(n)
        usual = (
            ["7 3", "--model", model, "--max-len", "3"]
            if command == "decode"
            else ["--steps", "1", "--device", "cpu", "--out", out]
        )
        usual += ["--heldout", "3"] if command in ("copy-task", "captioning", "gpt") else []
        said = call(command, *usual, name, value)
        what = f"{command} {name} {value!r}: {said.stderr[-300:]}"
        assert said.status in (0, 2), what
        if said.status == 2:
            assert "error: " in said.stderr and len(said.stderr) < 3000, what
            assert not (out.exists() and any(out.iterdir())), what
    record("bad command lines", n + 1)


def test_a_configuration_of_another_class_is_not_saved(tmp_path):
    "`load_model` would build the model from `config_class`, which knows nothing of the parts that were swapped."

    class OtherConfig(TransformerConfig):
        def layer_norm(self):
            return torch.nn.RMSNorm(self.d_model)

    class Other(Transformer):
        config_class = OtherConfig

    tiny = dict(d_model=8, d_ff=16, n_heads=2, n_layers=1, vocab_size=9)
    with pytest.raises(
        ValueError, match="config: got 'OtherConfig', expected TransformerConfig"
    ):
        save_model(Transformer(OtherConfig(**tiny)), tmp_path / "model")

    model = Other(OtherConfig(**tiny)).eval()
    save_model(model, tmp_path / "model")
    src = torch.tensor([[3, 4, 2]])
    assert torch.equal(load_model(tmp_path / "model", Other)(src, src), model(src, src))
