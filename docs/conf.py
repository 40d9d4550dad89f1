"""The site's settings. The pages are the notebooks of `nbs/` themselves; `book.py` beside this file says how they are read.

sphinx-build -W --keep-going -q -b html -c docs nbs docs/_build/html
"""

import configparser
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))  # for the drawings of the library
sys.path.insert(0, str(DOCS))  # for the extensions beside this file

_settings = configparser.ConfigParser(delimiters=["="])
_settings.read(ROOT / "settings.ini", encoding="utf-8")
settings = _settings["DEFAULT"]

project = html_title = settings["title"]
author = settings["author"]
release = version = settings["version"]
copyright = settings["copyright"]

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "book",
    "drawings",
    "export_models",
    "old_addresses",
]
exclude_patterns = ["**.ipynb_checkpoints", ".*"]
# outputs are committed with the notebooks, and the tests run them
nb_execution_mode = "off"
# progress bars and other widgets would be drawn by scripts from two other hosts; their text is shown instead
nb_ipywidgets_js = {}
nb_render_markdown_format = "myst"  # tables and formulas in outputs
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
myst_heading_anchors = 3  # a link to a section is spelt as on GitHub
myst_enable_extensions = [
    "dollarmath",
    "amsmath",
    "colon_fence",
    "attrs_inline",
    "attrs_block",
]
suppress_warnings = [
    "myst.header",  # a README or a chapter may go from H1 to H3
    "toc.not_readable",  # index.md may name a notebook that is still being written
]

# What book.py needs to know.
book_package = str(ROOT / settings["lib_path"])
book_repository = settings["git_url"]
book_branch = settings["branch"]

# Math without a network: all of MathJax in one file, which draws its letters as SVG paths and so needs no font files.
# Its context menu is off because some entries of it would fetch further parts of MathJax, which are not here.
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

html_theme = "sphinx_book_theme"
html_baseurl = f"{settings['doc_host']}{settings['doc_baseurl']}/"
html_static_path = ["_static"]
html_favicon = (
    "_static/icon.svg"  # without one, browsers ask for /favicon.ico and log an error
)
html_css_files = ["book.css"]
html_js_files = [("book.js", {"defer": "defer"})]
html_domain_indices = False  # one index of names is enough
html_show_sphinx = False
# light or dark, as the reader's system says; the theme complains if nothing is said
html_context = {"default_mode": "auto"}
html_theme_options = {
    # the bar above everything would repeat the search of the sidebar, and its hidden buttons would get the menus' clicks
    "navbar_persistent": [],
    "repository_url": settings["git_url"],
    "repository_branch": settings["branch"],
    "path_to_docs": settings["nbs_path"],
    "launch_buttons": {"colab_url": "https://colab.research.google.com"},
    "use_repository_button": True,
    "use_source_button": True,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "footer_content_items": ["copyright"],
    "show_navbar_depth": 1,
    "show_toc_level": 2,  # sections and their parts
    "pygments_light_style": "vs",
    "pygments_dark_style": "github-dark",
}
copybutton_selector = "div.highlight pre"
