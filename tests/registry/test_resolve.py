"""Which operator a node means under its model's opset imports, or why none."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from onnx import helper

from opshift.registry.catalogue import LocalFunction, Registry, default_registry
from opshift.registry.errors import (
    DomainNotImported,
    NotYetIntroduced,
    OperatorRemoved,
    OpshiftError,
    Place,
    ResolveError,
    UnknownDomain,
    UnknownOperator,
    UnknownOpset,
)
from opshift.registry.messages import NodeProto

REGISTRY = default_registry()

# ONNX's versioning page: opset 1 {A}, opset 2 {A, B}, opset 3 {A', B, C}, opset 4 {B, C'}

DEFINITIONS = {
    "A": """
- since_version: 1
- since_version: 3
  step: {change: The second meaning., up: adapter}
  removal:
    removed_in: 4
    replaced_by: C
    up: {refuse: nothing says the same}
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
MEANT: dict[str, tuple[int | type[ResolveError], ...]] = {
    "A": (1, 1, 3, OperatorRemoved),
    "B": (NotYetIntroduced, 2, 2, 2),
    "C": (NotYetIntroduced, NotYetIntroduced, 3, 4),
}
CELLS = {
    f"{name} at opset {opset}": (name, opset, meant)
    for name, row in MEANT.items()
    for opset, meant in enumerate(row, 1)
}


@pytest.fixture(scope="module")
def paged(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """The project's registry and the domain of the versioning page."""
    folder = tmp_path_factory.mktemp("opsets")
    (folder / "com.acme").mkdir()
    for name, versions in DEFINITIONS.items():
        content = f"domain: com.acme\nname: {name}\nversions:{versions}"
        (folder / "com.acme" / f"{name}.yaml").write_text(content)
    return REGISTRY.with_folder(folder)


@pytest.mark.parametrize(("name", "opset", "meant"), CELLS.values(), ids=CELLS)
def test_the_versioning_page(paged: Registry, name: str, opset: int, meant: int | type[ResolveError]) -> None:
    node = NodeProto(op_type=name, domain="com.acme")
    imports = {"": 17, "com.acme": opset}
    if isinstance(meant, int):
        found = paged.resolve(node, imports)
        assert not isinstance(found, LocalFunction)
        assert str(found.id) == f"com.acme.{name}:{meant}"
        assert paged.has(name, opset, "com.acme")
        assert paged.at(name, opset, "com.acme") is found
    else:
        with pytest.raises(meant):
            paged.resolve(node, imports)
        assert not paged.has(name, opset, "com.acme")
        assert paged.at(name, opset, "com.acme") is None


def test_an_opset_of_the_page_holds_the_operators_it_says(paged: Registry) -> None:
    held = [{n for n in paged.names("com.acme") if paged.has(n, opset, "com.acme")} for opset in (1, 2, 3, 4)]
    assert held == [{"A"}, {"A", "B"}, {"A", "B", "C"}, {"B", "C"}]


def test_a_removal_counts_for_the_newest_opset(tmp_path: Path) -> None:
    (tmp_path / "com.acme").mkdir()
    content = f"domain: com.acme\nname: A\nversions:{DEFINITIONS['A']}"
    (tmp_path / "com.acme" / "A.yaml").write_text(content)
    assert Registry((tmp_path,)).newest_opset("com.acme") == 4


def test_the_page_is_as_it_was_in_the_registry_it_was_added_to(paged: Registry) -> None:
    assert "com.acme" in paged.domains()
    assert "com.acme" not in REGISTRY.domains()
    assert paged.get_schema("Softmax", 12) == REGISTRY.get_schema("Softmax", 12)


# Nodes that name an operator

FOUND: dict[str, tuple[NodeProto, Mapping[str, int], str]] = {
    "the first version": (NodeProto(op_type="Softmax"), {"": 1}, "ai.onnx.Softmax:1"),
    "the version in force": (NodeProto(op_type="Softmax"), {"": 12}, "ai.onnx.Softmax:11"),
    "the version of the opset itself": (NodeProto(op_type="Softmax"), {"": 13}, "ai.onnx.Softmax:13"),
    "long after the last version": (NodeProto(op_type="Softmax"), {"": 28}, "ai.onnx.Softmax:13"),
    "an import spelled out": (NodeProto(op_type="Softmax"), {"ai.onnx": 12}, "ai.onnx.Softmax:11"),
    "a node spelled out": (NodeProto(op_type="Softmax", domain="ai.onnx"), {"": 12}, "ai.onnx.Softmax:11"),
    "both spelled out": (
        NodeProto(op_type="Softmax", domain="ai.onnx"),
        {"ai.onnx": 12},
        "ai.onnx.Softmax:11",
    ),
    "another domain": (
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
    "an operator as it is deprecated": (NodeProto(op_type="Upsample"), {"": 10}, "ai.onnx.Upsample:10"),
    "an operator long deprecated": (NodeProto(op_type="Upsample"), {"": 28}, "ai.onnx.Upsample:10"),
    "a deprecated version that another took the place of": (
        NodeProto(op_type="GroupNormalization"),
        {"": 20},
        "ai.onnx.GroupNormalization:18",
    ),
    "an operator just before it is removed": (NodeProto(op_type="ATen"), {"": 9}, "ai.onnx.ATen:1"),
    "an overload of no function": (NodeProto(op_type="Relu", overload="fast"), {"": 17}, "ai.onnx.Relu:14"),
}


@pytest.mark.parametrize(("node", "imports", "name"), FOUND.values(), ids=FOUND)
def test_a_node_names_an_operator(node: NodeProto, imports: Mapping[str, int], name: str) -> None:
    found = REGISTRY.resolve(node, imports)
    assert not isinstance(found, LocalFunction)
    assert str(found.id) == name


def test_a_node_of_onnx_will_do() -> None:
    found = REGISTRY.resolve(helper.make_node("Softmax", ["x"], ["y"]), {"": 12})
    assert not isinstance(found, LocalFunction)
    assert found.since_version == 11


@pytest.mark.parametrize(
    ("name", "opset", "deprecated"),
    [("Upsample", 9, False), ("Upsample", 10, True), ("Upsample", 28, True), ("Resize", 10, False)],
)
def test_a_deprecated_version_says_so(name: str, opset: int, deprecated: bool) -> None:
    assert REGISTRY.get_schema(name, opset).deprecated is deprecated


def test_without_an_opset_the_newest_is_meant() -> None:
    assert REGISTRY.get_schema("Softmax") == REGISTRY.get_schema("Softmax", 28)
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
    "another overload than the function's": (NodeProto(op_type="Relu"), {("", "Relu", "fast")}, None),
    "a function of another domain": (NodeProto(op_type="Relu"), {("local", "Relu", "")}, None),
    "a function of another name": (NodeProto(op_type="Relu"), {("", "Blur", "")}, None),
    "no function": (NodeProto(op_type="Relu"), set(), None),
}


@pytest.mark.parametrize(("node", "functions", "called"), CALLS.values(), ids=CALLS)
def test_the_functions_of_a_model_bind_first(
    node: NodeProto, functions: set[tuple[str, str, str]], called: LocalFunction | None
) -> None:
    found = REGISTRY.resolve(node, {"": 17}, functions)
    if called is None:
        assert not isinstance(found, LocalFunction)
        assert str(found.id) == "ai.onnx.Relu:14"
    else:
        assert found == called


# Nodes that name none: the error, its reason and its remedy

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
    "nothing is imported": (
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
        "add a folder with definitions of it",
    ),
    "a name with a slip": (
        NodeProto(op_type="Sofmax"),
        {"": 17},
        UnknownOperator,
        "ai.onnx has no operator 'Sofmax'",
        "did you mean Softmax or LogSoftmax or Max?",
    ),
    "a name in another case": (
        NodeProto(op_type="softmax"),
        {"": 17},
        UnknownOperator,
        "ai.onnx has no operator 'softmax'",
        "did you mean Softmax or LogSoftmax or Max?",
    ),
    "a name like no other": (
        NodeProto(op_type="Zzyzx"),
        {"": 17},
        UnknownOperator,
        "ai.onnx has no operator 'Zzyzx'",
        "check the name and its domain",
    ),
    "a name of another domain": (
        NodeProto(op_type="Softmax", domain="ai.onnx.preview.training"),
        {"ai.onnx.preview.training": 1},
        UnknownOperator,
        "ai.onnx.preview.training has no operator 'Softmax'",
        "check the name and its domain",
    ),
    "an opset newer than the registry": (
        NodeProto(op_type="Relu"),
        {"": 29},
        UnknownOpset,
        "there is no opset 29 of ai.onnx",
        "use an opset version from 1 to 28",
    ),
    "an opset of another domain newer than the registry": (
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
        "use an opset version from 1 to 28",
    ),
    "opset -1": (
        NodeProto(op_type="Relu"),
        {"": -1},
        UnknownOpset,
        "there is no opset -1 of ai.onnx",
        "use an opset version from 1 to 28",
    ),
    "an unknown name at an unknown opset": (
        NodeProto(op_type="Sofmax"),
        {"": 29},
        UnknownOpset,
        "there is no opset 29 of ai.onnx",
        "use an opset version from 1 to 28",
    ),
    "an operator that is not there yet": (
        NodeProto(op_type="Gelu"),
        {"": 19},
        NotYetIntroduced,
        "Gelu is not in opset 19 of ai.onnx",
        "it was introduced in opset 20",
    ),
    "an operator of another domain that is not there yet": (
        NodeProto(op_type="TreeEnsemble", domain="ai.onnx.ml"),
        {"ai.onnx.ml": 4},
        NotYetIntroduced,
        "TreeEnsemble is not in opset 4 of ai.onnx.ml",
        "it was introduced in opset 5",
    ),
    "an operator that was removed": (
        NodeProto(op_type="DynamicSlice"),
        {"": 10},
        OperatorRemoved,
        "DynamicSlice was removed from ai.onnx in opset 10",
        "Slice takes the same inputs in the same order.",
    ),
    "an operator that was removed long ago": (
        NodeProto(op_type="DynamicSlice"),
        {"": 28},
        OperatorRemoved,
        "DynamicSlice was removed from ai.onnx in opset 10",
        "Slice takes the same inputs in the same order.",
    ),
}


@pytest.mark.parametrize(("node", "imports", "kind", "reason", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_node_that_names_none_is_told_why(
    node: NodeProto, imports: Mapping[str, int], kind: type[ResolveError], reason: str, remedy: str
) -> None:
    with pytest.raises(ResolveError) as caught:
        REGISTRY.resolve(node, imports)
    error = caught.value
    assert type(error) is kind
    assert (error.reason, error.remedy, error.place) == (reason, remedy, Place())
    assert str(error) == f"{reason} ({remedy})"
    assert error.as_dict() == {"error": kind.__name__, "reason": reason, "place": "", "remedy": remedy}


def test_every_kind_of_refusal_is_in_the_table() -> None:
    assert {row[2] for row in REFUSED.values()} == set(ResolveError.__subclasses__())


def test_what_replaces_a_removed_operator_is_named_where_nothing_says_how(paged: Registry) -> None:
    with pytest.raises(OperatorRemoved) as caught:
        paged.get_schema("A", 4, "com.acme")
    assert caught.value.reason == "A was removed from com.acme in opset 4"
    assert caught.value.remedy == "use C"


def test_names_of_a_domain_without_definitions_are_none() -> None:
    assert REGISTRY.names("com.nobody") == ()
    assert REGISTRY.operator("FastConv", "com.nobody") is None
    assert list(REGISTRY.operators("com.nobody")) == []
    with pytest.raises(UnknownDomain):
        REGISTRY.newest_opset("com.nobody")


# Errors as values

ERRORS: dict[str, tuple[OpshiftError, str]] = {
    "a reason": (OpshiftError("it is wrong"), "it is wrong"),
    "a reason and a remedy": (
        OpshiftError("it is wrong", remedy="set it right"),
        "it is wrong (set it right)",
    ),
    "a node": (OpshiftError("it is wrong", place="softmax_1"), "softmax_1: it is wrong"),
    "a file": (OpshiftError("is wrong", place=Place("Blur.yaml")), "Blur.yaml: is wrong"),
    "a line of a file": (OpshiftError("is wrong", place=Place("Blur.yaml", 7)), "Blur.yaml:7: is wrong"),
    "all of it": (
        OpshiftError("is wrong", place=Place("Blur.yaml", 7), remedy="set it right"),
        "Blur.yaml:7: is wrong (set it right)",
    ),
}


@pytest.mark.parametrize(("error", "text"), ERRORS.values(), ids=ERRORS)
def test_an_error_reads_as_a_sentence_with_its_place_and_remedy(error: OpshiftError, text: str) -> None:
    assert str(error) == text
    assert error.as_dict() == {
        "error": "OpshiftError",
        "reason": error.reason,
        "place": str(error.place),
        "remedy": error.remedy,
    }
