"""Models of the registry: arity of nodes, values of attributes, and immutability."""

import json
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from opshift.registry.models import (
    UNBOUNDED,
    Attribute,
    Deprecation,
    Operator,
    OperatorVersion,
    Parameter,
    Removal,
)
from opshift.registry.record import from_plain_data, to_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.steps import Refuse, Step

X = Parameter(name="X", type="tensor(float)")


def _parameters(*options: Any) -> tuple[Parameter, ...]:
    """Build parameters: a string is an option, a number the minimum arity of a variadic parameter."""
    return tuple(
        Parameter(name=f"p{i}", type="tensor(float)", option="variadic", min_arity=option)
        if isinstance(option, int)
        else Parameter(name=f"p{i}", type="tensor(float)", option=option)
        for i, option in enumerate(options)
    )


def _version(since_version: int = 1, **fields: Any) -> OperatorVersion:
    return OperatorVersion(domain="com.acme", name="Blur", since_version=since_version, **fields)


# Arity

ARITIES: dict[str, tuple[tuple[Any, ...], int, int]] = {
    "no parameters": ((), 0, 0),
    "one single": (("single",), 1, 1),
    "two single": (("single", "single"), 2, 2),
    "trailing optional parameters raise the maximum only": (("single", "optional", "optional"), 1, 3),
    "optional only": (("optional", "optional"), 0, 2),
    "an optional parameter before a required one counts": (("optional", "single"), 2, 2),
    "variadic with at least one value": ((1,), 1, UNBOUNDED),
    "variadic without a minimum": ((0,), 0, UNBOUNDED),
    "variadic with at least two values": ((2,), 2, UNBOUNDED),
    "single and variadic": (("single", 1), 2, UNBOUNDED),
    "single and variadic without a minimum": (("single", 0), 1, UNBOUNDED),
    "optional before variadic": (("single", "optional", 1), 3, UNBOUNDED),
}


@pytest.mark.parametrize(("options", "low", "high"), ARITIES.values(), ids=ARITIES)
def test_parameters_determine_the_arity_of_a_node(options: tuple[Any, ...], low: int, high: int) -> None:
    parameters = _parameters(*options)
    reader, writer = _version(inputs=parameters), _version(outputs=parameters)
    assert (reader.min_input, reader.max_input, reader.min_output, reader.max_output) == (low, high, 0, 0)
    assert (writer.min_input, writer.max_input, writer.min_output, writer.max_output) == (0, 0, low, high)


# Properties of a version


def test_the_id_of_a_version_is_domain_name_and_opset() -> None:
    assert str(_version(3).id) == "com.acme.Blur:3"
    assert _version(3).id == ("com.acme", "Blur", 3)


def test_doc_is_an_alias_of_the_description() -> None:
    version = OperatorVersion(domain="com.acme", name="Blur", since_version=1, description="Blurs a picture.")
    assert version.doc == "Blurs a picture."


def test_a_version_with_a_deprecation_is_deprecated() -> None:
    assert _version(deprecation=Deprecation(replaced_by="Sharpen")).deprecated
    assert not _version().deprecated


def test_a_parameter_has_the_types_of_its_type_variable_or_its_own_type() -> None:
    version = _version(
        inputs=(Parameter(name="X", type="T"), Parameter(name="axes", type="tensor(int64)")),
        type_constraints={"T": ("tensor(double)", "tensor(float)")},
    )
    assert [version.types_of(each) for each in version.inputs] == [
        ("tensor(double)", "tensor(float)"),
        ("tensor(int64)",),
    ]


def test_finds_parameters_and_their_positions_by_name() -> None:
    version = _version(inputs=_parameters("single", "optional"), outputs=_parameters("single"))
    assert version.input_named("p1") == (1, version.inputs[1])
    assert version.output_named("p0") == (0, version.outputs[0])
    assert (version.input_named("p2"), version.output_named("p1")) == (None, None)


# The version in effect

KEPT = Operator(domain="com.acme", name="Blur", versions=(_version(2), _version(6), _version(13)))
REMOVED = Operator(
    domain="com.acme",
    name="Blur",
    versions=(
        _version(2),
        _version(6, removal=Removal(removed_in=9, up=Refuse(refuse="it has no successor"))),
    ),
)
IN_EFFECT = {
    "before the first version": (KEPT, 1, None),
    "at the first version": (KEPT, 2, 2),
    "just before the second version": (KEPT, 5, 2),
    "at the second version": (KEPT, 6, 6),
    "at the last version": (KEPT, 13, 13),
    "long after the last version": (KEPT, 1000, 13),
    "opset 0": (KEPT, 0, None),
    "a negative opset": (KEPT, -1, None),
    "the first version of a removed operator": (REMOVED, 2, 2),
    "just before the removal": (REMOVED, 8, 6),
    "at the removal": (REMOVED, 9, None),
    "after the removal": (REMOVED, 10, None),
}


@pytest.mark.parametrize(("operator", "opset", "since"), IN_EFFECT.values(), ids=IN_EFFECT)
def test_the_latest_version_up_to_an_opset_is_in_effect(
    operator: Operator, opset: int, since: int | None
) -> None:
    found = operator.at(opset)
    assert (found.since_version if found else None) == since


# Values of attributes

MODE = Attribute(type="STRING", values=("nearest", "linear"))
FLAG = Attribute(type="INT", values=(0, 1))
AT_LEAST_ONE = Attribute(type="INT", minimum=1)
SHARE = Attribute(type="FLOAT", minimum=0, maximum=1)
AT_MOST_FOUR = Attribute(type="INTS", maximum=4)
ALLOWED = {
    "any integer without declared values": (Attribute(type="INT"), -5, True),
    "any string without declared values": (Attribute(type="STRING"), "", True),
    "a declared string": (MODE, "linear", True),
    "an undeclared string": (MODE, "cubic", False),
    "a string in a different case": (MODE, "Linear", False),
    "a declared number": (FLAG, 1, True),
    "an undeclared number": (FLAG, 2, False),
    "the minimum": (AT_LEAST_ONE, 1, True),
    "below the minimum": (AT_LEAST_ONE, 0, False),
    "far above a minimum": (AT_LEAST_ONE, 10**9, True),
    "the maximum": (SHARE, 1.0, True),
    "above the maximum": (SHARE, 1.5, False),
    "between minimum and maximum": (SHARE, 0.25, True),
    "below minimum and maximum": (SHARE, -0.5, False),
    "an element at the maximum": (AT_MOST_FOUR, 4, True),
    "an element above the maximum": (AT_MOST_FOUR, 5, False),
    "an element far below the maximum": (AT_MOST_FOUR, -5, True),
}


@pytest.mark.parametrize(("attribute", "value", "allowed"), ALLOWED.values(), ids=ALLOWED)
def test_an_attribute_allows_declared_values(
    attribute: Attribute, value: int | float | str, allowed: bool
) -> None:
    assert attribute.allows(value) is allowed


# Defaults

DEFAULTS: dict[str, tuple[dict[str, Any], Any]] = {
    "a float is rounded to 32 bits": ({"type": "FLOAT", "default": 0.1}, float(np.float32(0.1))),
    "an exact 32-bit float is kept": ({"type": "FLOAT", "default": 0.5}, 0.5),
    "a whole number becomes a float": ({"type": "FLOAT", "default": 1}, 1.0),
    "the largest float": (
        {"type": "FLOAT", "default": 3.4028234663852886e38},
        float(np.finfo(np.float32).max),
    ),
    "infinity": ({"type": "FLOAT", "default": float("-inf")}, float("-inf")),
    "the sign of zero": ({"type": "FLOAT", "default": -0.0}, -0.0),
    "each of several floats is rounded": (
        {"type": "FLOATS", "default": [0.1, 1]},
        (float(np.float32(0.1)), 1.0),
    ),
    "an integer is kept": ({"type": "INT", "default": 16777217}, 16777217),
    "integers": ({"type": "INTS", "default": [0, 2, 3]}, (0, 2, 3)),
    "no integers": ({"type": "INTS", "default": []}, ()),
    "a string": ({"type": "STRING", "default": "NOTSET"}, "NOTSET"),
    "an empty string": ({"type": "STRING", "default": ""}, ""),
    "strings": ({"type": "STRINGS", "default": ["LESS", "MORE"]}, ("LESS", "MORE")),
    "no default": ({"type": "INT"}, None),
    "no default of a required attribute": ({"type": "INT", "required": True}, None),
}


@pytest.mark.parametrize(("fields", "default"), DEFAULTS.values(), ids=DEFAULTS)
def test_a_default_has_the_precision_of_a_node_attribute(fields: dict[str, Any], default: object) -> None:
    found = from_plain_data(Attribute, fields).default
    assert (repr(found), type(found)) == (repr(default), type(default))


# Invalid data

INVALID: dict[str, tuple[Callable[[], object], str]] = {
    "an attribute of an unknown type": (
        lambda: from_plain_data(Attribute, {"type": "BOOL"}),
        "'FLOAT', 'INT'",
    ),
    "an unknown field": (
        lambda: from_plain_data(Attribute, {"type": "INT", "min": 1}),
        "Unexpected keyword argument",
    ),
    "opset 0": (
        lambda: from_plain_data(OperatorVersion, {"domain": "com.acme", "name": "Blur", "since_version": 0}),
        "greater than or equal to 1",
    ),
    "a removal from the first opset": (
        lambda: from_plain_data(Removal, {"removed_in": 1, "up": {"refuse": "it has no successor"}}),
        "greater than or equal to 2",
    ),
    "no versions": (
        lambda: from_plain_data(Operator, {"domain": "com.acme", "name": "Blur", "versions": ()}),
        "at least 1 item",
    ),
}


@pytest.mark.parametrize(("build", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_invalid_data(build: Callable[[], object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        build()


# Immutability

FROZEN: dict[str, tuple[Any, str, Any]] = {
    "a parameter": (X, "name", "Y"),
    "an attribute": (MODE, "default", "linear"),
    "a version": (_version(), "since_version", 2),
    "an operator": (KEPT, "versions", ()),
    "a step": (Step(up="compatible"), "up", "adapter"),
    "a refusal": (Refuse(refuse="it has no successor"), "remedy", "use another"),
    "a removal": (REMOVED.versions[1].removal, "removed_in", 10),
    "a deprecation": (Deprecation(), "replaced_by", "Sharpen"),
}


@pytest.mark.parametrize(("value", "field", "other"), FROZEN.values(), ids=FROZEN)
def test_refuses_assignment_to_a_field(value: Any, field: str, other: object) -> None:
    before = to_plain_data(value)
    with pytest.raises(FrozenInstanceError):
        setattr(value, field, other)
    assert to_plain_data(value) == before


@pytest.mark.parametrize("value", [row[0] for row in FROZEN.values()], ids=FROZEN)
def test_refuses_a_new_attribute(value: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        value.colour = "red"


def test_to_dict_is_json_with_all_facts_and_texts() -> None:
    for version in default_registry().get_all_schemas_with_history():
        data: Any = version.to_dict()
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        assert data["operator"] == str(version.id)
        assert data["has_function"] == version.has_function
        assert [each["name"] for each in data["inputs"]] == [each.name for each in version.inputs]
        assert [each["type"] for each in data["outputs"]] == [each.type for each in version.outputs]
        assert {
            name: tuple(types) for name, types in data["type_constraints"].items()
        } == version.type_constraints
        assert {n: each["description"] for n, each in data["attributes"].items()} == {
            name: each.description for name, each in version.attributes.items()
        }
        assert not {"step", "before"} & set(data)


def test_to_dict_writes_infinity_as_text() -> None:
    limits = {
        "low": Attribute(type="FLOAT", default=-math.inf),
        "high": Attribute(type="FLOATS", default=(math.nan,)),
    }
    version = OperatorVersion(domain="com.acme", name="Clip", since_version=1, attributes=limits)
    data: Any = version.to_dict()["attributes"]
    assert (data["low"]["default"], data["high"]["default"]) == ("-inf", ["nan"])
