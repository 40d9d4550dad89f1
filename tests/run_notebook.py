"""Run one notebook as a test: `python tests/run_notebook.py nbs/02_attention.ipynb [slow] [cuda]`. Nothing is saved.

nbdev's `test_nb` decides which cells run: not those with `#| eval: false`, and those with a flag of settings.ini's
`tst_flags` only if the flag is named. A failing cell is shown whole, with the traceback from that cell on.
"""

import re
import sys
import traceback
from pathlib import Path

import nbdev.test
from execnb.shell import CaptureShell
from nbdev.config import get_config


class Shell(CaptureShell):
    "A shell that knows which cell it is in, to tell it when that cell fails."

    def cell(self, cell, **options):
        self.current = cell
        return super().cell(cell, **options)

    def prettytb(self, fname=None):
        cell, error = self.current, self.exc
        steps = traceback.extract_tb(error.__traceback__)
        inside = [i for i, step in enumerate(steps) if re.search(r"ipython-input|ipykernel|<ipython", step.filename)]
        source, verdict = cell.source.rstrip().splitlines(), "".join(traceback.format_exception_only(error)).rstrip()
        return "\n".join(
            [
                f"cell {cell.idx_} ({cell.get('id', 'no id')}): {verdict.splitlines()[-1]}",
                "",
                *(f"{number:4} {line}" for number, line in enumerate(source, 1)),
                "",
                "Traceback (most recent call last):",
                "".join(traceback.format_list(steps[inside[0] if inside else 0 :])).rstrip(),
                verdict,
            ]
        )


if __name__ == "__main__":
    path = Path(sys.argv[1]).resolve()
    settings = get_config(path=path.parent)
    nbdev.test.CaptureShell = Shell
    passed, _ = nbdev.test.test_nb(
        path, skip_flags=settings.tst_flags.split(), force_flags=sys.argv[2:], basepath=settings.config_path
    )
    sys.exit(not passed)
