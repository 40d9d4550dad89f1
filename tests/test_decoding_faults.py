"Decoders given what they cannot use: logits that are no numbers, models without an end, odd types."

import pytest
import torch
from annotated_transformer.base.model_files import load_model, save_model
from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.decoding.greedy import (
    UncachedDecoder,
    generate_ids,
    greedy_decode,
)
from annotated_transformer.decoding.metrics import accuracy, exact_match
from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.core.positions import POSITIONS, sinusoids
from annotated_transformer.decoding.sampling import sample
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

SOURCE = torch.tensor([[3, 4, 2], [5, 6, 2]])
DECODERS = [greedy_decode, sample, beam_search]
each_decoder = pytest.mark.parametrize(
    "decode", DECODERS, ids=lambda decode: decode.__name__
)


def tiny(**changes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        TransformerConfig.preset(
            "tiny", **{"vocab_size": 13, "output_bias": True, **changes}
        )
    ).eval()


def tiny_gpt(**changes) -> GPT:
    torch.manual_seed(0)
    sizes = dict(vocab_size=13, d_model=32, d_ff=64, n_layers=2)
    return GPT(GPTConfig.preset("tiny", **{**sizes, **changes})).eval()


# ---- Logits that are no numbers ----


@each_decoder
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name",
    [
        "tgt_embed.read.weight",
        "decoder.final_norm.weight",
        "output.bias",
        "encoder.layers.0.feed_forward.linear1.weight",
    ],
)
def test_broken_weights_are_refused(decode, value, name):
    model = tiny(norm="pre")
    with torch.no_grad():
        model.get_parameter(name)[0] = value
    for way in (model, UncachedDecoder(model)):
        with pytest.raises(
            ValueError,
            match="^logits: got 'nan or infinity', expected numbers$",
        ):
            decode(way, SOURCE, 5)
    with pytest.raises(ValueError, match="logits: got 'nan or infinity'"):
        generate_ids(model, [[3, 4]], 5, decode=decode)


class Countdown:
    "Logits of a random model that are broken from one step on, in one row."

    def __init__(self, model, step: int, row: int):
        self.model, self.last_good, self.row = model, step, row
        self.config, self.n_steps = model.config, 0

    def start(self, src):
        self.n_steps = 0
        return self.model.start(src)

    def step(self, ids, cache):
        logits = self.model.step(ids, cache)
        if self.n_steps >= self.last_good:
            logits[self.row, 7] = torch.nan
        self.n_steps += 1
        return logits


@each_decoder
@pytest.mark.parametrize("step, row", [(0, 1), (1, 0), (3, 1)])
def test_logits_that_break_on_the_way_are_refused(decode, step, row):
    endless = SpecialTokens(eos_id=None)
    countdown = Countdown(tiny(), step, row)
    with pytest.raises(ValueError, match="^logits: got 'nan or infinity'"):
        decode(countdown, SOURCE, 6, special=endless)
    assert countdown.n_steps == step + 1


# ---- Models without an end, ids of odd kinds ----


@each_decoder
@pytest.mark.parametrize("pad_id", [None, 0])
def test_a_model_without_an_end_writes_up_to_the_limit(decode, pad_id):
    model = tiny_gpt(eos_id=None, bos_id=None, pad_id=pad_id)
    answers = decode(model, SOURCE[:, :2], 7)
    assert answers.lengths.tolist() == [7, 7]
    assert [len(ids) for ids in answers.lists()] == [7, 7]


# ---- Special tokens, prompts and limits ----


@each_decoder
def test_prompts_with_padding_are_refused(decode):
    prompt = torch.tensor([[3, 0, 4]])
    with pytest.raises(ValueError, match="prompt: got 'padding'"):
        decode(tiny_gpt(pad_id=0), prompt, 5)
    assert decode(tiny_gpt(pad_id=None), prompt, 5).lengths <= 5


@each_decoder
@pytest.mark.parametrize("pad_id", [None, 2])
def test_prompts_that_are_filled_up_with_their_end_are_refused(decode, pad_id):
    model = tiny_gpt(pad_id=pad_id)
    for row in ([2, 2, 3, 4], [3, 4, 2, 2]):
        with pytest.raises(ValueError, match="a row that begins or ends with EOS twice"):
            decode(model, torch.tensor([[2, 5, 6, 7], row]), 5)
    # one EOS begins a text
    assert len(decode(model, torch.tensor([[2, 5, 6, 7], [2, 3, 4, 5]]), 5).ids) == 2


@each_decoder
@pytest.mark.parametrize("wrapper", [lambda model: model, UncachedDecoder])
def test_the_default_limit_of_a_prompt_is_cut_to_the_positions(decode, wrapper):
    model = wrapper(tiny_gpt(max_len=32, eos_id=None, bos_id=None, pad_id=None))
    prompt = torch.full((1, 30), 3)
    assert decode(model, prompt).lengths == 3  # the third needs no position
    with pytest.raises(ValueError, match="max_len: got 4, expected at most 3"):
        decode(model, prompt, 4)
    assert decode(model, torch.full((1, 32), 3)).lengths == 1
    with pytest.raises(ValueError, match="prompt: got '33 tokens', expected at most 32"):
        decode(model, torch.full((1, 33), 3))


def learned_positions(**changes) -> Transformer:
    "It writes up to its limit: 64 positions, and EOS is never the most probable."
    model = tiny(positions="learned", max_len=64, **changes)
    with torch.no_grad():
        model.output.bias[2] = -1e4  # EOS
    return model


@each_decoder
def test_the_default_limit_of_a_source_is_cut_to_the_positions(decode):
    model = learned_positions()
    # three tokens with EOS, and 50 more; 15 and 50 would be 65
    answers = generate_ids(model, [[3, 4]] * 99 + [[5] * 14], decode=decode)
    assert [len(ids) for ids in answers] == [53] * 99 + [64]
    with pytest.raises(ValueError, match="max_len: got 65, expected at most 64"):
        generate_ids(model, [[3, 4]], 65, decode=decode)


@pytest.mark.parametrize(
    "wrapper",
    [
        lambda model: model,
        torch.compile,
    ],
)
def test_a_source_without_positions_is_named_before_any_is_decoded(wrapper):
    def decode(*inputs):
        pytest.fail("decoded before all sources were checked")

    model = wrapper(learned_positions())
    with pytest.raises(
        ValueError, match="source 99: got '65 tokens with EOS', expected at most 64"
    ):
        generate_ids(model, [[3, 4]] * 99 + [[5] * 64], decode=decode)


@each_decoder
@pytest.mark.parametrize("eos_id", [5, (5, 7), None])
def test_lists_go_by_the_end_of_the_model(decode, eos_id):
    for seed in range(20):
        model = tiny_gpt(eos_id=eos_id, pad_id=None, bos_id=None)
        torch.manual_seed(seed)
        torch.nn.init.normal_(model.output.weight)
        answers = decode(model, torch.tensor([[3, 4]]), 6)
        ids = answers.ids[0, : answers.lengths[0]].tolist()
        ends = model.config.eos_id if eos_id == (5, 7) else (eos_id,)
        assert not set(ids[:-1]) & {*ends}  # it stopped at the first one
        expected = ids[:-1] if ids[-1] in ends else ids
        assert answers.lists() == [expected]


def test_several_ends_are_saved_with_the_model(tmp_path):
    model = tiny_gpt(eos_id=(5, 7))
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model", GPT).config == model.config
    with pytest.raises(ValueError, match="eos_id: got 13, expected an id from 0 to 12"):
        tiny_gpt(eos_id=(5, 13))


@pytest.mark.parametrize(
    "source",
    [[10**30], [-1], [True], [3.0], ["3"], [None], [torch.tensor(3)], 3, "34", None],
)
def test_odd_sources_are_refused_by_name(source):
    with pytest.raises(ValueError, match=r"^source of pair 0|^ids: got "):
        generate_ids(tiny(), [source], 5)


def test_no_sources_are_refused_by_their_own_name():
    with pytest.raises(
        ValueError, match=r"^sources: got \[\], expected at least one list of ids"
    ):
        generate_ids(tiny(), [])


# ---- Types ----


@pytest.fixture
def default_dtype():
    before = torch.get_default_dtype()
    yield torch.set_default_dtype
    torch.set_default_dtype(before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("positions", list(POSITIONS))
def test_a_model_has_one_type(default_dtype, dtype, positions):
    default_dtype(dtype)
    model = tiny(positions=positions, d_model=16, d_ff=16, n_layers=1)
    assert {t.dtype for t in (*model.parameters(), *model.buffers())} == {dtype}
    for decode in DECODERS:
        answers = decode(model, SOURCE, 6)
        assert answers.scores.dtype == torch.float32, decode
    for length in (
        9,
        1024 if positions == "learned" else 3000,
    ):  # within the table and past it
        vectors = torch.zeros(1, length, 16)
        assert model.tgt_embed.positions(vectors).dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("positions", list(POSITIONS))
def test_a_converted_model_has_one_type(dtype, positions):
    model = tiny(positions=positions, max_len=8, d_model=16, d_ff=16, n_layers=1).to(dtype)
    for decode in DECODERS:
        decode(model, SOURCE, 8 if positions == "learned" else 12)
    assert {t.dtype for t in (*model.parameters(), *model.buffers())} == {dtype}
    assert model(SOURCE, SOURCE).dtype == dtype


def test_the_table_is_computed_in_float64_and_rounded_once(default_dtype):
    default_dtype(torch.float64)
    exact = sinusoids(3000, 16)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        default_dtype(dtype)
        assert torch.equal(sinusoids(3000, 16), exact.to(dtype))


def test_a_wrapper_has_the_mode_of_its_model():
    model = tiny()
    wrapped = UncachedDecoder(model)
    for mode in (True, False):
        model.train(mode)
        assert wrapped.training is mode
    model.train()
    with pytest.raises(ValueError, match="model: got 'training mode'"):
        greedy_decode(wrapped, SOURCE, 5)
    assert model.training  # and left as it was


def test_answers_without_as_many_targets_have_no_score():
    for predictions in ([], [[3, 4]]):
        with pytest.raises(ValueError, match="predictions: got"):
            exact_match(predictions, [[3, 4], [5]])
    for predicted in (torch.tensor([3]), torch.tensor([]), torch.ones(2, 3)):
        with pytest.raises(ValueError, match="predictions: got"):
            accuracy(predicted, torch.tensor([3, 1]))
    with pytest.raises(ValueError, match=r"predictions: got \(2, 3\)"):
        accuracy(torch.ones(2, 3), torch.ones(2, 3))
