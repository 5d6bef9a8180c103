"""Files of runtimes: names, inheritance, mistakes with their lines, and fingerprints."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from opshift.model.errors import OpshiftError, UsageError
from opshift.model.operator_ids import OperatorId
from opshift.opsets import OPSETS
from opshift.registry.errors import DefinitionError, InvalidDefinition
from opshift.registry.lint_tree import lint_tree
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import (
    FINGERPRINTS,
    RUNTIMES,
    get_runtime,
    read_runtime,
    runtime_files,
    runtime_fingerprints,
    runtime_of,
)
from opshift.registry.yaml_files import load_yaml

pytestmark = pytest.mark.every_case

REGISTRY = default_registry()
SCHEMA = Draft202012Validator(json.loads((OPSETS / "schema-runtime.json").read_text("utf-8")))

DEVICE = """\
runtime: device
version: "2.0"
provider: npu
opsets: {ai.onnx: 17}
ir_version: 8
expands_functions: false
evidence: {kind: documentation, source: https://example.com, date: 2026-11-23}
operators:
  ai.onnx.Add:
  - {versions: [7, 14], types: {T: [float]}}
"""

EXTENDED = """\
runtime: mine
version: "1"
extends: onnxruntime-1.31.1
evidence: {kind: measurement, source: my build, date: 2026-11-23}
restrictions: {ai.onnx.GRU: '', ai.onnx.Add: only scalars}
operators:
  ai.onnx.Abs: []
  ai.onnx.Add:
  - {versions: [7, 14], types: {T: [bfloat16]}}
"""

ADD = OperatorId.parse("Add:14")

FILES = runtime_files()


def _write(folder: Path, text: str, name: str = "device.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_covers_releases_of_onnxruntime() -> None:
    versions = [name.partition("-")[2] for name, path in FILES.items() if path.parent.name == "onnxruntime"]
    assert len(versions) >= 19
    assert versions == sorted(versions, key=lambda each: [int(n) for n in each.split(".")])


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_project_is_valid(name: str) -> None:
    path = FILES[name]
    runtime = read_runtime(path, REGISTRY)
    assert runtime.name == name
    if name.startswith("onnxruntime"):
        release = REGISTRY.releases.named(f"onnxruntime-{runtime.version}")
        opsets = {domain: runtime.opsets[domain] for domain in release.opsets}
        assert (opsets, runtime.ir_version) == (release.opsets, release.ir_version)
    if runtime.falls_back:
        assert (runtime.version, get_runtime(runtime.falls_back).provider) == (path.stem, "cpu")
    assert list(SCHEMA.iter_errors(load_yaml(path))) == []
    assert path.read_text("utf-8").startswith("# yaml-language-server: $schema=../../schema-runtime.json\n")


def test_published_files_do_not_change() -> None:
    assert runtime_fingerprints() == load_yaml(FINGERPRINTS), "run python tools/write_fingerprints.py"


def test_the_project_has_no_findings_in_its_runtimes() -> None:
    assert [each for each in lint_tree(OPSETS) if RUNTIMES in Path(each.place.file).parents] == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("onnxruntime-1.20.1", "onnxruntime-1.20.1"),
        ("onnxruntime-1.31", "onnxruntime-1.31.1"),
        ("onnxruntime-cuda-1.20", "onnxruntime-cuda-1.20.1"),
        ("onnxruntime-cuda", "onnxruntime-cuda-1.31.1"),
        ("tensorrt", "tensorrt-10.1"),
    ],
)
def test_finds_a_runtime_by_name(name: str, found: str) -> None:
    assert get_runtime(name).name == found
    assert get_runtime(name) is get_runtime(found)


def test_a_path_denotes_a_file(tmp_path: Path) -> None:
    path = _write(tmp_path, DEVICE)
    assert get_runtime(path) == get_runtime(str(path)) == runtime_of(path)
    with pytest.raises(OpshiftError, match=r"onnxruntime-1\.31: file does not exist"):
        get_runtime(Path("onnxruntime-1.31"))


@pytest.mark.parametrize("value", [None, 1, b"tensorrt", ["tensorrt"]], ids=repr)
def test_refuses_what_names_no_runtime(value: Any) -> None:
    with pytest.raises(UsageError, match="expected a Runtime, its name or the path of a YAML file, got "):
        runtime_of(value)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        pytest.param("onnxruntime-1.13", "known: onnxruntime-1.14.1, ", id="version without data"),
        pytest.param("onnxruntime-1.31.0", "known: onnxruntime-1.14.1, ", id="other patch"),
        pytest.param("openvino-2025.2", "convert --target openvino-2025.2` only", id="listed release"),
        pytest.param("onnxruntim-1.20", "did you mean onnxruntime-1.20 or ", id="typo"),
        pytest.param("../mine", "path of a YAML file", id="path"),
        pytest.param("", "path of a YAML file", id="empty"),
    ],
)
def test_refuses_a_runtime_without_data(name: str, remedy: str) -> None:
    with pytest.raises(OpshiftError, match="no data about the runtime") as caught:
        get_runtime(name)
    assert remedy in caught.value.remedy
    assert pickle.loads(pickle.dumps(caught.value)).as_dict() == caught.value.as_dict()


def test_reads_a_file_of_the_user(tmp_path: Path) -> None:
    runtime = get_runtime(str(_write(tmp_path, DEVICE)))
    assert (runtime.name, runtime.provider) == ("device-2.0", "npu")
    assert runtime.kernel(ADD, {"T": "tensor(float)"})
    assert not runtime.kernel(ADD, {"T": "tensor(float16)"})


def test_inherits_keys_and_operators(tmp_path: Path) -> None:
    runtime, base = get_runtime(str(_write(tmp_path, EXTENDED))), get_runtime("onnxruntime-1.31.1")
    assert runtime.operators.keys() == base.operators.keys() - {"ai.onnx.Abs"}
    assert (runtime.opsets, runtime.computes_in, runtime.wrong) == (base.opsets, base.computes_in, base.wrong)
    assert runtime.restrictions.keys() == base.restrictions.keys() - {"ai.onnx.GRU"} | {"ai.onnx.Add"}
    assert runtime.kernel(ADD, {"T": "tensor(bfloat16)"}).caveats == ("only scalars",)
    assert not runtime.kernel(ADD, {"T": "tensor(float)"})
    assert list(SCHEMA.iter_errors(load_yaml(tmp_path / "device.yaml"))) == []


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        pytest.param("ir_version: 8", "ir_versoin: 8", "ir_versoin", 5, id="misspelt key"),
        pytest.param("[7, 14]", "[7]", "operators.ai.onnx.Add.0.versions.1", 10, id="one version"),
        pytest.param("[7, 14]", "[0, 14]", "expected 1 or more", 10, id="version 0"),
        pytest.param("[7, 14]", "['7', 14]", "expected an integer", 10, id="version as a string"),
        pytest.param("[7, 14]", "[14, 7]", "14 to 7 is not a range", 10, id="reversed versions"),
        pytest.param("[float]", "[flaot]", "'flaot' is neither a type nor a set", 10, id="misspelt type"),
        pytest.param("[float]", "[]", "expected 1 or more items", 10, id="no types"),
        pytest.param("[float]", "float", "types.T", 10, id="type without a list"),
        pytest.param("ai.onnx: 17", "ai.onnx: 0", "opsets.ai.onnx", 4, id="opset 0"),
        pytest.param("ai.onnx: 17", "acme: 1", "opsets: ai.onnx is missing", 4, id="no default domain"),
        pytest.param("documentation", "rumour", "evidence.kind", 7, id="kind of evidence"),
        pytest.param("2026-11-23", "soon", "evidence.date", 7, id="date"),
        pytest.param("provider", "extends: onnxruntime-9\nprovider", "runtime 'onnxruntime-9'", 3, id="base"),
        pytest.param("provider", "falls_back: cpu\nprovider", "runtime 'cpu'", 3, id="fallback"),
        pytest.param("provider", "extends: [1]\nprovider", "runtime [1]", 3, id="base that is a list"),
        pytest.param("provider", "computes_in: {half: float}\nprovider", "'half'", 3, id="element type"),
        *(
            pytest.param("provider", f"raw_types: [int64, {name}]\nprovider", reason, 3, id=f"raw {name}")
            for name, reason in (
                ("float", "elements of 'float' are not stored as integers of whole bytes"),
                ("complex64", "elements of 'complex64' are not"),
                ("string", "elements of 'string' are not"),
                ("int4", "elements of 'int4' are not"),
                ("half", "'half' is not an element type"),
            )
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Scan:\n  - {reason: a, when: {unread: [body]}}\nprovider",
            "restrictions.ai.onnx.Scan.0.when.unread: expected a mapping",
            5,
            id="restriction with a list for a mapping",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Scan:\n  - {when: {present: [a]}}\nprovider",
            "restrictions.ai.onnx.Scan.0.reason: the key is missing",
            5,
            id="restriction without a reason",
        ),
        pytest.param(DEVICE, "[1]\n", "", 1, id="list"),
        pytest.param(DEVICE, "", "", 1, id="empty"),
    ],
)
def test_refuses_a_file_of_another_format(tmp_path: Path, old: str, new: str, reason: str, line: int) -> None:
    path = _write(tmp_path, DEVICE.replace(old, new))
    with pytest.raises(DefinitionError) as caught:
        get_runtime(str(path))
    assert reason in caught.value.reason
    assert (caught.value.place.file, caught.value.place.line) == (str(path), line)
    assert pickle.loads(pickle.dumps(caught.value)).as_dict() == caught.value.as_dict()


@pytest.mark.parametrize(
    ("old", "new", "rule", "reason", "line"),
    [
        pytest.param(
            "ai.onnx.Add", "ai.onnx.Ad", "runtime.operator", "has no operator 'Ad'", 10, id="operator"
        ),
        pytest.param("ai.onnx.Add", "Add", "runtime.operator", "no domain ''", 9, id="no domain"),
        pytest.param(
            "ai.onnx.Add", "com.acme.Add", "runtime.operator", "no domain 'com.acme'", 9, id="no opset"
        ),
        pytest.param("[7, 14]", "[8, 9]", "runtime.operator", "no version 8 to 9", 10, id="version"),
        pytest.param(
            "{T:", "{TT:", "runtime.operator", "no type variable or parameter 'TT'", 10, id="variable"
        ),
        pytest.param(
            "provider",
            "wrong: {ai.onnx.Add:15: sums}\nprovider",
            "runtime.note",
            "ai.onnx.Add:15 is not an operator version",
            3,
            id="wrong results of an unknown version",
        ),
        pytest.param(
            "provider",
            "wrong: {ai.onnx.Add: sums}\nprovider",
            "runtime.note",
            "ai.onnx.Add is not an operator version",
            3,
            id="wrong results without a version",
        ),
        pytest.param(
            "provider",
            "restrictions: {Add: only scalars}\nprovider",
            "runtime.note",
            "Add is not an operator of a domain in `opsets`",
            3,
            id="restriction without a domain",
        ),
        pytest.param(
            "provider",
            "restrictions: {ai.onnx.Ad: only scalars}\nprovider",
            "runtime.note",
            "ai.onnx.Ad is not an operator",
            3,
            id="restriction of an unknown operator",
        ),
        pytest.param(
            "provider",
            "slow_kernels: {ai.onnx.Ad: twice the time}\nprovider",
            "runtime.note",
            "ai.onnx.Ad is not an operator",
            3,
            id="slow kernel of an unknown operator",
        ),
        pytest.param(
            "provider",
            "needs_names: [ai.onnx.Add, ai.onnx.Ad]\nprovider",
            "runtime.note",
            "ai.onnx.Ad is not an operator of a domain in `opsets`",
            3,
            id="names of an unknown operator",
        ),
        pytest.param(
            "provider",
            "refuses_sizes_after: [ai.onnx.Ad]\nprovider",
            "runtime.note",
            "ai.onnx.Ad is not an operator of a domain in `opsets`",
            3,
            id="sizes after an unknown operator",
        ),
        pytest.param(
            "provider",
            "folds: [ai.onnx, ai.onnx.Add, ai.onnx.Ad]\nprovider",
            "runtime.note",
            "ai.onnx.Ad is not an operator of a domain in `opsets`",
            3,
            id="constants of an unknown operator",
        ),
        pytest.param(
            "provider",
            "unsized: [ai.onnx.Add, 'ai.onnx.Add:14', 'ai.onnx.Add:2']\nprovider",
            "runtime.note",
            "ai.onnx.Add:2 is not an operator of a domain in `opsets`",
            3,
            id="unknown sizes of an unknown version",
        ),
        pytest.param(
            "provider",
            "needs_names: [Add]\nprovider",
            "runtime.note",
            "Add is not an operator of a domain in `opsets`",
            3,
            id="names of an operator without a domain",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Add:\n  - {reason: a, unless: {beside: [Sub, Sbu]}}\nprovider",
            "runtime.condition",
            "no domain in `opsets` has an operator 'Sbu'",
            5,
            id="condition on an unknown operator in the graph",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Add:\n  - {reason: a, unless: {computed_by: {A: [Sbu]}}}\nprovider",
            "runtime.condition",
            "no domain in `opsets` has an operator 'Sbu'",
            5,
            id="condition on an unknown operator that computes an input",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Add:\n  - {reason: a, when: {holds: [rank(D) == 1]}}\nprovider",
            "runtime.condition",
            "ai.onnx.Add has no attribute or parameter 'D'",
            5,
            id="expression about an unknown input",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Cast:\n  - {reason: a, when: {attributes: {saturat: [1]}}}\nprovider",
            "runtime.condition",
            "ai.onnx.Cast has no attribute 'saturat'",
            5,
            id="condition on an unknown attribute",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Cast:\n"
            "  - {reason: exact, versions: [13, 18], unless: {attributes: {saturate: [1]}}}\nprovider",
            "runtime.condition",
            "ai.onnx.Cast has no attribute 'saturate'",
            5,
            id="condition on an attribute of other versions",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Add:\n  - {reason: vectors, unless: {ranks: {X: [1]}}}\nprovider",
            "runtime.condition",
            "ai.onnx.Add has no parameter or type variable 'X'",
            5,
            id="condition on an unknown input",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Scan:\n  - {reason: closed, when: {captures: [graph]}}\nprovider",
            "runtime.condition",
            "ai.onnx.Scan has no attribute 'graph'",
            5,
            id="condition on an unknown subgraph",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Add:\n"
            "  - {reason: a, when: {patterns: [{nodes: y = Mul (a)}]}}\nprovider",
            "runtime.condition",
            "pattern 'y = Mul (a)' has no node of ai.onnx.Add",
            5,
            id="pattern of a different operator",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Add:\n"
            "  - {reason: a, when: {patterns: [{nodes: y = Add (a), shared: [a]}]}}\nprovider",
            "runtime.condition",
            "pattern 'y = Add (a)' has no value 'a'",
            5,
            id="pattern that shares an input",
        ),
        pytest.param(
            "provider",
            "restrictions:\n  ai.onnx.Add:\n"
            "  - {reason: a, when: {patterns: [{nodes: m = Add (a) y = Abs (m), node: n}]}}\nprovider",
            "runtime.condition",
            "pattern 'm = Add (a) y = Abs (m)' has no node of ai.onnx.Add",
            5,
            id="pattern without the node",
        ),
    ],
)
def test_lint_finds_a_mistake(tmp_path: Path, old: str, new: str, rule: str, reason: str, line: int) -> None:
    path = _write(tmp_path, DEVICE.replace(old, new), "runtimes/device/2.0.yaml")
    with pytest.raises(InvalidDefinition) as caught:
        get_runtime(str(path))
    assert caught.value.findings == lint_tree(tmp_path)
    finding = caught.value.findings[0]
    assert (finding.rule, finding.place.line) == (rule, line)
    assert reason in finding.reason
    assert finding.remedy


def test_nonstandard_kernels_need_no_definition(tmp_path: Path) -> None:
    text = DEVICE + "  ai.onnx.Blur:\n  - {versions: [1, 1], nonstandard: true}\n"
    text += "needs_names: [ai.onnx.Blur]\n"
    text += "restrictions: {ai.onnx.Add: [{reason: a, when: {beside: [Blur]}}]}\n"
    assert get_runtime(str(_write(tmp_path, text))).kernel(OperatorId.parse("Blur:1"), {})


def test_lint_reports_the_file_of_another_version(tmp_path: Path) -> None:
    _write(tmp_path, DEVICE, "runtimes/device/3.0.yaml")
    _write(tmp_path, "{}", "runtimes/device/4.0.yaml")
    assert [each.rule for each in lint_tree(tmp_path)] == ["file.identity", "file.content"]


def test_runtimes_are_loaded_on_demand() -> None:
    code = (
        "import sys, opshift; opshift.default_registry().get_schema('Add', 14);"
        "print('opshift.registry.runtimes.files' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "False"
