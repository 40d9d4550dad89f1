"""What it takes to prepare a corpus: as lists, and streamed as chapter 5.7 does.

    python benchmarks/speed/large_corpus.py [--pairs 100000,200000,400000]

Writes results/large_corpus_cpu.json. For each size a corpus of made-up sentences is written, and each way prepares it in a process of its
own: it reads and cleans the pairs, learns a tokenizer, turns all into ids and takes the first hundred batches of an epoch. Measured is
the most anonymous memory of that process (what is not the content of a file), a hundred times a second, above what it has before.
It reads /proc, so it needs Linux. Three minutes.
"""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from itertools import accumulate, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import ROOT, Results, arguments

from annotated_transformer.training.data import batch_by_tokens
from annotated_transformer.text.held_out import split_pairs
from annotated_transformer.text.pair_files import read_tsv
from annotated_transformer.text.parallel_text import clean_pairs
from annotated_transformer.text.streamed_text import MappedPairs, open_divided_text
from annotated_transformer.text.bpe import BPETokenizer

WORDS, VOCABULARY, HELD_OUT = (
    25,
    10_000,
    1_000,
)  # words of a sentence on the average, tokens, pairs of the validation and of the test part


def make_words(rng: random.Random, n: int) -> list[str]:
    "Words of one to four syllables."
    syllables = [
        a + b
        for a in "b d f g k l m n p r s t v z sch st".split()
        for b in "a e i o u ei au en er".split()
    ]
    return ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(n)]


def write_corpus(folder: Path, n_pairs: int):
    "Three parts, each a file with tabs: sentences of words whose frequencies fall as in a language."
    rng = random.Random(0)
    words = [make_words(rng, 30_000) for _ in range(2)]
    frequencies = list(accumulate(1 / rank for rank in range(1, 30_001)))
    sizes = {"train": n_pairs, "validation": HELD_OUT, "test": HELD_OUT}
    for part, size in sizes.items():
        with open(folder / f"{part}.tsv", "w", encoding="utf-8") as file:
            for _ in range(size):
                lengths = (
                    rng.randint(5, 2 * WORDS - 5),
                    rng.randint(5, 2 * WORDS - 5),
                )  # none so short that it would come twice
                file.write(
                    "\t".join(
                        " ".join(
                            rng.choices(
                                words[side], cum_weights=frequencies, k=lengths[side]
                            )
                        )
                        for side in (0, 1)
                    )
                    + "\n"
                )


def anonymous() -> int:
    "Bytes of this process that are not the content of a file."
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


class MostMemory:
    "The largest of the measurements that a thread makes."

    def __enter__(self):
        self.before = self.most = anonymous()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.done.wait(0.01):
            self.most = max(self.most, anonymous())

    def __exit__(self, *error):
        self.done.set()
        self.thread.join()


def prepare(way: str, folder: str) -> dict:
    "In this process: from files to batches."
    start = time.perf_counter()
    with MostMemory() as memory:
        if way == "streamed":
            text = open_divided_text(
                "train.tsv", "validation.tsv", "test.tsv", data_dir=folder
            )
        else:  # a list in which it could be chosen what is held out
            kept, _ = clean_pairs(read_tsv(f"{folder}/train.tsv"))
            text = split_pairs(kept, validation=0.0, test=0.0)
        tokenizer = BPETokenizer.learn(
            (side for pair in text.train for side in pair), VOCABULARY
        )
        pairs = (
            MappedPairs.encode(tokenizer, text.train)
            if way == "streamed"
            else tokenizer.encode_pairs(text.train)
        )
        batches = islice(batch_by_tokens(pairs, 25_000), 100)
        tokens = sum(
            len(side) + 1 for batch in batches for pair in batch for side in pair
        )  # one batch after the other, as training takes them
    size = sum(4 * len(side) for pair in pairs for side in pair)
    return dict(
        megabytes=(memory.most - memory.before) / 1e6,
        seconds=time.perf_counter() - start,
        file=size / 1e6 if way == "streamed" else 0.0,
        pairs=len(pairs),
        ids=size // 4,
        tokens=tokens,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["prepare"]:
        print(json.dumps(prepare(*sys.argv[2:])))
        sys.exit()
    parser = arguments(__doc__)
    parser.add_argument("--pairs", default="100000,200000,400000")
    options = parser.parse_args()
    results, rows = Results("large_corpus_cpu", options), []
    for n_pairs in map(int, options.pairs.split(",")):
        row = dict(pairs=n_pairs)
        with tempfile.TemporaryDirectory() as folder:
            write_corpus(Path(folder), n_pairs)
            for way in ("lists", "streamed"):
                command = [sys.executable, __file__, "prepare", way, folder]
                row[way] = json.loads(
                    subprocess.run(
                        command, check=True, capture_output=True, text=True, cwd=ROOT
                    ).stdout
                )
        rows.append(row)
        print(
            n_pairs,
            *(
                f"{way} {row[way]['megabytes']:,.0f} MB, {row[way]['seconds']:.0f} s"
                for way in ("lists", "streamed")
            ),
            flush=True,
        )
    n_more = rows[-1]["pairs"] - rows[0]["pairs"]
    each = {
        way: 1e6 * (rows[-1][way]["megabytes"] - rows[0][way]["megabytes"]) / n_more
        for way in ("lists", "streamed")
    }
    print(
        {
            way: f"{n_bytes:,.0f} bytes for each further pair"
            for way, n_bytes in each.items()
        }
    )
    print("written to", results.save(rows=rows, bytes_per_pair=each))
