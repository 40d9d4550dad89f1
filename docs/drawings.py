"""SVG drawings on the site: inside the page, so that they follow its switch for light and dark; and 'you are here'.

A drawing of `annotated_transformer.diagrams` brings its dark colours in a style sheet that asks the reader's system. Inside a
page they belong to the switch of the page instead.
"""
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

# chapter -> the parts of the architecture that it is about, and how they are called there
HERE = {
    "02": (["attention"], "attention"),
    "03": (["masked attention", "inputs"], "masks, of padding in the inputs and of later tokens"),
    "04": (["attention"], "attention with several heads"),
    "05": (["norm", "residual", "feed forward"], "norms, residual connections, feed-forward networks"),
    "06": (["embedding", "output"], "embeddings, and the output that reads them backwards"),
    "07": (["positions"], "positions"),
    "08": (["encoder", "decoder", "memory", "embedding", "positions", "output"], "the whole model"),
    "10": (["inputs"], "what goes in"),
    "11": (["output"], "what comes out, and what it costs"),
    "20": (["decoder", "output"], "the decoder, a token at a time"),
    "21": (["output"], "choosing from the probabilities"),
    "22": (["output"], "choosing from the probabilities"),
}


def by_switch(svg: str) -> str:
    "The drawing with its dark colours under the page's switch."

    def rules(found):
        return "".join(f'html[data-theme="dark"] {rule}\n' for rule in found[1].strip().split("\n"))

    return re.sub(r"@media \(prefers-color-scheme: dark\) \{\n(.*?)\n\}\n", rules, svg, flags=re.S)


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
            drawn = f'<div class="drawing" tabindex="0" role="group" aria-label="drawing">{by_switch(svg)}</div>'
            image.replace_self(nodes.raw("", drawn, format="html"))


def you_are_here(app, doctree):
    "A small architecture under the title, with the part that the chapter is about."
    from annotated_transformer.diagrams import architecture

    parts, words = HERE.get(app.env.docname[:2], ([], ""))
    title = next(doctree.findall(nodes.title), None)
    if not parts or title is None:
        return
    drawn = by_switch(architecture(tuple(parts), labels=False).svg)
    drawn = re.sub(r'aria-label="[^"]*"', f'aria-label="You are here: {words}"', drawn)
    drawn = re.sub(r"<title>.*?</title>", f"<title>You are here: {words}</title>", drawn)
    aside = f'<div class="here">{drawn}<p>You are here: {words}</p></div>'
    title.parent.insert(title.parent.index(title) + 1, nodes.raw("", aside, format="html"))


def setup(app):
    app.add_post_transform(InlineDrawings)
    app.connect("doctree-read", you_are_here, priority=950)  # after book.py has found the promise under the title
    return dict(version="1", parallel_read_safe=True, parallel_write_safe=True)
