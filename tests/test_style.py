"""The house style, as far as a test can see it: what a reader sees is short, explained, shown and in the field's words.

Only what a reader sees is counted: no `#| hide` and no `#| default_exp` cells.
"""

import ast
import re
from itertools import groupby

import pytest
from project import ROOT, chapters, modules, public, tree

WIDEST = 92  # characters of a code line; the page shows no more
LONGEST = 30  # lines of a function
IN_A_ROW = 3  # code cells without text between them
AFTER_TEXT = 60  # percent of code cells that stand directly after text, over the book
MODULE = 400  # lines

each_chapter = pytest.mark.parametrize(
    "chapter", chapters(), ids=lambda chapter: chapter.name
)
each_module = pytest.mark.parametrize("module", modules())


@each_chapter
def test_code_lines_fit_the_page(chapter):
    wide = [
        f"{chapter.name}, cell {cell.id}: {len(line)} characters: {line.strip()[:60]}..."
        for cell in chapter.code
        for line in cell.lines
        if len(line) > WIDEST and not line.lstrip().startswith("#|")
    ]
    assert not wide, "\n".join(wide)


@each_chapter
def test_code_cells_are_interrupted_by_text(chapter):
    rows = [
        list(cells)
        for is_code, cells in groupby(chapter.visible, lambda cell: cell.is_code)
        if is_code
    ]
    long = [
        f"{chapter.name}, from cell {row[0].id}: {len(row)} code cells in a row"
        for row in rows
        if len(row) > IN_A_ROW
    ]
    assert not long, "\n".join(long)


def test_most_code_stands_after_text():
    "A heading alone is no text."

    def is_text(cell) -> bool:
        return not cell.is_code and not all(
            line.startswith("#") for line in cell.source.split("\n") if line
        )

    after = [
        before is not None and is_text(before)
        for chapter in chapters()
        for before, cell in zip([None, *chapter.visible], chapter.visible)
        if cell.is_code
    ]
    assert 100 * sum(after) / len(after) >= AFTER_TEXT


@each_module
def test_module_has_a_readable_size(module):
    assert len(modules()[module].read_text(encoding="utf-8").splitlines()) <= MODULE


@each_module
def test_functions_are_short(module):
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree(modules()[module]))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno + 1 > LONGEST
    ]
    assert not long, f"{module}: {', '.join(long)}"


# ---- References ----


@each_chapter
def test_next_is_the_next_chapter(chapter):
    names = [other.name for other in chapters()]
    following = names[names.index(chapter.name) + 1 :][:1]
    said = re.findall(r"^Next: \[[^]]+\]\(([^)]+)\.ipynb\)", chapter.cells[-1].source, re.M)
    assert said == following, f"{chapter.name} says {said}, the next one is {following}"


@each_chapter
def test_links_between_chapters_lead_somewhere(chapter):
    "Standard Markdown, with the title or the number that the other chapter has."
    by_name = {other.name: other for other in chapters()}
    for cell in chapter.cells:
        if cell.is_code:
            continue
        assert "{doc}" not in cell.source, (
            f"{cell.id}: a link that only the site understands"
        )
        for text, target in re.findall(
            r"\[([^]]*)\]\(([^)#\s]+\.ipynb)(?:#[^)]*)?\)", cell.source
        ):
            other = by_name.get(target.removesuffix(".ipynb"))
            assert other, f"{chapter.name}, cell {cell.id}: {target}"
            if number := re.search(r"\b(\d\d)$", text):
                assert number[1] == other.number, (
                    f"{chapter.name}, cell {cell.id}: [{text}]({target})"
                )


@each_chapter
def test_chapters_that_are_named_exist(chapter):
    numbers = {other.number for other in chapters()}
    for cell in chapter.cells:
        for found in re.findall(r"\b[Cc]hapters? \[?(\d\d[a-z]?)", cell.source):
            assert found in numbers, f"{chapter.name}, cell {cell.id}: chapter {found}"


@each_chapter
def test_markdown_is_standard(chapter):
    "No role or directive of one renderer: notebooks are read in JupyterLab, VS Code, Colab and on GitHub as well."
    special = [
        f"{chapter.name}, cell {cell.id}: {found[0]}"
        for cell in chapter.cells
        if not cell.is_code
        for found in [
            re.search(
                r"^:::.*|\{[a-z]+\}`", re.sub(r"`[^`\n]*`(?!`)", "", cell.source), re.M
            )
        ]
        if found
    ]
    assert not special, "\n".join(special)


@each_chapter
def test_folded_text_ends_before_other_text(chapter):
    "Without an empty line, what follows `</details>` is HTML to a reader of Markdown, and its links stay raw."
    raw = [
        cell.id
        for cell in chapter.cells
        if not cell.is_code and re.search(r"</details>[^\S\n]*\n(?=\S)", cell.source)
    ]
    assert not raw, f"{chapter.name}: {raw}"


def test_the_lists_of_chapters_are_complete():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \d\d \| \[[^]]+\]\(nbs/([\w.]+)\.ipynb\)", text, re.M)
    assert listed == [chapter.name for chapter in chapters()]


# ---- The field's words ----

# Names that the field has another word for; nobody is to be taught them again.
REPLACED = """
fresh_heads unturned GrowingHeads FixedHeads PromptHeads PromptSteps KeyValueCache empty_cache lineage
turn turned some looks judged arrow found_in Attended attention_of picture_of heads_picture stacked_rows
refusal to_blocking widen narrow gain RESIDUALS after_stack NoPositions SinusoidalPositions LearnedPositions
RotaryPositions PositionedEmbedding BiasedOutput padding_share token_batches stream_batches least_loss
paper_learning_rate warm_up loss_of label_loss clip_norm Decoded take write choose SpecialIds length_limits best_token
check_usual_ids decode_lists without best_of joined first_rivals trimmed extend keep_top_k keep_top_p penalty hope
continued beginnings looking_back Characters unrepeated covering_windows one_line language_reference
pack pack_all learn_parts choose_parts shuffled contenders masked_quality class_id jittered LabelledImages zoom
patches_of class_token answer_line ids_of words_of Strip most write_captions Subject examine Finding spare listed
undisturbed GATES configured exchanged by_steps step_size Match TURNED NEVER repeats changed sines_first read_weights
write_weights Family need ours_of theirs_of FewRows few_rows_linear carry_out symbols towers links VEIL still_picture
rivals rival recorded_attention guess_kind KINDS src_input tgt_input build_ends initialise
""".split()


def names_of(module: str) -> set[str]:
    "What a user meets: public names, their parameters, fields and public methods."
    found = set(public(tree(modules()[module])))
    for node in tree(modules()[module]).body:
        if getattr(node, "name", None) not in found:
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.arg):
                found.add(inner.arg)
            elif isinstance(inner, ast.FunctionDef) and isinstance(node, ast.ClassDef):
                found.add(inner.name)
            elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                found.add(inner.target.id)
    return found


@each_module
def test_names_are_the_fields(module):
    private = names_of(module) & set(REPLACED)
    assert not private, f"{module}: {', '.join(sorted(private))}"


PRIVATE_WORDS = re.compile(
    r"\b(?:rivals?|lineage|counting models?|contenders?|turned heads|jittered)\b", re.I
)


@each_chapter
def test_prose_speaks_the_fields_language(chapter):
    found = [
        f"{chapter.name}, cell {cell.id}: {match[0]}"
        for cell in chapter.cells
        if (match := PRIVATE_WORDS.search(cell.source))
    ]
    assert not found, "\n".join(found)


# ---- Results ----


@each_chapter
def test_sections_show_a_result(chapter):
    "Whoever reads a definition sees what comes out of it: text, a value or a picture."
    sections, current = [], None
    for cell in chapter.visible:
        if not cell.is_code and (titles := re.findall(r"^##\s+(.*)", cell.source, re.M)):
            current = {"title": titles[-1], "exports": False, "shows": False}
            sections.append(current)
        elif cell.is_code and current:
            current["exports"] |= cell.exported
            current["shows"] |= bool(cell.outputs)
    silent = [
        section["title"]
        for section in sections
        if section["exports"] and not section["shows"]
    ]
    assert not silent, f"{chapter.name}: {silent}"
