"""Attention and what goes with it."""

from __future__ import annotations

from typing import Any

from support.graphs.draft import Choice, Draft, Of

HEADS, SIZE = 2, 4


def _is_flat(n: Draft) -> bool:
    """Whether the heads lie beside each other in the last of three axes."""
    found: bool = n.fact("flat", lambda: n.chance(40))
    return found


def _tensor(n: Draft, length: int, heads: int) -> Of:
    return Of((2, length, heads * SIZE) if _is_flat(n) else (2, heads, length, SIZE))


def _groups(n: Draft) -> int:
    found: int = n.fact("groups", lambda: n.one_of(1, 1, 2))
    return found


def mask(n: Draft) -> Any:
    past = n.facts.setdefault("past", n.chance(25))
    total = 3 + 2 * past
    return n.one_of(None, None, Of((2, total)), Of((2, 1, 2, total)), Of((1, HEADS * _groups(n), 2, total)))


def past(n: Draft) -> Any:
    return Of((2, HEADS, 2, SIZE)) if n.facts["past"] else None


def outputs(n: Draft) -> Any:
    """The keys and values so far are given together, unless lengths are; and whether attention is causal."""
    n.facts["outputs"] = 1 if n.given.get("nonpad_kv_seqlen") else n.one_of(1, 3, 4)
    return n.stated("is_causal")


CHOICES: dict[str, Choice] = {
    "attention.Q": lambda n: _tensor(n, 2, HEADS * _groups(n)),
    "attention.K": lambda n: _tensor(n, 3, HEADS),
    "attention.V": lambda n: _tensor(n, 3, HEADS),
    "attention.attn_mask": mask,
    "attention.past_key": past,
    "attention.past_value": past,
    "attention.nonpad_kv_seqlen": lambda n: None if n.facts["past"] else n.one_of(None, None, [3, 2]),
    "attention.is_causal": outputs,
    "attention.q_num_heads": lambda n: HEADS * _groups(n) if _is_flat(n) else None,
    "attention.kv_num_heads": lambda n: HEADS if _is_flat(n) else None,
    "attention.scale": lambda n: n.one_of(None, 0.5),
    "attention.softcap": lambda n: n.one_of(None, 0.0, 2.0),
    "attention.softmax_precision": lambda n: n.one_of(None, 1),
    "attention.left_window_size": lambda n: n.one_of(None, -1, 1),
    "attention.right_window_size": lambda n: n.one_of(None, -1, 1),
    "RotaryEmbedding.X": lambda n: Of(n.one_of((2, 3, 8), (2, 2, 3, 4))),
    "RotaryEmbedding.cos_cache": lambda n: Of(
        (2, 3, 2) if n.fact("no ids", lambda: n.chance(50)) else (5, 2)
    ),
    "RotaryEmbedding.sin_cache": lambda n: Of((2, 3, 2) if n.facts["no ids"] else (5, 2)),
    "RotaryEmbedding.position_ids": lambda n: None if n.facts["no ids"] else [[0, 1, 2], [4, 2, 3]],
    "RotaryEmbedding.num_heads": lambda n: 2 if n.rank == 3 else None,
    "RotaryEmbedding.rotary_embedding_dim": lambda n: n.one_of(None, 0),
    "causal_convolution.input": lambda n: Of((2, 3, 5)),
    "causal_convolution.weight": lambda n: Of((3, 1, 3)),
    "causal_convolution.bias": lambda n: n.one_of(None, Of((3,))),
    "causal_convolution.past_state": lambda n: n.one_of(None, Of((2, 3, 2))),
    "linear_attention.query": lambda n: Of((2, 3, HEADS * SIZE)),
    "linear_attention.key": lambda n: Of((2, 3, HEADS * SIZE)),
    "linear_attention.value": lambda n: Of((2, 3, HEADS * SIZE)),
    "linear_attention.past_state": lambda n: n.one_of(None, Of((2, HEADS, SIZE, SIZE))),
    "linear_attention.decay": lambda n: (
        Of((2, 3, HEADS)) if "gated" in str(n.stated("update_rule") or "gated") else None
    ),
    "linear_attention.beta": lambda n: (
        Of((2, 3, HEADS)) if "delta" in str(n.stated("update_rule") or "delta") else None
    ),
    "linear_attention.update_rule": lambda n: n.stated("update_rule"),
    "linear_attention.q_num_heads": lambda n: HEADS,
    "linear_attention.kv_num_heads": lambda n: HEADS,
    "linear_attention.chunk_size": lambda n: None,
    "linear_attention.scale": lambda n: n.one_of(None, 0.5),
}
RANKS: dict[str, tuple[int, int]] = {}
