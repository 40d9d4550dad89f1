"What decoders write: with a cache as without one, alone as in a batch, and with the scores that the model gives."

from dataclasses import dataclass
from functools import partial
from itertools import islice, product

import pytest
import torch

from annotated_transformer import GPT, Batch, GPTConfig, generate_ids
from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.core.masks import causal_mask
from annotated_transformer.core.multi_head_attention import MultiHeadAttention
from annotated_transformer.core.positions import POSITIONS
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.decoding.greedy import (
    Hypotheses,
    UncachedDecoder,
    decode_steps,
    greedy_decode,
    length_limits,
    next_log_probs,
)
from annotated_transformer.decoding.sampling import sample
from annotated_transformer.decoding.search import beam_search, gnmt_length_penalty
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.training.data import BOS, EOS, PAD, batch_pairs, pad_sequences
from annotated_transformer.training.loop import TrainConfig, train

TINY = TransformerConfig.preset("tiny", vocab_size=13)
NORMS = ["post", "pre"]
TASK = dict(task="reverse", min_len=3, max_len=7)
ENDLESS = SpecialTokens(eos_id=None)


def untrained(config=TINY, seed=0) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(config).eval()


@pytest.fixture(scope="module")
def model() -> Transformer:
    "Trained for a moment to reverse digits, and still unsure."
    torch.manual_seed(0)
    model = Transformer(TINY)
    config = TrainConfig(steps=90, lr=3e-3, warmup_steps=40)
    train(model, batch_pairs(synthetic_pairs(**TASK), 64), config)
    return model.eval()


@pytest.fixture(scope="module")
def pairs() -> list:
    return list(islice(synthetic_pairs(**TASK, held_out=True), 60))


@pytest.fixture(scope="module")
def src(pairs) -> torch.Tensor:
    return Batch.from_pairs(pairs).src


def seeded_sample(*inputs, **options) -> Hypotheses:
    return sample(*inputs, **options, generator=torch.Generator().manual_seed(1))


DECODERS = {
    "greedy": greedy_decode,
    "sample": seeded_sample,
    "beam": beam_search,
    "four best": partial(beam_search, n_best=4),
}
each_decoder = pytest.mark.parametrize("decode", DECODERS.values(), ids=list(DECODERS))


def assert_same(found: Hypotheses, expected: Hypotheses):
    assert found.lists() == expected.lists()
    assert found.lengths.tolist() == expected.lengths.tolist()
    assert torch.allclose(found.log_probs, expected.log_probs, atol=1e-4)
    assert torch.allclose(found.scores, expected.scores, atol=1e-4)


def lively(config) -> GPT:
    "Untrained, with weights so large that what it writes depends on all words before."
    torch.manual_seed(0)
    model = GPT(config.replace(tie_weights=False)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                parameter.mul_(10 if "embed" in name or "lm_head" in name else 2)
    return model


# ---- Cached equals uncached ----


@each_decoder
def test_sources_that_end_at_different_times(decode, model, src):
    cached = decode(model, src)
    assert len(set(cached.lengths.flatten().tolist())) > 3
    assert_same(cached, decode(UncachedDecoder(model), src))


@each_decoder
@pytest.mark.parametrize("norm, positions", list(product(NORMS, POSITIONS)))
def test_every_position_scheme_and_norm(decode, norm, positions, src):
    other = untrained(TINY.replace(norm=norm, positions=positions))
    assert_same(decode(other, src[:8], 10), decode(UncachedDecoder(other), src[:8], 10))


@each_decoder
def test_other_sizes(decode, src):
    config = TINY.replace(vocab_size=40, tgt_vocab_size=13, d_k=10, d_v=6, n_layers=3)
    other = untrained(config)
    assert_same(decode(other, src[:8], 10), decode(UncachedDecoder(other), src[:8], 10))


class AlibiAttention(MultiHeadAttention):
    "Scores lowered by the distance of query and key. A key's place in the cache is its position."

    def visible(self, query, key, mask, is_causal):
        n_queries, n_keys = query.shape[2], key.shape[2]
        if is_causal:
            mask = causal_mask(n_queries, n_keys)
        return mask, False

    def bias(self, query, key, mask):  # H Q K
        n_queries, n_keys = query.shape[2], key.shape[2]
        place = torch.arange(n_keys)
        distance = (place[-n_queries:, None] - place).clamp(min=0)
        slopes = 2.0 ** -torch.arange(1, self.n_heads + 1)
        bias = -slopes[:, None, None] * distance
        return bias if mask is None else bias.masked_fill(~mask, -torch.inf)

    def attend(self, query, key, value, mask=None, is_causal=False):
        return self.weights(query, key, mask) @ value

    def weights(self, query, key, mask=None, is_causal=False):
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        return (scores + self.bias(query, key, mask)).softmax(-1)


@dataclass(frozen=True)
class AlibiConfig(GPTConfig):
    def attention(self, i):
        return self.attention_of_kind(AlibiAttention)


@dataclass(frozen=True)
class AlibiTranslatorConfig(TransformerConfig):
    def decoder_layer(self, i):
        layer = super().decoder_layer(i)
        layer.self_attention = self.attention_of_kind(AlibiAttention)
        return layer


@each_decoder
def test_a_variant_that_goes_by_the_place_of_a_key(decode):
    sizes = dict(vocab_size=13, d_model=32, d_ff=64, n_layers=2, positions="none")
    other = lively(AlibiConfig.preset("tiny", **sizes))
    prompt = torch.tensor([[3, 4, 5], [6, 7, 8], [9, 3, 9]])
    cached = decode(other, prompt, 12)
    assert_same(cached, decode(UncachedDecoder(other), prompt, 12))

    # the order of words counts, so what follows does not only hang on the last one
    turned = decode(other, prompt.flip(0)[:, [1, 0, 2]], 12)
    assert turned.lists() != cached.lists()[::-1]


@each_decoder
def test_a_translator_that_goes_by_the_place_of_a_key(decode, src):
    config = AlibiTranslatorConfig.preset("tiny", vocab_size=13, positions="none")
    other = untrained(config)
    assert_same(decode(other, src[:8], 12), decode(UncachedDecoder(other), src[:8], 12))


# ---- Scores ----


def forced_log_probs(model, src, answers: list, special=SpecialTokens()) -> torch.Tensor:
    "The log-probability that the model gives to whole answers, EOS included."
    forced = pad_sequences([[BOS, *answer] for answer in answers])
    with torch.no_grad():
        log_probs = next_log_probs(model(src, forced[:, :-1]), special)
    chosen = log_probs.gather(-1, forced[:, 1:, None])[..., 0]
    return chosen.masked_fill(forced[:, 1:] == PAD, 0.0).sum(1)


@each_decoder
def test_log_probabilities_are_those_of_the_model_fed_with_the_answer(decode, model, src):
    found = decode(model, src)
    n = found.lengths.numel() // len(src)
    ids = found.ids.reshape(-1, found.ids.shape[-1]).tolist()
    answers = [row[:length] for row, length in zip(ids, found.lengths.flatten().tolist())]
    expected = forced_log_probs(model, src.repeat_interleave(n, 0), answers)
    assert torch.allclose(found.log_probs.flatten(), expected, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_scores_are_penalised_log_probabilities(alpha, model, src):
    found = beam_search(model, src, n_best=4, length_penalty=alpha)
    penalty = gnmt_length_penalty(found.lengths, alpha)
    assert torch.allclose(found.scores, found.log_probs / penalty, atol=1e-5)
    assert (found.scores.diff(dim=1) <= 0).all()  # the best first


@pytest.mark.parametrize("seed, alpha", list(product(range(2), (0.0, 0.6, 1.5))))
def test_a_wide_beam_finds_the_n_best_of_all_answers(seed, alpha):
    "4 symbols and 5 steps: 1,365 answers. With 320 hypotheses nothing is dropped before the last step."
    small = untrained(TINY.replace(vocab_size=7), seed)
    source = torch.randint(3, 7, (1, 4))
    answers = [[*s, EOS] for n in range(5) for s in product(range(3, 7), repeat=n)]
    answers += [[*s] for s in product(range(3, 7), repeat=5)]
    lengths = torch.tensor([len(answer) for answer in answers])
    scores = forced_log_probs(small, source.expand(len(answers), -1), answers)
    scores = scores / gnmt_length_penalty(lengths, alpha)

    found = beam_search(small, source, 5, beam_size=320, length_penalty=alpha, n_best=10)
    best = scores.topk(10)
    assert torch.allclose(found.scores[0], best.values, atol=1e-4)
    rows = zip(found.ids[0].tolist(), found.lengths[0].tolist())
    assert [row[:n] for row, n in rows][0] == answers[best.indices[0]]


# ---- A batch, and rows that leave it ----


@each_decoder
def test_a_batch_writes_what_its_members_write_alone(decode, model, src):
    if decode is seeded_sample:
        decode = partial(sample, temperature=0)
    together = decode(model, src)
    for i in range(0, len(src), 7):
        alone = src[i : i + 1]
        alone = alone[:, : int((alone != PAD).sum())]
        found = decode(model, alone)
        assert found.lists() == together[i : i + 1].lists()
        assert torch.allclose(found.log_probs, together.log_probs[i : i + 1], atol=1e-4)


def test_rows_that_have_ended_are_not_computed_any_more(model, src):
    n_rows = []

    class Watched:
        config = model.config

        def start(self, src):
            return model.start(src)

        def step(self, ids, cache):
            n_rows.append(len(ids))
            return model.step(ids, cache)

    lengths = greedy_decode(Watched(), src).lengths
    assert n_rows == [int((lengths > t).sum()) for t in range(int(lengths.max()))]
    yielded = [len(rows) for rows, *_ in decode_steps(model, src, lambda x: x.argmax(-1))]
    assert yielded == n_rows


def test_nothing_follows_the_end(model, src):
    found = beam_search(model, src, n_best=4)
    last = found.ids.gather(2, found.lengths[..., None] - 1)
    assert (last == EOS).all() and (found.ids == EOS).sum(-1).eq(1).all()
    assert ((found.ids != PAD).sum(-1) == found.lengths).all()
    assert found.ids.shape[-1] == found.lengths.max()


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_beam_of_one_is_greedy_decoding(alpha, model, src):
    single = beam_search(model, src, beam_size=1, length_penalty=alpha)
    greedy = greedy_decode(model, src)
    assert single.lists() == greedy.lists()
    assert torch.allclose(single.log_probs, greedy.log_probs, atol=1e-4)


def test_a_wider_beam_finds_what_is_more_probable(model, src):
    means = [
        beam_search(model, src, beam_size=w, length_penalty=0.0).log_probs.mean().item()
        for w in (1, 2, 4, 8)
    ]
    assert means == sorted(means)


def test_a_greedy_sample_is_greedy_decoding(model, src):
    expected = greedy_decode(model, src).lists()
    for options in (dict(temperature=0), dict(temperature=1e-30), dict(top_k=1)):
        assert seeded_sample(model, src, **options).lists() == expected


# ---- n_best ----


def test_the_best_of_several_is_the_one_best(model, src):
    four = beam_search(model, src, n_best=4)
    assert four.ids.ndim == 3 and four.lengths.shape == (len(src), 4)
    for answers in four.lists():
        assert len({tuple(ids) for ids in answers}) == 4
    one = beam_search(model, src)
    assert one.lists() == [answers[0] for answers in four.lists()]
    single_axis = beam_search(model, src, n_best=1)
    assert single_axis.lists() == [[ids] for ids in one.lists()]


@pytest.mark.parametrize(
    "options, why",
    [
        (dict(beam_size=0), "beam_size: got 0"),
        (dict(n_best=0), "n_best: got 0"),
        (dict(n_best=5), "n_best: got 5, expected at most beam_size = 4"),
        (dict(length_penalty=-0.1), "length_penalty: got -0.1"),
        (dict(early_stopping="never"), "early_stopping: got 'never'"),
    ],
)
def test_beams_that_make_no_search_are_refused(options, why, model, src):
    with pytest.raises(ValueError, match=f"^{why}"):
        beam_search(model, src, **options)


# ---- Models made of a table ----

A, B, *ENDINGS = range(3, 8)


class FromTable:
    "Probabilities from a table of beginnings; what isn't in it is followed by EOS."

    def __init__(self, table: dict):
        self.table = table

    def __call__(self, ids):  # R T -> R T V
        p = torch.zeros(*ids.shape, 8)
        for row, beginning in zip(p[:, -1], ids[:, 1:].tolist()):
            for token, share in self.table.get(tuple(beginning), {EOS: 1.0}).items():
                row[token] = share
        return p.log()


BEGIN = torch.tensor([[BOS]])


def test_a_beam_finds_what_greedy_decoding_misses():
    "0.6 times 0.4 after A, 0.4 times 1 after B."
    trap = {
        (): {A: 0.6, B: 0.4},
        (A,): dict(zip(ENDINGS, (0.4, 0.35, 0.25))),
        (B,): {ENDINGS[0]: 1.0},
    }
    way = UncachedDecoder(FromTable(trap))
    assert greedy_decode(way, BEGIN, 9).log_probs.exp().item() == pytest.approx(0.24)
    found = beam_search(way, BEGIN, 9, beam_size=2, n_best=2)
    assert found.lists() == [[[B, ENDINGS[0]], [A, ENDINGS[0]]]]
    assert found.log_probs.exp()[0].tolist() == pytest.approx([0.4, 0.24])


def test_stopping_early_can_lose_the_best_answer():
    right, wrong = (A, B, A, B), ENDINGS[0]
    table = {right[:n]: {right[n]: 0.999, wrong: 0.001} for n in range(4)}
    way = UncachedDecoder(FromTable(table))
    search = partial(beam_search, way, BEGIN, 9, beam_size=2)
    assert search().lists() == [[*right]]
    assert search(early_stopping=True).lists() == [[A, wrong]]


def test_stopping_early_takes_fewer_steps_and_finds_full_beams(model, src):
    early = beam_search(model, src, n_best=4, early_stopping=True)
    late = beam_search(model, src, n_best=4)
    assert early.scores.isfinite().all()
    assert (early.scores[:, 0] <= late.scores[:, 0] + 1e-5).all()
    assert_same(
        early, beam_search(UncachedDecoder(model), src, n_best=4, early_stopping=True)
    )


def test_answers_that_do_not_exist_are_empty():
    probs = torch.tensor([0, 0, 0, 0.5, 0.3, 0.2, 0, 0])

    def die(ids):
        return probs.log().expand(*ids.shape, -1)

    found = beam_search(UncachedDecoder(die), BEGIN, 1, beam_size=9, n_best=5)
    assert found.lists() == [[[3], [4], [5], [], []]]
    assert found.lengths.tolist() == [[1, 1, 1, 0, 0]]
    assert found.scores.isneginf().tolist() == [[False] * 3 + [True] * 2]


# ---- Ends ----


@each_decoder
def test_several_ends(decode, model, src):
    special = SpecialTokens(eos_id=(EOS, 5, 8))
    found = decode(model, src, special=special)
    assert_same(found, decode(UncachedDecoder(model), src, special=special))
    ids = found.ids.reshape(-1, found.ids.shape[-1]).tolist()
    lengths = found.lengths.flatten().tolist()
    last = set()
    for row, n in zip(ids, lengths):
        assert not {EOS, 5, 8} & {*row[: n - 1]}
        last.add(row[n - 1])
    assert {5, 8} <= last
    flat = found.lists() if found.ids.ndim == 2 else sum(found.lists(), [])
    assert [len(x) for x in flat] == [n - 1 for n in lengths]


def test_several_ends_leave_enough_hypotheses_alive():
    "Three of the four best first tokens are ends, and the fifth begins the best answer."
    ends = (EOS, 5, 6)
    table = {
        (): {EOS: 0.3, 5: 0.25, 6: 0.2, A: 0.15, B: 0.1},
        (A,): {A: 0.4, B: 0.3, 7: 0.3},
        (B,): {7: 1.0},
    }
    way, special = UncachedDecoder(FromTable(table)), SpecialTokens(eos_id=ends)
    found = beam_search(way, BEGIN, 9, beam_size=2, length_penalty=5.0, special=special)
    assert found.lists() == [[B, 7]]


def test_ends_belong_to_the_hypotheses():
    ids = torch.tensor([[9, 8, EOS], [5, EOS, PAD], [4, 4, 4]])
    three = Hypotheses(ids, torch.tensor([3, 2, 3]), torch.zeros(3), torch.zeros(3))
    assert three.lists() == [[9, 8], [5], [4, 4, 4]]  # the last was cut off by the limit
    assert three[:2].lists() == [[9, 8], [5]]
    assert three[None].lists() == [three.lists()]
    other = Hypotheses(ids, three.lengths, three.log_probs, three.scores, (4, 8))
    assert other.lists() == [[9, 8, EOS], [5, EOS], [4, 4]]


@each_decoder
def test_a_model_without_padding(decode):
    sizes = dict(vocab_size=13, d_model=32, d_ff=64, n_layers=2)
    config = GPTConfig.preset("tiny", **sizes, pad_id=None, bos_id=None, eos_id=7)
    other = lively(config)
    prompt = torch.tensor([[3, 0], [4, 5], [0, 0], [9, 9], [8, 1]])  # 0 is a word
    found = decode(other, prompt, 10)
    assert_same(found, decode(UncachedDecoder(other), prompt, 10))
    assert found.ids.max() < 13 and found.ids.min() >= 0
    assert (length_limits(other, prompt, prompt, None, SpecialTokens.of(other)) == 52).all()


def test_the_default_limit_counts_no_padding(model):
    src = pad_sequences([[3, 4, 5, EOS], [3, EOS]])
    assert greedy_decode(model, src, special=ENDLESS).lengths.tolist() == [54, 52]
    assert beam_search(model, src, special=ENDLESS).lengths.tolist() == [54, 52]


def test_a_picture_has_no_default_limit(model):
    pictures = torch.zeros(2, 3, 8, 8)
    ids = torch.full((2, 1), BOS)
    assert length_limits(model, pictures, ids, 5, SpecialTokens()).tolist() == [5, 5]
    with pytest.raises(ValueError, match="max_len: got None, expected a number of tokens"):
        length_limits(model, pictures, ids, None, SpecialTokens())


# ---- Positions ----


@each_decoder
def test_more_tokens_than_positions_are_refused(decode):
    short = untrained(TINY.replace(positions="learned", max_len=20))
    for way in (short, UncachedDecoder(short)):
        with pytest.raises(ValueError, match="max_len: got 21, expected at most 20"):
            decode(way, torch.tensor([[3]]), 21)
        found = decode(way, torch.tensor([[3]]), special=ENDLESS)
        assert found.lengths.max() == 20  # not 51, for which there are no positions
    with pytest.raises(ValueError, match="max_len: got 21, expected at most 20"):
        generate_ids(short, [[3]], 21, decode=decode)


@each_decoder
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "none"])
def test_writing_past_the_table_of_positions(decode, positions, src):
    short = untrained(TINY.replace(positions=positions, max_len=8))
    long = untrained(TINY.replace(positions=positions, max_len=64))
    long.load_state_dict(short.state_dict())
    found = decode(short, src[:8], 20, special=ENDLESS)
    assert (found.lengths == 20).all()
    assert_same(found, decode(long, src[:8], 20, special=ENDLESS))
    assert_same(found, decode(UncachedDecoder(short), src[:8], 20, special=ENDLESS))


# ---- Lists in, lists out ----


def test_lists_are_decoded_in_groups_and_returned_in_order(model, pairs, src):
    sources = [source for source, _ in pairs]
    four = partial(beam_search, n_best=4)
    for decode in (greedy_decode, four):
        expected = decode(model, src).lists()
        for batch_size in (500, 7, 1):
            found = generate_ids(model, sources, batch_size=batch_size, decode=decode)
            assert found == expected


def test_long_sources_are_decoded_in_smaller_groups(model):
    sizes = []

    def decode(model, src, max_len):
        sizes.append(len(src))
        return greedy_decode(model, src, 1)

    generate_ids(model, [[5] * 400] * 50, batch_size=100, decode=decode)
    assert sizes == [22, 22, 6]
    sizes.clear()
    generate_ids(
        model, [[5]] * 60 + [[3] * 900] + [[7]] * 39, batch_size=100, decode=decode
    )
    assert sizes == [10, 90]


@pytest.mark.parametrize(
    "sources, options, why",
    [
        ([[3]], dict(batch_size=0), "batch_size: got 0"),
        ([[3], [4], []], {}, r"source of pair 2: got \[\]"),
        ([3], {}, "source of pair 0: got 'int', expected a list"),
        ([[3, 2, 4]], {}, "source of pair 0: got 2, expected ids from 0 up without"),
    ],
)
def test_odd_lists_are_refused(sources, options, why, model):
    with pytest.raises(ValueError, match=why):
        generate_ids(model, sources, **options)


def test_a_model_with_other_special_ids_writes_the_same(model, pairs):
    "The same model with its vocabulary turned round."
    turned = Transformer(model.config.replace(pad_id=12, bos_id=11, eos_id=10)).eval()
    turned.load_state_dict(
        {
            name: weight.flip(0) if len(weight) == 13 else weight
            for name, weight in model.state_dict().items()
        }
    )

    def turn(rows):
        return [[12 - id for id in ids] for ids in rows]

    sources = [source for source, _ in pairs]
    for decode in (greedy_decode, beam_search):
        found = generate_ids(turned, turn(sources), decode=decode)
        assert turn(found) == generate_ids(model, sources, decode=decode)
    with pytest.raises(ValueError, match="source of pair 0: got 12, expected ids from 0"):
        generate_ids(turned, [[12]])


# ---- Options of a sampler ----


@pytest.mark.parametrize(
    "option, value",
    [
        ("top_p", 0),
        ("top_p", 1.1),
        ("top_p", "0.9"),
        ("min_p", 0),
        ("min_p", 2),
        ("top_k", 0),
        ("temperature", -1),
        ("temperature", float("nan")),
        ("temperature", "0.7"),
        ("temperature", 1e-300),
        ("temperature", 1e39),
        ("temperature", 10**400),
    ],
)
def test_samplers_that_make_no_sense_are_refused(option, value, model, src):
    with pytest.raises(ValueError, match=f"^{option}: got"):
        sample(model, src, **{option: value})


def test_the_same_seed_draws_the_same(model, src):
    first, again = (seeded_sample(model, src).lists() for _ in range(2))
    assert first == again
    other = sample(model, src, generator=torch.Generator().manual_seed(4)).lists()
    assert first != other


@torch.no_grad()
def test_sources_may_change_places():
    "One's own decoder may sort its rows."
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.preset("tiny", vocab_size=12)).eval()
    src = torch.tensor([[3, 4, 5, 2], [6, 7, 2, 0]])
    swap = torch.tensor([1, 0])

    ids, cache = model.start(src)
    model.step(ids, cache)
    cache.reorder(swap, swap)
    words = torch.tensor([[4], [5]])
    swapped = model.step(words, cache)

    ids, cache = model.start(src[swap])
    model.step(ids, cache)
    assert torch.allclose(swapped, model.step(words, cache), atol=1e-5)
