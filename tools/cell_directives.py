"""The lines `#| name: value` at the top of a cell, which nbdev and the site read. This is the one place that knows how they look."""

import re

LINE = re.compile(r"^#\|[ \t]*([^\s:]+):?[ \t]*(.*?)[ \t]*$", re.M)


def directives_of(source: str) -> dict[str, str]:
    """Name -> value, '' where there is none: `#| hide` gives {'hide': ''}, `#| fig-cap: A cat` {'fig-cap': 'A cat'}, and
    `#| exports utils.memory` {'exports': 'utils.memory'}."""
    return dict(LINE.findall(source))


def without_directives(source: str) -> str:
    "The code alone."
    return re.sub(r"^#\|.*\n?", "", source, flags=re.M).strip("\n")
