"""`tools/measure_runtime.py`, with runtimes that are small Python modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import measure_runtime
from measurement.conditions import Node, find_conditions
from measurement.describe import Feature, Scalar, describe
from measurement.fold import combinations_differ, fold, merge
from measurement.probes import (
    Probe,
    distinct,
    forms,
    generated_probes,
    local_function_model,
    probe_of,
    type_probes,
    version_probes,
)
from measurement.restrictions import restriction
from measurement.run_models import Outcome, Results, Worker
from opshift.analysis.verification.numpy_types import Array
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import OperatorId
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import read_runtime
from opshift.runtimes.check_support import check_support

MOODY_LOADER = """
import os, subprocess, time

# it keeps the pipes open after a crash
subprocess.Popen(["sleep", "60"], close_fds=False)

def load(path):
    with open(path, "rb") as file:
        action = file.read().decode()
    if action == "crash":
        os.abort()
    if action == "hang":
        time.sleep(60)
    if action == "refuse":
        raise ValueError("no kernel")
    print("a runtime may print")
    return lambda inputs: {"add": lambda: [inputs["x"] + 1], "fail": lambda: 1 / 0}[action]()
"""

REFERENCE_LOADER = """
import onnx
from onnx.reference import ReferenceEvaluator

def load(path):
    model = onnx.load(path)
    (node,) = model.graph.node
    types = {each.type.tensor_type.elem_type for each in model.graph.input}
    if node.op_type not in ("Relu", "Add", "Pad") or model.functions or types - {1, 6, 7}:
        raise ValueError("not implemented")
    if node.op_type == "Pad":
        if {each.name for each in model.graph.input} & set(node.input[1:]):
            raise ValueError("pads must be constant")
        if any(each.s == b"reflect" for each in node.attribute):
            raise ValueError("mode reflect is not implemented")
    session = ReferenceEvaluator(model)
    wrong = any(each.s == b"edge" for each in node.attribute)
    return lambda inputs: [each * 2 if wrong else each for each in session.run(None, dict(inputs))]
"""


def write_loader(folder: Path, content: str) -> Path:
    path = folder / "loader.py"
    path.write_text(content, "utf-8")
    return path


@pytest.fixture(scope="module")
def moody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(sys.executable, write_loader(tmp_path_factory.mktemp("moody"), MOODY_LOADER), seconds=2)
    yield worker
    worker.close()


def floats(values: object) -> Array:
    return np.array(values, np.float32)


VALUES = {"in.x": floats([1, 2]), "out.00": floats([2, 3])}


@pytest.mark.parametrize(
    ("action", "values", "outcome", "error"),
    [
        ("add", {}, "loads", ""),
        ("add", VALUES, "equal", ""),
        ("add", {**VALUES, "out.00": floats([2, 4])}, "differs", "output 0: 1 of 2 values, 3.0 instead"),
        ("add", {**VALUES, "out.00": floats([[2, 3]])}, "differs", "output 0: shape (2,) instead"),
        ("add", {**VALUES, "out.01": floats([2, 3])}, "differs", "1 outputs instead of 2"),
        ("fail", VALUES, "fails", "division by zero"),
        ("refuse", VALUES, "refused", "no kernel"),
        ("crash", VALUES, "crashes", "the process ended with exit code -6"),
        ("hang", VALUES, "hangs", "no result within 2 seconds"),
    ],
)
def test_reports_each_outcome(
    moody: Worker, action: str, values: Mapping[str, Any], outcome: str, error: str
) -> None:
    found = moody.run(action.encode(), values)
    assert found.outcome == outcome
    assert found.error.startswith(error)
    assert found.loads == (outcome in ("loads", "equal", "differs", "fails"))
    assert moody.run(b"add", VALUES).outcome == "equal", "the process is replaced"


def test_reports_a_runtime_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="does not start"):
        Worker(sys.executable, write_loader(tmp_path, "import missing_runtime"))


def test_continues_from_earlier_results(tmp_path: Path, moody: Worker) -> None:
    path = tmp_path / "results.jsonl"
    assert Results(path).measure([("first", b"refuse", {})], [moody]) == [Outcome("refused", "no kernel")]
    again = Results(path).measure([("first", b"crash", {}), ("second", b"add", {})], [moody])
    assert [each.outcome for each in again] == ["refused", "loads"]
    assert len(path.read_text("utf-8").splitlines()) == 2


def parse(text: str, inputs: str, opset: int = 25) -> ModelProto:
    header = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    model = onnx.parser.parse_model(f"{header} test ({inputs}) => (float[N] y) {{ {text} }}")
    return ModelProto.FromString(model.SerializeToString())


def probe(text: str, inputs: str, opset: int = 25, values: Mapping[str, Any] | None = None) -> Probe:
    found = probe_of(parse(text, inputs, opset), values or {}, text)
    assert found is not None
    return found


def test_describes_a_node() -> None:
    pad = parse('y = Pad <mode = "edge"> (x, p)', "float[2, 3] x, int64[4] p")
    described = describe(pad)
    assert described is not None
    assert (str(described.operator), described.types) == (
        "ai.onnx.Pad:25",
        {"T": "tensor(float)"},
    )
    features = {(each.kind, each.name): value for each, value in described.features.items()}
    assert features["attribute", "mode"] == "edge"
    assert features["rank", "data"] == 2
    assert features["form", "pads"] == "computed"
    assert features["form", "axes"] == "absent"
    assert describe(parse("h = Abs (x) y = Abs (h)", "float[2] x")) is None
    assert describe(parse("y = local.Abs (x)", "float[2] x")) is None


def test_makes_inputs_constant() -> None:
    model = parse("y = Add (a, b)", "float[2] a, float[2] b")
    values = {"a": floats([1, 2]), "b": floats([3, 4])}
    found = [probe.name for probe in forms(model, values, {}, "add")]
    assert found == [f"add, constant: {each}" for each in ("b", "none", "a, b", "a")]


def test_converts_nodes_to_other_versions() -> None:
    found = list(version_probes([probe("y = Add (a, b)", "float[2] a, float[2] b", 14)]))
    opsets = [ModelProto.FromString(each.model).opset_import[0].version for each in found]
    newest = default_registry().newest_opset()
    assert opsets == [1, 5, 6, 6, 7, 12, 13, 13, 14, newest][: len(opsets)] or opsets[-1] == newest
    assert {each.described.operator.since_version for each in found} >= {7, 13, 14}


def test_varies_types_together_and_alone() -> None:
    template = probe("y = Cast <to = 1> (x)", "float[2] x", 13)
    found = {tuple(each.described.types.values()) for each in type_probes(template, every=True)}
    assert ("tensor(int8)", "tensor(float)") in found
    assert ("tensor(float)", "tensor(int8)") in found
    assert ("tensor(double)", "tensor(double)") in found
    some = list(type_probes(template))
    assert len(found) > len(some) > 20
    assert all(each.varies_types for each in some)


def test_generates_nodes_of_operators_without_test_cases() -> None:
    groups = list(generated_probes(default_registry().get_schema("GlobalLpPool", 2)))
    assert {str(each.described.operator) for group in groups for each in group} == {"ai.onnx.GlobalLpPool:2"}


def test_keeps_one_node_of_each_description() -> None:
    one, other = probe("y = Abs (x)", "float[2] x"), probe("y = Abs (x)", "float[3] x")
    assert distinct([one, other, probe("y = Abs (x)", "float[3, 1] x")])[0] == one
    assert len(distinct([one, other])) == 1


AXES, MODE, KEEP = Feature("form", "axes"), Feature("attribute", "mode"), Feature("default", "keep", 1)


def node(accepted: bool, features: Mapping[Feature, Scalar], version: int = 1, error: str = "") -> Node:
    return Node(version, features, accepted, error)


def restrictions(nodes: list[Node], versions: tuple[int, ...] = (1, 2)) -> list[dict[str, Any]]:
    return [restriction(each, versions) for each in find_conditions(nodes)]


def test_finds_a_condition_of_one_feature() -> None:
    nodes = [
        node(False, {AXES: "computed", KEEP: True}),
        node(False, {AXES: "computed", KEEP: False}, 2),
        node(True, {AXES: "constant", KEEP: False}),
        node(True, {AXES: "absent", KEEP: True}, 2),
    ]
    assert restrictions(nodes) == [{"reason": "`axes` is not constant", "when": {"computed": ["axes"]}}]


def test_finds_a_condition_of_two_features() -> None:
    refused: dict[Feature, Scalar] = {AXES: "computed", KEEP: False}
    others: list[dict[Feature, Scalar]] = [{AXES: "computed", KEEP: True}, {AXES: "absent", KEEP: False}]
    nodes = [node(False, refused), node(False, refused, 2)]
    nodes += [node(True, each, version) for each in others for version in (1, 2)]
    assert restrictions(nodes) == [
        {
            "reason": "`axes` is not constant and `keep` is not 1",
            "when": {"computed": ["axes"]},
            "unless": {"attributes": {"keep": [1]}},
        }
    ]
    assert restrictions([nodes[0], *nodes[2:]]) == [], "a pair of features of one node is a coincidence"


def test_limits_a_condition_to_versions_without_contradiction() -> None:
    nodes = [node(False, {AXES: "computed"}) for _ in range(2)]
    nodes += [node(True, {AXES: "constant"}), node(True, {AXES: "computed"}, 2)]
    (found,) = restrictions(nodes)
    assert found["versions"] == [1, 1]


def test_lists_refused_values_or_accepted_ranks() -> None:
    rank = Feature("rank", "X")
    nodes = [node(False, {MODE: each}) for each in ("cubic", "area") * 2]
    nodes += [node(True, {MODE: each}) for each in ("linear", "nearest")]
    assert restrictions(nodes, (1,)) == [
        {
            "reason": "`mode` is area or cubic",
            "when": {"attributes": {"mode": ["area", "cubic"]}},
        }
    ]
    ranks = [node(each < 5, {rank: each}) for each in (3, 4, 5, 5)]
    assert restrictions(ranks, (1,)) == [
        {"reason": "the rank of `X` is not 3 or 4", "unless": {"ranks": {"X": [3, 4]}}}
    ]


def test_believes_one_node_if_the_error_names_the_value() -> None:
    nodes = [node(False, {MODE: "wrap"}, error="unsupported mode wrap"), node(True, {MODE: "edge"})]
    assert len(restrictions(nodes)) == 1
    assert restrictions([node(False, {MODE: "wrap"}, error="failed"), nodes[1]]) == []


def test_merges_combinations_into_products() -> None:
    rows = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "z")]
    ab, xy = frozenset("ab"), frozenset("xy")
    assert merge(rows) == [(ab, xy), (frozenset("c"), frozenset("z"))]


@pytest.mark.parametrize("is_product", [True, False])
def test_folds_types_as_a_product_or_combinations(is_product: bool) -> None:
    template = probe("y = Cast <to = 1> (x)", "float[2] x", 13)
    measured = []
    for each in type_probes(template, every=True):
        kinds = set(each.described.types.values())
        loads = kinds <= {"tensor(float)", "tensor(int8)"} and (is_product or len(kinds) == 1)
        measured.append((each, Outcome("loads" if loads else "refused")))
    assert combinations_differ(measured) != is_product
    folded = fold(measured)["ai.onnx.Cast"]
    (boxes,) = folded.boxes.values()
    assert len(boxes) == (1 if is_product else 2)
    assert folded.restrictions == [], "types are not restrictions"


def measured_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the file of the runtime of `REFERENCE_LOADER`, measured with a few models."""
    x = floats([[1, -2, 3]])
    models: dict[str, dict[str, Array]] = {
        "y = Relu (x)": {"x": x},
        "y = Abs (x)": {"x": x},
        "y = Add (x, x2)": {"x": x, "x2": x},
        **{
            f'y = Pad <mode = "{mode}"> (x, p)': {"x": x, "p": np.array([0, 1, 0, 1])}
            for mode in ("constant", "edge", "reflect")
        },
    }
    probes: list[Probe] = []
    for text, fed in models.items():
        inputs = ", ".join(f"{'int64[4]' if name == 'p' else 'float[1, 3]'} {name}" for name in fed)
        session = ReferenceEvaluator(onnx.load_from_string(parse(text, inputs).SerializeToString()))
        probes += forms(parse(text, inputs), fed, {"out.00": session.run(None, dict(fed))[0]}, text)
    monkeypatch.setattr(measure_runtime, "published_probes", lambda: probes)
    monkeypatch.setattr(measure_runtime, "generated_probes", lambda version: ())
    worker = Worker(sys.executable, write_loader(tmp_path, REFERENCE_LOADER))
    try:
        measured, expands = measure_runtime.measure(Results(tmp_path / "results.jsonl"), [worker])
    finally:
        worker.close()
    assert not expands
    return measure_runtime.file_content("openvino", "0.1", fold(measured), expands_functions=expands)


@pytest.mark.full
def test_a_measured_runtime_predicts_what_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime_files._nearest_runtime", lambda *_: None)
    path = tmp_path / "0.1.yaml"
    path.write_text(measured_text(tmp_path, monkeypatch), "utf-8")
    runtime = read_runtime(path, default_registry())
    assert set(runtime.operators) == {"ai.onnx.Add", "ai.onnx.Pad", "ai.onnx.Relu"}
    assert [each.types["T"] for each in runtime.operators["ai.onnx.Relu"]][-1] == (
        "tensor(float)",
        "tensor(int32)",
        "tensor(int64)",
    )
    pads = "p = Constant <value_ints = [0, 1, 0, 1]> ()"
    refused = {
        "y = Relu (x)": False,
        "y = Abs (x)": True,
        "y = Pad (x, p)": True,
        f'{pads} y = Pad <mode = "edge"> (x, p)': False,
        f'{pads} y = Pad <mode = "reflect"> (x, p)': True,
    }
    for text, is_refused in refused.items():
        inputs = "float[1, 3] x" + (", int64[4] p" if "(x, p)" in text and "Constant" not in text else "")
        problems = [
            each for each in check_support(parse(text, inputs), runtime) if "Constant" not in each.operator
        ]
        assert bool(problems) == is_refused, (text, problems)
    (error,) = runtime.errors_of(OperatorId.parse("Pad:25"))
    assert error.reason == "the results are wrong if `mode` is edge"
    assert error.when is not None
    assert error.when.attributes == {"mode": ("edge",)}


def test_the_model_with_a_function_is_valid() -> None:
    onnx.checker.check_model(onnx.load_from_string(local_function_model()))
