"""Networks for text, from the package transformers: encoders, and decoders that keep a cache."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

from mlir_npu.scripts.networks.survey.entry import Entry, recipe, transformers_model

VOCABULARY, LENGTH = 100, 12

_BERT = dict(
    vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, max_position_embeddings=32,
)  # fmt: skip
_LLAMA = dict(_BERT, num_key_value_heads=2, pad_token_id=0)
_GPT = dict(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=32)

ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "BERT": ("BertModel", _BERT),
    "DistilBERT": (
        "DistilBertModel",
        dict(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    ),
    "ModernBERT": ("ModernBertModel", dict(_BERT, pad_token_id=0, local_attention=4)),
}
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT-2 with a cache": ("GPT2Model", dict(_GPT, bos_token_id=1, eos_token_id=1)),
    "LLaMA with a cache": ("LlamaModel", _LLAMA),
    "Qwen3 with a cache": ("Qwen3Model", dict(_LLAMA, head_dim=8)),
}


class TwoSteps(nn.Module):
    """A decoder that reads a text, then one word more with the cache of the first step."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = self.model(input_ids=words[:, :-1], use_cache=True)
        second = self.model(
            input_ids=words[:, -1:], past_key_values=first.past_key_values, use_cache=True
        )
        return first.last_hidden_state, second.last_hidden_state


def entries() -> list[Entry]:
    kinds = ((_encoder, ENCODERS), (_decoder, DECODERS))
    return [
        Entry(
            name,
            functools.partial(build, *what),
            words,
            recipe(build.__name__, *what),
        )
        for build, networks in kinds
        for name, what in networks.items()
    ]


def words() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(7)
    return (torch.randint(VOCABULARY, (2, LENGTH), generator=generator),)


def _encoder(model_class: str, settings: dict[str, Any]) -> nn.Module:
    return transformers_model(model_class, settings, "input_ids", "last_hidden_state")


def _decoder(model_class: str, settings: dict[str, Any]) -> nn.Module:
    return TwoSteps(_encoder(model_class, settings).model)
