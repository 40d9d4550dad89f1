"""A Transformer of this library as Hugging Face's Marian model, by copied weights: the other side of comparisons."""
import torch
import transformers
from transformers import MarianConfig, MarianMTModel

from annotated_transformer.transformer import Transformer

transformers.logging.set_verbosity_error()


def as_marian(model: Transformer) -> MarianMTModel:
    "The same function of source and target. Raises `ValueError` for variants that Marian does not have."
    config = model.config
    wanted = dict(norm="post", positions="sinusoidal", attention_bias=True, tie_weights=True, tgt_vocab_size=None, d_k=None, d_v=None)
    for name, value in wanted.items():
        if getattr(config, name) != value:
            raise ValueError(f"{name}: got {getattr(config, name)!r}, expected {value!r}, as Marian has it")
    marian = MarianMTModel(MarianConfig(
        vocab_size=config.vocab_size, d_model=config.d_model, max_position_embeddings=config.max_len, scale_embedding=True,
        activation_function=config.activation, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
        encoder_layers=config.n_layers, encoder_attention_heads=config.n_heads, encoder_ffn_dim=config.d_ff,
        decoder_layers=config.n_layers, decoder_attention_heads=config.n_heads, decoder_ffn_dim=config.d_ff,
        pad_token_id=config.pad_id, bos_token_id=config.bos_id, eos_token_id=config.eos_id,
        decoder_start_token_id=config.bos_id, forced_eos_token_id=None,
    )).eval()
    missing, unexpected = marian.load_state_dict(marian_weights(model), strict=False)
    tied = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"}
    if unexpected or set(missing) - tied:
        raise ValueError(f"weights do not fit: missing {sorted(set(missing) - tied)}, left over {unexpected}")
    marian.tie_weights()
    return marian


def marian_weights(model: Transformer) -> dict[str, torch.Tensor]:
    "Our weights under Marian's names."
    shared = model.src_input.embedding.weight
    weights = {"model.shared.weight": shared, "final_logits_bias": torch.zeros(1, len(shared))}
    norms = {"encoder": ["self_attn", "final"], "decoder": ["self_attn", "encoder_attn", "final"]}
    for side, ends in (("encoder", model.src_input), ("decoder", model.tgt_input)):
        weights[f"model.{side}.embed_positions.weight"] = ends.positions.table
        for i, layer in enumerate(getattr(model, side).layers):
            there = {"fc1": layer.feed_forward.widen, "fc2": layer.feed_forward.narrow}
            for ours, theirs in (("self_attention", "self_attn"), ("cross_attention", "encoder_attn")):
                attention = getattr(layer, ours, None)
                if attention is not None:
                    there |= {f"{theirs}.out_proj": attention.output} | projections(theirs, attention.project)
            for name, module in there.items():
                weights[f"model.{side}.layers.{i}.{name}.weight"] = module.weight
                weights[f"model.{side}.layers.{i}.{name}.bias"] = module.bias
            for name, residual in zip(norms[side], layer.residuals):
                weights[f"model.{side}.layers.{i}.{name}_layer_norm.weight"] = residual.norm.gain
                weights[f"model.{side}.layers.{i}.{name}_layer_norm.bias"] = residual.norm.bias
    return weights


def projections(name: str, project) -> dict[str, torch.nn.Linear]:
    "One packed matrix as Marian's three."
    parts = {}
    for letter, weight, bias in zip("qkv", project.packed.weight.split(project.sizes), project.packed.bias.split(project.sizes)):
        parts[f"{name}.{letter}_proj"] = linear = torch.nn.Linear(*weight.shape[::-1], device="meta")
        linear.weight, linear.bias = torch.nn.Parameter(weight), torch.nn.Parameter(bias)
    return parts
