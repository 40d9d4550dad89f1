"""Run one notebook as a test: `python tests/run_notebook.py nbs/1_model/2_attention.ipynb [slow] [cuda]`. Nothing is saved.

nbdev's `test_nb` decides which cells run: not those with `#| eval: false`, and those with a flag of settings.ini's
`tst_flags` only if the flag is named. A failing cell is shown whole, with the traceback from that cell on.

After the cells the code of the solutions runs, each followed by the check that its exercise gives the reader. One that
begins with a comment `# slow` runs only where that flag is named.
"""

import ast
import os
import re
import sys
import textwrap
import traceback
from pathlib import Path

import nbdev.test
from execnb.nbio import mk_cell
from execnb.shell import CaptureShell
from fastcore.basics import AttrDict
from nbdev.config import get_config


def python_of(text: str) -> dict:
    "Number of a list's item -> the Python blocks in it, joined."
    items = re.split(r"^(\d+)\. ", text, flags=re.M)
    blocks = {
        number: re.findall(r"^ *```python\n(.*?)^ *```", item, re.M | re.S)
        for number, item in zip(items[1::2], items[2::2])
    }
    return {
        number: "\n".join(map(textwrap.dedent, found))
        for number, found in blocks.items()
        if found
    }


def check_of(exercise: str) -> str:
    "An exercise's code without the definitions that the reader is to write: those with `...` in them."
    given = ast.parse(exercise).body
    empty = [
        node
        for node in given
        if any(isinstance(x, ast.Constant) and x.value is ... for x in ast.walk(node))
    ]
    return "\n".join(ast.unparse(node) for node in given if node not in empty)


def solutions(exercises: str) -> list:
    "(name, code) for each solution with code, its exercise's check behind it; and for each check without a solution an error."
    asked, _, answered = exercises.partition("<details")
    asked, answered = python_of(asked), python_of(answered)
    missing = sorted(
        number
        for number in asked.keys() - answered.keys()
        if "# your code here" in asked[number]
    )
    assert not missing, f"exercises {missing} have a check and no solution in code"
    return [
        (f"solution-{number}", code + "\n" + check_of(asked.get(number, "")))
        for number, code in answered.items()
    ]


class Shell(CaptureShell):
    "A shell that knows which cell it is in, to tell it when that cell fails; it also runs solutions."

    flags: list = []

    def cell(self, cell, **options):
        self.current = cell
        return super().cell(cell, **options)

    def run_all(self, nb, **options):
        super().run_all(nb, **options)
        for cell in nb.cells:
            if cell.cell_type == "code":
                continue
            for name, code in solutions(cell.source.partition("## Exercises\n")[2]):
                if code.startswith("# slow") and "slow" not in self.flags:
                    continue
                self.cell(AttrDict(mk_cell(code), id=name, idx_=cell.idx_))
                if self.exc:
                    raise self.exc from None

    def prettytb(self, fname=None):
        cell, error = self.current, self.exc
        steps = traceback.extract_tb(error.__traceback__)
        inside = [
            i
            for i, step in enumerate(steps)
            if re.search(r"ipython-input|ipykernel|<ipython", step.filename)
        ]
        source, verdict = (
            cell.source.rstrip().splitlines(),
            "".join(traceback.format_exception_only(error)).rstrip(),
        )
        return "\n".join(
            [
                f"cell {cell.idx_} ({cell.get('id', 'no id')}): {verdict.splitlines()[-1]}",
                "",
                *(f"{number:4} {line}" for number, line in enumerate(source, 1)),
                "",
                "Traceback (most recent call last):",
                "".join(
                    traceback.format_list(steps[inside[0] if inside else 0 :])
                ).rstrip(),
                verdict,
            ]
        )


def run(path: Path, flags: list) -> bool:
    "Whether all cells of a notebook ran, and its solutions too."
    settings = get_config(path=path.parent)
    if "slow" in flags:
        os.environ["ANNOTATED_TRANSFORMER_SLOW"] = "1"  # slow cells ask for it
    nbdev.test.CaptureShell, Shell.flags = Shell, flags
    passed, _ = nbdev.test.test_nb(
        path,
        skip_flags=settings.tst_flags.split(),
        force_flags=flags,
        basepath=settings.config_path,
    )
    return passed


def run_apart(path: Path, flags: list, said: Path):
    "The same as the only work of a process, with all that is printed in a file."
    sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
    with open(said, "wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.exit(not run(path, flags))


if __name__ == "__main__":
    sys.exit(not run(Path(sys.argv[1]).resolve(), sys.argv[2:]))
