"""Attention and related operators."""

from __future__ import annotations

from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec

HEADS, SIZE = 2, 4


def _is_flat(n: Draft) -> bool:
    """Return whether the heads share the last of three axes."""
    found: bool = n.fact("flat", lambda: n.chance(40))
    return found


def _heads_tensor(n: Draft, length: int, heads: int) -> TensorSpec:
    return TensorSpec((2, length, heads * SIZE) if _is_flat(n) else (2, heads, length, SIZE))


def _query_groups(n: Draft) -> int:
    found: int = n.fact("groups", lambda: n.one_of(1, 1, 2))
    return found


def mask(n: Draft) -> Any:
    """Draw whether there are past keys, and no mask or one that broadcasts to the scores."""
    past = n.facts.setdefault("past", n.chance(25))
    total = 3 + 2 * past
    return n.one_of(
        None,
        None,
        TensorSpec((2, total)),
        TensorSpec((2, 1, 2, total)),
        TensorSpec((1, HEADS * _query_groups(n), 2, total)),
    )


def past(n: Draft) -> Any:
    """Return the shape of past keys and values; `None` without past keys."""
    return TensorSpec((2, HEADS, 2, SIZE)) if n.facts["past"] else None


def outputs(n: Draft) -> Any:
    """Choose `is_causal` and the number of outputs; present keys and values exclude explicit lengths."""
    n.facts["outputs"] = 1 if n.inputs.get("nonpad_kv_seqlen") else n.one_of(1, 3, 4)
    return n.attribute("is_causal")


CHOICES: dict[str, Choice] = {
    "attention.Q": lambda n: _heads_tensor(n, 2, HEADS * _query_groups(n)),
    "attention.K": lambda n: _heads_tensor(n, 3, HEADS),
    "attention.V": lambda n: _heads_tensor(n, 3, HEADS),
    "attention.attn_mask": mask,
    "attention.past_key": past,
    "attention.past_value": past,
    "attention.nonpad_kv_seqlen": lambda n: None if n.facts["past"] else n.one_of(None, None, [3, 2]),
    "attention.is_causal": outputs,
    "attention.q_num_heads": lambda n: HEADS * _query_groups(n) if _is_flat(n) else None,
    "attention.kv_num_heads": lambda n: HEADS if _is_flat(n) else None,
    "attention.scale": lambda n: n.one_of(None, 0.5),
    "attention.softcap": lambda n: n.one_of(None, 0.0, 2.0),
    "attention.softmax_precision": lambda n: n.one_of(None, 1),
    "attention.left_window_size": lambda n: n.one_of(None, -1, 1),
    "attention.right_window_size": lambda n: n.one_of(None, -1, 1),
    "RotaryEmbedding.X": lambda n: TensorSpec(n.one_of((2, 3, 8), (2, 2, 3, 4))),
    "RotaryEmbedding.cos_cache": lambda n: TensorSpec(
        (2, 3, 2) if n.fact("no ids", lambda: n.chance(50)) else (5, 2)
    ),
    "RotaryEmbedding.sin_cache": lambda n: TensorSpec((2, 3, 2) if n.facts["no ids"] else (5, 2)),
    "RotaryEmbedding.position_ids": lambda n: None if n.facts["no ids"] else [[0, 1, 2], [4, 2, 3]],
    "RotaryEmbedding.num_heads": lambda n: 2 if n.rank == 3 else None,
    "RotaryEmbedding.rotary_embedding_dim": lambda n: n.one_of(None, 0),
    "causal_convolution.input": lambda n: TensorSpec((2, 3, 5)),
    "causal_convolution.weight": lambda n: TensorSpec((3, 1, 3)),
    "causal_convolution.bias": lambda n: n.one_of(None, TensorSpec((3,))),
    "causal_convolution.past_state": lambda n: n.one_of(None, TensorSpec((2, 3, 2))),
    "linear_attention.query": lambda n: TensorSpec((2, 3, HEADS * SIZE)),
    "linear_attention.key": lambda n: TensorSpec((2, 3, HEADS * SIZE)),
    "linear_attention.value": lambda n: TensorSpec((2, 3, HEADS * SIZE)),
    "linear_attention.past_state": lambda n: n.one_of(None, TensorSpec((2, HEADS, SIZE, SIZE))),
    "linear_attention.decay": lambda n: (
        TensorSpec((2, 3, HEADS)) if "gated" in str(n.attribute("update_rule") or "gated") else None
    ),
    "linear_attention.beta": lambda n: (
        TensorSpec((2, 3, HEADS)) if "delta" in str(n.attribute("update_rule") or "delta") else None
    ),
    "linear_attention.update_rule": lambda n: n.attribute("update_rule"),
    "linear_attention.q_num_heads": lambda n: HEADS,
    "linear_attention.kv_num_heads": lambda n: HEADS,
    "linear_attention.chunk_size": lambda n: None,
    "linear_attention.scale": lambda n: n.one_of(None, 0.5),
}
RANKS: dict[str, tuple[int, int]] = {}
