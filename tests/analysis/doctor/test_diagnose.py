"""Diagnosis of wrong opset imports and IR versions, and of versions that fit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import run
from support.ir_models import MODELS, X, function, node, plain_model

import opshift
from opshift.analysis.doctor.diagnose import diagnose
from opshift.registry.ir_versions import ir_versions


def clip_and_squeeze(opset: int) -> onnx.ModelProto:
    """Build a model that is valid in opsets 11 and 12: Clip has an input, Squeeze an attribute."""
    nodes = [node("Clip", ["x", "low"], ["h"]), node("Squeeze", ["h"], ["y"], name="flat", axes=[0])]
    return plain_model(opset, nodes, initializers={"low": np.float32(0)})


@pytest.mark.parametrize(
    ("declared", "fitting"), [(1, 11), (9, 11), (11, 11), (12, 12), (13, 12), (28, 12), (0, 11), (99, 12)]
)
def test_suggests_nearest_fitting_opset(declared: int, fitting: int) -> None:
    diagnosis = diagnose(clip_and_squeeze(declared))
    stamp = diagnosis.stamps[0]
    assert (stamp.domain, stamp.opset, stamp.fitting, stamp.opsets) == (
        "ai.onnx",
        declared,
        fitting,
        ((11, 12),),
    )
    assert diagnosis.fits == stamp.fits == (declared == fitting)


def test_mismatches_have_place_and_reason() -> None:
    (mismatch,) = diagnose(clip_and_squeeze(13)).mismatches()
    assert (mismatch.place, mismatch.operator) == ("graph, node 'flat'", "ai.onnx.Squeeze")
    assert "no attribute 'axes'" in mismatch.reason


def test_finds_no_opset_for_incompatible_nodes() -> None:
    diagnosis = diagnose(plain_model(9, [node("Clip", ["x"], ["h"], min=0.0), node("Gelu", ["h"], ["y"])]))
    assert diagnosis.stamps[0].fitting is None
    assert diagnosis.unfixable == diagnosis.stamps[:1]
    assert not diagnosis.fits


def test_diagnoses_subgraphs() -> None:
    output = helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, 3])
    then = helper.make_graph([node("Gelu", ["x"], ["t"])], "then", [], [output])
    conditional = node("If", ["yes"], ["y"], name="if", then_branch=then, else_branch=then)
    diagnosis = diagnose(plain_model(13, [conditional], initializers={"yes": np.array(True)}))
    assert diagnosis.stamps[0].fitting == 20
    assert {each.place for each in diagnosis.mismatches()} == {
        "graph / if.then_branch, node Gelu -> t",
        "graph / if.else_branch, node Gelu -> t",
    }


def test_diagnoses_each_function_separately() -> None:
    model = MODELS["functions"]()
    model.functions.append(function("Newer"))
    model.functions[1].node[0].CopyFrom(node("Gelu", ["a"], ["b"]))
    model.functions[1].opset_import[0].version = 13
    diagnosis = diagnose(model)
    stamps = [(each.place, each.opset, each.fitting) for each in diagnosis.stamps if each.domain == "ai.onnx"]
    assert stamps == [
        ("model", 21, 21),
        ("function local.Leak", 21, 21),
        ("function local.Newer", 13, 20),
    ]


def test_counts_function_calls_and_unknown_domains() -> None:
    model = MODELS["functions"]()
    model.graph.node.append(node("Own", ["x"], ["z"], "com.acme"))
    model.opset_import.add(domain="com.acme", version=1)
    diagnosis = diagnose(model)
    assert diagnosis.unknown == 2
    assert [each.operator for each in diagnosis.nodes] == ["ai.onnx.LeakyRelu"]


def test_suggests_contemporary_opset_for_missing_import() -> None:
    scaler = node("Scaler", ["x"], ["h"], "ai.onnx.ml", offset=[0.0], scale=[1.0])
    diagnosis = diagnose(plain_model(15, [scaler, node("Neg", ["h"], ["y"])]))
    (stamp,) = [each for each in diagnosis.stamps if each.domain == "ai.onnx.ml"]
    assert (stamp.opset, stamp.fitting, stamp.fits) == (None, 2, False)
    assert diagnosis.mismatches()[0].reason == "domain ai.onnx.ml has no opset import"


def test_suggests_opset_of_ir_version_without_imports() -> None:
    model = plain_model()
    model.ir_version = 8
    del model.opset_import[:]
    assert [(each.domain, each.opset, each.fitting) for each in diagnose(model).stamps] == [
        ("ai.onnx", None, 18)
    ]


IR_VERSION_CASES = [
    ("oldest version with the feature", "standalone_initializers", 4, 4),
    ("newer than required", "standalone_initializers", 13, 13),
    ("older than required", "metadata", 8, 10),
    ("unset", "metadata", 0, 10),
    ("unknown", "metadata", 99, 10),
]


@pytest.mark.parametrize(
    ("feature", "declared", "fitting"),
    [row[1:] for row in IR_VERSION_CASES],
    ids=[row[0] for row in IR_VERSION_CASES],
)
def test_suggests_fitting_ir_version(feature: str, declared: int, fitting: int) -> None:
    model = MODELS[feature]()
    model.ir_version = declared
    diagnosis = diagnose(model).ir_version
    assert (diagnosis.stated, diagnosis.fitting, diagnosis.fits) == (declared, fitting, declared == fitting)
    assert diagnosis.needed == ir_versions().features[feature]


def test_accepts_ir_version_2_without_imports() -> None:
    model = plain_model(1)
    del model.opset_import[:]
    model.ir_version = 2
    diagnosis = diagnose(model)
    assert diagnosis.fits
    assert diagnosis.stamps[0].opset == 1


@pytest.mark.parametrize("feature", MODELS)
def test_valid_models_fit(feature: str) -> None:
    diagnosis = diagnose(MODELS[feature]())
    assert diagnosis.fits
    assert diagnosis.as_dict()["fits"] is True


def test_diagnoses_many_equal_nodes() -> None:
    """Nodes with the same key share one legality check, so the time stays linear."""
    names = ["x", *(f"v{index}" for index in range(2999)), "y"]
    model = plain_model(13, [node("Relu", [a], [b]) for a, b in pairwise(names)])
    assert len(diagnose(model).nodes) == 3000


@pytest.mark.parametrize("to_input", [lambda m: m, lambda m: m.SerializeToString()], ids=["message", "bytes"])
def test_public_function_accepts(to_input: object) -> None:
    model = clip_and_squeeze(13)
    assert opshift.diagnose(to_input(model)).stamps[0].fitting == 12  # type: ignore[operator]
    assert X.shape == (2, 3)


def test_diagnoses_nodes_out_of_order() -> None:
    model = clip_and_squeeze(13)
    in_order = diagnose(model)
    model.graph.node.reverse()
    before = model.SerializeToString()
    diagnosis = diagnose(model)
    assert diagnosis.repairs == ("graph: the nodes were not in topological order, and are sorted",)
    assert (diagnosis.stamps, diagnosis.ir_version) == (in_order.stamps, in_order.ir_version)
    restamped = opshift.restamp(model)
    assert restamped.opset_import[0].version == 12
    assert [each.op_type for each in restamped.graph.node] == ["Squeeze", "Clip"]
    assert model.SerializeToString() == before


def test_refuses_undefined_values() -> None:
    model = clip_and_squeeze(11)
    model.graph.node[0].input[0] = "missing"
    with pytest.raises(opshift.InvalidModel, match="'missing' is not produced"):
        diagnose(model)


def test_refuses_models_without_a_graph() -> None:
    with pytest.raises(opshift.InvalidModel, match="it has no graph"):
        diagnose(onnx.ModelProto(ir_version=8))


def test_finds_private_domain_without_import() -> None:
    model = plain_model(17, [node("Own", ["x"], ["y"], "acme")])
    diagnosis = diagnose(model)
    assert not diagnosis.fits
    (stamp,) = diagnosis.unfixable
    assert (stamp.domain, stamp.opset, stamp.fitting) == ("acme", None, None)
    assert [each.reason for each in diagnosis.mismatches()] == ["domain acme has no opset import"]
    assert diagnosis.unfixable_reason(stamp) == (
        "domain acme has no opset import, and its opsets are unknown",
        "add the import of acme with the version for which its nodes are written",
    )
    model.opset_import.add(domain="acme", version=3)
    assert diagnose(model).fits


def test_finds_domain_without_import_in_a_function() -> None:
    model = MODELS["functions"]()
    model.functions[0].node[0].CopyFrom(node("Gelu", ["a"], ["b"], "com.microsoft"))
    (stamp,) = [each for each in diagnose(model).stamps if not each.fits]
    assert (stamp.place, stamp.domain, stamp.fitting) == ("function local.Leak", "com.microsoft", 1)


def test_finds_domain_of_functions_without_import() -> None:
    model = MODELS["functions"]()
    kept = [each for each in model.opset_import if each.domain != "local"]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    (stamp,) = [each for each in diagnose(model).stamps if not each.fits]
    assert (stamp.place, stamp.domain, stamp.fitting) == ("model", "local", 1)


@pytest.mark.parametrize(
    ("imports", "fitting", "repeated"),
    [
        pytest.param([11, 13], 13, (11,), id="the last one is valid"),
        pytest.param([13, 11], 11, (13,), id="the last one is valid, too"),
        pytest.param([11, 14, 12, 11], 11, (14, 12), id="of four"),
        pytest.param([13, 13], 13, (), id="equal ones"),
    ],
)
def test_finds_repeated_imports(imports: list[int], fitting: int, repeated: tuple[int, ...]) -> None:
    model = plain_model(imports[0], [node("Softmax", ["x"], ["y"], axis=0)])
    for each, domain in zip(imports[1:], ("ai.onnx", "", ""), strict=False):
        model.opset_import.add(domain=domain, version=each)
    stamp = diagnose(model).stamps[0]
    assert (stamp.opset, stamp.fitting, stamp.repeated) == (imports[-1], fitting, repeated)
    assert stamp.fits == (not repeated)


def test_prefers_a_valid_import_to_the_last_one() -> None:
    model = clip_and_squeeze(11)
    model.opset_import.add(version=13)
    assert diagnose(model).stamps[0].fitting == 11


@pytest.mark.parametrize(("declared", "fitting"), [(7, 17), (13, 17), (16, 17), (17, 17), (21, 21)])
def test_layer_normalization_needs_opset_17(declared: int, fitting: int) -> None:
    nodes = [node("LayerNormalization", ["x", "s"], ["y"])]
    model = plain_model(declared, nodes, initializers={"s": np.ones(3, np.float32)})
    stamp = diagnose(model).stamps[0]
    assert (stamp.fitting, stamp.replaced) == (fitting, ())
    assert stamp.converted == (not stamp.fits) == (declared < 17)


def test_remedy_names_the_nodes_to_rewrite() -> None:
    squeeze = [node("Squeeze", ["x"], ["h"], name="old", axes=[0]), node("Squeeze", ["h", "a"], ["y"])]
    nodes = [node("Unsqueeze", ["x", "a"], ["u"]), *squeeze]
    diagnosis = diagnose(plain_model(13, nodes, initializers={"a": np.zeros(1, np.int64)}))
    (stamp,) = diagnosis.unfixable
    assert diagnosis.unfixable_reason(stamp) == (
        "no opset of ai.onnx is valid for all nodes",
        "rewrite 1 of 3 nodes for opset 13, for example with opshift.convert_node: "
        "Squeeze (graph, node 'old'; valid at 1 to 12)",
    )


def test_remedy_names_the_nodes_that_are_valid_at_no_opset() -> None:
    nodes = [node("Relu", ["x"], ["h"]), *(node("Rilu", ["h"], [f"y{index}"]) for index in range(5))]
    nodes[-1].output[0] = "y"
    diagnosis = diagnose(plain_model(13, nodes))
    remedy = diagnosis.unfixable_reason(diagnosis.unfixable[0])[1]
    assert remedy.startswith("correct the nodes that are valid at no opset: Rilu (graph, node Rilu -> y0")
    assert remedy.endswith("and 2 more")


@pytest.mark.parametrize(
    ("op_type", "attributes", "depends"),
    [("Softmax", {}, True), ("Softmax", {"axis": 1}, True), ("Relu", {}, False), ("Gelu", {}, False)],
)
def test_says_that_results_depend_on_the_guessed_opset(
    op_type: str, attributes: dict[str, int], depends: bool
) -> None:
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, data.shape) for name in "xy")
    operator = helper.make_node(op_type, ["x"], ["y"], **attributes)
    model = helper.make_model(helper.make_graph([operator], "g", [x], [y]), ir_version=8)
    del model.opset_import[:]
    (guess,) = diagnose(model).guesses or ("",)
    assert (f"results of {op_type} may depend" in guess) is depends
    if depends:
        imports = ([helper.make_opsetid("", opset)] for opset in (11, 13))
        models = [helper.make_model(model.graph, opset_imports=each, ir_version=8) for each in imports]
        results = [run(each, {"x": data})[0] for each in models]
        assert not np.allclose(*results)
    model.opset_import.add(version=20)
    assert diagnose(model).guesses == ()
