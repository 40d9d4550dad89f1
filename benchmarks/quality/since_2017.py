"""What each change since 2017 is worth: one language model, and one part of its layers exchanged after the other.

    python benchmarks/quality/since_2017.py [--group mixture_of_experts] [--steps 600] [--seeds 0,1,2] [--device cuda]

Trains on the characters of Python's language reference, every variant with the same windows in the same order, and writes
results/GROUP_DEVICE.json: for each variant and seed the held-out loss, the parameters, and the bytes that the cache keeps for a token.
Chapters 7.1 and 7.2 read their tables from there.
"""

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments
from torch import nn

from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.training.data import EOS, PAD
from annotated_transformer.text.python_reference import (
    deduplicate,
    load_python_reference,
    random_windows,
    sliding_windows,
    split_text,
)
from annotated_transformer.text.tokenizer import CharTokenizer
from annotated_transformer.tasks.language_model import LanguageModelConfig
from annotated_transformer.tasks.runs import count_parameters
from annotated_transformer.core.layers import FeedForward, LayerNorm
from annotated_transformer.training.loss import sequence_loss
from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.models.llama import Llama, LlamaConfig
from annotated_transformer.models.mixture_of_experts import balanced_loss
from annotated_transformer.models.modern_layers import RMSNorm, SwiGLU
from annotated_transformer.training.loss import evaluate
from annotated_transformer.training.loop import train
from annotated_transformer.core.transformer import init_weights

SPECIAL = SpecialTokens(pad_id=PAD, bos_id=EOS, eos_id=EOS)


def exchange(model: nn.Module, kind: type, build) -> nn.Module:
    "Put another module in the place of each of one kind."
    for name, module in list(model.named_modules()):
        if type(module) is kind:
            model.set_submodule(name, build(module))
    init_weights(model)
    return model


def gpt(vocab_size: int, positions: str) -> GPT:
    return GPT(
        GPTConfig.preset(
            "tiny",
            vocab_size=vocab_size,
            positions=positions,
            pad_id=PAD,
            bos_id=EOS,
            eos_id=EOS,
        )
    )


def with_rms_norm(model: GPT) -> GPT:
    return exchange(model, LayerNorm, lambda old: RMSNorm(len(old.weight), old.eps))


def with_swiglu(model: GPT) -> GPT:
    "Two thirds of the width: as many parameters in three matrices as there were in two."
    return exchange(
        model,
        FeedForward,
        lambda old: SwiGLU(old.linear1.in_features, 2 * old.linear1.out_features // 3 + 1),
    )


def llama(vocab_size: int, n_kv_heads: int, **options) -> Llama:
    return Llama(
        LlamaConfig.preset(
            "tiny",
            vocab_size=vocab_size,
            n_kv_heads=n_kv_heads,
            pad_id=PAD,
            bos_id=EOS,
            eos_id=EOS,
            **options,
        )
    )


LAYERS = {  # name -> a function of the size of the vocabulary
    "GPT-2": lambda v: gpt(v, "learned"),
    "+ rotary positions": lambda v: gpt(v, "rotary"),
    "+ RMSNorm": lambda v: with_rms_norm(gpt(v, "rotary")),
    "+ SwiGLU": lambda v: with_swiglu(with_rms_norm(gpt(v, "rotary"))),
    "+ 2 heads of keys, no biases (Llama)": lambda v: llama(v, 2),
    "1 head of keys": lambda v: llama(v, 1),
    "2 heads of keys, QK-norm (Qwen 3)": lambda v: llama(v, 2, qk_norm=True),
}
EXPERTS = {  # beside the Llama above, whose feed-forward networks are 342 wide
    "8 experts of width 171, 2 for each token": lambda v: llama(
        v, 2, d_ff=171, n_experts=8
    ),
    "one network of width 1,368": lambda v: llama(v, 2, d_ff=8 * 171),
}
GROUPS = {"since_2017": LAYERS, "mixture_of_experts": EXPERTS}


def bytes_per_token(model: nn.Module) -> int:
    "What the cache keeps for each token, in float32."
    parts = [layer.self_attention for layer in model.blocks.layers]
    return sum(4 * (p.k_proj.out_features + p.v_proj.out_features) for p in parts)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--group", default="since_2017", choices=list(GROUPS))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    results, runs = Results(f"{options.group}_{options.device}", options), []
    training, held_out = split_text(deduplicate(load_python_reference()))
    tokenizer = CharTokenizer.of(training)
    documents, tests = (
        [[*tokenizer.encode(text), EOS] for text in part] for part in (training, held_out)
    )
    for seed in map(int, options.seeds.split(",")):
        config = LanguageModelConfig(steps=options.steps, seed=seed)
        for name, build in GROUPS[options.group].items():
            torch.manual_seed(seed)
            model = build(len(tokenizer)).to(options.device)
            length = model.config.max_len
            windows = random_windows(documents, length, config.batch_size, seed, SPECIAL)
            start = time.perf_counter()
            loss_fn = (
                balanced_loss if getattr(model.config, "n_experts", 0) else sequence_loss
            )
            train(model, windows, config.training(), loss_fn=loss_fn)
            seconds = time.perf_counter() - start
            loss = evaluate(model, sliding_windows(tests, length, special=SPECIAL))["loss"]
            runs.append(
                dict(
                    variant=name,
                    seed=seed,
                    loss=loss,
                    parameters=count_parameters(model),
                    cache_bytes=bytes_per_token(model),
                    train_seconds=round(seconds, 1),
                    steps=config.steps,
                    batch_size=config.batch_size,
                    length=length,
                )
            )
            print(runs[-1], flush=True)
    print("written to", results.save(runs=runs))
