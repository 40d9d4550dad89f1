"""Loading a model, beside a copy of all tensors in its file and Hugging Face's `from_pretrained`.

    python benchmarks/loading.py [--rounds 9]

Three models with random weights: the base Transformer, saved by `save_model`; and a GPT-2 small and a Llama of the sizes of SmolLM2-135M, saved by
transformers. The baseline reads the same file with `safetensors.torch.load_file` and clones every tensor. All ways take turns in one process, files
are in the page cache, imports are left out, and medians are kept. Hugging Face's way maps the file and copies nothing. Writes
results/loading_cpu.json.
"""

import logging
import statistics
import sys
import tempfile
from pathlib import Path

import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments, rounded, seconds
from safetensors.torch import load_file

from annotated_transformer.base.model_files import load_model, save_model
from annotated_transformer.interop.huggingface import from_huggingface
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

LLAMA = dict(
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    max_position_embeddings=8192,
    tie_word_embeddings=True,
)


def copy_of_file(folder: Path) -> dict:
    "The least that has to be done: read all tensors and copy them."
    tensors = load_file(folder / "model.safetensors")
    return {name: tensor.clone() for name, tensor in tensors.items()}


def save_models(place: Path) -> dict:
    "name -> what to load: way -> a function that returns a model"
    base, gpt2, llama = (place / name for name in ("base", "gpt2", "llama"))
    save_model(Transformer(TransformerConfig.preset("base")), base)
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(gpt2)
    config = transformers.LlamaConfig(**LLAMA)
    transformers.LlamaForCausalLM(config).save_pretrained(llama)
    return {
        "base Transformer": {
            "copy": lambda: copy_of_file(base),
            "ours": lambda: load_model(base, Transformer),
        },
        "GPT-2 small": {
            "copy": lambda: copy_of_file(gpt2),
            "ours": lambda: from_huggingface(gpt2),
            "theirs": lambda: transformers.GPT2LMHeadModel.from_pretrained(gpt2),
        },
        "Llama, 135 million": {
            "copy": lambda: copy_of_file(llama),
            "ours": lambda: from_huggingface(llama),
            "theirs": lambda: transformers.LlamaForCausalLM.from_pretrained(llama),
        },
    }


def measure(ways: dict, rounds: int) -> dict:
    "Median seconds of each way; they take turns, after one turn that counts for nothing."
    times = {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way, load in ways.items():
            time = seconds(load, "cpu")
            if turn:
                times[way].append(time)
    return {way: rounded(statistics.median(found)) for way, found in times.items()}


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.device != "cpu":
        parser.error("--device: loading is measured on the CPU")
    results = Results("loading_cpu", options)
    logging.disable()
    transformers.utils.logging.disable_progress_bar()

    runs = []
    print(f"{'':22}{'weights':>12}{'copy':>9}{'ours':>9}{'theirs':>9}{'ours / copy':>13}")
    with tempfile.TemporaryDirectory() as place:
        for name, ways in save_models(Path(place)).items():
            n_weights = sum(tensor.numel() for tensor in ways["copy"]().values())
            times = measure(ways, options.rounds)
            ratio = rounded(times["ours"] / times["copy"])
            runs.append(dict(model=name, weights=n_weights, seconds=times, ratio=ratio))
            shown = "".join(
                f"{times[way]:9.3f}" if way in times else f"{'':9}"
                for way in ("copy", "ours", "theirs")
            )
            print(f"{name:22}{n_weights:12,}{shown}{ratio:13.2f}")
    print(f"seconds, medians of {options.rounds}; written: {results.save(runs=runs)}")
