"Losses in chunks: their values and gradients are those of all logits at once, for every kind of model and precision."

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from annotated_transformer import Transformer, TransformerConfig, batch_pairs
from annotated_transformer.base.config import SpecialTokens
from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.tasks.synthetic import synthetic_pairs
from annotated_transformer.training.chunked_loss import (
    chunked_sequence_loss,
    loss_in_chunks,
    r_drop_loss,
)
from annotated_transformer.training.data import Batch
from annotated_transformer.training.loss import cross_entropy, evaluate, sequence_loss

TINY = TransformerConfig.preset("tiny", vocab_size=13, d_model=32, d_ff=64, n_layers=1)


def gradients(loss, *leaves):
    "The loss itself, and its gradients."
    return loss, *torch.autograd.grad(loss, leaves)


def assert_close(ones, others, eps):
    for a, b in zip(ones, others, strict=True):
        assert torch.allclose(a, b, rtol=eps, atol=eps)


@pytest.mark.parametrize("pad_id", [0, 3, None])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_chunks_change_nothing(pad_id, smoothing, with_bias, rows):
    hidden = torch.randn(36, 6, dtype=torch.double, requires_grad=True)
    weight = torch.randn(11, 6, dtype=torch.double, requires_grad=True)
    bias = torch.randn(11, dtype=torch.double, requires_grad=True) if with_bias else None
    ids = torch.randint(0, 11, (36,))
    leaves = [x for x in (hidden, weight, bias) if x is not None]
    loss_fn = partial(cross_entropy, smoothing=smoothing, pad_id=pad_id)

    whole = gradients(3 * loss_fn(F.linear(hidden, weight, bias), ids), *leaves)
    loss = loss_in_chunks(loss_fn, hidden, ids, weight, bias, rows)
    assert_close(whole, gradients(3 * loss, *leaves), 1e-10)
    assert all(x.grad is None for x in leaves)
    with torch.no_grad():
        found = loss_in_chunks(loss_fn, hidden, ids, weight, bias, rows)
    assert_close([found], [whole[0] / 3], 1e-10)


def test_a_process_without_rows():
    leaves = [torch.zeros(0, 6, requires_grad=True), torch.zeros(11, 6, requires_grad=True)]
    nothing = torch.zeros(0, dtype=torch.long)
    loss = loss_in_chunks(cross_entropy, leaves[0], nothing, leaves[1])
    assert not any(found.any() for found in gradients(loss, *leaves))


def test_gradients_of_gradients_are_refused():
    hidden = torch.randn(9, 6, requires_grad=True)
    weight = torch.randn(11, 6, requires_grad=True)
    ids = torch.randint(0, 11, (9,))
    loss = loss_in_chunks(cross_entropy, hidden, ids, weight).square()
    (slope,) = torch.autograd.grad(loss, hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()


@pytest.mark.parametrize("dtype, mixed", [(torch.float32, True), (torch.bfloat16, False)])
def test_lower_precision_is_as_near_as_without_chunks(dtype, mixed):
    torch.manual_seed(0)
    hidden = torch.randn(400, 64, requires_grad=True)
    weight = (torch.randn(10_000, 64) / 8).requires_grad_()
    ids = torch.randint(1, 10_000, (400,))
    loss_fn = partial(cross_entropy, smoothing=0.1)
    exact = gradients(loss_fn(F.linear(hidden, weight), ids) / 400, hidden, weight)

    def distances(loss_of):
        leaves = [x.detach().to(dtype).requires_grad_() for x in (hidden, weight)]
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            loss = loss_of(*leaves) / 400
        assert abs(loss / exact[0] - 1) < 2e-2
        found = gradients(loss, *leaves)
        return [((a - b).norm() / a.norm()).item() for a, b in zip(exact[1:], found[1:])]

    whole = distances(lambda h, w: loss_fn(F.linear(h, w), ids))
    parts = distances(lambda h, w: loss_in_chunks(loss_fn, h, ids, w, rows=64))
    assert all(part < 1.1 * one + 1e-4 for part, one in zip(parts, whole)), (whole, parts)


def pairs_of_models_and_batches():
    torch.manual_seed(0)
    batch = next(batch_pairs(synthetic_pairs(), 8))
    for options in ({}, dict(output_bias=True), dict(tie_weights=False)):
        yield Transformer(TINY.replace(**options)), batch
    yield torch.compile(Transformer(TINY), backend="eager"), batch

    marian = Transformer(TINY.replace(vocab_size=51, pad_id=49, bos_id=50, eos_id=0))
    yield marian, Batch.from_pairs([([5, 6], [8, 9])], SpecialTokens.of(marian))

    gpt = GPT(GPTConfig.preset("tiny", vocab_size=20, dropout=0.0))
    ids = torch.randint(3, 20, (3, 9))
    yield gpt, Batch((ids[:, :-1],), ids[:, 1:], SpecialTokens.of(gpt))


def test_all_models():
    for model, batch in pairs_of_models_and_batches():
        weights = [p for p in model.parameters() if p.requires_grad]
        whole, n_whole = sequence_loss(model, batch, 0.1)
        parts, n_parts = chunked_sequence_loss(model, batch, 0.1, rows=5)
        assert n_whole == n_parts == batch.n_tokens
        whole = gradients(whole, *weights)
        assert_close(whole, gradients(parts, *weights), 2e-4)

        # without dropout the two passes of R-Drop are the same
        assert_close(whole, gradients(r_drop_loss(model, batch, 0.1)[0], *weights), 2e-4)
        expected = evaluate(model, [batch])["loss"]
        found = evaluate(model, [batch], chunked_sequence_loss)["loss"]
        assert abs(found - expected) < 1e-4


def test_r_drop_is_its_formula():
    torch.manual_seed(0)
    batch = next(batch_pairs(synthetic_pairs(), 8))
    model = Transformer(TINY.replace(dropout=0.3)).double().train()
    weights = [p for p in model.parameters() if p.requires_grad]

    def divergence(log_p, log_q):  # by PyTorch; its order is the other way round
        return F.kl_div(log_q, log_p, log_target=True, reduction="none").sum(-1)

    torch.manual_seed(0)
    twice = model(*(torch.cat([x, x]) for x in batch.inputs))
    log_p, log_q = twice.log_softmax(-1).chunk(2)
    apart = divergence(log_p, log_q) + divergence(log_q, log_p)
    apart = (apart * (batch.targets != 0)).sum()
    plain = sum(cross_entropy(x, batch.targets, 0.1) for x in twice.chunk(2)) / 2
    assert apart > 0.1
    whole = gradients(plain + 5 / 4 * apart, *weights)
    for rows in (1, 3, 256):
        torch.manual_seed(0)  # the same dropout
        loss, n_tokens = r_drop_loss(model, batch, 0.1, rows=rows)
        assert n_tokens == batch.n_tokens
        assert_close(whole, gradients(loss, *weights), 1e-10)
    torch.manual_seed(0)
    assert_close([r_drop_loss(model, batch, 0.1, weight=0.0)[0]], [plain], 1e-10)


def test_what_is_refused():
    model = Transformer(TINY)
    batch = next(batch_pairs(synthetic_pairs(), 8))
    shorter = Batch(batch.inputs, batch.targets[:, 1:], batch.special)
    with pytest.raises(ValueError, match="a target for each position"):
        chunked_sequence_loss(model, shorter)
    assert "logits" not in vars(model.output)  # as it was

    marian = Transformer(TINY.replace(vocab_size=51, pad_id=49, bos_id=50, eos_id=0))
    other = Batch.from_pairs([([5, 6], [8, 9])], SpecialTokens.of(marian))
    with pytest.raises(ValueError, match="special of the batch"):
        chunked_sequence_loss(model, other)
    for name, value in (("rows", 0), ("weight", -1.0), ("weight", float("nan"))):
        with pytest.raises(ValueError, match=f"{name}: got"):
            r_drop_loss(model, batch, **{name: value})
