"""Write the models that come with the package as scripts, so that pages can run them: `python docs/export_models.py`.

Each folder of annotated_transformer/pretrained/ becomes docs/_static/models/NAME.js: configuration, tokenizer, and the weights as
they are stored, in half precision, in base64. A script can be loaded by a page that was opened from a file, where `fetch` can't read
anything. sphinx-build calls this too. It needs neither torch nor the library; `docs/_static/transformer.js` says how to use a model.
"""

import base64
import json
import math
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PRETRAINED = DOCS.parent / "annotated_transformer" / "pretrained"
TARGET = DOCS / "_static" / "models"

# what transformer.js can compute; sizes may be any
EXPECTED = {
    "model": "Transformer",
    "d_k": None,
    "d_v": None,
    "attention_bias": False,
    "activation": "relu",
    "norm": "post",
    "tgt_vocab_size": None,
    "positions": "sinusoidal",
    "tie_weights": True,
    "output_bias": False,
    "pad_id": 0,
    "bos_id": 1,
    "eos_id": 2,
}


def read_config(folder: Path) -> dict:
    "The configuration of a model. Raises `ValueError` for an option that transformer.js doesn't have."
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for option, expected in EXPECTED.items():
        if config[option] != expected:
            raise ValueError(
                f"{folder.name} has {option} = {config[option]!r}, and docs/_static/transformer.js only knows {expected!r}"
            )
    return config


def read_weights(folder: Path) -> tuple[dict, bytes]:
    "Name -> (shape, index of its first number), and all numbers as float16, as safetensors stores them."
    content = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)

    tensors = {}
    for name, tensor in header.items():
        if tensor["dtype"] != "F16":
            raise ValueError(f"{folder.name}: {name} is {tensor['dtype']}, expected F16")
        start, end = tensor["data_offsets"]
        assert end - start == 2 * math.prod(tensor["shape"])
        tensors[name] = tensor["shape"], start // 2
    return tensors, content[8 + size :]


def read_tokenizer(folder: Path) -> dict:
    "The tokens in the order of their ids, and for byte pairs their merges. Raises `ValueError` for another way to cut texts."
    if (folder / "vocab.json").exists():
        vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        if vocabulary["tokenizer"] != "WordTokenizer":
            raise ValueError(f"{folder.name} has a {vocabulary['tokenizer']}")
        return dict(tokens=vocabulary["tokens"])

    parts = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    cutting, normalizer = parts["pre_tokenizer"], parts["normalizer"]
    if normalizer not in (None, {"type": "Lowercase"}):
        raise ValueError(f"{folder.name} changes texts by {normalizer}")
    if cutting["type"] not in ("ByteLevel", "Sequence"):
        raise ValueError(f"{folder.name} cuts texts by {cutting['type']}")

    merges = []
    for pair in parts["model"]["merges"]:
        merges.append(pair if isinstance(pair, str) else " ".join(pair))
    vocabulary = parts["model"]["vocab"]
    return dict(
        tokens=sorted(vocabulary, key=vocabulary.get),
        merges=merges,
        split_unspaced=cutting["type"] == "Sequence",
        lowercase=normalizer is not None,
    )


def script_of(folder: Path) -> str:
    "A model as a script."
    tensors, weights = read_weights(folder)
    model = dict(
        name=folder.name,
        config=read_config(folder),
        tokenizer=read_tokenizer(folder),
        tensors=tensors,
        weights=base64.b64encode(weights).decode(),
    )
    return f"AnnotatedTransformer.add_model({json.dumps(model, ensure_ascii=False, separators=(',', ':'))});\n"


def export() -> list[Path]:
    "Write the scripts of all models that there are, and nothing where one is up to date."
    TARGET.mkdir(parents=True, exist_ok=True)
    scripts = {}
    for path in sorted(PRETRAINED.glob("*/config.json")):
        scripts[path.parent.name] = script_of(path.parent)

    for name, script in scripts.items():
        target = TARGET / f"{name}.js"
        if not target.exists() or target.read_text(encoding="utf-8") != script:
            target.write_text(script, encoding="utf-8")

    # a model that is no longer there
    for path in TARGET.glob("*.js"):
        if path.stem not in scripts:
            path.unlink()
    return [TARGET / f"{name}.js" for name in scripts]


def setup(app):
    app.connect("builder-inited", lambda app: export())
    return dict(version="1", parallel_read_safe=True, parallel_write_safe=True)


if __name__ == "__main__":
    for path in export():
        print(f"{path}: {path.stat().st_size:,} bytes")
