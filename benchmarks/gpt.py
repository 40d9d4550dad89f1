"""The language model of chapter 52 over several seeds, beside models that count.

    python benchmarks/gpt.py [--preset small] [--text book.txt] [--device cuda] [--seeds 0,1,2] [--learned 0]

Writes results/gpt_DEVICE.json: the metrics of every run and the history of the first; last those with learned positions.
Chapter 52 reads its numbers from there.
"""

from machine import Results, arguments

from annotated_transformer.experiments.language_model import (LanguageModelConfig,
    run_language_model)

if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--preset", default="tiny", choices=list(LanguageModelConfig.presets))
    parser.add_argument("--text", default="", help="a file of text; nothing: Python's language reference")
    parser.add_argument("--seeds", default="0,1,2", help="of the runs with the positions of the preset")
    parser.add_argument("--learned", default="0", help="seeds of runs with learned positions, as GPT-2 has them")
    options = parser.parse_args()
    results, runs, history = Results(f"gpt_{options.device}", options), [], None
    planned = [(seed, {}) for seed in options.seeds.split(",") if seed]
    planned += [(seed, dict(positions="learned")) for seed in options.learned.split(",") if seed]
    for seed, changes in planned:
        config = LanguageModelConfig.preset(options.preset, text=options.text, seed=int(seed), **changes)
        run = run_language_model(config, options.device, progress=False)
        runs.append(run.metrics)
        history = history or run.history.rows
        print({name: run.metrics[name] for name in ("seed", "loss", "loss_3gram", "loss_5gram", "train_seconds", "tokens_per_second")}, flush=True)
    print("written to", results.save(runs=runs, history=history))
