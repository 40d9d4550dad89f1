"""SVG drawings on the site: inside the page, so that they follow its switch for light and dark; and 'you are here'.

A drawing of `annotated_transformer.figures.diagrams` brings its dark colours in a style sheet that asks the reader's system. Inside a
page they belong to the switch of the page instead. Neither needs torch.
"""

import html
import re
import zlib
from pathlib import Path

from book import chapter_number
from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from annotated_transformer.figures import diagrams

# number of a chapter -> the parts of the architecture that it is about, and what they are called there
HERE = {
    "1.1": (["memory", "cross attention"], "attention from one sequence to the other"),
    "1.2": (["attention"], "attention"),
    "1.3": (
        ["masked attention", "inputs"],
        "masks, of padding in the inputs and of later tokens",
    ),
    "1.4": (["attention"], "attention with several heads"),
    "1.5": (
        ["norm", "residual", "feed forward"],
        "norms, residual connections, feed-forward networks",
    ),
    "1.6": (
        ["embedding", "output"],
        "embeddings, and the output that reads them backwards",
    ),
    "1.7": (["positions"], "positions"),
    "2.1": (["inputs"], "what goes in"),
    "2.2": (["output"], "what comes out, and what it costs"),
    "3.1": (["decoder", "output"], "the decoder, a token at a time"),
    "3.3": (["output"], "choosing from the probabilities"),
    "3.4": (["output"], "choosing from the probabilities"),
}
SMALLEST = 10  # pixels of a letter; what is wider than the page then scrolls


def by_switch(svg: str) -> str:
    "The drawing with its dark colours under the page's switch."

    def rules(found):
        lines = found[1].split("\n")
        return "".join(f'html[data-theme="dark"] {line}\n' for line in lines)

    asks_the_system = r"@media \(prefers-color-scheme: dark\) \{\n(.*?)\n\}\n"
    return re.sub(asks_the_system, rules, svg, flags=re.S)


def told(svg: str, words: str) -> str:
    "The drawing, with these words for those who cannot see it. Without a title, which the browser would show over it."
    label = f'aria-label="{html.escape(words)}"'
    svg = re.sub(r"<title>.*?</title>\n", "", svg)
    return re.sub(r'aria-label="[^"]*"', lambda _: label, svg, count=1)


def shrinkable(svg: str) -> str:
    "The drawing as wide as there is room, as long as its words can be read."
    width = float(re.search(r'viewBox="\S+ \S+ ([\d.]+)', svg)[1])
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    least = width * SMALLEST / min(sizes) if sizes else 0
    style = f"max-width: 100%; min-width: {least:.0f}px; height: auto"
    return svg.replace("<svg ", f'<svg style="{style}" ', 1)


class InlineDrawings(SphinxPostTransform):
    "Pictures that are drawings become part of the page."

    default_priority = 5  # before Sphinx copies pictures
    formats = ("html",)

    def run(self, **kwargs):
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.env.srcdir) / image["uri"].lstrip("/")
            if path.suffix != ".svg" or not path.exists():
                continue
            svg = path.read_text(encoding="utf-8")
            if 'class="diagram"' not in svg:
                continue
            if image.get("alt"):
                svg = told(svg, image["alt"])
            drawn = f'<div class="drawing">{by_switch(shrinkable(svg))}</div>'
            image.replace_self(nodes.raw("", drawn, format="html"))


def you_are_here(app, doctree):
    "A small architecture under the title, with the part that the chapter is about."
    chapter = chapter_number(app.env.docname)
    titles = list(doctree.findall(nodes.title))
    if chapter not in HERE or not titles:
        return
    parts, words = HERE[chapter]
    words = f"You are here: {words}"
    svg = by_switch(told(diagrams.architecture(parts, labels=False).svg, words))
    aside = f'<div class="here">{svg}<p aria-hidden="true">{words}</p></div>'
    section = titles[0].parent
    section.insert(section.index(titles[0]) + 1, nodes.raw("", aside, format="html"))


def setup(app):
    app.add_post_transform(InlineDrawings)
    # after book.py has found the promise under the title
    app.connect("doctree-read", you_are_here, priority=950)

    # a change of this file, or of the drawings, makes every page out of date
    made_of = Path(__file__).read_bytes() + Path(diagrams.__file__).read_bytes()
    return dict(
        version="1",
        env_version=zlib.crc32(made_of),
        parallel_read_safe=True,
        parallel_write_safe=True,
    )
