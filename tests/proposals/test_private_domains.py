"""Proposals for operators of private domains, which no runtime supports."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from support.execution import Array, op_types
from support.proposals import set_answers, set_newest_version
from support.workbench import (
    ANSWERS,
    EXAMPLES,
    FLOAT,
    MAPPING,
    PRIMITIVE,
    Workbench,
    body,
    node,
    reference_text,
    texts,
)

from opshift.model.process_state import Terminated
from opshift.proposals.check import check_proposal
from opshift.proposals.evidence.run import Reference, run_reference
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.registry import default_registry
from opshift.registry.yaml_files import load_yaml


def _accept_blend(bench: Workbench, name: str = "Blend") -> OperatorVersion:
    """Accept an operator of a private domain that no runtime supports."""
    definition = {"shape": "same_as_first", **FLOAT, "descriptions": texts()}
    if bench.registry.operator("Blend", "com.acme"):
        definition["before"] = {"refuse": "no other operator computes it"}
    files = {"reference.py": reference_text("np.spacing(X)"), "examples.yaml": EXAMPLES}
    path = bench.start("new-operator", name, "com.acme")
    return bench.fill(path, definition, files, primitive_reason=PRIMITIVE)


OLDER = "- {name: older, version: 1, inputs: [{values: [1, 2]}]}\n"


def _update_blend(bench: Workbench, examples: str = EXAMPLES + OLDER) -> OperatorVersion:
    definition = {
        "attributes": {"scale": {"type": "FLOAT", "default": 1.0}},
        "step": {
            "change": "The attribute scale multiplies the result; its default keeps the meaning.",
            "up": "compatible",
            "down": [{"drop_attribute": "scale"}],
        },
        "descriptions": {"attributes": {"scale": "The factor of the result, any number."}},
    }
    examples += "- {name: scale, inputs: [{values: [1, 2]}], attributes: {scale: 0.1}}\n"
    files = {
        "reference.py": reference_text("np.spacing(X) * X.dtype.type(scale)", "X, *, scale"),
        "examples.yaml": examples,
    }
    return bench.fill(bench.start("update", "Blend", "com.acme"), definition, files)


def test_version_1_has_no_downgrade(bench: Workbench) -> None:
    path = bench.start("new-function", "Double", "com.acme")
    set_newest_version(before="body", body=body(18, "Add X X Y"), descriptions=texts(), **FLOAT)(path)
    found = {each.rule: each.remedy for each in check_proposal(path, bench.registry).findings}
    assert found["steps.down"] == "delete `before`"


def test_update_of_vendor_operator(bench: Workbench) -> None:
    assert str(_accept_blend(bench).id) == "com.acme.Blend:1"
    assert str(_update_blend(bench).id) == "com.acme.Blend:2"
    newer = bench.convert(node("Blend", "x", domain="com.acme"), 1, 2, "com.acme")
    assert op_types(newer) == ["Blend"]


def test_update_needs_reference_of_older_vendor_version(bench: Workbench) -> None:
    _accept_blend(bench)
    (bench.tree / "references" / "com_acme_blend_1.py").unlink()
    with pytest.raises(AssertionError, match=r"a reference is missing: .*com_acme_blend_1\.py"):
        _update_blend(bench)


def test_deprecation_and_removal_of_vendor_operator(bench: Workbench) -> None:
    _accept_blend(bench)
    assert str(_accept_blend(bench, "Mixer").id) == "com.acme.Mixer:2"
    replacement = {"replaced_by": "Mixer", "mapping": MAPPING}
    step = {"change": "Mixer replaces Blend.", "up": [{"rename_op": "Mixer"}], "down": "compatible"}
    files = {"reference.py": reference_text("np.spacing(X)"), "examples.yaml": EXAMPLES}
    path = bench.start("deprecation", "Blend", "com.acme")
    accepted = bench.fill(path, {"step": step, "deprecation": replacement}, files, mapping=MAPPING)
    assert (str(accepted.id), accepted.deprecated) == ("com.acme.Blend:3", True)
    path = bench.start("removal", "Blend", "com.acme")
    removal = {"removed_in": 4, "up": [{"rename_op": "Mixer"}], **replacement}
    bench.fill(path, {"removal": removal}, files, mapping=MAPPING)
    assert bench.registry.at("Blend", 4, "com.acme") is None
    newer = bench.convert(node("Blend", "x", domain="com.acme"), 1, 4, "com.acme")
    assert op_types(newer) == ["Mixer"]


def test_promotion_of_vendor_operator(bench: Workbench) -> None:
    _accept_blend(bench)
    path = bench.start("promotion", "Blend")
    assert load_yaml(path / "proposal.yaml")["promotes"] == "com.acme.Blend:1"
    definition = {
        "shape": "same_as_first",
        **FLOAT,
        "before": {"refuse": "no other operator computes it"},
        "descriptions": texts(),
    }
    files = {"reference.py": reference_text("np.spacing(X)"), "examples.yaml": EXAMPLES}
    answers = {"primitive_reason": PRIMITIVE, "mapping": "The domain changes, and nothing else."}
    assert str(bench.fill(path, definition, files, **answers).id) == "ai.onnx.Blend:29"
    vendor = bench.registry.get_schema("Blend", 1, "com.acme")
    assert not vendor.deprecated  # released operators do not change


def test_downgrade_needs_reference_of_older_vendor_version(bench: Workbench) -> None:
    """The tree is written by hand, and the examples are of the new version only."""
    _accept_blend(bench)
    shutil.rmtree(bench.tree / "references")
    with pytest.raises(AssertionError, match=r"error steps\.\w+: .*missing: .*com_acme_blend_1\.py"):
        _update_blend(bench, EXAMPLES)


def test_reference_gets_lists_as_tuples_of_stored_numbers() -> None:
    version = OperatorVersion(
        domain="com.acme",
        name="Weights",
        since_version=1,
        outputs=(Parameter(name="Y", type="tensor(double)"),),
        attributes={"weights": Attribute(type="FLOATS"), "names": Attribute(type="STRINGS")},
    )
    given: list[object] = []

    def reference(weights: tuple[float, ...], names: tuple[str, ...] | None) -> Array:
        given.extend((weights, names))
        return np.zeros(1)

    run_reference(Reference(version, reference), (), {"weights": [0.1, 2]})
    run_reference(Reference(version, reference), (), {"names": (b"one", b"two")})
    assert given == [(float(np.float32(0.1)), 2.0), None, None, ("one", "two")]


@pytest.mark.parametrize(
    ("answers", "open_rules"),
    [
        pytest.param({"model": "", "frameworks": [], "source": ""}, set(), id="none"),
        pytest.param({"model": "our model"}, {"proposal.model"}, id="model without a link"),
        pytest.param({"source": "our paper"}, {"proposal.source"}, id="source without a link"),
        pytest.param({"formula": ""}, {"proposal.formula"}, id="no formula"),
    ],
)
def test_needs_no_public_model_framework_or_source(
    bench: Workbench, answers: dict[str, object], open_rules: set[str]
) -> None:
    path = bench.start("new-operator", "Blend", "com.acme")
    set_answers(**{**ANSWERS, **answers})(path)
    names = {"proposal.model", "proposal.frameworks", "proposal.source", "proposal.formula"}
    assert {each.rule for each in check_proposal(path, bench.registry).findings} & names == open_rules


def test_a_signal_ends_a_reference() -> None:
    def terminated(*_: object, **__: object) -> None:
        raise Terminated(143)

    version = default_registry().get_schema("Relu", 14)
    with pytest.raises(Terminated):
        run_reference(Reference(version, terminated), (np.zeros(1, np.float32),), {})
