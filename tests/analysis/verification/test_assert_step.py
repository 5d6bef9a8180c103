"""`opshift.testing`: generated nodes show whether a step preserves the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.adapter_table import temporary_adapters
from opshift.analysis.verification import references
from opshift.analysis.verification.references import reference
from opshift.model.errors import UsageError
from opshift.model.extensions import ExtensionFailed
from opshift.registry.errors import NotYetIntroduced, UnknownOpset
from opshift.registry.registry import Registry, default_registry
from opshift.registry.shapes.rule_table import TABLE
from opshift.shapes import rule
from opshift.testing import assert_step_preserves_outputs

MIX = """\
domain: com.acme
name: Mix
versions:
- since_version: 1
  inputs:
  - {name: X, type: T}
  - {name: Z, type: T, option: optional}
  - {name: more, type: I, option: variadic, min_arity: 0}
  outputs: [{name: Y, type: T}, {name: count, type: I, option: optional}]
  attributes:
    alpha: {type: FLOAT, default: 1.0}
    axis: {type: INT, default: 0, minimum: -1, maximum: 1}
    mode: {type: STRING, default: add, values: [add, mul]}
  type_constraints: {T: [tensor(float), tensor(double), tensor(int32)], I: [tensor(int64)]}
- since_version: 2
  step: {change: Nothing., up: adapter, down: adapter}
  inputs:
  - {name: X, type: T}
  - {name: Z, type: T, option: optional}
  - {name: more, type: I, option: variadic, min_arity: 0}
  outputs: [{name: Y, type: T}, {name: count, type: I, option: optional}]
  attributes:
    alpha: {type: FLOAT, default: 1.0}
    axis: {type: INT, default: 0, minimum: -1, maximum: 1}
    mode: {type: STRING, default: add, values: [add, mul]}
  type_constraints: {T: [tensor(float), tensor(double), tensor(int32)], I: [tensor(int64)]}
"""


def _mix(x: Any, z: Any = None, *more: Any, alpha: float, axis: int, mode: str) -> Any:
    z = np.flip(x, axis) if z is None else z
    y = np.asarray((x + z if mode == "add" else x * z) * alpha, x.dtype)
    return y, np.array(sum(each.sum() for each in more), np.int64)


@pytest.fixture(autouse=True)
def _temporary_registrations() -> Iterator[None]:
    before = dict(references._registered)
    reference("Mix", 1, 2, domain="com.acme")(_mix)
    with temporary_adapters():
        yield
    references._registered.clear()
    references._registered.update(before)
    TABLE._rules.pop("acme_mix", None)
    TABLE._functions.pop("acme_mix", None)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "com.acme").mkdir()
    (tmp_path / "com.acme" / "Mix.yaml").write_text(MIX)
    return default_registry().with_folder(tmp_path)


def _register(up: Callable[[Node, Rewriter], None]) -> None:
    adapter("Mix", 1, 2, domain="com.acme")(up)
    adapter("Mix", 2, 1, domain="com.acme")(lambda node, out: out.replace(node))


def test_generates_every_choice(registry: Registry) -> None:
    _register(lambda node, out: out.replace(node))
    found = assert_step_preserves_outputs("Mix", 1, 2, domain="com.acme", registry=registry)
    assert not found.refused
    assert not found.rejected
    for text in (
        "X: float", "X: double", "X: int32", "Z: float", "Z: float = constant", "more_1: int64",
        "more_0: int64 = constant", "alpha = 0.5", "axis = -1", "axis = 1", "mode = 'add'", "mode = 'mul'",
    ):  # fmt: skip
        assert any(text in each for each in found.compared), text
    assert any(each == 'Mix(X: float, "")' for each in found.compared)
    assert len(set(found.compared)) == len(found.compared)


WRONG: dict[str, Callable[[Node, Rewriter], bool]] = {
    "any attribute": lambda node, out: bool(node.attributes),
    "mode": lambda node, out: node.attribute("mode") == b"mul",
    "axis": lambda node, out: node.attribute("axis") == 1,
    "input omitted": lambda node, out: not node.input(1),
    "input omitted before others": lambda node, out: not node.input(1) and len(node.inputs) > 2,
    "input": lambda node, out: bool(node.input(1)),
    "constant": lambda node, out: out.constant_value(node.input(1)) is not None,
    "type": lambda node, out: out.element_type(node.inputs[0]) == "int32",
    "variadic": lambda node, out: len(node.inputs) > 3,
}
"""Nodes that an adapter converts wrongly."""


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("is_wrong", WRONG.values(), ids=WRONG)
def test_finds_a_wrong_adapter(registry: Registry, is_wrong: Callable[[Node, Rewriter], bool]) -> None:
    def scale_wrong(node: Node, out: Rewriter) -> None:
        factor = node.attribute("alpha", 1.0) * (2 if is_wrong(node, out) else 1)
        out.replace(node, attributes={**node.attributes, "alpha": factor})

    _register(scale_wrong)
    with pytest.raises(AssertionError, match=r"Mix 1 -> 2 does not preserve the outputs of Mix\(X: "):
        assert_step_preserves_outputs("Mix", 1, 2, domain="com.acme", registry=registry)
    assert assert_step_preserves_outputs("Mix", 2, 1, domain="com.acme", registry=registry).compared


def test_finds_a_wrong_optional_output(registry: Registry) -> None:
    def drop_one(node: Node, out: Rewriter) -> None:
        out.replace(node, inputs=node.inputs[:3])

    _register(drop_one)
    with pytest.raises(AssertionError, match="output 'count' differs"):
        assert_step_preserves_outputs("Mix", 1, 2, domain="com.acme", registry=registry)


@pytest.mark.parametrize(
    ("infer", "reason"),
    [
        pytest.param(lambda node: [()], r"is \[\], not \[2, 3\]", id="rank"),
        pytest.param(lambda node: [(None, 9)], r"is \[None, 9\], not \[2, 3\]", id="size"),
    ],
)
def test_finds_a_wrong_shape_rule(registry: Registry, tmp_path: Path, infer: Any, reason: str) -> None:
    rule("acme_mix")(infer)
    path = tmp_path / "com.acme" / "Mix.yaml"
    path.write_text(MIX.replace("name: Mix\n", "name: Mix\nshape: acme_mix\n"))
    _register(lambda node, out: out.replace(node))
    with pytest.raises(AssertionError, match=rf"Mix\(.*: the inferred shape of 'Y' {reason}"):
        assert_step_preserves_outputs("Mix", 1, 2, domain="com.acme", registry=registry)


@pytest.mark.full
def test_same_seed_generates_same_nodes(registry: Registry) -> None:
    _register(lambda node, out: out.replace(node))
    runs = [
        assert_step_preserves_outputs(
            "Mix", 1, 2, domain="com.acme", registry=registry, seed=seed, count=5
        ).compared
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_uses_given_attributes_inputs_and_shapes(registry: Registry) -> None:
    seen: list[tuple[Any, ...]] = []
    references._registered.clear()

    @reference("Mix", 1, 2, domain="com.acme")
    def mix(x: Any, z: Any = None, *more: Any, alpha: float, axis: int, mode: str) -> Any:
        seen.append((x.shape, x.dtype.name, alpha, None if z is None else z.tolist()))
        return _mix(x, z, *more, alpha=alpha, axis=axis, mode=mode)

    _register(lambda node, out: out.replace(node))
    assert_step_preserves_outputs(
        "Mix",
        1,
        2,
        domain="com.acme",
        registry=registry,
        attributes={"alpha": 4.0},
        inputs={"Z": np.array([7.0])},
        shapes={"X": (5, "n"), "more": (2,)},
        count=3,
    )
    assert {each[0][0] for each in seen} == {5}
    assert {each[1:3] for each in seen} == {("float64", 4.0)}
    assert {str(each[3]) for each in seen} == {"[7.0]", "None"}


@pytest.mark.full
def test_reports_refusals(registry: Registry) -> None:
    def refuse_mul(node: Node, out: Rewriter) -> None:
        if node.attribute("mode") == b"mul":
            raise CannotConvert("mul is not supported")
        out.replace(node)

    _register(refuse_mul)
    found = assert_step_preserves_outputs("Mix", 1, 2, domain="com.acme", registry=registry)
    assert found.refused
    assert set(found.refused.values()) == {"mul is not supported"}
    with pytest.raises(AssertionError, match="no generated node could be compared: mul is not supported"):
        assert_step_preserves_outputs(
            "Mix", 1, 2, domain="com.acme", registry=registry, attributes={"mode": "mul"}
        )


def test_reports_a_failing_adapter_as_such(registry: Registry) -> None:
    _register(lambda node, out: out.replace(None))  # type: ignore[arg-type]  # the mistake to find
    with pytest.raises(ExtensionFailed, match=r"adapter com\.acme\.Mix 1 -> 2 raises AttributeError"):
        assert_step_preserves_outputs("Mix", 1, 2, domain="com.acme", registry=registry)


@pytest.mark.full
def test_needs_a_reference(registry: Registry) -> None:
    references._registered.clear()
    _register(lambda node, out: out.replace(node))
    with pytest.raises(AssertionError, match=r"com\.acme\.Mix:1 has no Python reference"):
        assert_step_preserves_outputs("Mix", 1, 2, domain="com.acme", registry=registry)


@pytest.mark.some_cases(2)
@pytest.mark.parametrize(
    ("op_type", "source", "target"),
    [
        ("Clip", 6, 11),
        ("Clip", 11, 6),
        ("Softmax", 11, 13),
        ("Gelu", 20, 19),
        ("Squeeze", 13, 11),
        ("Max", 6, 8),
    ],
)
def test_compares_nodes_of_onnx(op_type: str, source: int, target: int) -> None:
    assert len(assert_step_preserves_outputs(op_type, source, target).compared) > 3


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        pytest.param(("Pad", 10, 11), {}, UsageError, "attributes={'pads'", id="attribute without values"),
        pytest.param(("SequenceLength", 11, 13), {}, UsageError, "input 'input_sequence'", id="sequence"),
        pytest.param(
            ("Clip", 6, 11), {"attributes": {"a": 1}}, UsageError, "it has max, min", id="attribute"
        ),
        pytest.param(("Clip", 6, 11), {"inputs": {"a": 1}}, UsageError, "it has input", id="input"),
        pytest.param(("Clip", 6, 11), {"shapes": {"a": ()}}, UsageError, "it has input", id="shape"),
        pytest.param(("Clip", 6, 11), {"seed": -1}, UsageError, "the seed is -1", id="seed"),
        pytest.param(("Gelu", 6, 20), {}, NotYetIntroduced, "Gelu is not in opset 6", id="no source"),
        pytest.param(("Clip", 6, 999), {}, UnknownOpset, "no opset 999", id="no target"),
    ],
)
def test_refuses_wrong_usage(
    arguments: tuple[str, int, int], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        assert_step_preserves_outputs(*arguments, **options)


def test_list_attribute_can_be_given() -> None:
    found = assert_step_preserves_outputs(
        "Pad", 10, 11, attributes={"pads": [0, 1, 2, 0]}, shapes={"data": ("n", 3)}
    )
    assert all("pads = [0, 1, 2, 0]" in each for each in found.compared)
