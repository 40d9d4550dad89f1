"Copies prepared for decoding: they write faster, and whatever happens to them, the model stays."

import copy

import pytest
import torch
from test_decoding_faults import SOURCE, learned_positions, tiny, tiny_gpt

from annotated_transformer.decoding.decoding_speed import (
    MULTIPLIES,
    Compiled,
    linear_weights,
    measure_products,
    prepare_for_decoding,
)
from annotated_transformer.decoding.greedy import generate_ids, greedy_decode


def gains(model, ratio: float) -> dict:
    return {
        (*weight.shape, weight.dtype): {1: ratio, 4: ratio, 32: ratio}
        for weight in linear_weights(model)
    }


@pytest.mark.parametrize("make", [tiny, tiny_gpt])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_whatever_happens_to_a_prepared_copy_the_model_stays(make, dtype, ratio):
    model = make().to(dtype)
    before = copy.deepcopy(model.state_dict())
    prepared = prepare_for_decoding(model, gains(model, ratio))
    changes = [
        lambda: prepared.half(),
        lambda: prepared.double(),
        lambda: prepared.load_state_dict(
            {name: torch.zeros_like(x) for name, x in before.items()}
        ),
    ]
    as_prepared = copy.deepcopy([*prepared.parameters()])
    for change in changes:
        with pytest.raises(
            ValueError, match="got 'a prepared copy', expected the model itself"
        ):
            change()
        for parameter, was in zip(prepared.parameters(), as_prepared):
            assert parameter.dtype == was.dtype and torch.equal(
                parameter, was
            )  # no part of it either
    torch.optim.SGD([p.requires_grad_() for p in prepared.parameters()], lr=1.0).step()
    assert {p.dtype for p in model.parameters()} == {dtype} and all(
        p.requires_grad for p in model.parameters()
    )
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert not {p.data_ptr() for p in model.parameters()} & {
        p.data_ptr() for p in prepared.parameters()
    }


def test_a_prepared_copy_is_not_for_training():
    model = tiny()
    prepared = prepare_for_decoding(model, gains(model, 2.0))
    for change in (prepared.train, lambda: prepared.train(True)):
        with pytest.raises(
            ValueError,
            match="model: got 'a prepared copy', expected the model itself: train that",
        ):
            change()
    assert (
        not any(p.requires_grad for p in prepared.parameters())
        and not prepared.eval().training
    )
    assert model.train().training and not prepared.training


def skinny(model) -> list:
    "The layers with another product."
    layers = [layer for layer in model.modules() if type(layer) in MULTIPLIES]
    return [layer for layer in layers if MULTIPLIES[type(layer)] in vars(layer)]


def test_what_does_not_gain_stays_plain():
    model = tiny()
    (shape, *_), some = gains(model, 0.9), gains(model, 0.9)
    some[shape] = {1: 1.5, 4: 0.9, 32: 1.04}
    layers = skinny(prepare_for_decoding(model, some))
    assert layers and not skinny(model)
    assert {(*layer.weight.shape, layer.weight.dtype) for layer in layers} == {shape}
    products = [vars(layer)[MULTIPLIES[type(layer)]] for layer in layers]
    assert {product.func.__self__.faster for product in products} == {frozenset([1])}
    assert not skinny(prepare_for_decoding(model, gains(model, 1.04)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_measured_can_be_read_and_used_again(dtype):
    model = tiny().to(dtype)
    measured = measure_products(model, budget=0.001)
    assert measured.keys() == gains(model, 1.0).keys()
    assert all(
        row.keys() == {1, 4, 32} and all(0 < ratio < 1000 for ratio in row.values())
        for row in measured.values()
    )
    prepared = prepare_for_decoding(model, measured)
    assert len(greedy_decode(prepared, SOURCE, 6).lists()) == 2


def test_a_compiled_decoder_has_the_mode_of_its_model():
    model = tiny()
    wrapped = Compiled(model, room=16)
    for mode in (True, False):
        model.train(mode)
        assert wrapped.training is mode
    model.train()
    with pytest.raises(ValueError, match="call model.eval"):
        greedy_decode(Compiled(model), SOURCE, 5)


def test_a_source_without_positions_is_named_by_a_prepared_copy():
    model = prepare_for_decoding(learned_positions(), {})
    with pytest.raises(
        ValueError, match="source 1: got '65 tokens with EOS', expected at most 64"
    ):
        generate_ids(model, [[3, 4], [5] * 64])
