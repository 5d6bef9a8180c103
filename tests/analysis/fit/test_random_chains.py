"""Random chains of nodes, of which `tools/compare_fit.py` compares many more in several runtimes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import build, run
from support.runtimes import fictional_runtime, needs_newest_onnx

from compare_fit import worker_of
from comparison.chains import Chain, sample_chain
from comparison.fit_chains import FAULTS, FitOutcome, fit_chain
from comparison.measure_nodes import conflicting_node, wrong_text
from comparison.recognizable_chains import sample_recognizable_chain
from comparison.reference_faults import has_reference_fault, is_invalid
from measurement.run_models import Worker
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.restrictions import Restriction
from opshift.registry.runtimes.runtime import Kernel, Runtime

Wrong = dict[str, str | tuple[Restriction, ...]]

RUNTIME = f"onnxruntime-{onnxruntime.__version__}"

FAULTY_LOADER = """
import onnx
import onnxruntime

def load(path):
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == "Celu":
            del node.attribute[:]
        if node.op_type == "Elu":
            raise ValueError("no Elu")
        if node.op_type == "Selu":
            raise SystemExit
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)
"""
"""Loader of a runtime with a wrong kernel, one that refuses its nodes, and one that ends the process."""

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with closing(worker_of(RUNTIME, "")) as started:
        yield started


@pytest.fixture(scope="module")
def faulty_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    loader = tmp_path_factory.mktemp("loader") / "loader.py"
    loader.write_text(FAULTY_LOADER, "utf-8")
    with closing(Worker(sys.executable, loader)) as started:
        yield started


def _faults(first: int, count: int, worker: Worker) -> dict[int, FitOutcome]:
    chains = {index: sample_chain(0, index) for index in range(first, first + count)}
    runtime = get_runtime(RUNTIME)
    found = {index: fit_chain(each, runtime, worker) for index, each in chains.items() if each}
    return {index: each for index, each in found.items() if each.kind in FAULTS}


@needs_newest_onnx
def test_fitted_chains_keep_their_outputs(worker: Worker) -> None:
    assert _faults(0, 6, worker) == {}


@pytest.mark.full
@needs_newest_onnx
def test_many_fitted_chains_keep_their_outputs(worker: Worker) -> None:
    assert _faults(6, 194, worker) == {}


def _recognized(indices: range, worker: Worker) -> dict[int, FitOutcome]:
    """Return the outcomes of chains that contain the nodes that express operators, and variants of them."""
    chains = {index: sample_recognizable_chain(0, index) for index in indices}
    return {i: fit_chain(each, get_runtime(RUNTIME), worker) for i, each in chains.items() if each}


@needs_newest_onnx
def test_recognized_chains_keep_their_outputs(worker: Worker) -> None:
    outcomes = _recognized(range(16), worker)
    assert {index: each for index, each in outcomes.items() if each.kind in FAULTS} == {}
    assert any(each.recognized for each in outcomes.values())


@pytest.mark.full
@needs_newest_onnx
def test_many_recognized_chains_keep_their_outputs(worker: Worker) -> None:
    outcomes = _recognized(range(16, 300), worker)
    assert {index: each for index, each in outcomes.items() if each.kind in FAULTS} == {}
    assert len({operator for each in outcomes.values() for operator in each.recognized}) > 15


def test_a_chain_depends_on_its_number_only() -> None:
    one, other = sample_chain(0, 3), sample_chain(0, 3)
    assert one is not None
    assert other is not None
    assert one.model == other.model
    assert sample_chain(0, 3).model != sample_chain(1, 3).model  # type: ignore[union-attr]


def _runtime(wrong: Wrong) -> Runtime:
    operators = {f"ai.onnx.{each}": (Kernel(versions=(1, 99)),) for each in ("Celu", "Elu", "Neg", "Selu")}
    return fictional_runtime(opsets={"ai.onnx": 13}, operators=operators, wrong=wrong)


@pytest.mark.parametrize(
    ("op_type", "wrong", "kind", "causes"),
    [
        ("Celu", {}, "kernel", ["ai.onnx.Celu:12(T: float) differs"]),
        ("Celu", {"ai.onnx.Celu:12": "alpha"}, "recorded", ["ai.onnx.Celu:12(T: float) differs, recorded"]),
        ("Elu", {}, "not loaded", ["ai.onnx.Elu:6(T: float) refused"]),
        pytest.param("Selu", {}, "crash", ["ai.onnx.Selu:6(T: float) crashes"], marks=pytest.mark.full),
        ("Softsign", {}, "refused", []),
        ("Neg", {}, "same", []),
    ],
)
def test_names_the_node_that_causes_a_fault(
    op_type: str, wrong: Wrong, kind: str, causes: list[str], faulty_worker: Worker
) -> None:
    attributes = {"alpha": 2.0} if op_type in ("Celu", "Elu") else {}
    nodes = [helper.make_node("Neg", ["x"], ["h"]), helper.make_node(op_type, ["h"], ["y"], **attributes)]
    model = build(nodes, {"x": X}, ["y"], 13)
    chain = Chain(model, {"x": X}, run(model, {"x": X}), 1e-4)
    outcome = fit_chain(chain, _runtime(wrong), faulty_worker)
    assert (outcome.kind, outcome.causes) == (kind, causes)
    text = wrong_text("acme-1", outcome.nodes)
    assert ("ai.onnx.Celu:12" in text) == (kind == "kernel")


def test_a_node_that_the_reference_computes_wrongly_is_a_conflict(
    faulty_worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = _runtime({"ai.onnx.Celu:12": "alpha"})
    monkeypatch.setattr("comparison.fit_chains.get_runtime", lambda name: reference)
    model = build([helper.make_node("Celu", ["x"], ["y"], alpha=2.0)], {"x": X}, ["y"], 13)
    chain = Chain(model, {"x": X}, run(model, {"x": X}), 1e-4)
    assert fit_chain(chain, _runtime({}), faulty_worker).kind == "conflict"


@pytest.mark.parametrize(
    ("size", "conflict"), [(0, "ai.onnx.ReduceL1:13(T: float) differs"), (2, "")], ids=["empty", "filled"]
)
def test_names_nodes_about_which_the_references_disagree(size: int, conflict: str) -> None:
    """Show that onnxruntime ignores negative axes of data without elements."""
    data = np.ones((3, size), np.float32)
    nodes = [
        helper.make_node("Neg", ["x"], ["h"]),
        helper.make_node("ReduceL1", ["h"], ["y"], axes=[-1]),
    ]
    model = build(nodes, {"x": data}, ["y"], 17)
    assert conflicting_node(model, {"x": data}, 1e-4) == conflict


@pytest.mark.parametrize(
    ("activations", "conflict"),
    [(["Tanh", "Sigmoid"], "ai.onnx.GRU:22(T: bfloat16) differs"), (["Sigmoid", "Tanh"], "")],
)
def test_names_nodes_that_only_a_wrong_reference_runs(activations: list[str], conflict: str) -> None:
    attributes = {"hidden_size": 2, "activations": activations}
    arrays = {
        "w": np.ones((1, 6, 3), ml_dtypes.bfloat16),
        "r": np.full((1, 6, 2), 0.5, ml_dtypes.bfloat16),
    }
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 23]>
        g (float[2, 1, 3] x) => (float[2, 1, 1, 2] y) { h = Cast <to = 16> (x) y = Cast <to = 1> (g) }
    """)
    model.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in arrays.items())
    model.graph.node.insert(1, helper.make_node("GRU", ["h", "w", "r"], ["g"], **attributes))
    data = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 1, 3)
    assert conflicting_node(model, {"x": data}, 0.05) == conflict


@pytest.mark.parametrize(("on", "conflict"), [(np.inf, "ai.onnx.OneHot:28(T1: int64"), (2.0, "")])
def test_compares_equal_nodes_of_an_opset_that_onnxruntime_lacks(on: float, conflict: str) -> None:
    """Show that onnx.reference computes NaN instead of `off` if `on` is infinite."""
    depth = numpy_helper.from_array(np.array(3), "d")
    model = build([helper.make_node("OneHot", ["x", "d", "v"], ["y"])], {"x": np.array([1])}, ["y"], 28)
    model.graph.initializer.extend([depth, numpy_helper.from_array(np.array([0, on], np.float32), "v")])
    found = conflicting_node(model, {"x": np.array([1])}, 1e-4)
    assert found.startswith(conflict)
    assert bool(found) == bool(conflict)


@pytest.mark.parametrize(
    ("op_type", "parameter", "invalid"),
    [
        ("SequenceInsert", 2, False),
        ("SequenceInsert", 3, True),
        ("SplitToSequence", [1, 1], False),
        ("SplitToSequence", [1, 2], True),
        ("SplitToSequence", 3, False),
    ],
)
def test_finds_invalid_nodes_that_the_reference_runs(
    op_type: str, parameter: object, *, invalid: bool
) -> None:
    is_insertion = op_type == "SequenceInsert"
    names = ["s", "x", "p"] if is_insertion else ["x", "p"]
    values = {"s": [np.zeros(2), np.zeros(1)], "x": np.zeros(2), "p": np.array(parameter)}
    assert is_invalid(helper.make_node(op_type, names, ["y"]), values) == invalid


@pytest.mark.parametrize(
    ("number", "kind", "invalid"),
    [
        (1.5, np.uint8, False),
        (-0.5, np.uint8, False),
        (256.0, np.uint8, True),
        (np.nan, np.int32, True),
        (2.0**63, np.int64, True),
        (-(2.0**63), np.int64, False),
        (np.inf, np.float16, False),
    ],
)
def test_casts_of_floats_out_of_range_have_no_defined_result(
    number: float, kind: type[np.generic], *, invalid: bool
) -> None:
    data = np.array([number])
    values = {"x": data, "y": np.zeros(1, kind)}
    assert is_invalid(helper.make_node("Cast", ["x"], ["y"]), values) == invalid


@pytest.mark.parametrize(("number", "invalid"), [(1.0, False), (np.inf, False), (np.nan, True)])
@pytest.mark.parametrize("op_type", ["ArgMax", "ReduceMin"])
def test_the_order_of_nan_has_no_defined_result(op_type: str, number: float, *, invalid: bool) -> None:
    values = {"x": np.array([0.0, number])}
    assert is_invalid(helper.make_node(op_type, ["x"], ["y"]), values) == invalid


@pytest.mark.parametrize(
    ("op_type", "number", "invalid"),
    [
        ("ReduceSum", 60, False),
        ("ReduceSum", 70, True),
        ("ReduceL1", -70, True),
        ("ReduceProd", 8, False),
        ("ReduceProd", 12, True),
        ("ReduceSumSquare", 9, True),
        ("ReduceMax", 127, False),
    ],
)
def test_overflows_of_reductions_have_no_defined_result(op_type: str, number: int, *, invalid: bool) -> None:
    values = {"x": np.array([number, number], np.int8)}
    assert is_invalid(helper.make_node(op_type, ["x"], ["y"]), values) == invalid


@pytest.mark.parametrize(("number", "invalid"), [(2.0, False), (np.inf, True), (np.nan, True)])
def test_samples_at_infinity_have_no_defined_result(number: float, *, invalid: bool) -> None:
    values = {"x": np.zeros((1, 1, 2, 2)), "g": np.full((1, 1, 1, 2), number)}
    assert is_invalid(helper.make_node("GridSample", ["x", "g"], ["y"]), values) == invalid


@pytest.mark.parametrize("input_forget", [0, 1])
def test_the_reference_ignores_input_forget(input_forget: int) -> None:
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["y"], input_forget=input_forget)
    assert has_reference_fault(lstm, {}) == bool(input_forget)


@pytest.mark.parametrize(
    ("number", "to", "is_truncated"),
    [
        (1.5, TensorProto.INT4, True),
        (1.5, TensorProto.UINT2, True),
        (2.0, TensorProto.INT4, False),
        (1.5, TensorProto.INT8, False),
    ],
)
def test_the_reference_truncates_narrow_integers(number: float, to: int, *, is_truncated: bool) -> None:
    values = {"x": np.array([number]), "k": np.zeros(1, helper.tensor_dtype_to_np_dtype(to))}
    cast = helper.make_node("Cast", ["x"], ["y"], saturate=0, to=to)
    cast_like = helper.make_node("CastLike", ["x", "k"], ["y"], saturate=0)
    assert has_reference_fault(cast, values) == has_reference_fault(cast_like, values) == is_truncated


@pytest.mark.parametrize(("kind", "invalid"), [(np.int32, True), (np.float32, False)])
def test_means_of_integers_have_no_defined_rounding(kind: type[np.generic], *, invalid: bool) -> None:
    values = {"x": np.zeros(2, kind), "y": np.zeros(1, kind)}
    assert is_invalid(helper.make_node("ReduceMean", ["x"], ["y"]), values) == invalid


def test_a_known_fault_of_the_only_reference_is_a_conflict() -> None:
    lstm = 'y, h, c = LSTM <hidden_size = 1, activations = ["Sigmoid", "Sigmoid", "Relu"]> (x, w, r)'
    inputs = "float[1, 1, 2] x, float[1, 4, 2] w, float[1, 4, 1] r"
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 22]> g ({inputs}) => (float[1, 1, 1, 1] y) {{ {lstm} }}'
    )
    shapes = {"x": (1, 1, 2), "w": (1, 4, 2), "r": (1, 4, 1)}
    feeds = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    assert "ai.onnx.LSTM:22" in conflicting_node(model, feeds, 1e-4)  # onnxruntime has no kernel of it
