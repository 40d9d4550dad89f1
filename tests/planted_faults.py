"Models to be checked: sound ones of four kinds, and faults planted in them, each with the words that should name it."

import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import NamedTuple

import torch
import transformers
from torch import nn
from torch.nn import functional as F

from annotated_transformer import check_transformer as check
from annotated_transformer.core.embeddings import TokenEmbedding
from annotated_transformer.core.masks import causal_mask, padding_mask
from annotated_transformer.core.positions import InputEmbedding
from annotated_transformer.core.transformer import (
    Encoder,
    Transformer,
    TransformerConfig,
    init_weights,
)
from annotated_transformer.debugging.calling import stepwise_logits

transformers.logging.set_verbosity_error()
# PyTorch's remark on its own fast path
warnings.filterwarnings("ignore", message=".*nested.tensor")


class Fault(NamedTuple):
    host: str
    name: str
    report: Callable  # () -> Report
    question: str  # that should name it
    words: str  # a part of its answer


# ---- A Transformer and a language model of this library ----

CONFIG = TransformerConfig.preset("tiny", vocab_size=30, dropout=0.1)


def sound(**changes):  # an encoder-decoder
    torch.manual_seed(0)
    return Transformer(CONFIG.replace(**changes))


class LanguageModel(nn.Module):  # of the same parts: an encoder under a causal mask
    def __init__(self, config=CONFIG):
        super().__init__()
        self.config = config
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.tgt_embed = InputEmbedding(
            self.embedding, config.position_encoding(), config.dropout
        )
        self.decoder = Encoder(config)
        init_weights(self)

    def mask(self, ids):
        return causal_mask(ids.shape[1])

    def forward(self, ids):
        return self.embedding.logits(self.decoder(self.tgt_embed(ids), mask=self.mask(ids)))


# ---- Wrong ways to call them ----


def under(mask):  # the language model, under another mask
    return lambda model, ids: model.embedding.logits(
        model.decoder(model.tgt_embed(ids), mask=mask(ids.shape[1]))
    )


def no_mask(length):
    return None


def shifted(length):
    return torch.ones(length, length).tril(1).bool()  # 1 instead of 0


def no_padding_mask(model, src, tgt):
    return model.output.logits(model.decode(tgt, model.encoder(model.src_embed(src))))


def decoded(model, tgt, memory, memory_mask, **options):  # each layer with these options
    x = model.tgt_embed(tgt)
    for layer in model.decoder.layers:
        x = layer(x, memory, memory_mask, **options)
    return model.output.logits(model.decoder.final_norm(x))


def no_causal_mask(model, src, tgt):
    memory, mask = model.encode(src)
    return decoded(model, tgt, memory, mask, mask=padding_mask(tgt))


def mask_of_first_row(model, src, tgt):
    mask = padding_mask(src[:1])
    return model.output.logits(
        model.decode(tgt, model.encoder(model.src_embed(src), mask=mask), mask)
    )


def source_ignored(model, src, tgt):
    return model(torch.full_like(src, 5), tgt)


def rows_masked(model, src, tgt):
    rows = (src != 0)[:, None, :, None]
    memory = model.encoder(model.src_embed(src), mask=rows)
    return model.output.logits(model.decode(tgt, memory, padding_mask(src)))


def exchanged_masks(model, src, tgt):
    memory, mask = model.encode(src)
    own = causal_mask(tgt.shape[1]) & padding_mask(tgt)
    return decoded(model, tgt, memory, own, mask=mask)


def memory_of_first_layer(model, src, tgt):
    memory = model.encoder.layers[0](model.src_embed(src), mask=padding_mask(src))
    return model.output.logits(model.decode(tgt, memory, padding_mask(src)))


def memory_layer_by_layer(model, src, tgt):
    mask = padding_mask(src)
    memory, x = model.src_embed(src), model.tgt_embed(tgt)
    for reads, writes in zip(model.encoder.layers, model.decoder.layers):
        memory = reads(memory, mask=mask)
        x = writes(x, memory, mask, is_causal=True)
    return model.output.logits(x)


def positions_twice(model, src, tgt):
    table = model.src_embed.positions.table[: src.shape[1]]
    memory = model.encoder(model.src_embed(src) + table, mask=padding_mask(src))
    return model.output.logits(model.decode(tgt, memory, padding_mask(src)))


def encoder_without_gradient(model, src, tgt):
    mask = padding_mask(src)
    with torch.no_grad():
        memory = model.encoder(model.src_embed(src), mask=mask)
    return model.output.logits(model.decode(tgt, memory, mask))


# ---- Wrong parts ----


def softmax_over_nothing(query, key, value, mask=None, is_causal=False):
    if is_causal:
        mask = causal_mask(query.shape[-2])
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    # a whole row of -inf: NaN
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


def hidden_by_a_billion(query, key, value, mask=None, is_causal=False):
    if is_causal:
        mask = causal_mask(query.shape[-2])
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1) @ value


class BatchNorm(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)  # over B and L


def changed(model, change):  # a model, after something was done to each of its modules
    for module in list(model.modules()):
        change(module)
    return model


def nan_rows(module):
    if hasattr(module, "attend"):
        module.attend = softmax_over_nothing


def one_place(module):
    if hasattr(module, "table"):
        module.table[:] = module.table[3].clone()


def batch_norm(module):
    if hasattr(module, "norm1"):
        module.norm1, module.norm2 = BatchNorm(64), BatchNorm(64)


def forgotten(module):
    if isinstance(module, LanguageModel):
        module.forgotten = nn.Linear(8, 8)


class DropoutStaysOn(Transformer):
    def train(self, mode=True):
        return super().train(True)


# the layers are there, and the forward pass goes around them
class WithoutDropout(Transformer):
    def __init__(self, config):
        super().__init__(config)
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.forward = lambda x: x


class SoftmaxInside(Transformer):
    def forward(self, src, tgt):
        return super().forward(src, tgt).softmax(-1)


class SharedAttention(Transformer):
    def __init__(self, config):
        super().__init__(config)
        for layer in self.decoder.layers:
            layer.cross_attention = layer.self_attention


def with_attention(attention, **changes):  # in place of the library's own
    def change(module):
        if hasattr(module, "attend"):
            module.attend = attention

    return changed(sound(**changes), change)


def attend(query, key, value, mask=None, is_causal=False, *, scale=1.0, repeat=False):
    if is_causal:
        mask = causal_mask(query.shape[-2])
    if repeat and mask is not None and mask.ndim == 4 and mask.shape[0] == 2:
        # heads folded into the batch, and masks in another order
        mask = mask.expand(-1, 1, query.shape[-2], -1)[:, 0].repeat(query.shape[1], 1, 1)
        mask = mask.unflatten(0, query.shape[:2])
    return F.scaled_dot_product_attention(
        query, key, value, mask, scale=scale * query.shape[-1] ** -0.5
    )


# ---- Wrong caches ----


def at_position_zero(model, src, tgt):  # of every step, the position is the first
    return torch.cat(
        [stepwise_logits(model, src, tgt[:, t : t + 1]) for t in range(tgt.shape[1])], 1
    )


def one_too_far(model, src, tgt):
    steps, (_, cache) = [], model.start(src)
    for t in range(tgt.shape[1]):
        x = model.tgt_embed(tgt[:, t : t + 1], cache.length + 1)
        steps.append(model.output.logits(model.decoder(x, None, cache=cache)))
    return torch.cat(steps, 1)


def stale(model, src, tgt, kept=[]):  # noqa: B006  the first source is never forgotten
    kept.append(src)
    return stepwise_logits(model, kept[0], tgt)


def source_unmasked(model, src, tgt):  # by the steps with a cache alone
    memory, _ = model.encode(src)
    cache = model.decoder.new_cache(memory)
    return torch.stack(
        [model.step(tgt[:, t : t + 1], cache) for t in range(tgt.shape[1])], 1
    )


WRONG_CALLS = {  # of a sound model: the model, the call, the question, a part of its answer
    "no causal mask": (LanguageModel, under(no_mask), "leak", "mask is missing"),
    "causal mask shifted by one": (LanguageModel, under(shifted), "leak", "shifted"),
    "no causal mask, encoder-decoder": (sound, no_causal_mask, "leak", "mask is missing"),
    "padding not masked": (sound, no_padding_mask, "padding", "attended to"),
    "padding mask of another row": (sound, mask_of_first_row, "padding", "another row"),
    "source ignored": (sound, source_ignored, "reach", "input is ignored"),
    "rows masked, not keys": (sound, rows_masked, "padding", "attended to"),
    "masks exchanged": (sound, exchanged_masks, "call", "two masks, exchanged"),
    "memory of the first layer": (sound, memory_of_first_layer, "memory", "earlier layer"),
    "memory layer by layer": (
        sound,
        memory_layer_by_layer,
        "memory",
        "different memories",
    ),
    "positions added twice": (sound, positions_twice, "order", "twice"),
    "encoder under `no_grad`": (sound, encoder_without_gradient, "gradient", "encoder"),
}
WRONG_MODELS = {  # how to make it, the question, a part of its answer
    "NaN in empty rows": (
        lambda: changed(sound(), nan_rows),
        "empty row",
        "softmax over nothing",
    ),
    "no positions": (
        lambda: sound(positions="none"),
        "order",
        "positions are missing",
    ),
    "one position for all": (
        lambda: changed(sound(), one_place),
        "order",
        "the same for both",
    ),
    "batch norm": (
        lambda: changed(LanguageModel(), batch_norm),
        "batch",
        "batch statistics",
    ),
    "dropout in evaluation": (
        lambda: DropoutStaysOn(CONFIG),
        "repeat",
        "dropout stays on",
    ),
    "dropout never acts": (lambda: WithoutDropout(CONFIG), "dropout", "none acts"),
    "dead parameters": (
        lambda: changed(LanguageModel(), forgotten),
        "gradient",
        "forgotten",
    ),
    "one attention, two roles": (lambda: SharedAttention(CONFIG), "sharing", "two roles"),
    "softmax in the model": (
        lambda: SoftmaxInside(CONFIG),
        "logits",
        "softmax in the model",
    ),
    "scaled twice": (
        lambda: with_attention(partial(attend, scale=0.25)),
        "scale",
        "twice",
    ),
    "`mask.repeat` for the heads": (
        lambda: with_attention(partial(attend, repeat=True)),
        "padding",
        "another row",
    ),
    "attention dropout never acts": (
        lambda: with_attention(attend, attention_dropout=0.2),
        "dropout",
        "attention",
    ),
}
WRONG_CACHES = {  # of a sound model, and a part of what *cache* answers
    "cache: position always 0": (at_position_zero, "as if it were the first"),
    "cache: one position too far": (one_too_far, "position of the first step"),
    "cache: never emptied": (stale, "source before"),
    "cache: source not masked": (source_unmasked, "padding of the source"),
}
ALL_THAT_FAIL = {  # one fault can break several rules
    "no causal mask": {"leak", "padding"},
    "causal mask shifted by one": {"leak", "padding"},
    "no causal mask, encoder-decoder": {"leak"},
    "padding not masked": {"padding"},
    "padding mask of another row": {"padding"},
    "source ignored": {"reach", "order", "padding"},
    "NaN in empty rows": {"empty row"},
    "no positions": {"order"},
    "one position for all": {"order"},
    "batch norm": {"batch", "leak"},
    "dropout in evaluation": {"repeat"},
    "dropout never acts": {"dropout"},
    "dead parameters": {"gradient"},
    "cache: position always 0": {"cache"},
    "cache: one position too far": {"cache"},
    "cache: never emptied": {"cache"},
    "cache: source not masked": {"cache"},
}


def in_ours():
    for name, (make, call, question, words) in WRONG_CALLS.items():
        yield Fault("ours", name, lambda m=make, c=call: check(m(), c), question, words)
    for name, (make, question, words) in WRONG_MODELS.items():
        yield Fault("ours", name, lambda m=make: check(m()), question, words)
    for name, (steps, words) in WRONG_CACHES.items():
        yield Fault("ours", name, lambda s=steps: check(sound(), cached=s), "cache", words)


# ---- A GPT after nanoGPT, with one line replaced ----

SOURCE = """
def turned(x, base=10_000):  # B H L Dk, by rotary positions
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[2])[:, None] * base ** (-torch.arange(half) / half)
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(0.1)

    def split(self, x):  # B L D -> B H L Dk
        return x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = map(self.split, self.qkv(x).chunk(3, -1))
        q, k = turned(q), turned(k)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        y = scores.softmax(-1) @ v
        return self.drop(self.out(y.transpose(1, 2).flatten(2)))


class Block(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = Attention(d_model, n_heads)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, d_model)

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class NanoGPT(nn.Module):
    def __init__(self, vocab_size=30, d_model=32, n_heads=4, n_layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        mask = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))
"""


def nanogpt(right="", wrong=""):  # with one line replaced
    assert right in SOURCE, right
    scope = {"torch": torch, "nn": nn, "F": F, "deepcopy": deepcopy, "BatchNorm": BatchNorm}
    exec(SOURCE.replace(right, wrong) if right else SOURCE, scope)
    torch.manual_seed(0)
    return scope["NanoGPT"]()


STACK = "Block(d_model, n_heads) for _ in range(n_layers)"
TIED = "self.head.weight = self.embedding.weight"
LINES = {  # what is wrong: the line, the wrong one, the question, a part of its answer
    "mask shifted by one": (".tril()", ".tril(1)", "leak", "shifted"),
    "no mask": ("block(x, mask)", "block(x, None)", "leak", "mask is missing"),
    "mask of the other polarity": ("~mask", "mask", "finite", "the wrong side"),
    "heads split by view": (
        "x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)",
        "x.reshape(x.shape[0], self.n_heads, x.shape[1], -1)",
        "leak",
        "split wrongly",
    ),
    "heads merged by view": (
        "y.transpose(1, 2).flatten(2)",
        "y.reshape(x.shape)",
        "leak",
        "merged wrongly",
    ),
    "softmax over queries": ("softmax(-1) @", "softmax(-2) @", "leak", "over the queries"),
    "no scale": (" / q.shape[-1] ** 0.5", "", "scale", "no scale"),
    "scale of d_model": ("/ q.shape", "/ x.shape", "scale", "width of one head"),
    "scale without root": ("q.shape[-1] ** 0.5", "q.shape[-1]", "scale", "root is missing"),
    "width divided by the heads again": (
        "q.shape[-1] ** 0.5",
        "(q.shape[-1] // self.n_heads) ** 0.5",
        "scale",
        "width of one head",
    ),
    "rotary base ten times too large": ("10_000", "100_000", "rotary", "base 100,000"),
    "halves turned as neighbours": (
        "angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)",
        "angles.cos().repeat_interleave(2, 1), angles.sin().repeat_interleave(2, 1)",
        "rotary",
        "paired in two ways",
    ),
    "rotary on queries only": ("), turned(k)", "), k", "rotary", "only the queries"),
    "keys turned the other way": (
        "turned(k)",
        "turned(k.flip(-1)).flip(-1)",
        "rotary",
        "by other angles",
    ),
    "no positions": ("q, k = turned(q), turned(k)", "", "order", "positions are missing"),
    "rotary along the heads": (
        "q, k = turned(q), turned(k)",
        "q, k = (turned(y.transpose(1, 2)).transpose(1, 2) for y in (q, k))",
        "order",
        "positions are missing",
    ),
    "no residual at attention": ("x = x + self.att", "x = self.att", "residual", "x + ..."),
    "no residual at the network": ("return x + ", "return ", "residual", "x + ..."),
    "tied by a copy": (
        TIED,
        f"{TIED[:16]}.data = {TIED[19:]}.data.clone()",
        "sharing",
        "tied",
    ),
    "`[layer] * n`": (STACK, "[Block(d_model, n_heads)] * n_layers", "sharing", "twice"),
    "copied layers": (
        STACK,
        "map(deepcopy, [Block(d_model, n_heads)] * n_layers)",
        "sharing",
        "was a layer copied",
    ),
    "softmax in the model": (
        "self.head(self.norm(x))",
        "self.head(self.norm(x)).softmax(-1)",
        "logits",
        "softmax in the model",
    ),
    "embedding of V + 1 rows": (
        TIED,
        "self.embedding = nn.Embedding(vocab_size + 1, d_model)",
        "vocabulary",
        "never predicted",
    ),
    "embedding of V - 1 rows": (
        TIED,
        "self.embedding = nn.Embedding(vocab_size - 1, d_model)",
        "vocabulary",
        "too few rows",
    ),
    "V - 1 logits": (
        TIED,
        "self.head = nn.Linear(d_model, vocab_size - 1)",
        "vocabulary",
        "can never be predicted",
    ),
    "dropout never called": ("self.drop(", "(", "dropout", "none acts"),
    "dropout in evaluation": ("self.drop(", "F.dropout(", "repeat", "dropout stays on"),
    "batch norm": (
        "self.norm = nn.LayerNorm(d_model)",
        "self.norm = BatchNorm(d_model)",
        "batch",
        "batch statistics",
    ),
    "norm over positions too": (
        "self.norm(x))",
        "F.layer_norm(x, x.shape[1:]))",
        "leak",
        "such as a norm",
    ),
    "second layer too wide": (
        "nn.Linear(4 * d_model, d_model)",
        "nn.Linear(4 * d_model, 2 * d_model)",
        "call",
        "two sizes",
    ),
    "second layer the wrong way round": (
        "nn.Linear(4 * d_model, d_model)",
        "nn.Linear(d_model, 4 * d_model)",
        "call",
        "linear2",
    ),
    "`if mask:`": ("if mask is not None", "if mask", "call", "is not None"),
    "a function as the mask": (".tril().bool()", ".tril().bool", "call", "with brackets"),
    "a tuple": ("self.norm(x))", "self.norm(x)), None", "call", "say which part"),
    "the last position only": (
        "self.norm(x))",
        "self.norm(x))[:, -1:]",
        "call",
        "only the last position",
    ),
    "a layer never called": (
        TIED,
        f"{TIED}; self.spare = nn.Linear(8, 8)",
        "gradient",
        "spare",
    ),
    "final norm never called": ("self.norm(x))", "x)", "gradient", "norm.weight"),
    "exponents of the angles halved": (
        "(-torch.arange(half) / half)",
        "(-torch.arange(half) / half / 2)",
        "rotary",
        "base 100,",
    ),
    "values turned too": (
        "q, k = turned(q), ",
        "v, q, k = turned(v), turned(q), ",
        "rotary",
        "values are turned, too",
    ),
    "residual after the norm": (
        "x = x + self.attention(self.norm1(x), mask)",
        "x = self.norm1(x); x = x + self.attention(x, mask)",
        "residual",
        "norm",
    ),
    "norm by D - 1": (
        "self.norm(x))",
        "self.norm.weight * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)"
        " + self.norm.bias)",
        "parts",
        "D - 1",
    ),
    "scores hidden by 1e-9": ("-torch.inf", "1e-9", "leak", "hides nothing"),
    "scores hidden by 0": ("-torch.inf", "0.0", "leak", "hides nothing"),
    "mask added to the scores": (
        "scores.masked_fill(~mask, -torch.inf)",
        "scores + mask",
        "leak",
        "hides nothing",
    ),
    "mask after the softmax": (
        "scores = scores.masked_fill(~mask, -torch.inf)\n        y = scores.softmax(-1)",
        "pass\n        y = scores.softmax(-1).mul(mask)",
        "leak",
        "after the softmax",
    ),
    "mask hides the token itself": (".tril()", ".tril(-1)", "finite", "no key at all"),
    "a window of three": (".tril()", ".tril().triu(-2)", "reach", "a window"),
    "softmax over the heads": ("softmax(-1) @", "softmax(1) @", "finite", "the heads"),
    "keys are queries": ("), turned(k)", "), turned(q)", "attention", "keys"),
    "all heads mix the values of one": (
        "@ v",
        "@ v[:, :1]",
        "attention",
        "the same values",
    ),
    "rotary along the batch": (
        "q, k = turned(q), turned(k)",
        "q, k = (turned(y.transpose(0, 2)).transpose(0, 2) for y in (q, k))",
        "order",
        "positions are missing",
    ),
    "batch and length exchanged": (
        "self.attention(self.norm1(x), mask)",
        "self.attention(self.norm1(x).transpose(0, 1), None).transpose(0, 1)",
        "batch",
        "exchanged",
    ),
    "embedding without a gradient": (
        "embedding(ids)",
        "embedding(ids).detach()",
        "gradient",
        "is the embedding detached",
    ),
    "attention without a gradient": (
        "self.attention(self.norm1(x), mask)",
        "self.attention(self.norm1(x), mask).detach()",
        "gradient",
        "attention.qkv",
    ),
    "no output projection": ("self.out(y.", "(y.", "gradient", "attention.out"),
    "no activation": ("F.gelu", "", "parts", "activation is missing"),
    "mean over positions": (
        "self.norm2(x))",
        "self.norm2(x)).mean(1, keepdim=True)",
        "leak",
        "later mixes positions",
    ),
    "residual twice": ("x = x + self.att", "x = x + x + self.att", "residual", "twice"),
    "first block only": (
        "block(x, mask)",
        "self.blocks[0](x, mask)",
        "gradient",
        "blocks.1",
    ),
    "embedding times zero": (
        "embedding(ids)",
        "embedding(ids) * 0",
        "reach",
        "ids are lost",
    ),
    "ids shifted in the model": ("g(ids)", "g(ids.roll(1, 1))", "leak", "shifted"),
    "last id cut in the model": ("g(ids)", "g(ids)[:, :-1]", "call", "two sizes"),
    "norm of the wrong axis": (
        "self.norm(x))",
        "F.layer_norm(x.mT, x.shape[1:2]).mT)",
        "leak",
        "such as a norm",
    ),
    "sigmoid in the model": (
        "self.head(self.norm(x))",
        "self.head(self.norm(x)).sigmoid()",
        "logits",
        "sigmoid",
    ),
    "ReLU of the logits": (
        "self.head(self.norm(x))",
        "self.head(self.norm(x)).relu()",
        "logits",
        "ReLU",
    ),
    "one norm for both sub-layers": (
        "self.attention = ",
        "self.norm2 = self.norm1; self.attention = ",
        "sharing",
        "norm1",
    ),
    "rotary before the heads are split": (
        "q, k, v = map(self.split, self.qkv(x).chunk(3, -1))\n        q, k = turned(q), turned(k)",
        "q, k, v = self.qkv(x).chunk(3, -1)\n"
        "        q, k = (turned(y[:, None])[:, 0] for y in (q, k))\n"
        "        q, k, v = map(self.split, (q, k, v))",
        "rotary",
        "distance",
    ),
    "blocks in a plain list": ("nn.ModuleList(", "list(", "repeat", "plain list"),
}


def check_nanogpt(right, wrong):
    return check(
        nanogpt(right, wrong), architecture="language model", vocab_size=30, pad_id=0
    )


def in_nanogpt():
    for name, (right, wrong, question, words) in LINES.items():
        yield Fault(
            "nanoGPT", name, lambda r=right, w=wrong: check_nanogpt(r, w), question, words
        )


# ---- nn.Transformer ----


class TorchTransformer(nn.Module):
    def __init__(self, vocab_size=30, d_model=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(64, d_model)
        self.core = nn.Transformer(d_model, 4, 2, 2, 128, batch_first=True)
        self.output = nn.Linear(d_model, vocab_size)

    def enter(self, ids):
        return self.embedding(ids) + self.places(torch.arange(ids.shape[1]))

    def forward(self, src, tgt):
        return self.output(
            self.core(
                self.enter(src),
                self.enter(tgt),
                tgt_mask=~causal_mask(tgt.shape[1]),
                src_key_padding_mask=src == 0,
                tgt_key_padding_mask=tgt == 0,
                memory_key_padding_mask=src == 0,
            )
        )


def without_memory_mask(model, src, tgt):  # the mask of four that is easily forgotten
    core, future = model.core, ~causal_mask(tgt.shape[1])
    memory = core.encoder(model.enter(src), src_key_padding_mask=src == 0)
    return model.output(
        core.decoder(model.enter(tgt), memory, future, tgt_key_padding_mask=tgt == 0)
    )


class TorchEncoder(nn.Module):  # with PyTorch's default, the length before the batch
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 32)
        self.places = nn.Embedding(32, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.output = nn.Linear(32, 30)

    def forward(self, ids):  # B L
        places = self.places(torch.arange(ids.shape[1]))
        return self.output(self.encoder(self.embedding(ids) + places))


class PositionsByRow(TorchTransformer):
    def enter(self, ids):  # B L
        return self.embedding(ids) + self.places(torch.arange(len(ids)))[:, None]


def padding_mask_inverted(model, src, tgt):
    return model.output(
        model.core(
            model.enter(src),
            model.enter(tgt),
            tgt_mask=~causal_mask(tgt.shape[1]),
            src_key_padding_mask=src != 0,
            memory_key_padding_mask=src != 0,
        )
    )


def causal_mask_of_floats(model, src, tgt):  # which PyTorch adds to the scores
    n = tgt.shape[1]
    mask = torch.tril(torch.ones(n, n))
    return model.output(model.core(model.enter(src), model.enter(tgt), tgt_mask=mask))


def in_torch():
    pair = dict(architecture="encoder-decoder", vocab_size=30, pad_id=0)
    calls = {
        "no memory mask": (without_memory_mask, "padding", "attended to"),
        "padding mask inverted": (padding_mask_inverted, "call", "the wrong side"),
        "causal mask of 0 and 1, added": (causal_mask_of_floats, "leak", "hides nothing"),
    }
    for name, (call, question, words) in calls.items():
        yield Fault(
            "PyTorch",
            name,
            lambda c=call: check(TorchTransformer(), c, **pair),
            question,
            words,
        )
    yield Fault(
        "PyTorch",
        "positions by row, not by place",
        lambda: check(PositionsByRow(), **pair),
        "order",
        "positions",
    )
    yield Fault(
        "PyTorch",
        "`batch_first` forgotten",
        lambda: check(TorchEncoder(), architecture="encoder", vocab_size=30),
        "batch",
        "exchanged",
    )


# ---- Hugging Face ----

small = dict(
    vocab_size=30,
    d_model=32,
    max_position_embeddings=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
)
HF = dict(
    vocab_size=30,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=32,
)
EARLY = dict(vocab_size=30, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2)
PAIR = {**small, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
T5 = dict(vocab_size=30, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
SOUND = {  # of these, nothing should be said
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", dict(n_positions=32, n_embd=32, **EARLY)),
    "Llama": ("LlamaForCausalLM", "LlamaConfig", dict(HF, num_key_value_heads=2)),
    "Mistral": ("MistralForCausalLM", "MistralConfig", dict(HF, num_key_value_heads=2)),
    "Mixtral": ("MixtralForCausalLM", "MixtralConfig", dict(HF, num_key_value_heads=2)),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", dict(HF, num_key_value_heads=2)),
    "GPT-NeoX": (
        "GPTNeoXForCausalLM",
        "GPTNeoXConfig",
        dict(HF, bos_token_id=1, eos_token_id=2),
    ),
    "Bloom": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=32, **EARLY)),
    "OPT": (
        "OPTForCausalLM",
        "OPTConfig",
        dict(HF, ffn_dim=64, word_embed_proj_dim=32),
    ),
    "BERT": ("BertForMaskedLM", "BertConfig", HF),
    "BART": ("BartForConditionalGeneration", "BartConfig", PAIR),
    "Marian": ("MarianMTModel", "MarianConfig", PAIR),
    "Pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", PAIR),
    "T5": ("T5ForConditionalGeneration", "T5Config", T5),
}


def hugging(name, change=None):  # a sound model, after something was done to it
    kind, config, options = SOUND[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**options))
    if change is not None:
        change(model)
    return model


def other_scale(model):
    for module in model.modules():
        if hasattr(module, "scaling"):
            module.scaling = 1 / module.head_dim


def other_base(model):
    frequencies = model.model.rotary_emb.inv_freq
    frequencies[:] = 1e6 ** -(torch.arange(len(frequencies)) / len(frequencies))


def copied_layer(model):
    model.transformer.h[1].load_state_dict(model.transformer.h[0].state_dict())


def same_layer(model):
    model.transformer.h[1] = model.transformer.h[0]


def no_positions(model):
    model.transformer.wpe.weight.data.zero_()


def untied(model):
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.data.clone())


def smaller_head(model):
    model.lm_head = nn.Linear(32, 29)


def last_layer_skipped(model):
    model.model.encoder.layers[1].register_forward_hook(lambda _, given, out: given[0])


def residual_dropped(model):
    layer = model.model.layers[0]
    layer.mlp.register_forward_hook(lambda _, given, out: out - layer.kept)
    layer.post_attention_layernorm.register_forward_pre_hook(
        lambda _, given: setattr(layer, "kept", given[0])
    )


def one_attention(model):
    for layer in model.model.decoder.layers:
        layer.encoder_attn = layer.self_attn


def no_causal_mask_of(model, ids):  # a mask of four axes counts as it is
    n = ids.shape[1]
    return model(ids, attention_mask=torch.zeros(len(ids), 1, n, n))


def without_attention_mask(model, src, tgt):
    return model(input_ids=src, decoder_input_ids=tgt)


def steps_from(first):  # positions that begin at another number
    def cached(model, ids):
        past, logits = None, []
        for t in range(ids.shape[1]):
            out = model(
                ids[:, t : t + 1],
                past_key_values=past,
                use_cache=True,
                position_ids=torch.tensor([[t + first]]),
            )
            past, logits = out.past_key_values, [*logits, out.logits]
        return torch.cat(logits, 1)

    return cached


def forgetful(model, ids):  # the keys are not handed on
    return torch.cat([model(ids[:, t : t + 1]).logits for t in range(ids.shape[1])], 1)


def other_key_heads(model):  # repeat, where repeat_interleave is right
    for layer in model.model.layers:
        for name in ("k_proj", "v_proj"):
            projection = getattr(layer.self_attn, name)
            projection.register_forward_hook(repeated_heads)
        layer.self_attn.num_key_value_groups = 1


def repeated_heads(module, given, out):
    return torch.cat([out, out], -1)


def router_without_gradient(model):
    for layer in model.model.layers:
        layer.mlp.gate.register_forward_hook(
            lambda module, given, out: tuple(x.detach() for x in out)
        )


def always_first(model):  # each step with a cache takes the position of the first
    places = model.get_decoder()
    places = getattr(places, "wpe", None) or places.embed_positions
    places.register_forward_hook(
        lambda module, given, out: (
            module.weight[:1].expand_as(out) if out.shape[-2] == 1 else out
        )
    )


WRONG_CHANGES = {  # which model, what is done to it, the question, a part of its answer
    "Llama: another scale": ("Llama", other_scale, "scale", "twice"),
    "Llama: another rotary base": ("Llama", other_base, "rotary", "asks for 10,000"),
    "Llama: no residual": ("Llama", residual_dropped, "residual", "x + ..."),
    "GPT-2: copied layer": ("GPT-2", copied_layer, "sharing", "was a layer copied"),
    "GPT-2: same layer twice": ("GPT-2", same_layer, "sharing", "same layer twice"),
    "GPT-2: no positions": ("GPT-2", no_positions, "order", "positions are missing"),
    "GPT-2: tied by a copy": ("GPT-2", untied, "sharing", "a copy is not tied"),
    "GPT-2: cache always at 0": ("GPT-2", always_first, "cache", "step 1"),
    "Bloom: V - 1 logits": ("Bloom", smaller_head, "vocabulary", "never be predicted"),
    "BART: last layer skipped": (
        "BART",
        last_layer_skipped,
        "gradient",
        "encoder.layers.1",
    ),
    "BART: one attention": ("BART", one_attention, "sharing", "two roles"),
    "BART: another scale": ("BART", other_scale, "scale", "twice"),
    "BART: cache always at 0": (
        "BART",
        always_first,
        "cache",
        "position of the first step",
    ),
    "Marian: cache always at 0": ("Marian", always_first, "cache", "step 1"),
    "Mixtral: router without a gradient": (
        "Mixtral",
        router_without_gradient,
        "gradient",
        "gate",
    ),
}


def vit():
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(num_hidden_layers=1)
    )


def in_huggingface():
    for name, (host, change, question, words) in WRONG_CHANGES.items():
        yield Fault(
            "Hugging Face",
            name,
            lambda h=host, c=change: check(hugging(h, c)),
            question,
            words,
        )

    others = {
        "GPT-2: no causal mask": (
            lambda: check(hugging("GPT-2"), no_causal_mask_of),
            "leak",
            "mask is missing",
        ),
        "BERT: no mask handed over": (
            lambda: check(hugging("BERT"), lambda model, ids: model(ids).logits, pad_id=0),
            "padding",
            "takes attention_mask",
        ),
        "BART: no mask handed over": (
            lambda: check(hugging("BART"), without_attention_mask),
            "padding",
            "takes attention_mask",
        ),
        "GPT-2: cache from 1": (
            lambda: check(hugging("GPT-2"), cached=steps_from(1)),
            "cache",
            "position of the first step",
        ),
        "Llama: keys forgotten": (
            lambda: check(hugging("Llama"), cached=forgetful),
            "cache",
            "as if it were the first",
        ),
        "GPT-2: no output layer": (
            lambda: check(hugging("GPT-2").transformer),
            "call",
            "ForCausalLM",
        ),
        "BERT: its encoder alone": (
            lambda: check(
                hugging("BERT").bert.encoder, architecture="encoder", vocab_size=30
            ),
            "call",
            "say how to call",
        ),
        "a ViT": (lambda: check(vit()), "call", "reads pictures"),
    }
    for name, (report, question, words) in others.items():
        yield Fault("Hugging Face", name, report, question, words)


FAULTS = [*in_ours(), *in_nanogpt(), *in_torch(), *in_huggingface()]
MISSED = {  # they break no rule that can be seen from outside
    "an output that is not tied": lambda: check_nanogpt(TIED, ""),
    "scores of minus a billion": lambda: check(with_attention(hidden_by_a_billion)),
    "Llama: key heads in another order": lambda: check(hugging("Llama", other_key_heads)),
}
