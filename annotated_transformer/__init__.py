"""The Transformer of *Attention Is All You Need*, as a book of notebooks that is also a tested library.

The names below are what a user needs. Each is loaded when it is first asked for, so that importing this package loads nothing else.
"""
from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = { # name -> the module that defines it
    "Transformer": "transformer", "TransformerConfig": "transformer",
    "GPT": "models.gpt", "GPTConfig": "models.gpt",
    "synthetic_pairs": "datasets.synthetic", "count_parameters": "experiments.runs",
    "SpecialTokens": "config", "Batch": "data", "batch_pairs": "data", "batch_by_tokens": "data",
    "train": "training", "TrainConfig": "training", "evaluate": "training",
    "save_model": "checkpoint", "load_model": "checkpoint",
    "greedy_decode": "decoding", "generate_ids": "decoding", "sample": "sampling", "beam_search": "search",
    "trace_attention": "inspection.attention_maps", "attention_view": "inspection.attention_view",
    "translate": "translation",
    "check_transformer": "debugging.checklist",
    "from_huggingface": "interop.huggingface", "to_huggingface": "interop.huggingface",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC: raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_PUBLIC[name]}", __name__), name)
    return value


def __dir__(): return sorted({*globals(), *__all__})
