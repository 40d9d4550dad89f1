"The race of the copy task is told as it was run."

import json
import sys

import pytest
from project import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from speed import race

from annotated_transformer.tasks.copy_task import CopyTaskConfig

STORED = json.loads(
    (ROOT / "benchmarks" / "results" / "race_cpu.json").read_text(encoding="utf-8")
)


def test_the_page_has_the_table_of_what_is_stored():
    assert race.table(STORED) in (ROOT / "benchmarks" / "race.md").read_text(
        encoding="utf-8"
    )


def test_every_rung_was_run_with_the_same_seeds_and_the_same_strictness():
    assert list(STORED["rungs"]) == list(race.RUNGS)
    for runs in STORED["rungs"].values():
        assert [run["seed"] for run in runs] == [0, 1, 2, 3, 4]
        assert {run["n_heldout"] for run in runs} == {10_000}


@pytest.mark.parametrize("recipe", race.RUNGS.values(), ids=lambda recipe: recipe["model"])
def test_a_rung_changes_the_recipe_and_not_the_task(recipe):
    task = ("task", "n_symbols", "min_len", "max_len", "n_heldout")
    assert all(
        getattr(CopyTaskConfig(**recipe), name) == getattr(CopyTaskConfig(), name)
        for name in task
    )


def test_the_last_rung_is_what_the_command_does():
    *_, last = race.RUNGS.values()
    assert CopyTaskConfig(**last) == CopyTaskConfig()
