"Wrong arguments are refused in one sentence that names them."

import pytest

from annotated_transformer.base.config import (
    argument_error,
    check_choice,
    check_even,
    check_flags,
    check_ids,
    check_numbers,
    check_probabilities,
    check_seed,
    check_sizes,
    head_sizes,
    import_extra,
    printable,
)
from annotated_transformer.base.devices import pick_device
from annotated_transformer.core.transformer import TransformerConfig


def test_long_values_are_shown_by_their_ends():
    long = str(argument_error("symbol", "7" * 5000, "a symbol from 3 to 12"))
    assert len(long) < 500 and long.count("7") == 398  # without quotes
    short = str(argument_error("x", "y" * 300, "z"))
    assert short == f"x: got '{'y' * 300}', expected z"
    assert "a number too long to write" in str(argument_error("n", 10**5000, "less"))


NOT_A_NUMBER = (True, "1e-3", float("nan"), float("inf"), None, 1j)


@pytest.mark.parametrize(
    "check, wrong",
    [
        (lambda x: check_sizes(x=x), (0, -3, 8.0, True, "8", None)),
        (lambda x: check_seed(x), (-1, 2**63, 1.5, "x", True)),
        (lambda x: check_probabilities(x=x), (1.0, -0.1, 10, *NOT_A_NUMBER)),
        (
            lambda x: check_numbers("a number above 0", lambda x: x > 0, x=x),
            (-1, 0, *NOT_A_NUMBER),
        ),
        (lambda x: check_flags(x=x), ("64", "False", 1, 0, None)),
        (lambda x: check_ids(100, x=x), (-1, 100, 1.0, "3", True)),
        (lambda x: check_choice("x", x, ["tiny"]), ("tony", ["tiny"], None)),
        (check_even, (7,)),
        (pick_device, ("cude", "cpu:x", "cpu:", "cpu:1", "cuda:99", "auto:1", "", 3)),
    ],
    ids=[
        "sizes",
        "seed",
        "probability",
        "number",
        "flag",
        "id",
        "choice",
        "even",
        "device",
    ],
)
def test_a_wrong_value_is_refused(check, wrong):
    for value in wrong:
        with pytest.raises(ValueError, match=r"^\w+: got .*, expected"):
            check(value)


def test_right_values_pass():
    check_sizes(d_model=512, n_heads=8)
    check_seed(0)
    check_probabilities(dropout=0, label_smoothing=0.1)
    check_flags(tie_weights=False)
    check_ids(100, pad_id=0, eos_id=99)
    check_choice("preset", "base", ["tiny", "base"])
    assert head_sizes(512, 8) == (64, 64) and head_sizes(512, 7, 64, 32) == (64, 32)
    assert pick_device("cpu:0").type == "cpu"


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(n_heads=7), "n_heads: got 7, expected a divisor of d_model = 512"),
        (dict(n_heads=7, d_k=64), "n_heads: got 7, expected a divisor"),
        (dict(dropout=1.0), "dropout: got 1.0"),
        (dict(norm="psot"), "did you mean 'post'?"),
        (dict(activation="rellu"), "did you mean 'relu'?"),
        (dict(positions="rotery"), "did you mean 'rotary'?"),
        (dict(bos_id=0), "three different ids"),
        (dict(eos_id=37000), "eos_id: got 37000"),
        (dict(tgt_vocab_size=2), "eos_id: got 2"),
        (dict(norm_eps=0), "norm_eps: got 0"),
        (dict(tie_weights="64"), "tie_weights: got '64'"),
        (dict(pad_id="0"), "pad_id: got '0'"),
        (dict(n_heads=10**5000), "n_heads: got a number too long"),
        (dict(d_modell=3), "did you mean 'd_model'?"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_a_model_is_not_made_from_wrong_options(options, message):
    with pytest.raises(ValueError) as refused:
        TransformerConfig.preset("base", **options)
    assert message in str(refused.value)


def test_names_from_elsewhere_cannot_command_a_terminal():
    unread = b"caf\xe9".decode("utf-8", "surrogateescape")  # as `os.listdir` gives it
    assert printable("Käse 猫 $_$ \\") == "Käse 猫 $_$ \\"
    shown = [printable(name) for name in ("\x1b[2J", "\n", unread, "\u202e", "\x00")]
    assert shown == ["\\x1b[2J", "\\n", "caf\\udce9", "\\u202e", "\\x00"]


def test_a_missing_package_is_named_with_its_extra():
    with pytest.raises(ImportError, match=r'pip install "annotated_transformer\[magic\]"'):
        import_extra("clairvoyance.future", "the next token is seen with", "magic")


def test_sizes_that_no_tensor_has_are_refused():
    with pytest.raises(ValueError, match="^beam_size: got 9+, expected at most 4,611,686"):
        check_sizes(beam_size=int("9" * 40))
    check_sizes(beam_size=2**62)
