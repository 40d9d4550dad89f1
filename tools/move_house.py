"""Move notebooks and modules into folders, and change every name of them: `python tools/move_house.py`, once.

The tables say what goes where. Links between notebooks become relative ones, "chapter 22" becomes "chapter 3.3", and a
chapter without a number any more is called by its title.
"""

import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# ---- Where the notebooks go: number -> place, and for those without a number what they're called in a sentence ----

PLACES = {
    "00": "1_model/0_tour",
    "01": "1_model/1_why_attention",
    "02": "1_model/2_attention",
    "03": "1_model/3_masks",
    "04": "1_model/4_multi_head_attention",
    "05": "1_model/5_layers",
    "06": "1_model/6_embeddings",
    "07": "1_model/7_positions",
    "08": "1_model/8_transformer",
    "09": "1_model/9_one_page",
    "10": "2_training/1_data",
    "11": "2_training/2_loss",
    "12": "2_training/3_optimizer",
    "13": "2_training/4_training",
    "14": "2_training/5_checkpoints",
    "20": "3_decoding/1_greedy_decoding",
    "21": "3_decoding/2_sampling",
    "22": "3_decoding/3_beam_search",
    "23": "3_decoding/4_metrics",
    "30": "4_copy_task/1_synthetic_tasks",
    "31": "4_copy_task/2_copy_task",
    "32": "4_copy_task/3_attention_maps",
    "33": "4_copy_task/4_sentence_pairs",
    "34": "4_copy_task/5_attention_view",
    "40": "5_translation/1_byte_pair_encoding",
    "41": "5_translation/2_parallel_text",
    "42": "5_translation/3_training_a_translator",
    "46": "5_translation/4_using_a_translator",
    "43": "5_translation/5_multi30k_captions",
    "44": "5_translation/6_looking_into_a_translator",
    "45": "5_translation/7_large_corpora",
    "50": "6_descendants/1_gpt",
    "52": "6_descendants/2_language_model",
    "53": "6_descendants/3_bert",
    "54": "6_descendants/4_topic_classification",
    "56": "6_descendants/5_vit",
    "57": "6_descendants/6_image_classification",
    "58": "6_descendants/7_captioner",
    "59": "6_descendants/8_captioning",
    "60": "7_since_2017/1_modern_layers",
    "61": "7_since_2017/2_mixture_of_experts",
    "62": "7_since_2017/3_llama",
    "63": "7_since_2017/4_generation",
    "70": "8_speed/1_dropout",
    "71": "8_speed/2_flash_attention",
    "72": "8_speed/3_fast_training",
    "73": "8_speed/4_distributed",
    "74": "8_speed/5_fast_decoding",
    "80": "9_practice/1_bugs",
    "81": "9_practice/2_bugs_in_training",
    "83": "9_practice/3_check_transformer",
    "84": "9_practice/4_from_a_blog_post",
    "86": "9_practice/5_hugging_face_weights",
    "87": "9_practice/6_inside_published_models",
    "64": "depth/rnns_and_convolutions",
    "65": "depth/attention_in_depth",
    "66": "depth/masks_in_depth",
    "18": "depth/multi_head_attention_in_depth",
    "19": "depth/embeddings_in_depth",
    "67": "depth/layers_in_depth",
    "17": "depth/transformer_in_depth",
    "68": "depth/positions_in_depth",
    "69": "depth/parameters_of_table_3",
    "28": "depth/loss_and_batches_in_depth",
    "27": "depth/training_in_depth",
    "26": "depth/decoding_in_depth",
    "39": "depth/translation_in_depth",
    "79": "depth/modern_layers_in_depth",
    "82": "depth/probes",
    "15": "reference/history",
    "16": "reference/transformer_config",
    "24": "reference/kv_cache",
    "25": "reference/beam_cache",
    "29": "reference/held_out",
    "35": "reference/tokenizer",
    "36": "reference/word_tokenizers",
    "37": "reference/character_tokenizer",
    "38": "reference/recording",
    "47": "reference/numbers",
    "48": "reference/multi30k",
    "49": "reference/corpora",
    "51": "reference/python_reference",
    "55": "reference/images",
    "75": "reference/allocations",
    "76": "reference/async_copy",
    "77": "reference/memory",
    "78": "reference/extras",
    "85": "reference/llama_weights",
    "88": "reference/hugging_face_tokenizers",
    "89": "reference/hub",
    "90": "reference/config",
    "91": "reference/plotting",
    "92": "reference/runs",
    "93": "reference/command_line",
    "94": "reference/atomic_folders",
    "95": "reference/diagrams",
    "96": "reference/svg",
    "97": "reference/reliability",
    "98": "reference/signals",
    "99": "reference/progress",
    "100": "reference/ngrams",
    "101": "reference/weight_maps",
    "102": "reference/torch_weights",
    "103": "reference/calling",
    "104": "reference/attention_trace",
    "105": "reference/probes_of_masks",
    "106": "reference/probes_of_positions",
    "107": "reference/probes_of_weights",
    "108": "reference/probes_of_outputs",
    "110": "reference/widgets",
}
CALLED = {
    "64": "RNNs and convolutions compared",
    "65": "Attention in depth",
    "66": "Masks in depth",
    "18": "Multi-head attention in depth",
    "19": "Embeddings in depth",
    "67": "Layers in depth",
    "17": "The Transformer in depth",
    "68": "Positions in depth",
    "69": "Counting parameters",
    "28": "Loss and batches in depth",
    "27": "Training in depth",
    "26": "Decoding in depth",
    "39": "The translation experiment in depth",
    "79": "Modern layers in depth",
    "82": "Probes",
    "15": "Training history",
    "16": "Configuring a Transformer",
    "24": "The key/value cache",
    "25": "Beam search with a cache",
    "29": "Held-out data",
    "35": "The tokenizer interface",
    "36": "Word tokenizers",
    "37": "Character tokenizer",
    "38": "Recording attention weights",
    "47": "Numbers in words",
    "48": "Multi30k",
    "49": "Opening a parallel corpus",
    "51": "Python's language reference",
    "55": "Image data sets",
    "75": "Measuring the memory of tensors",
    "76": "Copying batches to a GPU",
    "77": "Checking that memory suffices",
    "78": "Optional packages",
    "85": "Weights of Llama, Mistral and Qwen",
    "88": "Hugging Face tokenizers",
    "89": "Loading models from the Hub",
    "90": "Configurations and error messages",
    "91": "Plotting",
    "92": "Experiments and their run folders",
    "93": "The command-line interface",
    "94": "Writing folders atomically",
    "95": "Diagrams",
    "96": "SVG elements",
    "97": "Reliability",
    "98": "Handling Ctrl-C",
    "99": "Progress bars and TensorBoard",
    "100": "N-gram models",
    "101": "Weight maps",
    "102": "Converting nn.Transformer",
    "103": "Calling a model that you don't know",
    "104": "Following attention through a call",
    "105": "Probes of the masks",
    "106": "Probes of the positions",
    "107": "Probes of the weights",
    "108": "Probes of outputs",
    "110": "Widgets",
}

# ---- Where the modules go, by dotted name ----

FOLDERS = {
    "base": "config utils.atomic_folders utils.memory utils.extras speed.allocations",
    "core": "attention masks multi_head_attention layers embeddings positions dropout transformer transformer_config "
    "kv_cache beam_cache one_page inspection.recording speed.tiled_attention",
    "training": "data loss optimizer checkpoint history distributed utils.progress utils.signals speed.async_copy",
    "text": "tokenizers.words tokenizers.characters tokenizers.bpe datasets.parallel_text datasets.held_out "
    "datasets.streamed_text datasets.corpora datasets.multi30k datasets.numbers datasets.sentence_pairs "
    "datasets.python_reference",
    "decoding": "sampling search metrics speed.decoding_speed",
    "inspection": "figures.widgets",
    "tasks": "experiments.copy_task experiments.translation experiments.language_model "
    "experiments.topic_classification experiments.image_classification experiments.captioning experiments.runs "
    "datasets.synthetic datasets.images",
}
MODULES = {
    old: f"{folder}.{old.rpartition('.')[2]}"
    for folder, names in FOLDERS.items()
    for old in names.split()
}
MODULES |= {
    "training": "training.loop",
    "decoding": "decoding.greedy",
    "tokenizers.base": "text.tokenizer",
    "datasets.numbers": "text.number_words",
    "translation": "translator",
    "debugging.masks": "debugging.mask_probes",
    "debugging.positions": "debugging.position_probes",
    "debugging.weights": "debugging.weight_probes",
    "debugging.outputs": "debugging.output_probes",
}
GONE = ("utils", "speed", "datasets", "tokenizers", "experiments")

# Scripts that are no notebooks.
SCRIPTS = {
    "nbs/cell_directives.py": "tools/cell_directives.py",
    "nbs/for_readers.py": "tools/for_readers.py",
    "nbs/git_hooks.py": "tools/git_hooks.py",
    "nbs/run_notebooks.py": "tools/run_notebooks.py",
    "nbs/conftest.py": "conftest.py",
}


def git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


# Before anything moves: number -> the name of its file
STEMS = {
    path.stem.partition("_")[0]: path.stem for path in (ROOT / "nbs").glob("[0-9]*.ipynb")
}
PLACE_OF = {stem: PLACES[number] for number, stem in STEMS.items()}
NUMBER_OF = {stem: number for number, stem in STEMS.items()}


def label(number: str) -> str | None:
    "`22` -> `3.3`; None for a notebook that one looks up."
    part, _, name = PLACES[number].partition("/")
    if not part[0].isdigit():
        return None
    return f"{part.partition('_')[0]}.{name.partition('_')[0]}"


# ---- Text ----

STEM = "|".join(re.escape(stem) for stem in sorted(STEMS.values(), key=len, reverse=True))


def relative(target: str, folder: str) -> str:
    "From a folder of the repository to a file in it."
    return Path(os.path.relpath(target, folder or ".")).as_posix()


def with_links(text: str, old_folder: str, new_folder: str) -> str:
    "Markdown with its links and the names of its chapters changed."

    def link(match):
        image, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = os.path.normpath(os.path.join(old_folder, target))
        if not (ROOT_FILES & {path}) and not (ROOT / path).exists():
            return match[0]

        stem = Path(path).stem
        known = stem in PLACE_OF and path.startswith("nbs/")
        new = (
            f"nbs/{PLACE_OF[stem]}{Path(path).suffix}" if known else SCRIPTS.get(path, path)
        )
        if known:
            words = renamed_words(words, NUMBER_OF[stem])
        return f"{image}[{words}]({relative(new, new_folder)}{anchor})"

    text = re.sub(
        r"(!?)\[([^\]]*)\]\(((?!https?:|mailto:|#)[^)\s#]+)(#[^)\s]*)?\)", link, text
    )
    return with_chapters(text)


def renamed_words(words: str, number: str) -> str:
    "The text of a link to a notebook."
    new = label(number)
    for word in ("chapter ", "Chapter ", ""):
        if words == f"{word}{number}":
            return f"{word}{new}" if new else CALLED[number]

    # as in a list of contents
    said, _, title = words.partition(" ")
    if said == number:
        return f"{new} {title}" if new else title
    return words


def with_chapters(text: str) -> str:
    'Chapters named without a link: "chapter 22", "chapters 02 to 08".'

    def one(number: str) -> str:
        if number not in PLACES:
            return number
        return label(number) or f"“{CALLED[number]}”"

    def named(match):
        word, numbers = match[1], match[2]
        if word.lower() == "chapter" and numbers in PLACES and label(numbers) is None:
            return f"“{CALLED[numbers]}”"
        return f"{word} " + re.sub(r"\d{2,3}", lambda found: one(found[0]), numbers)

    pattern = (
        r"\b([Cc]hapters?) (\d{2,3}\b(?!\.\d)(?:(?:, | and | or | to |, and )\d{2,3}\b)*)"
    )
    return re.sub(pattern, named, text)


DOTTED = "|".join(re.escape(old) for old in sorted(MODULES, key=len, reverse=True))


def with_modules(text: str) -> str:
    "Names and files of modules changed, and files of notebooks."
    # annotated_transformer.training, but not annotated_transformer.training.loop of a text that is changed already
    text = re.sub(
        rf"\b(annotated_transformer)\.({DOTTED})\b(?!\.py\b)",
        lambda found: f"{found[1]}.{MODULES[found[2]]}",
        text,
    )

    # from annotated_transformer import one_page
    def imported(match):
        indent, name, alias = match[1], match[2], match[3] or ""
        if name not in MODULES:
            return match[0]
        folder, _, new = MODULES[name].rpartition(".")
        place = f"annotated_transformer.{folder}" if folder else "annotated_transformer"
        if new != name and not alias:
            alias = f" as {name}"
        return f"{indent}from {place} import {new}{alias}"

    text = re.sub(
        r"^([ \t]*)from annotated_transformer import (\w+)( as \w+)?$",
        imported,
        text,
        flags=re.M,
    )

    # from annotated_transformer import Transformer, one_page
    def separated(match):
        indent, names = match[1], match[2].split(", ")
        modules = [name for name in names if name in MODULES]
        others = [name for name in names if name not in MODULES]
        lines = (
            [f"{indent}from annotated_transformer import {', '.join(others)}"]
            if others
            else []
        )
        for name in modules:
            folder, _, new = MODULES[name].rpartition(".")
            assert new == name, name
            lines.append(f"{indent}from annotated_transformer.{folder} import {name}")
        return "\n".join(lines)

    text = re.sub(
        r"^([ \t]*)from annotated_transformer import (\w+(?:, \w+)+)$",
        separated,
        text,
        flags=re.M,
    )
    # from annotated_transformer.utils import memory
    text = re.sub(
        r"\bfrom annotated_transformer\.(\w+) import (\w+)\b",
        lambda found: "from annotated_transformer.{} import {}".format(
            *MODULES.get(f"{found[1]}.{found[2]}", f"{found[1]}.{found[2]}").split(".")
        ),
        text,
    )
    slashed = "|".join(
        re.escape(old.replace(".", "/")) for old in sorted(MODULES, key=len, reverse=True)
    )
    text = re.sub(
        rf"\b(annotated_transformer)/({slashed})\.py\b",
        lambda found: (
            f"{found[1]}/{MODULES[found[2].replace('/', '.')].replace('.', '/')}.py"
        ),
        text,
    )
    # an address of the site
    text = re.sub(
        rf"(annotated_transformer/)({STEM})\.html",
        lambda found: f"{found[1]}{PLACE_OF[found[2]]}.html",
        text,
    )
    return re.sub(
        rf"(?<![\w/])(nbs/)?({STEM})(?=\.ipynb|\.html|\b)",
        lambda found: (found[1] or "") + PLACE_OF[found[2]],
        text,
    )


def with_directives(source: str) -> str:
    "`#| default_exp` and `#| export` with the new name of a module."
    return re.sub(
        rf"^(#\| *(?:default_exp|exports?|exporti):? +)({DOTTED})(?= *$)",
        lambda found: found[1] + MODULES[found[2]],
        source,
        flags=re.M,
    )


def notebook(path: Path, old_folder: str, new_folder: str):
    data = json.loads(path.read_text(encoding="utf-8"))
    for cell in data["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = with_modules_in_text(with_links(source, old_folder, new_folder))
        else:
            source = with_modules(with_chapters(with_directives(source)))
            outputs = json.dumps(cell["outputs"], ensure_ascii=False)
            cell["outputs"] = json.loads(with_modules_in_text(outputs))
        cell["source"] = source.splitlines(keepends=True)
    text = json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8")


def with_modules_in_text(text: str) -> str:
    "Dotted names and files of modules; links to notebooks are right already."
    held = []

    def hold(match):
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    text = re.sub(r"\]\([^)\s]+\)", hold, text)
    text = with_modules(text)
    return re.sub("\0(\\d+)\0", lambda found: held[int(found[1])], text)


def translation_module():
    "Its first notebook has to be the one that names it, and folders are exported in their order: chapter, then depth."
    nbs = ROOT / "nbs"
    chapter, depth = nbs / f"{PLACES['42']}.ipynb", nbs / f"{PLACES['39']}.ipynb"
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (chapter, depth))

    cells = {cell["id"]: cell for cell in other["cells"]}
    named, imports = cells["translation-module"], cells["translation-imports"]
    other["cells"].remove(named)
    moved = dict(imports, source=list(imports["source"]))
    imports["source"][0] = "#| hide\n"
    for cell in other["cells"]:
        source = "".join(cell["source"])
        source = re.sub(
            r"^#\| exports$", "#| exports tasks.translation", source, flags=re.M
        )
        cell["source"] = source.splitlines(keepends=True)

    place = [cell["id"] for cell in one["cells"]].index("epochs-imports")
    one["cells"][place:place] = [named, moved]
    for cell in one["cells"]:
        source = "".join(cell["source"]).replace(" tasks.translation\n", "\n", 1)
        if cell["id"] in ("epochs-imports", "epochs"):
            cell["source"] = source.splitlines(keepends=True)

    for path, data in ((chapter, one), (depth, other)):
        text = json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        path.write_text(text, encoding="utf-8")


def top_level():
    "Names that `annotated_transformer` gives, each with its module; and nbdev goes into folders."
    path = ROOT / "annotated_transformer/__init__.py"
    text = path.read_text(encoding="utf-8")
    new = lambda name: MODULES.get(name, name)  # noqa: E731
    text = re.sub(
        r"from \.([\w.]+) import", lambda found: f"from .{new(found[1])} import", text
    )
    text = re.sub(
        r'^(    "\w+": )"([\w.]+)",',
        lambda found: f'{found[1]}"{new(found[2])}",',
        text,
        flags=re.M,
    )
    path.write_text(text, encoding="utf-8")

    path = ROOT / "settings.ini"
    text = path.read_text(encoding="utf-8").replace("recursive = False", "recursive = True")
    path.write_text(text, encoding="utf-8")


def contents():
    "The numbers in the table of README.md."
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    text = re.sub(
        r"^\| (\d\d) \| \[", lambda found: f"| {label(found[1])} | [", text, flags=re.M
    )
    path.write_text(text, encoding="utf-8")


# ---- The move ----

if __name__ == "__main__":
    assert set(PLACES) == set(STEMS), set(PLACES) ^ set(STEMS)
    assert all((label(n) is None) == (n in CALLED) for n in PLACES)
    files = [name for name in git("ls-files").splitlines() if not name.startswith("tools/")]
    ROOT_FILES = set(files)
    old_of = {name: name for name in files}

    def move(old: str, new: str):
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)
        old_of[new] = old_of.pop(old)

    for stem, place in PLACE_OF.items():
        move(f"nbs/{stem}.ipynb", f"nbs/{place}.ipynb")
    for old, new in SCRIPTS.items():
        move(old, new)
    package = "annotated_transformer"
    # modules that become folders go last: training.py makes room for training/
    for old, new in MODULES.items():
        move(
            f"{package}/{old.replace('.', '/')}.py", f"{package}/{new.replace('.', '/')}.py"
        )
    for name in git("ls-files", f"{package}/figures/widget_scripts").splitlines():
        move(name, name.replace("/figures/", "/inspection/"))
    for folder in GONE:
        git("rm", "-q", f"{package}/{folder}/__init__.py")
        old_of.pop(f"{package}/{folder}/__init__.py")
    for folder in FOLDERS:
        path = ROOT / package / folder / "__init__.py"
        path.touch()
        git("add", path.relative_to(ROOT).as_posix())

    for new, old in old_of.items():
        path = ROOT / new
        folders = Path(old).parent.as_posix(), Path(new).parent.as_posix()
        if path.suffix == ".ipynb":
            notebook(path, *folders)
        elif path.suffix == ".md":
            text = with_links(path.read_text(encoding="utf-8"), *folders)
            path.write_text(with_modules_in_text(text), encoding="utf-8")
        elif path.suffix in (
            ".py",
            ".js",
            ".css",
            ".yml",
            ".yaml",
            ".toml",
            ".ini",
            ".json",
            ".cff",
            ".in",
            ".sh",
            "",
        ) and not (
            # nbdev writes these again
            new.startswith(package)
            and path.name not in ("__init__.py", "__main__.py")
            and path.suffix == ".py"
        ):
            text = path.read_text(encoding="utf-8")
            changed = with_modules(with_chapters(text))
            for old_script, new_script in SCRIPTS.items():
                changed = changed.replace(old_script, new_script)
            if changed != text:
                path.write_text(changed, encoding="utf-8")
    translation_module()
    top_level()
    contents()
