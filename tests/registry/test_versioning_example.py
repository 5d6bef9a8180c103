"""Example of ONNX's versioning page: operators A, B and C in the operator sets 1 to 4 of a domain."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from opshift import convert_version
from opshift.model.operator_ids import OperatorId
from opshift.registry.registry import Registry, default_registry
from opshift.registry.yaml_files import dump_yaml

DOMAIN = "com.abc"
SIGNATURE: dict[str, object] = {
    "inputs": [{"name": "X", "type": "T"}],
    "outputs": [{"name": "Y", "type": "T"}],
    "type_constraints": {"T": ["tensor(float)"]},
}
SAME = {"change": "The computation is described differently.", "up": "compatible", "down": "compatible"}
REPLACED = {
    "removed_in": 4,
    "replaced_by": "B",
    "mapping": "B computes the same.",
    "up": [{"rename_op": "B"}],
}

OPERATORS: dict[str, list[dict[str, object]]] = {
    "A": [{"since_version": 1}, {"since_version": 3, "step": SAME, "removal": REPLACED}],
    "B": [{"since_version": 2, "before": {"refuse": "Opset 1 has no equivalent."}}],
    "C": [
        {"since_version": 3, "before": {"refuse": "Opset 2 has no equivalent."}},
        {"since_version": 4, "step": SAME},
    ],
}

VERSIONS = {"A": (1, 1, 3, None), "B": (None, 2, 2, 2), "C": (None, None, 3, 4)}
"""`since_version` of each operator at the operator sets 1 to 4."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder = tmp_path_factory.mktemp("opsets") / DOMAIN
    folder.mkdir()
    for name, versions in OPERATORS.items():
        described = [SIGNATURE | version for version in versions]
        data = {"domain": DOMAIN, "name": name, "shape": "same_as_first", "versions": described}
        (folder / f"{name}.yaml").write_text(dump_yaml(data), encoding="utf-8")
    return default_registry().with_folder(folder.parent)


@pytest.mark.parametrize("opset", [1, 2, 3, 4])
@pytest.mark.parametrize("name", VERSIONS)
def test_resolves_every_operator_of_the_example(registry: Registry, name: str, opset: int) -> None:
    since = VERSIONS[name][opset - 1]
    found = registry.at(name, opset, DOMAIN)
    assert (found.id if found else None) == (OperatorId(DOMAIN, name, since) if since else None)


@pytest.mark.parametrize("opset", [1, 2, 3])
def test_models_move_to_the_replacement(registry: Registry, opset: int) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("A", ["x"], ["y"], domain=DOMAIN)], "g", *([v] for v in values)
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, opset)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=imports, ir_version=8)
    converted = convert_version(model, {DOMAIN: 4}, registry=registry)
    assert [node.op_type for node in converted.graph.node] == ["B"]
    assert converted.opset_import[1].version == 4
