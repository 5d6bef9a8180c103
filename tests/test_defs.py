"""`opshift.defs` answers like `onnx.defs`: the same code runs over both and finds the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from types import ModuleType
from typing import Any

import onnx.defs
import pytest
from test_public_api import modules_after

import opshift.defs
from opshift import OpshiftError, UsageError
from opshift.defs import OpSchema
from opshift.registry.errors import NotYetIntroduced, OperatorRemoved, UnknownDomain, UnknownOperator
from opshift.registry.models import Operator
from opshift.registry.onnx_defs import onnx_defs
from opshift.registry.registry import default_registry

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
OWN = {"doc", "file", "line"}
"""Members that describe ONNX's definition itself, and not the operator."""


def _is_read_only(name: str) -> bool:
    is_value = not callable(getattr(onnx.defs.OpSchema, name))
    return is_value and not name.startswith("_")


MEMBERS = sorted(filter(_is_read_only, dir(onnx.defs.OpSchema)))
SHARED = [each for each in MEMBERS if each not in OWN]


def _plain(value: Any) -> Any:
    """Return a member in a form that is comparable between both packages, without texts."""
    if isinstance(value, Enum):
        return type(value).__name__, value.name, value.value, str(value), repr(value)
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        plain = list(map(_plain, value))
        return sorted(plain) if all(isinstance(each, str) for each in plain) else plain
    if type(value).__name__ == "FunctionProto":
        attributes = {*value.attribute, *(each.name for each in value.attribute_proto)}
        return value.name, value.domain, list(value.input), list(value.output), attributes, bool(value.node)
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString(deterministic=True)
    if type(value).__module__.startswith(("onnx", "opshift")):
        names = [each for each in _members_of(value) if each != "description"]
        return {each: _plain(getattr(value, each)) for each in names}
    return value


def _members_of(value: object) -> list[str]:
    """Return the members that ONNX's class of this name has."""
    theirs = getattr(onnx.defs.OpSchema, type(value).__name__)
    return [each for each in dir(theirs) if not each.startswith("_")]


def _by_id(defs: ModuleType) -> dict[tuple[str, str, int], Any]:
    schemas = defs.get_all_schemas_with_history()
    found = {(each.domain, each.name, each.since_version): each for each in schemas}
    assert len(found) == len(schemas)
    return found


THEIRS, OURS = _by_id(onnx.defs), _by_id(opshift.defs)


# Members


def test_lists_the_schemas_of_onnx() -> None:
    assert OURS.keys() == THEIRS.keys()
    assert len(OURS) == 659


def test_compares_all_members() -> None:
    assert len(MEMBERS) == 26
    assert set(MEMBERS) <= set(dir(OpSchema))


@pytest.mark.parametrize("member", SHARED)
def test_a_member_equals_that_of_onnx_in_all_schemas(member: str) -> None:
    different = [
        each
        for each, theirs in THEIRS.items()
        if _plain(getattr(OURS[each], member)) != _plain(getattr(theirs, member))
    ]
    assert different == []


@pytest.mark.parametrize("member", SHARED)
def test_a_member_has_the_type_of_onnx(member: str) -> None:
    each = ("", "BatchNormalization", 15)
    ours, theirs = getattr(OURS[each], member), getattr(THEIRS[each], member)
    assert type(ours).__name__ == type(theirs).__name__


def test_folders_are_those_of_onnx() -> None:
    newest = onnx.defs.get_all_schemas()
    theirs = {
        (each.file.split("/defs/")[1].split("/")[0], f"{each.domain or 'ai.onnx'}.{each.name}")
        for each in newest
    }
    assert {(folder, name) for folder, names in onnx_defs().folders.items() for name in names} == theirs


def _texts(schema: Any) -> dict[tuple[str, str], str]:
    """Return all texts of a schema by group and name, as in YAML."""
    groups = ("inputs", "outputs")
    return {
        ("operator", ""): schema.doc,
        **{(group, each.name): each.description for group in groups for each in getattr(schema, group)},
        **{("attributes", name): each.description for name, each in schema.attributes.items()},
        **{("types", each.type_param_str): each.description for each in schema.type_constraints},
    }


def test_every_text_is_there() -> None:
    empty = [(each, name) for each in OURS for name, text in _texts(OURS[each]).items() if not text]
    assert empty == []
    assert {each: _texts(OURS[each]).keys() for each in OURS} == {
        each: _texts(THEIRS[each]).keys() for each in THEIRS
    }


def test_no_text_is_that_of_onnx() -> None:
    same = [
        (each, name, text)
        for each in OURS
        for name, text in _texts(OURS[each]).items()
        if text.split() == _texts(THEIRS[each])[name].split()
    ]
    assert same == []


def test_locates_the_definition() -> None:
    schema = opshift.defs.get_schema("Softmax", 12)
    with open(schema.file, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines[schema.line - 1] == "- since_version: 11"


@pytest.mark.parametrize("number", [2**31 - 1, 2**31 - 2, 1])
def test_is_infinite_equals_that_of_onnx(number: int) -> None:
    assert OpSchema.is_infinite(number) == onnx.defs.OpSchema.is_infinite(number)


@pytest.mark.parametrize(
    "name",
    [each for each in dir(onnx.defs.OpSchema) if hasattr(getattr(onnx.defs.OpSchema, each), "__members__")],
)
def test_enumerations_equal_those_of_onnx(name: str) -> None:
    ours, theirs = getattr(OpSchema, name), getattr(onnx.defs.OpSchema, name)
    assert {each.name: _plain(each) for each in ours} == {each.name: _plain(each) for each in theirs}
    assert [f"{each}" for each in ours] == [str(each) for each in ours]
    if name != "NodeDeterminism":
        assert {each: int(each) for each in theirs} == {each: int(each) for each in ours}


def test_schemas_are_read_only() -> None:
    schema = opshift.defs.get_schema("Relu")
    for member in ("name", "inputs", "function_body"):
        with pytest.raises(AttributeError):
            setattr(schema, member, None)
    schema.inputs.clear()
    schema.attributes.clear()
    schema.function_body.Clear()
    assert schema.inputs[0].name == "X"
    assert schema.function_body.node


def test_a_schema_prints_its_version() -> None:
    assert repr(opshift.defs.get_schema("Relu")) == "OpSchema('ai.onnx.Relu:14')"


# Functions


@pytest.mark.parametrize("domain", DOMAINS)
def test_look_ups_find_what_onnx_finds(domain: str) -> None:
    names = {name for each, name, _ in OURS if each == domain} | {"Affine", "ThresholdedRelu", "Nothing"}
    for name in names:
        assert opshift.defs.has(name, domain) == onnx.defs.has(name, domain)
        for opset in (*range(-1, 32), 2**31 - 1):
            is_known = onnx.defs.has(name, opset, domain)
            assert opshift.defs.has(name, opset, domain) == is_known, (name, opset)
            if is_known:
                ours, theirs = (each.get_schema(name, opset, domain) for each in (opshift.defs, onnx.defs))
                assert ours.since_version == theirs.since_version


@pytest.fixture
def with_unpublished_versions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the registry contain a version of Relu and a new operator after the newest published opset."""
    registry = default_registry()
    relu = registry.operator("Relu")
    assert relu is not None
    newest = relu.versions[-1]
    later = replace(newest, since_version=29)
    new = replace(later, name="Relu2", step=None)
    registry = registry.with_operator(replace(relu, versions=(*relu.versions, later)))
    registry = registry.with_operator(Operator(domain="ai.onnx", name="Relu2", versions=(new,)))
    opshift.defs._versions_of.cache_clear()
    monkeypatch.setattr(opshift.defs, "default_registry", lambda: registry)
    yield
    opshift.defs._versions_of.cache_clear()


@pytest.mark.usefixtures("with_unpublished_versions")
def test_does_not_list_unpublished_versions() -> None:
    assert opshift.defs.onnx_opset_version() == 28
    assert opshift.defs.get_schema("Relu").since_version == 14
    assert opshift.defs.get_schema("Relu", 29).since_version == 14
    assert len(opshift.defs.get_all_schemas_with_history()) == 659
    assert not opshift.defs.has("Relu2", 29)
    with pytest.raises(NotYetIntroduced, match=r"Relu2 is not in opset 28 .*use opset 29 or newer"):
        opshift.defs.get_schema("Relu2")


@pytest.mark.parametrize("function", ["get_all_schemas", "get_function_ops"])
def test_lists_the_newest_schemas_of_onnx(function: str) -> None:
    def found(defs: ModuleType) -> list[tuple[str, str, int]]:
        schemas = getattr(defs, function)()
        assert isinstance(schemas, list)
        return sorted((each.domain, each.name, each.since_version) for each in schemas)

    assert found(opshift.defs) == found(onnx.defs)


@pytest.mark.parametrize(
    "name", [each for each in dir(onnx.defs) if each.endswith(("_DOMAIN", "_opset_version"))]
)
def test_constants_equal_those_of_onnx(name: str) -> None:
    ours, theirs = getattr(opshift.defs, name), getattr(onnx.defs, name)
    assert (ours() if callable(ours) else ours) == (theirs() if callable(theirs) else theirs)


def test_exports_the_public_names_of_onnx() -> None:
    absent = {"C", "register_schema", "deregister_schema"}
    assert set(onnx.defs.__all__) - set(opshift.defs.__all__) == absent


def test_returns_the_same_object_for_a_version() -> None:
    assert opshift.defs.get_schema("Relu", 14) is opshift.defs.get_schema("Relu", "ai.onnx")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("Relux",), UnknownOperator, "ai.onnx has no operator 'Relux' (did you mean Relu?)"),
        (("Relu", "nowhere"), UnknownDomain, "no definitions for domain 'nowhere'"),
        (
            ("Mish", 17),
            NotYetIntroduced,
            "Mish is not in opset 17 of ai.onnx (use opset 18 or newer)",
        ),
        (("ThresholdedRelu", 9), NotYetIntroduced, "(use opset 10 or newer)"),
        (("Relu", 0), NotYetIntroduced, "Relu is not in opset 0 of ai.onnx (use opset 1 or newer)"),
        (("Affine", 1), OperatorRemoved, "Affine was removed from ai.onnx in opset 10 ("),
    ],
)
def test_an_error_names_the_remedy(
    arguments: tuple[Any, ...], error: type[OpshiftError], message: str
) -> None:
    with pytest.raises(opshift.defs.SchemaError) as caught:
        opshift.defs.get_schema(*arguments)
    assert type(caught.value) is error
    assert message in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("arguments", [(3,), ("Relu", 13.0), ("Relu", True), ("Relu", 13, None)])
@pytest.mark.parametrize("function", [opshift.defs.get_schema, opshift.defs.has])
def test_refuses_arguments_of_wrong_types(function: Callable[..., object], arguments: Any) -> None:
    with pytest.raises(UsageError, match="expected a name, an opset and a domain"):
        function(*arguments)


@pytest.mark.parametrize("module", ["onnx", "numpy", "pydantic", "yaml", "networkx"])
def test_import_and_look_up_do_not_load(module: str) -> None:
    modules_after("import opshift.defs; opshift.defs.get_schema('Relu').doc")  # compiles the definition
    loaded = modules_after("import opshift.defs; opshift.defs.get_schema('Relu').doc")
    assert module not in loaded


# Programs that were written for `onnx.defs`


def _support_table(defs: ModuleType) -> list[str]:
    """Return a table of the float types of each operator, and of the opsets with its versions."""
    history: dict[str, list[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        history.setdefault(schema.domain + "." + schema.name, []).append(schema.since_version)
    rows = []
    for schema in sorted(defs.get_all_schemas(), key=lambda each: (each.domain, each.name)):
        if schema.support_level == defs.OpSchema.SupportType.EXPERIMENTAL or schema.deprecated:
            continue
        types = schema.inputs[0].types if schema.inputs else set()
        marks = ["x" if f"tensor({kind})" in types else " " for kind in ("float", "float16", "bfloat16")]
        opsets = ", ".join(map(str, sorted(history[schema.domain + "." + schema.name])))
        is_function = schema.has_function or schema.has_context_dependent_function
        rows.append(
            f"| {schema.name} | {opsets} | {' | '.join(marks)} | {'function' if is_function else ''} |"
        )
    return rows


def _build_nodes(defs: ModuleType) -> list[dict[str, Any]]:
    """Return nodes with all outputs and defaults, as a builder of models fills them in."""
    with pytest.raises(defs.SchemaError, match="Relux"):
        _node(defs, "Relux", 17, "x")
    return [
        _node(defs, "Softmax", 12, "x"),
        _node(defs, "Gemm", 17, "a", "b", transB=1),
        _node(defs, "Concat", 13, *"abcdefg", axis=0),
        _node(defs, "LSTM", 14, "x", "w", "r", hidden_size=4),
        _node(defs, "Resize", 19, "x", mode="cubic"),
    ]


def _node(defs: ModuleType, op_type: str, opset: int, *inputs: str, **attributes: object) -> dict[str, Any]:
    schema = defs.get_schema(op_type, opset, defs.ONNX_DOMAIN)
    assert schema.min_input <= len(inputs) <= schema.max_input
    assert attributes.keys() <= schema.attributes.keys()
    readers = {
        defs.OpSchema.AttrType.FLOAT: lambda default: default.f,
        defs.OpSchema.AttrType.INT: lambda default: default.i,
        defs.OpSchema.AttrType.STRING: lambda default: default.s.decode(),
    }
    defaults = {}
    for name, attribute in schema.attributes.items():
        assert name in attributes or not attribute.required
        if attribute.default_value.type in readers:
            defaults[name] = readers[attribute.default_value.type](attribute.default_value)
    optional = defs.OpSchema.FormalParameterOption.Optional
    outputs = [each.name for each in schema.outputs if each.option != optional]
    return {"op": op_type, "in": inputs, "out": outputs, "attributes": {**defaults, **attributes}}


def _document(defs: ModuleType) -> list[str]:
    """Return the pages of all operators in Markdown, without descriptions."""
    lines = []
    for schema in sorted(
        defs.get_all_schemas_with_history(), key=lambda each: (each.domain, each.name, each.since_version)
    ):
        assert isinstance(schema.doc, str)
        lines.append(f"### {schema.domain or 'ai.onnx'}.{schema.name}-{schema.since_version}")
        lines.append(f"{schema.support_level}, {schema.node_determinism}".lower())
        if schema.attributes:
            lines.append("#### Attributes")
            for _, attribute in sorted(schema.attributes.items()):
                assert isinstance(attribute.description, str)
                kind = str(attribute.type).rpartition(".")[2].lower()
                default = "" if not attribute.default_value.name else _default_text(attribute.default_value)
                lines.append(f"* {attribute.name} : {kind}{' (required)' if attribute.required else default}")
        most = "inf" if schema.is_infinite(schema.max_input) else schema.max_input
        lines.append(f"#### Inputs ({schema.min_input} - {most})")
        for parameter in (*schema.inputs, *schema.outputs):
            assert isinstance(parameter.description, str)
            option = parameter.option.name.lower()
            homogeneous = "" if parameter.is_homogeneous else ", heterogeneous"
            category = parameter.differentiation_category.name
            lines.append(f"* {parameter.name} ({option}{homogeneous}, {category}) : {parameter.type_str}")
        for constraint in schema.type_constraints:
            types = ", ".join(sorted(constraint.allowed_type_strs))
            lines.append(f"* {constraint.type_param_str} : {types}")
        if schema.function_body.node:
            lines.append(f"Function of {', '.join(schema.function_body.input)}")
    return lines


def _default_text(value: Any) -> str:
    fields = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}
    found = getattr(value, fields[value.type])
    return f" (default is {list(found) if value.type > 5 else found})"


@pytest.mark.parametrize("program", [_support_table, _build_nodes, _document])
def test_a_program_for_onnx_runs_unchanged(program: Callable[[ModuleType], list[Any]]) -> None:
    assert program(opshift.defs) == program(onnx.defs)
