"""The Transformer of *Attention Is All You Need*, as a book of notebooks that is also a tested library.

You import what you need from here: `from annotated_transformer import Transformer, train`.
A name loads its module when you first use it, so `import annotated_transformer` is instant and needs no PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# For editors and type checkers, which read imports and run nothing. `name as name` says that a name is public.
if TYPE_CHECKING:
    from .base.model_files import load_model as load_model
    from .base.model_files import save_model as save_model
    from .base.config import SpecialTokens as SpecialTokens
    from .training.data import Batch as Batch
    from .training.data import batch_by_tokens as batch_by_tokens
    from .training.data import batch_pairs as batch_pairs
    from .tasks.synthetic import synthetic_pairs as synthetic_pairs
    from .debugging.checklist import check_transformer as check_transformer
    from .decoding.greedy import generate_ids as generate_ids
    from .decoding.greedy import greedy_decode as greedy_decode
    from .tasks.runs import count_parameters as count_parameters
    from .generation import generate as generate
    from .generation import load_language_model as load_language_model
    from .translator import load_pretrained as load_pretrained
    from .translator import translate as translate
    from .inspection.attention_maps import trace_attention as trace_attention
    from .inspection.attention_view import attention_view as attention_view
    from .interop.huggingface import from_huggingface as from_huggingface
    from .interop.huggingface import to_huggingface as to_huggingface
    from .models.gpt import GPT as GPT
    from .models.gpt import GPTConfig as GPTConfig
    from .decoding.sampling import sample as sample
    from .decoding.search import beam_search as beam_search
    from .training.loop import TrainConfig as TrainConfig
    from .training.loss import evaluate as evaluate
    from .training.loop import train as train
    from .training.loop import Callback as Callback
    from .training.callbacks import Evaluate as Evaluate
    from .training.callbacks import StopOnSignal as StopOnSignal
    from .training.callbacks import WeightAverage as WeightAverage
    from .training.checkpoint import Checkpoints as Checkpoints
    from .training.checkpoint import KeepEvaluated as KeepEvaluated
    from .training.data import forever as forever
    from .training.progress import Progress as Progress
    from .core.transformer import Transformer as Transformer
    from .core.transformer import TransformerConfig as TransformerConfig

# For Python: the same names, each with the module that defines it.
_PUBLIC = {
    # models
    "Transformer": "core.transformer",
    "TransformerConfig": "core.transformer",
    "GPT": "models.gpt",
    "GPTConfig": "models.gpt",
    "SpecialTokens": "base.config",
    "count_parameters": "tasks.runs",
    # data
    "Batch": "training.data",
    "batch_pairs": "training.data",
    "forever": "training.data",
    "batch_by_tokens": "training.data",
    "synthetic_pairs": "tasks.synthetic",
    # training
    "train": "training.loop",
    "TrainConfig": "training.loop",
    "evaluate": "training.loss",
    "Callback": "training.loop",
    "Evaluate": "training.callbacks",
    "StopOnSignal": "training.callbacks",
    "WeightAverage": "training.callbacks",
    "Checkpoints": "training.checkpoint",
    "KeepEvaluated": "training.checkpoint",
    "Progress": "training.progress",
    "save_model": "base.model_files",
    "load_model": "base.model_files",
    # decoding
    "generate_ids": "decoding.greedy",
    "greedy_decode": "decoding.greedy",
    "sample": "decoding.sampling",
    "beam_search": "decoding.search",
    "translate": "translator",
    "load_pretrained": "translator",
    "generate": "generation",
    "load_language_model": "generation",
    # looking inside
    "trace_attention": "inspection.attention_maps",
    "attention_view": "inspection.attention_view",
    "check_transformer": "debugging.checklist",
    # other people's weights
    "from_huggingface": "interop.huggingface",
    "to_huggingface": "interop.huggingface",
}

__all__ = list(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]

# hidden from type checkers, which would take any misspelt name for one of its results
if not TYPE_CHECKING:

    def __getattr__(name: str):
        "Load a public name from its module; Python calls this for a name that is not here yet."
        if name not in _PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

        module = import_module(f".{_PUBLIC[name]}", __name__)
        value = getattr(module, name)

        # the next time, Python finds it without asking
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    "What is loaded, and what could be."
    return sorted({*globals(), *__all__})
