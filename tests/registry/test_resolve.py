"""Nodes resolve to operator versions or functions under the opset imports, or an error explains why not."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from onnx import helper

from opshift.converter.convert_node import convert_node
from opshift.model.errors import OpshiftError, Place, UsageError
from opshift.model.messages import NodeProto
from opshift.model.operator_ids import LocalFunction
from opshift.registry.errors import (
    DomainNotImported,
    NotYetIntroduced,
    OperatorRemoved,
    ResolveError,
    UnknownDomain,
    UnknownOperator,
    UnknownOpset,
)
from opshift.registry.registry import Registry, default_registry

REGISTRY = default_registry()
NEWEST = REGISTRY.newest_opset()

# Example of ONNX's versioning page: opset 1 {A}, opset 2 {A, B}, opset 3 {A', B, C}, opset 4 {B, C'}

DEFINITIONS = {
    "A": """
- since_version: 1
- since_version: 3
  step: {change: The second meaning., up: adapter}
  removal:
    removed_in: 4
    replaced_by: C
    up: {refuse: no operator computes the same}
""",
    "B": """
- since_version: 2
""",
    "C": """
- since_version: 3
- since_version: 4
  step: {change: The second meaning., up: adapter}
""",
}
EXPECTED: dict[str, tuple[int | type[ResolveError], ...]] = {
    "A": (1, 1, 3, OperatorRemoved),
    "B": (NotYetIntroduced, 2, 2, 2),
    "C": (NotYetIntroduced, NotYetIntroduced, 3, 4),
}
CELLS = {
    f"{name} at opset {opset}": (name, opset, expected)
    for name, row in EXPECTED.items()
    for opset, expected in enumerate(row, 1)
}


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """Return the default registry extended by the domain of the versioning page."""
    folder = tmp_path_factory.mktemp("opsets")
    (folder / "com.acme").mkdir()
    for name, versions in DEFINITIONS.items():
        content = f"domain: com.acme\nname: {name}\nversions:{versions}"
        (folder / "com.acme" / f"{name}.yaml").write_text(content)
    return REGISTRY.with_folder(folder)


@pytest.mark.parametrize(("name", "opset", "expected"), CELLS.values(), ids=CELLS)
def test_resolves_the_example_of_the_versioning_page(
    extended: Registry, name: str, opset: int, expected: int | type[ResolveError]
) -> None:
    node = NodeProto(op_type=name, domain="com.acme")
    imports = {"": 17, "com.acme": opset}
    if isinstance(expected, int):
        found = extended.resolve(node, imports)
        assert not isinstance(found, LocalFunction)
        assert str(found.id) == f"com.acme.{name}:{expected}"
        assert extended.has(name, opset, "com.acme")
        assert extended.at(name, opset, "com.acme") is found
    else:
        with pytest.raises(expected):
            extended.resolve(node, imports)
        assert not extended.has(name, opset, "com.acme")
        assert extended.at(name, opset, "com.acme") is None


def test_an_opset_of_the_versioning_page_has_the_listed_operators(extended: Registry) -> None:
    names = [
        {n for n in extended.names("com.acme") if extended.has(n, opset, "com.acme")}
        for opset in (1, 2, 3, 4)
    ]
    assert names == [{"A"}, {"A", "B"}, {"A", "B", "C"}, {"B", "C"}]


def test_a_removal_determines_the_newest_opset(tmp_path: Path) -> None:
    (tmp_path / "com.acme").mkdir()
    content = f"domain: com.acme\nname: A\nversions:{DEFINITIONS['A']}"
    (tmp_path / "com.acme" / "A.yaml").write_text(content)
    assert Registry((tmp_path,)).newest_opset("com.acme") == 4


def test_adding_a_folder_leaves_the_default_registry_unchanged(extended: Registry) -> None:
    assert "com.acme" in extended.domains()
    assert "com.acme" not in REGISTRY.domains()
    assert extended.get_schema("Softmax", 12) == REGISTRY.get_schema("Softmax", 12)


# Nodes of operators

RESOLVED: dict[str, tuple[NodeProto, Mapping[str, int], str]] = {
    "the first version": (NodeProto(op_type="Softmax"), {"": 1}, "ai.onnx.Softmax:1"),
    "an older version in effect": (NodeProto(op_type="Softmax"), {"": 12}, "ai.onnx.Softmax:11"),
    "a version introduced by the opset": (NodeProto(op_type="Softmax"), {"": 13}, "ai.onnx.Softmax:13"),
    "long after the last version": (NodeProto(op_type="Softmax"), {"": 28}, "ai.onnx.Softmax:13"),
    "ai.onnx in the import": (NodeProto(op_type="Softmax"), {"ai.onnx": 12}, "ai.onnx.Softmax:11"),
    "ai.onnx in the node": (NodeProto(op_type="Softmax", domain="ai.onnx"), {"": 12}, "ai.onnx.Softmax:11"),
    "ai.onnx in both": (
        NodeProto(op_type="Softmax", domain="ai.onnx"),
        {"ai.onnx": 12},
        "ai.onnx.Softmax:11",
    ),
    "a different domain": (
        NodeProto(op_type="LabelEncoder", domain="ai.onnx.ml"),
        {"": 9, "ai.onnx.ml": 3},
        "ai.onnx.ml.LabelEncoder:2",
    ),
    "a domain for training": (
        NodeProto(op_type="Adam", domain="ai.onnx.preview.training"),
        {"ai.onnx.preview.training": 1},
        "ai.onnx.preview.training.Adam:1",
    ),
    "an operator before it is deprecated": (NodeProto(op_type="Upsample"), {"": 9}, "ai.onnx.Upsample:9"),
    "an operator when it becomes deprecated": (
        NodeProto(op_type="Upsample"),
        {"": 10},
        "ai.onnx.Upsample:10",
    ),
    "an operator long deprecated": (NodeProto(op_type="Upsample"), {"": 28}, "ai.onnx.Upsample:10"),
    "a deprecated version with a later one": (
        NodeProto(op_type="GroupNormalization"),
        {"": 20},
        "ai.onnx.GroupNormalization:18",
    ),
    "an operator just before it is removed": (NodeProto(op_type="ATen"), {"": 9}, "ai.onnx.ATen:1"),
    "an overload without a function": (
        NodeProto(op_type="Relu", overload="fast"),
        {"": 17},
        "ai.onnx.Relu:14",
    ),
}


@pytest.mark.parametrize(("node", "imports", "name"), RESOLVED.values(), ids=RESOLVED)
def test_resolves_a_node_to_an_operator_version(
    node: NodeProto, imports: Mapping[str, int], name: str
) -> None:
    found = REGISTRY.resolve(node, imports)
    assert not isinstance(found, LocalFunction)
    assert str(found.id) == name


def test_accepts_a_node_message_of_onnx() -> None:
    found = REGISTRY.resolve(helper.make_node("Softmax", ["x"], ["y"]), {"": 12})
    assert not isinstance(found, LocalFunction)
    assert found.since_version == 11


@pytest.mark.parametrize(
    ("name", "opset", "deprecated"),
    [("Upsample", 9, False), ("Upsample", 10, True), ("Upsample", 28, True), ("Resize", 10, False)],
)
def test_marks_deprecated_versions(name: str, opset: int, deprecated: bool) -> None:
    assert REGISTRY.get_schema(name, opset).deprecated is deprecated


def test_uses_the_newest_opset_by_default() -> None:
    assert REGISTRY.get_schema("Softmax") == REGISTRY.get_schema("Softmax", NEWEST)
    assert REGISTRY.get_schema("LabelEncoder", domain="ai.onnx.ml").since_version == 4
    assert REGISTRY.has("Softmax")
    assert not REGISTRY.has("ATen")


# Functions of the model

CALLS: dict[str, tuple[NodeProto, set[tuple[str, str, str]], LocalFunction | None]] = {
    "a function of a domain that is not imported": (
        NodeProto(op_type="Blur", domain="local"),
        {("local", "Blur", "")},
        LocalFunction("local", "Blur"),
    ),
    "a function with the name of an operator": (
        NodeProto(op_type="Relu"),
        {("", "Relu", "")},
        LocalFunction("", "Relu"),
    ),
    "an overload": (
        NodeProto(op_type="Relu", overload="fast"),
        {("", "Relu", "fast")},
        LocalFunction("", "Relu", "fast"),
    ),
    "one overload of several": (
        NodeProto(op_type="Relu", overload="fast"),
        {("", "Relu", ""), ("", "Relu", "exact"), ("", "Relu", "fast")},
        LocalFunction("", "Relu", "fast"),
    ),
    "a function with the name of a removed operator": (
        NodeProto(op_type="ATen"),
        {("", "ATen", "")},
        LocalFunction("", "ATen"),
    ),
    "an overload that no function has": (NodeProto(op_type="Relu"), {("", "Relu", "fast")}, None),
    "a function of a different domain": (NodeProto(op_type="Relu"), {("local", "Relu", "")}, None),
    "a function with a different name": (NodeProto(op_type="Relu"), {("", "Blur", "")}, None),
    "no function": (NodeProto(op_type="Relu"), set(), None),
}


@pytest.mark.parametrize(("node", "functions", "called"), CALLS.values(), ids=CALLS)
def test_functions_of_the_model_take_precedence(
    node: NodeProto, functions: set[tuple[str, str, str]], called: LocalFunction | None
) -> None:
    found = REGISTRY.resolve(node, {"": 17}, functions)
    if called is None:
        assert not isinstance(found, LocalFunction)
        assert str(found.id) == "ai.onnx.Relu:14"
    else:
        assert found == called


# Unresolved nodes: error, reason and remedy

REFUSED: dict[str, tuple[NodeProto, Mapping[str, int], type[ResolveError], str, str]] = {
    "a domain that is not imported": (
        NodeProto(op_type="Scaler", domain="ai.onnx.ml"),
        {"": 17},
        DomainNotImported,
        "Scaler belongs to domain 'ai.onnx.ml', which has no opset import",
        "add an opset import for 'ai.onnx.ml'",
    ),
    "the default domain is not imported": (
        NodeProto(op_type="Relu"),
        {"ai.onnx.ml": 3},
        DomainNotImported,
        "Relu belongs to domain 'ai.onnx', which has no opset import",
        "add an opset import for 'ai.onnx'",
    ),
    "no opset imports": (
        NodeProto(op_type="Relu"),
        {},
        DomainNotImported,
        "Relu belongs to domain 'ai.onnx', which has no opset import",
        "add an opset import for 'ai.onnx'",
    ),
    "a domain without definitions": (
        NodeProto(op_type="FastConv", domain="com.nobody"),
        {"com.nobody": 1},
        UnknownDomain,
        "no definitions for domain 'com.nobody'",
        "add a folder with its definitions",
    ),
    "a misspelled name": (
        NodeProto(op_type="Sofmax"),
        {"": 17},
        UnknownOperator,
        "ai.onnx has no operator 'Sofmax'",
        "did you mean Softmax or LogSoftmax or Max?",
    ),
    "a name in a different case": (
        NodeProto(op_type="softmax"),
        {"": 17},
        UnknownOperator,
        "ai.onnx has no operator 'softmax'",
        "did you mean Softmax or LogSoftmax or Max?",
    ),
    "a name without similar ones": (
        NodeProto(op_type="Zzyzx"),
        {"": 17},
        UnknownOperator,
        "ai.onnx has no operator 'Zzyzx'",
        "check the name and its domain",
    ),
    "a name of a different domain": (
        NodeProto(op_type="Softmax", domain="ai.onnx.preview.training"),
        {"ai.onnx.preview.training": 1},
        UnknownOperator,
        "ai.onnx.preview.training has no operator 'Softmax'",
        "check the name and its domain",
    ),
    "an opset newer than the registry": (
        NodeProto(op_type="Relu"),
        {"": NEWEST + 1},
        UnknownOpset,
        f"there is no opset {NEWEST + 1} of ai.onnx",
        f"use an opset version from 1 to {NEWEST}",
    ),
    "an opset of a different domain newer than the registry": (
        NodeProto(op_type="Scaler", domain="ai.onnx.ml"),
        {"": 17, "ai.onnx.ml": 6},
        UnknownOpset,
        "there is no opset 6 of ai.onnx.ml",
        "use an opset version from 1 to 5",
    ),
    "opset 0": (
        NodeProto(op_type="Relu"),
        {"": 0},
        UnknownOpset,
        "there is no opset 0 of ai.onnx",
        f"use an opset version from 1 to {NEWEST}",
    ),
    "opset -1": (
        NodeProto(op_type="Relu"),
        {"": -1},
        UnknownOpset,
        "there is no opset -1 of ai.onnx",
        f"use an opset version from 1 to {NEWEST}",
    ),
    "an unknown name at an unknown opset": (
        NodeProto(op_type="Sofmax"),
        {"": NEWEST + 1},
        UnknownOpset,
        f"there is no opset {NEWEST + 1} of ai.onnx",
        f"use an opset version from 1 to {NEWEST}",
    ),
    "an operator before its introduction": (
        NodeProto(op_type="Gelu"),
        {"": 19},
        NotYetIntroduced,
        "Gelu is not in opset 19 of ai.onnx",
        "use opset 20 or newer",
    ),
    "an operator of a different domain before its introduction": (
        NodeProto(op_type="TreeEnsemble", domain="ai.onnx.ml"),
        {"ai.onnx.ml": 4},
        NotYetIntroduced,
        "TreeEnsemble is not in opset 4 of ai.onnx.ml",
        "use opset 5 or newer",
    ),
    "a removed operator": (
        NodeProto(op_type="DynamicSlice"),
        {"": 10},
        OperatorRemoved,
        "DynamicSlice was removed from ai.onnx in opset 10",
        "Slice takes the same inputs in the same order.",
    ),
    "an operator removed long before": (
        NodeProto(op_type="DynamicSlice"),
        {"": 28},
        OperatorRemoved,
        "DynamicSlice was removed from ai.onnx in opset 10",
        "Slice takes the same inputs in the same order.",
    ),
}


@pytest.mark.parametrize(("node", "imports", "error_type", "reason", "remedy"), REFUSED.values(), ids=REFUSED)
def test_an_unresolved_node_raises_reason_and_remedy(
    node: NodeProto, imports: Mapping[str, int], error_type: type[ResolveError], reason: str, remedy: str
) -> None:
    with pytest.raises(ResolveError) as caught:
        REGISTRY.resolve(node, imports)
    error = caught.value
    assert type(error) is error_type
    assert (error.reason, error.remedy, error.place) == (reason, remedy, Place())
    assert str(error) == f"{reason} ({remedy})"
    assert error.as_dict() == {"error": error_type.__name__, "reason": reason, "place": "", "remedy": remedy}


def test_the_table_covers_every_error_type() -> None:
    assert {row[2] for row in REFUSED.values()} == set(ResolveError.__subclasses__())


def test_names_the_replacement_of_a_removed_operator_without_a_mapping(extended: Registry) -> None:
    with pytest.raises(OperatorRemoved) as caught:
        extended.get_schema("A", 4, "com.acme")
    assert caught.value.reason == "A was removed from com.acme in opset 4"
    assert caught.value.remedy == "use C"


def test_a_domain_without_definitions_has_no_operators() -> None:
    assert REGISTRY.names("com.nobody") == ()
    assert REGISTRY.operator("FastConv", "com.nobody") is None
    assert list(REGISTRY.operators("com.nobody")) == []
    with pytest.raises(UnknownDomain):
        REGISTRY.newest_opset("com.nobody")


# Fields and texts of errors

ERRORS: dict[str, tuple[OpshiftError, str]] = {
    "a reason only": (OpshiftError("it is wrong"), "it is wrong"),
    "a reason and a remedy": (
        OpshiftError("it is wrong", remedy="set it right"),
        "it is wrong (set it right)",
    ),
    "a node": (OpshiftError("it is wrong", place="softmax_1"), "softmax_1: it is wrong"),
    "a file": (OpshiftError("is wrong", place=Place("Blur.yaml")), "Blur.yaml: is wrong"),
    "a line of a file": (OpshiftError("is wrong", place=Place("Blur.yaml", 7)), "Blur.yaml:7: is wrong"),
    "all fields": (
        OpshiftError("is wrong", place=Place("Blur.yaml", 7), remedy="set it right"),
        "Blur.yaml:7: is wrong (set it right)",
    ),
}


@pytest.mark.parametrize(("error", "text"), ERRORS.values(), ids=ERRORS)
def test_the_text_of_an_error_has_its_place_and_remedy(error: OpshiftError, text: str) -> None:
    assert str(error) == text
    assert error.as_dict() == {
        "error": "OpshiftError",
        "reason": error.reason,
        "place": str(error.place),
        "remedy": error.remedy,
    }


def test_second_argument_may_be_the_domain() -> None:
    assert REGISTRY.has("Relu", "")
    assert REGISTRY.get_schema("Relu", "") is REGISTRY.get_schema("Relu")
    assert REGISTRY.get_schema("Scaler", "ai.onnx.ml").domain == "ai.onnx.ml"
    assert not REGISTRY.has("Relu", "ai.onnx.ml")
    assert not REGISTRY.has("Relu", "no.such.domain")


@pytest.mark.parametrize(
    "arguments",
    [("Relu", 13.5), ("Relu", [13]), ("Relu", {}, ""), ("Relu", 13, None), (3, 13), (["Relu"],), (None, "")],
    ids=str,
)
def test_refuses_arguments_of_wrong_type(arguments: tuple[object, ...]) -> None:
    for method in (REGISTRY.get_schema, REGISTRY.has):
        with pytest.raises(UsageError, match="expected a name, an opset and a domain"):
            method(*arguments)  # type: ignore[arg-type]


RELU = NodeProto(op_type="Relu", input=["x"], output=["y"])


@pytest.mark.parametrize(
    ("node", "opsets", "reason"),
    [
        ("Relu(x)", {"": 17}, "expected a NodeProto, got str"),
        (None, {"": 17}, "expected a NodeProto, got NoneType"),
        (RELU, 17, "expected opsets by domain, got 17"),
        (RELU, {"": "17"}, "expected opsets by domain, got {'': '17'}"),
    ],
)
def test_resolves_only_nodes_with_opsets(node: object, opsets: object, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        default_registry().resolve(node, opsets)  # type: ignore[arg-type]
    assert caught.value.reason == reason
    assert caught.value.remedy


def test_functions_about_nodes_refuse_other_objects() -> None:
    with pytest.raises(UsageError, match="expected a NodeProto, got str"):
        convert_node("Relu(x)", 11, 13)  # type: ignore[type-var]
    with pytest.raises(UsageError, match="expected a NodeProto, got str"):
        default_registry().get_schema("LayerNormalization", 17).function_body("LayerNormalization(x)")  # type: ignore[arg-type]
