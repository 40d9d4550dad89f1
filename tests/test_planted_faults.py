"Every fault that is planted in a model is named by the question that should find it."

import pytest

pytest.importorskip(
    "transformers", reason="some hosts are Hugging Face's: pip install -e '.[dev]'"
)
import torch
from planted_faults import ALL_THAT_FAIL, FAULTS, MISSED, SOUND, hugging, nanogpt

from annotated_transformer import check_transformer

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "fault", FAULTS, ids=lambda fault: f"{fault.host}: {fault.question}: {fault.name}"
)
def test_a_fault_is_named(fault):
    report = fault.report()
    assert fault.question in report.failed + report.notes, report
    assert fault.words in report[fault.question].message

    if fault.host == "ours" and fault.name in ALL_THAT_FAIL:
        assert set(report.failed) == ALL_THAT_FAIL[fault.name]


def test_every_question_has_a_fault():
    from annotated_transformer.debugging.checklist import PROBES

    assert {fault.question for fault in FAULTS} == set(PROBES)


@pytest.mark.parametrize("name", MISSED)
def test_what_breaks_no_rule_is_not_found(name):
    report = MISSED[name]()
    assert (report.failed, report.notes) == ([], [])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", SOUND)
def test_of_sound_models_nothing_is_said(name, dtype):
    report = check_transformer(hugging(name).to(dtype))
    assert (report.failed, report.notes) == ([], []), report


def test_of_the_sound_nanogpt_nothing_is_said():
    asked = dict(architecture="language model", vocab_size=30, pad_id=0)
    report = check_transformer(nanogpt(), **asked)
    assert (report.failed, report.notes) == ([], []), report
    another_base = check_transformer(nanogpt("10_000", "500_000"), **asked)
    assert another_base.notes == []
