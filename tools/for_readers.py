"""What every notebook has for those who read it elsewhere: `python tools/for_readers.py [colab] [links] [nbs/1_model/2_attention.ipynb ...]`.

`colab` puts a first code cell into notebooks, which installs the library when they are opened in Colab; `links` turns each
"chapter 4.2" in their text into a link. Without one of the words both are done, without notebooks in all of them. What is
there already stays, so that either can be called at any time; the tests say when it has to be.
"""

import configparser
import json
import re
import sys
from pathlib import Path

from fold_cells import FOLDED

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
settings = configparser.ConfigParser(delimiters=["="])
settings.read(ROOT / "settings.ini", encoding="utf-8")
settings = settings["DEFAULT"]

# The files come too, because some chapters read stored results; the extra brings what their cells import.
COLAB = f"""#| hide
# Opened in Colab, this brings the book and installs the library; elsewhere it does nothing.
import sys

if 'google.colab' in sys.modules:
    %cd -q /content
    !git clone -q --depth 1 {settings["git_url"]}
    %cd -q {settings["repo"]}/nbs
    %pip install -q '..[notebooks]'"""


def with_colab(cells: list) -> list:
    "The cells with Colab's directly after the title, and nowhere else."
    rest = [cell for cell in cells if cell.get("id") != "colab"]
    lines = COLAB.splitlines(keepends=True)
    cell = dict(
        cell_type="code",
        execution_count=None,
        id="colab",
        metadata=FOLDED,
        outputs=[],
        source=lines,
    )
    return [rest[0], cell, *rest[1:]]


def chapters() -> dict:
    "Number, such as 4.2 -> the file of a chapter, from nbs/."
    found = {}
    for path in sorted(NBS.glob("[0-9]*/[0-9]*.ipynb")):
        part, chapter = path.parent.name, path.name
        number = f"{part.partition('_')[0]}.{chapter.partition('_')[0]}"
        found[number] = f"{part}/{chapter}"
    return found


# What is no running text: code, links, headings, HTML.
APART = r"^(?:```|~~~).*?^(?:```|~~~)|^#+ .*?$|`+[^`]*`+|!?\[[^]]*\]\([^)]*\)|<[^>]*>"
MENTION = r"\b([Cc]hapters?) (\d\.\d+)\b((?:(?:,| and| or| to|, and) \d\.\d+\b)*)"


def mentions(text: str) -> list[str]:
    "Where running text names a chapter that exists, and is no link to it."
    found = re.finditer(f"({APART})|{MENTION}", text, re.M | re.S)
    return [match[0] for match in found if match[1] is None and match[3] in chapters()]


def linked(text: str, folder: str = "") -> str:
    "The text with a link for each chapter that it names; `folder` leads to nbs/."
    files = chapters()

    def link(words: str, number: str) -> str:
        name = files.get(number)
        return f"[{words}]({folder}{name})" if name else words

    def replace(match):
        whole, word, first, more = match[1], *match.groups()[1:]
        if whole is not None or first not in files:
            return match[0]
        if not more:
            return link(f"{word} {first}", first)
        return f"{word} {link(first, first)}" + re.sub(
            r"\d\.\d+", lambda number: link(number[0], number[0]), more
        )

    return re.sub(f"({APART})|{MENTION}", replace, text, flags=re.M | re.S)


def prepare(path: Path, tasks) -> bool:
    "Whether the notebook was changed."
    before = path.read_text(encoding="utf-8")
    notebook = json.loads(before)
    if "links" in tasks:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                source = linked("".join(cell["source"]), "../")
                cell["source"] = source.splitlines(keepends=True)
    if "colab" in tasks:
        notebook["cells"] = with_colab(notebook["cells"])
    after = (
        json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    )  # as nbdev_clean writes it
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before


if __name__ == "__main__":
    tasks = {"colab", "links"} & set(sys.argv[1:]) or {"colab", "links"}
    paths = [
        Path(word) for word in sys.argv[1:] if word not in ("colab", "links")
    ] or sorted(NBS.glob("*/*.ipynb"))
    for path in paths:
        if prepare(path, tasks):
            print(f"changed: {path}")
