"""`Registry.select` finds operator versions by filters; `onnx.defs` has the same facts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx.defs
import pytest

from opshift.model.errors import OpshiftError, UsageError
from opshift.registry.errors import UnknownDomain, UnknownOperator, UnknownOpset
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry, default_registry
from opshift.registry.selection import STATUSES

REGISTRY = default_registry()
ACME = Path(__file__).parents[2] / "examples" / "acme" / "acme_operators"


def ids(versions: Iterable[OperatorVersion]) -> list[str]:
    return [str(each.id) for each in versions]


def onnx_schemas(opset: int) -> dict[str, onnx.defs.OpSchema]:
    """Return the schemas of the default domain that are in effect at an opset."""
    found: dict[str, onnx.defs.OpSchema] = {}
    for each in onnx.defs.get_all_schemas_with_history():
        if each.domain == "" and each.since_version <= opset:
            known = found.get(each.name)
            found[each.name] = max(known, each, key=lambda s: s.since_version) if known else each
    return found


def in_onnx(opset: int, names: Iterable[str]) -> list[str]:
    schemas = onnx_schemas(opset)
    return sorted(f"ai.onnx.{name}:{schemas[name].since_version}" for name in names)


def existing(opset: int, **filters: Any) -> list[str]:
    """Return the selected versions that `onnx.defs` lists; it does not list withdrawn experimental ones."""
    found = REGISTRY.select(domain="", opset=opset, **filters)
    return sorted(str(each.id) for each in found if each.status != "EXPERIMENTAL")


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("opset", [1, 7, 12, 13, 20, 23])
@pytest.mark.parametrize("kind", ["bfloat16", "int8", "float8e4m3fn", "seq(tensor(float))"])
def test_types_agree_with_onnx(opset: int, kind: str) -> None:
    full = kind if "(" in kind else f"tensor({kind})"
    schemas = onnx_schemas(opset)
    for argument, side in (("accepts", "inputs"), ("produces", "outputs")):
        expected = [n for n, s in schemas.items() if any(full in p.types for p in getattr(s, side))]
        assert existing(opset, **{argument: kind}) == in_onnx(opset, expected)


@pytest.mark.parametrize("opset", [6, 13, 20])
def test_attributes_and_parameters_agree_with_onnx(opset: int) -> None:
    schemas = onnx_schemas(opset)
    expected = [name for name, each in schemas.items() if "axes" in each.attributes]
    assert existing(opset, attribute="axes") == in_onnx(opset, expected)
    expected = [n for n, s in schemas.items() if "axes" in {p.name for p in (*s.inputs, *s.outputs)}]
    assert existing(opset, parameter="axes") == in_onnx(opset, expected)


def test_changes_agree_with_onnx() -> None:
    old, new = onnx_schemas(13), onnx_schemas(17)
    changed = [n for n in new if n not in old or old[n].since_version != new[n].since_version]
    assert sorted(ids(REGISTRY.select(domain="", changed=(13, 17)))) == in_onnx(17, changed)


def test_changes_include_removed_operators_and_the_opset_of_other_domains() -> None:
    found = REGISTRY.select(changed=(8, 10))
    assert "ai.onnx.Scale:1" in ids(found)
    assert "ai.onnx.Scale:1" not in ids(REGISTRY.select(changed=(8, 10), status="active"))
    assert "ai.onnx.Scale:1" not in ids(REGISTRY.select(changed=(10, 13)))
    assert "ai.onnx.Dropout:12" in ids(REGISTRY.select(changed=(8, 10), opset=12))
    ml = ids(REGISTRY.select("LabelEncoder", changed=(10, 20)))
    assert ml == ["ai.onnx.ml.LabelEncoder:4"]


def test_first_version_that_accepts_a_type() -> None:
    assert ids(REGISTRY.select("Softmax", accepts="bfloat16", versions="first")) == ["ai.onnx.Softmax:13"]
    assert ids(REGISTRY.select("Max", accepts="int8", versions="first")) == ["ai.onnx.Max:12"]
    assert REGISTRY.select("Max", accepts="int8", versions="first", opset=11) == ()
    assert ids(REGISTRY.select("Max", accepts="int8", versions="all")) == ["ai.onnx.Max:12", "ai.onnx.Max:13"]


def test_type_and_parameter_concern_the_same_input() -> None:
    for_scale = REGISTRY.select("QuantizeLinear", accepts="uint8", parameter="y_scale", versions="all")
    for_zero_point = REGISTRY.select("QuantizeLinear", accepts="uint8", parameter="y_zero_point")
    expected = ["ai.onnx.QuantizeLinear:28", "com.microsoft.QuantizeLinear:1"]
    assert (for_scale, ids(for_zero_point)) == ((), expected)


def test_statuses_are_disjoint_and_complete() -> None:
    by_status = {status: ids(REGISTRY.select(status=status)) for status in STATUSES}
    together = REGISTRY.select(status=STATUSES)
    assert sorted(each for found in by_status.values() for each in found) == sorted(ids(together))
    assert len(together) == len(list(REGISTRY.operators()))
    assert by_status["deprecated"] == [str(v.id) for v in REGISTRY.select() if v.deprecated]
    assert by_status["removed"][:2] == ["ai.onnx.ATen:1", "ai.onnx.Affine:1"]
    assert "ai.onnx.preview.FlexAttention:1" in by_status["preview"]
    assert "ai.onnx.ATen:1" in ids(REGISTRY.select(status="preview", opset=9))


def test_selects_all_versions_and_functions() -> None:
    every = REGISTRY.select(versions="all", status=STATUSES)
    assert set(every) == set(REGISTRY.get_all_schemas_with_history())
    functions, others = (REGISTRY.select(function=each) for each in (True, False))
    assert all(each.has_function for each in functions)
    assert len(functions) + len(others) == len(REGISTRY.select())


def test_order_is_stable() -> None:
    found = REGISTRY.select(versions="all", status=STATUSES)
    removed = set(REGISTRY.select(status="removed"))
    domains = list(REGISTRY.domains())
    keys = [(domains.index(v.domain), v in removed, v.name, v.since_version) for v in found]
    assert keys == sorted(keys)


def test_filters_are_combined() -> None:
    found = REGISTRY.select(
        "Reduce*", opset=18, accepts="int8", attribute="keepdims", function=False, changed=(13, 18)
    )
    assert ids(found) == ["ai.onnx.ReduceMax:18", "ai.onnx.ReduceMin:18"]


def test_finds_nothing_without_an_error_if_all_names_exist() -> None:
    assert REGISTRY.select("Nothing*") == ()
    assert REGISTRY.select("Mish", opset=17) == ()
    assert REGISTRY.select(accepts="float6e2m3", opset=13) == ()
    assert REGISTRY.select("Relu", attribute="axes") == ()


def test_searches_private_domains() -> None:
    registry = REGISTRY.with_folder(ACME)
    assert "com.acme" in {each.domain for each in registry.select(opset=13)}
    assert {each.domain for each in registry.select(domain="com.acme", opset=1)} == {"com.acme"}
    assert registry.select(domain="com.acme", accepts="bfloat16", status="removed") == ()


def test_searches_a_registry_without_releases() -> None:
    assert Registry(()).select() == ()


INVALID: dict[str, tuple[type[OpshiftError], dict[str, Any], str]] = {
    "name": (UnknownOperator, {"name": "softmx"}, "Softmax"),
    "name in a domain": (UnknownOperator, {"name": "Sofmax", "domain": ""}, "Softmax"),
    "domain": (UnknownDomain, {"domain": "ai.onnx.lm"}, "did you mean ai.onnx.ml or"),
    "opset": (UnknownOpset, {"opset": 99}, "from 1 to"),
    "opset 0": (UnknownOpset, {"opset": 0}, "from 1 to"),
    "changed opset": (UnknownOpset, {"changed": (13, 99)}, "from 1 to"),
    "element type": (UsageError, {"accepts": "bfloat61"}, "tensor(bfloat16)"),
    "NumPy type": (UsageError, {"accepts": "float32"}, "use tensor(float)"),
    "full type": (UsageError, {"produces": "seq(tensor(flot))"}, "seq(tensor(float))"),
    "attribute": (UsageError, {"attribute": "keepdim"}, "keepdims"),
    "parameter": (UsageError, {"parameter": "y_zero_pont"}, "y_zero_point"),
    "status": (UsageError, {"status": ["active", "actve"]}, "active"),
    "versions": (UsageError, {"versions": "newest"}, "current"),
    "opset as text": (UsageError, {"opset": "17"}, "Registry.select"),
    "boolean opset": (UsageError, {"opset": True}, "Registry.select"),
    "number as name": (UsageError, {"name": 17}, "Registry.select"),
    "no name": (UsageError, {"name": None}, "Registry.select"),
    "text as function": (UsageError, {"function": "yes"}, "Registry.select"),
    "one changed opset": (UsageError, {"changed": (13,)}, "(13, 17)"),
    "number as changed": (UsageError, {"changed": 13}, "(13, 17)"),
    "descending opsets": (UsageError, {"changed": (17, 13)}, "(13, 17)"),
}


@pytest.mark.parametrize("case", INVALID)
def test_errors_name_a_remedy(case: str) -> None:
    error, arguments, remedy = INVALID[case]
    with pytest.raises(error) as raised:
        REGISTRY.select(**arguments)
    assert type(raised.value) is error
    assert remedy in raised.value.remedy
