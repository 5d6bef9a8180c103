"""Whether what a model states is what it is written for, and what would be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.ir_models import MODELS, X, function, node, plain

import opshift
from opshift.converter.doctor.diagnose import diagnose
from opshift.registry.ir_versions import ir_versions


def squeezing(opset: int) -> onnx.ModelProto:
    """A model of opsets 11 and 12: its Clip has an input, its Squeeze an attribute."""
    nodes = [node("Clip", ["x", "low"], ["h"]), node("Squeeze", ["h"], ["y"], name="flat", axes=[0])]
    return plain(opset, nodes, initializers={"low": np.float32(0)})


@pytest.mark.parametrize(
    ("stated", "fitting"), [(1, 11), (9, 11), (11, 11), (12, 12), (13, 12), (28, 12), (0, 11), (99, 12)]
)
def test_the_opset_that_fits_is_the_nearest(stated: int, fitting: int) -> None:
    found = diagnose(squeezing(stated))
    stamp = found.stamps[0]
    assert (stamp.domain, stamp.opset, stamp.fitting, stamp.opsets) == (
        "ai.onnx",
        stated,
        fitting,
        ((11, 12),),
    )
    assert found.fits == stamp.fits == (stated == fitting)


def test_nodes_tell_where_they_are_and_why_they_are_not_legal() -> None:
    (wrong,) = diagnose(squeezing(13)).misfits()
    assert (wrong.place, wrong.operator) == ("graph, node 'flat'", "ai.onnx.Squeeze")
    assert "no attribute 'axes'" in wrong.reason


def test_no_opset_fits_nodes_of_two_ages() -> None:
    found = diagnose(plain(9, [node("Clip", ["x"], ["h"], min=0.0), node("Gelu", ["h"], ["y"])]))
    assert found.stamps[0].fitting is None
    assert found.hopeless == found.stamps[:1]
    assert not found.fits


def test_graphs_within_count() -> None:
    output = helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, 3])
    then = helper.make_graph([node("Gelu", ["x"], ["t"])], "then", [], [output])
    choice = node("If", ["yes"], ["y"], name="if", then_branch=then, else_branch=then)
    found = diagnose(plain(13, [choice], initializers={"yes": np.array(True)}))
    assert found.stamps[0].fitting == 20
    assert {each.place for each in found.misfits()} == {
        "graph / if.then_branch, node Gelu -> t",
        "graph / if.else_branch, node Gelu -> t",
    }


def test_a_function_has_stamps_of_its_own() -> None:
    model = MODELS["functions"]()
    model.functions.append(function("Newer"))
    model.functions[1].node[0].CopyFrom(node("Gelu", ["a"], ["b"]))
    model.functions[1].opset_import[0].version = 13
    found = diagnose(model)
    stamps = [(each.place, each.opset, each.fitting) for each in found.stamps if each.domain == "ai.onnx"]
    assert stamps == [
        ("model", 21, 21),
        ("function local.Leak", 21, 21),
        ("function local.Newer", 13, 20),
    ]


def test_calls_and_domains_that_are_not_known_are_counted() -> None:
    model = MODELS["functions"]()
    model.graph.node.append(node("Own", ["x"], ["z"], "com.acme"))
    found = diagnose(model)
    assert found.unknown == 2
    assert [each.operator for each in found.nodes] == ["ai.onnx.LeakyRelu"]


def test_a_domain_that_is_not_imported_gets_the_opset_of_its_day() -> None:
    scaler = node("Scaler", ["x"], ["h"], "ai.onnx.ml", offset=[0.0], scale=[1.0])
    found = diagnose(plain(15, [scaler, node("Neg", ["h"], ["y"])]))
    (stamp,) = [each for each in found.stamps if each.domain == "ai.onnx.ml"]
    assert (stamp.opset, stamp.fitting, stamp.fits) == (None, 2, False)
    assert found.misfits()[0].reason == "domain ai.onnx.ml has no opset import"


def test_a_model_without_opset_imports_gets_what_its_ir_version_came_with() -> None:
    model = plain()
    model.ir_version = 8
    del model.opset_import[:]
    assert [(each.domain, each.opset, each.fitting) for each in diagnose(model).stamps] == [
        ("ai.onnx", None, 18)
    ]


IR_ROWS = [
    ("it has what is used", "standalone_initializers", 4, 4),
    ("it is newer than needed", "standalone_initializers", 13, 13),
    ("it is older than needed", "metadata", 8, 10),
    ("it is not stated", "metadata", 0, 10),
    ("it is not known", "metadata", 99, 10),
]


@pytest.mark.parametrize(
    ("feature", "stated", "fitting"), [row[1:] for row in IR_ROWS], ids=[row[0] for row in IR_ROWS]
)
def test_the_ir_version_that_fits_where(feature: str, stated: int, fitting: int) -> None:
    model = MODELS[feature]()
    model.ir_version = stated
    found = diagnose(model).ir_version
    assert (found.stated, found.fitting, found.fits) == (stated, fitting, stated == fitting)
    assert found.needed == ir_versions().features[feature]


def test_models_of_ir_version_1_and_2_fit_without_imports() -> None:
    model = plain(1)
    del model.opset_import[:]
    model.ir_version = 2
    found = diagnose(model)
    assert found.fits
    assert found.stamps[0].opset == 1


@pytest.mark.parametrize("feature", MODELS)
def test_sound_models_fit(feature: str) -> None:
    found = diagnose(MODELS[feature]())
    assert found.fits
    assert found.as_dict()["fits"] is True


def test_time_grows_with_the_nodes_only() -> None:
    """Nodes of one form are judged once."""
    names = ["x", *(f"v{index}" for index in range(2999)), "y"]
    model = plain(13, [node("Relu", [a], [b]) for a, b in pairwise(names)])
    assert len(diagnose(model).nodes) == 3000


@pytest.mark.parametrize("give", [lambda m: m, lambda m: m.SerializeToString()], ids=["a message", "bytes"])
def test_the_public_name_takes(give: object) -> None:
    model = squeezing(13)
    assert opshift.diagnose(give(model)).stamps[0].fitting == 12  # type: ignore[operator]
    assert X.shape == (2, 3)
