"""Encoder-decoders of other libraries, of the same sizes as ours, for comparisons: each takes (source ids, target ids) and gives logits.

Layers that come without embeddings stand between ours: the same embeddings, positions and tied logits. Dropout is in the four places where
`nn.Transformer` has it. What still differs: `nn.Transformer` has a norm more at the end of each stack; x-transformers has no biases in attention and in
its norms; labml-nn has the norm before each sub-layer. None of it is a hundredth of the work; results note the number of parameters of each.
Targets are filled up at the end, where a causal mask hides the padding from all words; so no model is given a mask of it, as ours has none.
Besides PyTorch and transformers they are installed for a comparison only:

    .venv/bin/python -m pip install --no-deps labml-nn "labml<0.5" labml-helpers x-transformers einops einx frozendict torch-einops-utils loguru
"""

import importlib.metadata
import importlib.util

import torch
from torch import nn

from annotated_transformer.core.embeddings import TokenEmbedding
from annotated_transformer.core.masks import causal_mask
from annotated_transformer.core.positions import InputEmbedding
from annotated_transformer.core.transformer import Transformer, TransformerConfig


class BetweenOurEnds(nn.Module):
    "What is common: ids to vectors before the layers, vectors to logits after them."

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.output = TokenEmbedding(config.vocab_size, config.d_model)
        self.src_embed, self.tgt_embed = (
            InputEmbedding(self.output, config.position_encoding(), config.dropout)
            for _ in range(2)
        )


class TorchTransformer(BetweenOurEnds):
    "PyTorch's `nn.Transformer`."

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.core = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_layers,
            config.n_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=config.norm == "pre",
        )

    def forward(self, src, tgt):
        pad = src == 0
        hidden = self.core(
            self.src_embed(src),
            self.tgt_embed(tgt),
            tgt_mask=~causal_mask(tgt.shape[1], device=tgt.device),
            src_key_padding_mask=pad,
            memory_key_padding_mask=pad,
            tgt_is_causal=True,
        )
        return self.output.logits(hidden)


class XTransformer(BetweenOurEnds):
    "x-transformers, with PyTorch's fused attention."

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        from x_transformers import Decoder, Encoder

        same = dict(
            dim=config.d_model,
            depth=config.n_layers,
            heads=config.n_heads,
            attn_dim_head=config.d_model // config.n_heads,
            attn_flash=True,
            ff_mult=config.d_ff / config.d_model,
            ff_custom_activation=nn.ReLU(),
            pre_norm=config.norm == "pre",
            attn_dropout=config.dropout,
            attn_sublayer_dropout=config.dropout,
            ff_dropout=config.dropout,
            ff_sublayer_dropout=config.dropout,
        )
        self.encoder, self.decoder = Encoder(**same), Decoder(cross_attend=True, **same)

    def forward(self, src, tgt):
        pad = src != 0
        memory = self.encoder(self.src_embed(src), mask=pad)
        return self.output.logits(
            self.decoder(self.tgt_embed(tgt), context=memory, context_mask=pad)
        )


class LabmlTransformer(BetweenOurEnds):
    "labml-nn, whose layers have the length as their first axis, and the norm before each sub-layer."

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        from labml_nn.transformers import MultiHeadAttention
        from labml_nn.transformers.feed_forward import FeedForward
        from labml_nn.transformers.models import Decoder, Encoder, TransformerLayer

        def attention():
            return MultiHeadAttention(config.n_heads, config.d_model, config.dropout)

        def layer(source):
            return TransformerLayer(
                d_model=config.d_model,
                self_attn=attention(),
                src_attn=source,
                dropout_prob=config.dropout,
                feed_forward=FeedForward(config.d_model, config.d_ff, config.dropout),
            )

        self.encoder, self.decoder = (
            Encoder(layer(None), config.n_layers),
            Decoder(layer(attention()), config.n_layers),
        )

    def forward(self, src, tgt):
        pad = (src != 0).T[None]  # 1 S B
        seen = causal_mask(tgt.shape[1], device=tgt.device)[..., None]  # T T 1
        memory = self.encoder(self.src_embed(src).transpose(0, 1), pad)
        hidden = self.decoder(self.tgt_embed(tgt).transpose(0, 1), memory, pad, seen)
        return self.output.logits(hidden.transpose(0, 1))


class Marian(nn.Module):
    "Hugging Face's Marian, made from a model of ours."

    def __init__(self, config: TransformerConfig):
        super().__init__()
        from annotated_transformer.interop.huggingface import to_huggingface

        self.config, self.model = config, to_huggingface(Transformer(config))
        for module in self.model.modules():  # a configuration keeps what it was built with
            for name in ("dropout", "attention_dropout", "activation_dropout"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, config.dropout)

    def forward(self, src, tgt):
        return self.model(
            input_ids=src,
            attention_mask=(src != 0).long(),
            decoder_input_ids=tgt,
            use_cache=False,
        ).logits


PEERS = {
    "torch": TorchTransformer,
    "transformers": Marian,
    "x-transformers": XTransformer,
    "labml-nn": LabmlTransformer,
}


def peers_here() -> dict:
    "name -> class, of those that are installed."
    return {
        name: kind
        for name, kind in PEERS.items()
        if importlib.util.find_spec(name.replace("-", "_"))
    }


def versions() -> dict:
    return {name: importlib.metadata.version(name) for name in peers_here()}


@torch.no_grad()
def has_right_masks(model: nn.Module, vocab_size: int) -> bool:
    "Whether a peer reads its inputs as it should: no later target, no padding, but all of the source, changes a logit."
    model.eval()
    src = torch.tensor([[5, 6, 7, 2, 0, 0]])
    tgt = torch.tensor([[1, 4, 3, 5]])
    logits = model(src, tgt)

    def same(*inputs, upto=4):
        return torch.allclose(model(*inputs)[:, :upto], logits[:, :upto], atol=1e-4)

    later, longer, other = tgt.clone(), torch.cat([src, src[:, -1:]], 1), src.clone()
    later[0, 3], other[0, 0] = vocab_size - 1, vocab_size - 1
    return (
        same(src, later, upto=3)
        and not same(src, later)
        and same(longer, tgt)
        and not same(other, tgt)
    )
