"""BERT on the sentences of the language reference: three models and scikit-learn, by number of labels, over several seeds.

    python benchmarks/quality/bert.py [--device cuda] [--seeds 0,1,2,3,4] [--labels 50,200,800]

Writes results/bert_DEVICE.json after each seed: one pre-training per seed, and the accuracies on 400 held-out sentences after
learning from so many labels. Chapter 6.4 draws its figures from this file. Needs scikit-learn.
"""

import sys
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments

from annotated_transformer.text.python_reference import read_corpus
from annotated_transformer.tasks.topic_classification import (
    TopicClassificationConfig,
    build_baselines,
    evaluate_mlm,
    pretrain,
    train_classifier,
)
from annotated_transformer.base.devices import pick_device

if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--preset", default="tiny", choices=list(TopicClassificationConfig.presets)
    )
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--labels", default="50,200,800")
    options = parser.parse_args()
    results, runs = Results(f"bert_{options.device}", options), []
    for seed in map(int, options.seeds.split(",")):
        config = TopicClassificationConfig.preset(options.preset, seed=seed)
        corpus = read_corpus(
            config.n_topics, config.n_heldout, config.n_labelled, seed=seed
        )
        masked, history = pretrain(config, corpus, pick_device(options.device))
        common = dict(
            seed=seed,
            **evaluate_mlm(masked, corpus),
            train_seconds=round(history.seconds, 1),
        )
        for n_labelled in map(int, options.labels.split(",")):
            corpus = read_corpus(config.n_topics, config.n_heldout, n_labelled, seed=seed)
            finetune_steps = max(config.finetune_steps, 12 * n_labelled // 16)
            again = config.replace(
                n_labelled=n_labelled,
                finetune_steps=finetune_steps,
                finetune_warmup_steps=finetune_steps // 10,
            )
            found = {
                name: train_classifier(model, corpus, training)[0]
                for name, (model, training) in build_baselines(again, masked).items()
            }
            rival = make_pipeline(
                TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True),
                LogisticRegression(C=10, max_iter=2000),
            )
            found["accuracy_tfidf"] = rival.fit(*zip(*corpus.labelled)).score(
                *zip(*corpus.held_out)
            )
            runs.append(
                dict(**common, n_labelled=n_labelled, **found, config=again.to_dict())
            )
            print(
                {name: value for name, value in runs[-1].items() if name != "config"},
                flush=True,
            )
        results.save(runs=runs)
