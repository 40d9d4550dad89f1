"Models of somebody's own, saved and loaded: what is shared stays shared, and types stay as they are."

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from annotated_transformer import load_model, save_model
from annotated_transformer.base.config import Config


@dataclass(frozen=True)
class TinyConfig(Config):
    d_model: int = 4
    embed_first: bool = True


class Tied(nn.Module):
    "The embedding makes the logits, as an attribute of another module."

    config_class = TinyConfig

    def __init__(self, config=TinyConfig()):
        super().__init__()
        self.config = config
        if config.embed_first:
            self.embed = nn.Embedding(7, config.d_model)
        self.out = nn.Linear(config.d_model, 7, bias=False)
        if not config.embed_first:
            self.embed = nn.Embedding(7, config.d_model)
        self.out.weight = self.embed.weight
        self.register_buffer("seen", torch.tensor(2**24 + 1))
        self.register_buffer("mask", torch.tensor([True, False]))

    def forward(self, ids):
        return self.out(self.embed(ids))


@pytest.mark.parametrize("embed_first", [True, False])
def test_a_weight_with_two_names_is_one_weight_again(tmp_path, embed_first):
    torch.manual_seed(0)
    model = Tied(TinyConfig(embed_first=embed_first))
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model", Tied)

    ids = torch.arange(7)[None]
    assert again.out.weight is again.embed.weight
    assert torch.equal(again(ids), model(ids))
    assert not any(x.is_meta for x in (*again.parameters(), *again.buffers()))


def test_counters_and_masks_keep_their_types(tmp_path):
    model = Tied().half()
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model", Tied)
    assert again.embed.weight.dtype == torch.float16
    assert again.seen.item() == 2**24 + 1 and again.seen.dtype == torch.int64
    assert again.mask.tolist() == [True, False] and again.mask.dtype == torch.bool
