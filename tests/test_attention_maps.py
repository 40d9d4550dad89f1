"""The maps of chapters 4.3 and 4.5: calls of all kinds, labels, refusals, pictures, and the view as a piece of HTML."""

import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from annotated_transformer.core.multi_head_attention import MultiHeadAttention, merge_heads
from annotated_transformer.core.transformer import Transformer, TransformerConfig
from annotated_transformer.decoding.greedy import UncachedDecoder, greedy_decode
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.inspection.attention_maps import (
    AttentionMaps,
    capture_attention,
    concat_steps,
    head_entropy,
    plot_attention,
    plot_head_statistic,
    trace_attention,
)
from annotated_transformer.inspection.attention_view import attention_view
from annotated_transformer.training.data import BOS, EOS

CONFIG = TransformerConfig.preset("tiny", vocab_size=13)
SRC = torch.tensor([[3, 4, 5, 6, 3, EOS], [7, 8, EOS, 0, 0, 0], [9, EOS, 0, 0, 0, 0]])
TGT = torch.tensor([[BOS, 9, 3, 7, 8], [BOS, 4, 5, 5, 4], [BOS, 6, 6, 6, 6]])


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


def two_heads_more() -> AttentionMaps:
    maps = torch.rand(2, 3, 2, 4).softmax(-1)
    return AttentionMaps({"cross": maps}, {"cross": ["A", "B"]}, {"cross": list("wxyz")})


def test_steps_become_rows():
    row = torch.tensor([1.0]).view(1, 1, 1, 1)
    longer = torch.tensor([0.25, 0.75]).view(1, 1, 1, 2)
    assert concat_steps([row, longer])[0, 0].tolist() == [[1, 0], [0.25, 0.75]]
    assert concat_steps([longer]).shape == (1, 1, 1, 2)
    with pytest.raises(ValueError, match=r"calls: got \[1, 2\]"):
        concat_steps([row, torch.ones(1, 1, 2, 2)])
    with pytest.raises(ValueError, match=r"examples: got \[1, 4\]"):
        concat_steps([row, torch.ones(4, 1, 1, 2)])


def test_parts_and_shapes(small):
    output, weights = capture_attention(small, lambda: small(SRC, TGT))
    assert {part: tuple(maps.shape) for part, maps in weights.items()} == {
        "encoder self": (2, 3, 4, 6, 6),
        "decoder self": (2, 3, 4, 5, 5),
        "decoder cross": (2, 3, 4, 5, 6),
    }
    assert torch.allclose(output, small(SRC, TGT), atol=1e-6)
    for module in small.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


def test_an_attention_alone_and_layers_of_several_shapes():
    attention, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    _, alone = capture_attention(attention, lambda: attention(x))
    assert {part: tuple(m.shape) for part, m in alone.items()} == {
        "attention": (1, 2, 3, 5, 5)
    }
    stack = nn.ModuleList([MultiHeadAttention(12, 3), MultiHeadAttention(12, 4)])
    assert [*capture_attention(stack, lambda: stack[0](x))[1]] == ["attention"]
    with pytest.raises(ValueError, match="layers of one shape"):
        capture_attention(stack, lambda: [layer(x) for layer in stack])


def test_the_weights_are_those_that_mixed_the_values(small):
    layer, inputs = small.decoder.layers[1], {}

    def keep(module, args, output):
        inputs.update(memory=args[1], cross=output)

    handle = layer.cross_attention.register_forward_hook(keep)
    small(SRC, TGT)  # nobody watches here
    handle.remove()
    _, weights = capture_attention(small, lambda: small(SRC, TGT))
    _, value = layer.cross_attention.key_value(inputs["memory"])  # B H S Dv
    heads = merge_heads(weights["decoder cross"][1] @ value)
    assert torch.allclose(layer.cross_attention.out_proj(heads), inputs["cross"], atol=1e-6)
    for maps in weights.values():
        assert torch.allclose(maps.sum(-1), torch.ones(()), atol=1e-6)
    for part in ("encoder self", "decoder cross"):  # padding
        assert (weights[part][:, 1, ..., 3:] == 0).all()
    assert (weights["decoder self"].triu(1) == 0).all()


def test_decoding_with_a_cache_gives_the_maps_of_one_pass(small):
    decoded, live = capture_attention(small, lambda: greedy_decode(small, SRC[:1], 6))
    begun = torch.cat([torch.full_like(SRC[:1, :1], BOS), decoded.ids[:, :-1]], 1)
    _, whole = capture_attention(small, lambda: small(SRC[:1], begun))
    assert [*live] == [*whole]
    for part in live:
        assert torch.allclose(live[part], whole[part], atol=1e-5)


def test_calls_that_make_no_map_are_refused(small):
    with pytest.raises(ValueError, match="one call, or one query in each"):
        capture_attention(small, lambda: greedy_decode(UncachedDecoder(small), SRC, 6))
    with pytest.raises(ValueError, match="one call, or as many in each"):
        capture_attention(small, lambda: beam_search(small, SRC, 6))


def test_maps_are_selected_by_number():
    two = two_heads_more()
    names = ["layer 2, head 1", "layer 2, head 2", "layer 2, head 3"]
    assert [*two.select("cross", layers=[1])] == names
    chosen = two.select("cross", [0], [2])
    assert torch.equal(chosen["layer 1, head 3"], two.weights["cross"][0, 2])
    with pytest.raises(ValueError, match=r"did you mean 'cross'\?"):
        two.select("cros")
    with pytest.raises(ValueError, match="heads: got 3, expected numbers from 0 to 2"):
        two.select("cross", heads=[3])
    with pytest.raises(ValueError, match=r"Q, K = \(1, 4\)"):
        replace(two, queries={"cross": ["A"]})


def test_labels(small):
    named = trace_attention(small, [3, 4, 5], [9, 8, EOS])
    assert named.queries["decoder cross"] == ["9", "8", "EOS"]
    assert named.keys == {
        "encoder self": ["3", "4", "5", "EOS"],
        "decoder self": ["BOS", "9", "8"],
        "decoder cross": ["3", "4", "5", "EOS"],
    }
    compiled = torch.compile(small, backend="eager")
    assert [*trace_attention(compiled, [3, 4, 5], [9, 8, EOS]).weights] == [*named.weights]
    spelled = trace_attention(small, [3, 4, 5], word="abcdefgh".__getitem__)
    assert spelled.keys["encoder self"] == ["d", "e", "f", "EOS"]
    cut_off = trace_attention(small, [3, 4, 5], [9, 8])  # it did not end
    assert cut_off.queries["decoder self"] == ["9", "8"]


@pytest.mark.parametrize("source", [[], [0, 3]])
def test_sources_are_ids_of_words(small, source):
    with pytest.raises(ValueError, match="source: got"):
        trace_attention(small, source)


def test_other_special_ids():
    others = Transformer(CONFIG.replace(pad_id=9, bos_id=8, eos_id=7)).eval()
    assert trace_attention(others, [2, 3], [0, 7]).keys == {
        "encoder self": ["2", "3", "EOS"],
        "decoder self": ["BOS", "0"],
        "decoder cross": ["2", "3", "EOS"],
    }


def overlaps(picture):
    "How many pairs of neighbouring tick labels touch."
    picture.set_dpi(100)  # as it is shown
    picture.draw_without_rendering()
    touching = 0
    for ax in picture.axes:
        for ticks, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
            boxes = [
                tick.label1.get_window_extent()
                for tick in ticks.get_major_ticks()
                if tick.label1.get_visible() and tick.label1.get_text()
            ]
            spans = sorted(
                (box.x0, box.x1) if side == 0 else (box.y0, box.y1) for box in boxes
            )
            touching += sum(after[0] < before[1] for before, after in zip(spans, spans[1:]))
    return touching


def random_example(n):
    "Words of 3 to 9 letters, and weights."
    words = ["abcdefghi"[: 3 + i % 7] for i in range(n)]
    weights = torch.rand(2, 4, n, n).softmax(-1)
    return AttentionMaps({"self": weights}, {"self": words}, {"self": words})


@pytest.mark.parametrize("n", [10, 60])
def test_labels_in_pictures_do_not_touch(n):
    which = [([0], [0]), ([0], None), (None, None)]
    pictures = [plot_attention(random_example(n), "self", *one) for one in which]
    assert [overlaps(picture) for picture in pictures] == [0, 0, 0]
    assert [len(picture.axes) - 1 for picture in pictures] == [1, 4, 8]  # and a colour bar
    assert all(picture.get_figwidth() <= 12 for picture in pictures)


def test_a_map_alone_names_every_token():
    ax = plot_attention(random_example(60), "self", [0], [0]).axes[0]
    assert len([tick.get_text() for tick in ax.get_yticklabels()]) == 60


def test_a_statistic_is_drawn_as_it_is():
    two = two_heads_more()
    picture = plot_head_statistic(two, head_entropy)
    drawn = torch.tensor(picture.axes[0].images[0].get_array()).float()
    assert torch.allclose(drawn, head_entropy(two.weights["cross"]))


def test_a_view_asks_no_host():
    fragment = attention_view(two_heads_more()).fragment
    without_data = re.sub(r'base64,[^"]*', "", fragment)
    assert not re.search(r'https?:|//\w|@import|src="(?!data:)', without_data)


def test_labels_of_a_view_are_no_markup():
    evil = "</script><script>alert(1)</script>"
    maps = torch.rand(1, 2, 1, 4).softmax(-1)
    hostile = AttentionMaps(
        {"cross": maps}, {"cross": ["A"]}, {"cross": [evil, "&", '"', "'"]}
    )
    fragment = attention_view(hostile).fragment
    assert evil not in fragment and "<script>alert" not in fragment


def test_a_view_of_a_large_model_is_small():
    parts = "encoder self", "decoder self", "decoder cross"
    words = {part: ["word"] * 60 for part in parts}
    maps = {part: torch.rand(6, 8, 60, 60).softmax(-1) for part in parts}
    assert len(attention_view(AttentionMaps(maps, words, words)).fragment) < 1e6


def test_a_saved_view_has_a_title(tmp_path):
    view = attention_view(two_heads_more())
    page = view.save(tmp_path / "view.html", title="<reverse>").read_text()
    assert view.fragment in page and "&lt;reverse&gt;" in page
