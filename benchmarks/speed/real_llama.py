"""A published Llama beside Hugging Face: loading, greedy decoding, beam search.

    python benchmarks/speed/real_llama.py [--model HuggingFaceTB/SmolLM2-135M-Instruct] [--tokens 64] [--rounds 7] [--threads 1]

Both sides have the same float32 weights and continue the same prompts, without an end. They take turns in one process, and each ratio is the
median over the turns, theirs / ours: above 1 we are faster. The tokens that both write are compared before anything is timed; where a beam
differs, the scores say by how much. Writes results/real_llama_cpu.json.
"""

import statistics
import sys
from functools import partial
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments, rounded, seconds

from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.decoding.greedy import greedy_decode
from annotated_transformer.generation import load_language_model
from annotated_transformer.interop.huggingface import model_folder
from annotated_transformer.interop.huggingface import from_huggingface
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.decoding.decoding_speed import prepare_for_decoding

PROMPTS = ["The old man opened the door and saw", "Water boils at", "Once upon a time"]
ENDLESS = SpecialTokens(pad_id=None, bos_id=None, eos_id=None)


def their_tokens(model, prompt, n_tokens: int, beam_size: int) -> list[int]:
    "What Hugging Face writes."
    ids = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=n_tokens,
        min_new_tokens=n_tokens,
        num_beams=beam_size,
        do_sample=False,
        length_penalty=0.0,
        early_stopping=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return ids[0, prompt.shape[1] :].tolist()


def our_tokens(model, prompt, n_tokens: int, beam_size: int) -> list[int]:
    "What we write."
    if beam_size == 1:
        found = greedy_decode(model, prompt, n_tokens, special=ENDLESS)
    else:
        found = beam_search(
            model, prompt, n_tokens, beam_size=beam_size, length_penalty=0, special=ENDLESS
        )
    return found.ids[0].tolist()


@torch.no_grad()
def log_prob(model, prompt, ids: list[int]) -> float:  # nats
    "What a continuation costs, by their model."
    whole = torch.cat([prompt, torch.tensor([ids])], dim=1)
    log_probs = model(whole).logits[0, :-1].log_softmax(-1)
    return log_probs.gather(1, whole[0, 1:, None])[-len(ids) :].sum().item()


def compare(ways: dict, rounds: int) -> dict:
    "Seconds of each way, and their ratio in each turn."
    times = {name: [] for name in ways}
    for turn in range(rounds + 1):
        names = list(ways) if turn % 2 else list(ways)[::-1]
        for name in names:
            time = seconds(ways[name], "cpu")
            if turn:
                times[name].append(time)

    found = {name: rounded(statistics.median(values)) for name, values in times.items()}
    for name in times:
        if name != "theirs":
            ratios = [a / b for a, b in zip(times["theirs"], times[name])]
            low, middle, high = statistics.quantiles(ratios, n=4)
            found[f"theirs / {name}"] = [rounded(x) for x in (low, middle, high)]
    return found


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--model", default="HuggingFaceTB/SmolLM2-135M-Instruct")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.device != "cpu":
        parser.error("--device: measured on the CPU")
    torch.set_num_threads(options.threads)
    transformers.utils.logging.disable_progress_bar()
    results = Results("real_llama_cpu", options)

    folder = model_folder(options.model)
    ours, tokenizer = load_language_model(options.model, "cpu")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs.eval()
    prepared = prepare_for_decoding(ours)
    prompts = [torch.tensor([tokenizer.encode_prompt(text)]) for text in PROMPTS]

    with torch.no_grad():
        gap = max((theirs(p).logits - ours(p)).abs().max().item() for p in prompts)
    runs = [dict(what="largest difference of a logit", value=rounded(gap))]
    print(runs[-1], flush=True)

    for beam_size in (1, 4):
        same, costs = 0, []
        for prompt in prompts:
            a = their_tokens(theirs, prompt, options.tokens, beam_size)
            b = our_tokens(ours, prompt, options.tokens, beam_size)
            same += a == b
            costs.append([rounded(log_prob(theirs, prompt, ids)) for ids in (a, b)])
        found = dict(what="same tokens", beam_size=beam_size, same=same, of=len(prompts))
        runs.append(found | dict(log_probs_theirs_ours=costs))
        print(runs[-1], flush=True)

        prompt = prompts[0]
        ways = {
            "theirs": partial(their_tokens, theirs, prompt, options.tokens, beam_size),
            "ours": partial(our_tokens, ours, prompt, options.tokens, beam_size),
            "prepared": partial(our_tokens, prepared, prompt, options.tokens, beam_size),
        }
        times = compare(ways, options.rounds)
        runs.append(dict(what="decoding", beam_size=beam_size, seconds=times))
        print(runs[-1], flush=True)

    ways = {
        "theirs": lambda: transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32
        ),
        "ours": lambda: from_huggingface(folder),
    }
    runs.append(dict(what="loading", seconds=compare(ways, options.rounds)))
    print(runs[-1], flush=True)
    print("written to", results.save(model=Path(options.model).name, runs=runs))
