"Batches move whole, precisions are named, and two parts of a program draw their random numbers apart."

import random

import pytest
import torch
from torch.utils.data import DataLoader

from annotated_transformer.base.devices import (
    autocast,
    draw_apart,
    pick_device,
    random_numbers_from,
    random_state,
    to_device,
)

CPU = torch.device("cpu")


def test_the_fastest_device_is_taken():
    if torch.cuda.is_available():
        assert pick_device().type == "cuda"
    elif torch.backends.mps.is_available():
        assert pick_device().type == "mps"
    else:
        assert pick_device() == CPU


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="precision: got 'fp16'"):
        autocast(CPU, "fp16")


class Photo:
    def to(self, device):
        return f"a photo on {device}"


def test_a_batch_of_any_kind_is_moved():
    batch = {"ids": torch.zeros(2, 3), "labels": [torch.ones(2)], "text": "cat"}
    moved = to_device(batch, "meta")
    assert moved["ids"].is_meta and moved["labels"][0].is_meta
    assert moved["text"] == "cat" and list(moved) == list(batch)
    assert to_device((Photo(),), "cpu") == ("a photo on cpu",)


def test_numbers_inside_a_block_change_none_outside():
    torch.manual_seed(1)
    expected = torch.rand(4).tolist()
    torch.manual_seed(1)
    state = random_state(CPU)
    drawn = []
    for _ in range(4):  # each block goes on where the one before has ended
        with random_numbers_from(state, CPU):
            drawn.append(torch.rand(1).item())
    assert drawn == expected

    with pytest.raises(KeyError):
        with random_numbers_from(random_state(CPU), CPU):
            torch.rand(7)
            raise KeyError
    assert torch.rand(4).tolist() == expected


def shuffled(dropped: int, apart: bool = True) -> list:
    "Ten batches of two epochs, while something else draws as well."
    torch.manual_seed(0)
    loader = DataLoader(range(5), batch_size=1, shuffle=True)
    batches = (batch for _ in range(2) for batch in loader)
    seen = []
    for batch in draw_apart(batches, 0, CPU) if apart else batches:
        seen.append(batch.item())
        torch.rand(dropped)  # what dropout draws
    return seen


def test_batches_are_shuffled_alike_whatever_dropout_draws():
    assert shuffled(0) == shuffled(5) and sorted(shuffled(0)[:5]) == [*range(5)]
    assert shuffled(0, apart=False) != shuffled(5, apart=False)


def test_batches_take_no_numbers_from_dropout():
    outside = []
    for draws in (0, 9):
        torch.manual_seed(1)
        for _ in draw_apart((torch.rand(draws) for _ in range(3)), 0, CPU):
            outside.append(torch.rand(1).item())
    assert outside[:3] == outside[3:]


def test_the_seed_says_which_batches_come():
    def drawn(seed):
        return list(draw_apart((random.random() for _ in range(5)), seed, CPU))

    assert drawn(0) == drawn(0) != drawn(1)
