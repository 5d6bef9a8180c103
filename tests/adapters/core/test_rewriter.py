"""Nodes that Rewriter emits, and its deprecated methods: each warns and does what the current one does."""

from __future__ import annotations

from typing import cast

import pytest

from opshift import default_registry
from opshift.adapters import CannotConvert, Node, Rewriter
from opshift.adapters.core.rewriter import Output
from opshift.inference.facts import Facts
from opshift.registry.steps import Allow


class _StrictOutput:
    """Workspace of a caller that allows only `approximate`."""

    def allow(self, kind: Allow, reason: str) -> bool:
        return kind == "approximate"


def _rewriter() -> Rewriter:
    source = default_registry().get_schema("Relu")
    # The aliases need no facts, and of the workspace only the allowances.
    return Rewriter(cast("Facts", None), cast("Output", _StrictOutput()), source, None, 12, 12)


def test_become_warns_and_replaces() -> None:
    out = _rewriter()
    with pytest.warns(DeprecationWarning, match=r"Rewriter\.become is deprecated .* call replace"):
        out.become(Node("Elu", ["x"], ["y"], {}), op_type="Relu", inputs=["z"])
    (emitted,) = out.emitted
    assert (emitted.node.op_type, emitted.node.inputs, emitted.node.outputs) == ("Relu", ("z",), ("y",))
    assert emitted.is_replacement


def test_concede_warns_and_requires_the_allowance() -> None:
    out = _rewriter()
    with pytest.warns(DeprecationWarning, match=r"Rewriter\.concede is deprecated .* call allow"):
        out.concede("approximate", "rounded")
    with (
        pytest.warns(DeprecationWarning, match="concede"),
        pytest.raises(CannotConvert, match="indices are computed"),
    ):
        out.concede("assume-nonnegative", "indices are computed")


def test_texts_of_emitted_nodes_are_read_as_bytes() -> None:
    """Later steps compare them with bytes, like texts of a model."""
    emitted = Node("Gelu", ["x"], ["y"], {"approximate": "tanh"})
    assert emitted.attribute("approximate", b"none") == b"tanh"
    assert emitted.attribute("other", "none") == "none"


@pytest.mark.parametrize(
    ("inputs", "written"), [(["a", "", ""], ("a",)), (["a", "", "b"], ("a", "", "b")), ([], ())]
)
def test_drops_omitted_inputs_at_the_end(inputs: list[str], written: tuple[str, ...]) -> None:
    out = _rewriter()
    out.emit("Clip", inputs, ["y"])
    assert tuple(out.emitted[0].node.inputs) == written
