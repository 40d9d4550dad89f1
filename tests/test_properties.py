"Claims of the chapters on inputs that nobody chose: hypothesis draws shapes, masks, lengths and sentences."

import dataclasses
import importlib

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from annotated_transformer.core.attention import scaled_dot_product_attention
from annotated_transformer.base.config import allowed_types
from annotated_transformer.training.data import (
    EOS,
    PAD,
    Batch,
    pair_length,
    batch_by_tokens,
)
from annotated_transformer.text.held_out import is_held_out
from annotated_transformer.tasks.synthetic import TASKS
from annotated_transformer.decoding.greedy import greedy_decode
from annotated_transformer.core.kv_cache import KVCache, ProjectedMemory
from annotated_transformer.core.positions import POSITIONS
from annotated_transformer.core.multi_head_attention import MultiHeadAttention
from annotated_transformer.training.loss import cross_entropy
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig

few = settings(max_examples=30, deadline=None)
size = st.integers(1, 7)
symbols = st.lists(st.integers(3, 12), min_size=1, max_size=9)
pairs = st.lists(st.tuples(symbols, symbols), min_size=1, max_size=12)


@few
@given(size, size, size, size, size, size, st.integers(0, 2**31), st.floats(0, 1))
def test_the_kernel_equals_the_formula(b, h, q, k, d_k, d_v, seed, density):
    torch.manual_seed(seed)
    query, key, value = (
        torch.randn(b, h, q, d_k),
        torch.randn(b, h, k, d_k),
        torch.randn(b, h, k, d_v),
    )
    mask = torch.rand(b, 1, q, k) < density  # density 0 masks everything
    expected = scaled_dot_product_attention(query, key, value, mask)
    assert expected.isfinite().all()
    found = F.scaled_dot_product_attention(query, key, value, mask)
    assert torch.allclose(found, expected, rtol=0, atol=1e-5)

    triangle = scaled_dot_product_attention(
        query, query, query, torch.arange(q) <= torch.arange(q)[:, None]
    )
    found = F.scaled_dot_product_attention(query, query, query, is_causal=True)
    assert torch.allclose(found, triangle, rtol=0, atol=1e-5)


@few
@given(size, size, size, size, st.integers(0, 2**31), st.floats(0, 1))
def test_attend_mixes_values_by_the_weights(n_heads, d_k, d_v, length, seed, density):
    "With a mask, the triangle, and both."
    torch.manual_seed(seed)
    mha = MultiHeadAttention(6, n_heads, d_k=d_k, d_v=d_v, bias=True)
    x, memory = torch.randn(2, length, 6), torch.randn(2, 5, 6)
    mask = torch.rand(2, 1, length, length) < density
    query, (key, value) = mha.query(x), mha.key_value(x)
    for given_mask, is_causal in ((None, False), (mask, False), (None, True), (mask, True)):
        visible = mha.visible(query, key, given_mask, is_causal)
        heads = mha.weights(query, key, *visible) @ value
        expected = mha.out_proj(heads.transpose(1, 2).flatten(2))
        found = mha(x, mask=given_mask, is_causal=is_causal)
        assert torch.allclose(found, expected, rtol=0, atol=1e-5)

    # a memory that is projected already
    found = mha(x, ProjectedMemory(*mha.key_value(memory)))
    assert torch.allclose(found, mha(x, memory), rtol=0, atol=1e-5)


@few
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.integers(0, 2**31),
    st.booleans(),
)
def test_a_cache_is_filled_in_pieces_of_any_size(sizes, seed, reorder):
    torch.manual_seed(seed)
    mha, cache = MultiHeadAttention(6, 2), KVCache()
    x = torch.randn(3, sum(sizes), 6)
    with torch.no_grad():
        for n in sizes:
            rows = torch.randperm(3) if reorder else torch.arange(3)
            cache.reorder(rows)
            x = x[rows]
            start = cache.length
            piece = x[:, start : start + n]
            found = mha(piece, is_causal=True, cache=cache)
            whole = mha(x[:, : cache.length], is_causal=True)
            assert torch.allclose(found, whole[:, start:], rtol=0, atol=1e-5)


@few
@given(pairs, st.sampled_from(sorted(POSITIONS)), st.sampled_from(["post", "pre"]))
def test_padding_never_changes_a_prediction(sentences, positions, norm):
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=13,
        d_model=8,
        d_ff=12,
        n_heads=2,
        n_layers=1,
        positions=positions,
        norm=norm,
        dropout=0.0,
    )
    model = Transformer(config).eval()
    batch = Batch.from_pairs(sentences)
    logits = model(batch.src, batch.tgt_in)
    for i, pair in enumerate(sentences):
        alone = Batch.from_pairs([pair])
        assert torch.allclose(
            model(alone.src, alone.tgt_in)[0],
            logits[i, : alone.tgt_in.shape[1]],
            rtol=0,
            atol=1e-4,
        )


@few
@given(pairs)
def test_a_batch_decodes_to_what_its_members_decode_to(sentences):
    torch.manual_seed(1)
    model = (
        Transformer(
            TransformerConfig(
                vocab_size=13, d_model=8, d_ff=12, n_heads=2, n_layers=1, dropout=0.0
            )
        )
        .double()
        .eval()
    )
    together = greedy_decode(model, Batch.from_pairs(sentences).src, max_len=6)
    for i, pair in enumerate(sentences):
        assert (
            greedy_decode(model, Batch.from_pairs([pair]).src, max_len=6).lists()
            == together.lists()[i : i + 1]
        )


@few
@given(pairs)
def test_a_batch_keeps_every_token_once(sentences):
    batch = Batch.from_pairs(sentences)
    for i, (source, target) in enumerate(sentences):
        assert [t for t in batch.src[i].tolist() if t != PAD] == [*source, EOS]
        assert [t for t in batch.tgt_out[i].tolist() if t != PAD] == [*target, EOS]
    assert batch.n_tokens == (batch.tgt_out != PAD).sum() == (batch.tgt_in != PAD).sum()


@few
@given(pairs, st.integers(10, 60), st.integers(0, 99))
def test_every_sentence_appears_once_per_epoch(sentences, budget, seed):
    batches = list(batch_by_tokens(sentences, budget, seed))
    assert sorted(pair for batch in batches for pair in batch) == sorted(sentences)
    assert all(len(batch) * max(map(pair_length, batch)) <= budget for batch in batches)


@few
@given(st.lists(st.integers(3, 1000), min_size=1, max_size=64))
def test_tasks_keep_symbols_and_sides(ids):
    for task in TASKS.values():
        assert sorted(task(ids)) == sorted(ids)
    assert TASKS["reverse"](TASKS["reverse"](ids)) == ids
    assert is_held_out(ids) == is_held_out(tuple(ids))


@few
@given(
    size,
    st.integers(3, 9),
    st.floats(0, 0.9),
    st.sampled_from([0, 2, None]),
    st.integers(0, 2**31),
)
def test_the_loss_equals_the_formula_with_a_table(
    length, vocab_size, smoothing, pad_id, seed
):
    "And so do its gradients, which are p - q, and nothing at padding."
    torch.manual_seed(seed)
    logits = 5 * torch.randn(2, length, vocab_size, dtype=torch.float64)
    targets = torch.randint(0, vocab_size, (2, length))

    # what each position asks for
    pad = -1 if pad_id is None else pad_id
    words = torch.arange(vocab_size) != pad
    right = F.one_hot(targets, vocab_size).double()
    q = ((1 - smoothing) * right + smoothing / int(words.sum())) * words
    q[targets == pad] = 0

    leaf = logits.clone().requires_grad_()
    loss = cross_entropy(leaf, targets, smoothing, pad_id)
    loss.backward()
    assert torch.allclose(loss, -(q * logits.log_softmax(-1)).sum())
    expected = logits.softmax(-1) * q.sum(-1, keepdim=True) - q
    assert torch.allclose(leaf.grad, expected, atol=1e-12)


CONFIGS = {
    "training.loop": "TrainConfig",
    "core.transformer": "TransformerConfig",
    "models.gpt": "GPTConfig",
    "models.bert": "BERTConfig",
    "models.vit": "ViTConfig",
    "models.llama": "LlamaConfig",
    "models.captioner": "CaptionerConfig",
    "tasks.copy_task": "CopyTaskConfig",
    "tasks.translation": "TranslationConfig",
    "tasks.language_model": "LanguageModelConfig",
    "tasks.topic_classification": "TopicClassificationConfig",
    "tasks.image_classification": "ImageClassificationConfig",
    "tasks.captioning": "CaptioningConfig",
}
# a value of each type that no other type takes, but that a whole number is a number, too
SAMPLES = {int: 4, float: 0.25, bool: True, str: "four", type(None): None}


@pytest.mark.parametrize("module, name", CONFIGS.items())
def test_configurations_refuse_values_of_other_types(module, name):
    config_class = getattr(importlib.import_module(f"annotated_transformer.{module}"), name)
    allowed = allowed_types(config_class)
    plain = {f.name for f in dataclasses.fields(config_class) if f.type in ("int", "float")}
    assert plain <= set(allowed)

    for field, types in allowed.items():
        for other, value in {**SAMPLES, list: []}.items():
            if other in types or (other is int and float in types):
                continue
            with pytest.raises(ValueError, match=f"^{field}: got "):
                config_class(**{field: value})
