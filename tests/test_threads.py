"Threads that share one model: decoding and recording keep what they need to themselves."

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from annotated_transformer.decoding.greedy import generate_ids, greedy_decode
from annotated_transformer.inspection.attention_maps import (
    capture_attention,
    trace_attention,
)
from annotated_transformer.core.recording import record_attention
from annotated_transformer.decoding.sampling import sample
from annotated_transformer.decoding.search import beam_search
from annotated_transformer.core.transformer import Transformer, TransformerConfig

SOURCE = [3, 4, 5, 6]


@pytest.fixture(autouse=True)
def frequent_switches():
    "Threads take turns a thousand times as often as usual."
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def tiny(**changes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        TransformerConfig.preset("tiny", vocab_size=13, d_model=16, d_ff=32, **changes)
    ).eval()


def together(work, n_threads: int, times: int) -> list:
    "What `work(i)` returns, or how it fails, when threads that begin at the same moment call it."
    start = threading.Barrier(n_threads)

    def calls(i):
        start.wait()
        found = []
        for _ in range(times):
            try:
                found.append(work(i))
            except Exception as error:
                found.append(error)
        return found

    with ThreadPoolExecutor(n_threads) as pool:
        return [
            result for results in pool.map(calls, range(n_threads)) for result in results
        ]


def test_decoding_in_four_threads_writes_the_same():
    model = tiny(dropout=0.5, attention_dropout=0.5)
    expected = generate_ids(model, [SOURCE], 12)
    assert (
        together(lambda i: generate_ids(model, [SOURCE], 12), n_threads=4, times=10)
        == [expected] * 40
    )
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize("decode", [greedy_decode, sample, beam_search, None])
def test_training_mode_is_refused_and_left_as_it_is(decode):
    model = tiny(dropout=0.5).train()

    def write(i):
        return (
            generate_ids(model, [SOURCE], 12)
            if decode is None
            else decode(model, torch.tensor([SOURCE]), 12)
        )

    found = together(write, n_threads=4, times=5)
    assert {str(error) for error in found} == {
        "model: got 'training mode', expected evaluation mode: call model.eval() first"
    }
    assert all(module.training for module in model.modules())


def test_recording_belongs_to_its_thread():
    "Every odd thread only decodes; each even one records another target."
    model = tiny()
    targets = [[5 + i, 3, 2] for i in range(0, 8, 2)]
    alone = [trace_attention(model, SOURCE, target).weights for target in targets]
    written = greedy_decode(model, torch.tensor([SOURCE]), 9).lists()

    def work(i):
        if i % 2:
            return greedy_decode(model, torch.tensor([SOURCE]), 9).lists()
        return trace_attention(model, SOURCE, targets[i // 2]).weights

    found = together(work, n_threads=8, times=10)
    assert not [result for result in found if isinstance(result, Exception)]
    for i in range(8):
        for result in found[10 * i : 10 * i + 10]:
            if i % 2:
                assert result == written
            else:
                assert result.keys() == alone[i // 2].keys()
                assert all(
                    torch.equal(result[part], alone[i // 2][part]) for part in result
                )


def test_other_threads_see_no_recording():
    model, source, target = tiny(), torch.tensor([SOURCE]), torch.tensor([[1, 7]])
    with record_attention(model) as records:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(model, source, target).result()
        assert records == {}
        model(source, target)
        assert len(records) == 6 and all(len(calls) == 1 for calls in records.values())


def test_recording_ends_with_an_error():
    model = tiny()

    def fail():
        model(torch.tensor([SOURCE]), torch.tensor([[1]]))
        raise KeyError("stop")

    with pytest.raises(KeyError):
        capture_attention(model, fail)
    with record_attention(model) as records:
        model(torch.tensor([SOURCE]), torch.tensor([[1]]))
    assert all(len(calls) == 1 for calls in records.values())


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_decoding_beyond_the_table_in_several_threads(positions):
    lengths = [60, 20, 40, 60]

    def decode(model, i):
        return greedy_decode(model, torch.tensor([SOURCE]), lengths[i]).lists()

    model = tiny(positions=positions)
    expected = decode(model, 0)

    for _ in range(5):
        fresh = tiny(positions=positions, max_len=1)
        fresh.load_state_dict(model.state_dict())

        found = together(partial(decode, fresh), n_threads=4, times=1)

        assert not [result for result in found if isinstance(result, Exception)]
        assert found[0] == found[3] == expected
