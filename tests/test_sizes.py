"What would take more memory than there is, or the others' cores, is said or settled before the work begins."

import os
import subprocess
import sys

import pytest
import torch
from project import ROOT

from annotated_transformer.models.gpt import GPT, GPTConfig
from annotated_transformer.models.llama import Llama, LlamaConfig
from annotated_transformer.base.allocations import peak_bytes
from annotated_transformer.core.transformer import Transformer
from annotated_transformer.core.transformer import TransformerConfig


SMALL = dict(vocab_size=13, d_model=16, d_ff=16, n_heads=4, n_layers=2, max_len=1024)
TRAINED = {
    "encoder-decoder": (Transformer(TransformerConfig(**SMALL, dropout=0.0)), 2),
    "GPT": (GPT(GPTConfig(**SMALL, dropout=0.0, attention_dropout=0.0)), 1),
    "Llama, heads that share keys": (
        Llama(LlamaConfig(**SMALL, n_kv_heads=2, pad_id=0)),
        1,
    ),
}


@pytest.mark.parametrize("name", TRAINED)
def test_memory_of_a_step_grows_with_the_length_and_not_with_its_square(name):
    "With a causal mask as a table in each layer twice as many tokens cost 3.3 to 3.8 times as much more."
    model, n_inputs = TRAINED[name]

    def held(n):
        ids = torch.full((1, n), 3)

        def step():
            model(*[ids] * n_inputs).sum().backward()

        model.zero_grad()
        return peak_bytes(step)

    short, middle, long = (held(n) for n in (256, 512, 1024))
    assert 1.9 < (long - middle) / (middle - short) < 2.1


@pytest.mark.slow
@pytest.mark.parametrize("said,expected", [(None, "passive"), ("active", "active")])
def test_the_command_asks_for_threads_that_sleep_while_they_wait(said, expected):
    "Spinning ones made it ten times slower beside another program. Whoever says something else is heard."
    env = dict(os.environ)
    env.pop("OMP_WAIT_POLICY", None)
    if said:
        env["OMP_WAIT_POLICY"] = said

    # torch reads the variable when it is imported, so what counts is what it finds then
    code = """
import os, sys

class Watch:
    def find_spec(self, name, *_):
        if name == "torch":
            print(os.environ["OMP_WAIT_POLICY"])
            sys.exit()

sys.meta_path.insert(0, Watch())
import annotated_transformer.cli
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True
    )

    assert done.stdout.strip() == expected, done.stderr
