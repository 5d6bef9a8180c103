"""The data types: how many values a node may list, what an attribute may hold, and that nothing changes."""

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
from opshift.registry.record import checked, plain
from opshift.registry.steps import Refuse, Step

X = Parameter(name="X", type="tensor(float)")


def _parameters(*options: Any) -> tuple[Parameter, ...]:
    """A word is an option, a number the least count of a variadic parameter."""
    return tuple(
        Parameter(name=f"p{i}", type="tensor(float)", option="variadic", min_arity=option)
        if isinstance(option, int)
        else Parameter(name=f"p{i}", type="tensor(float)", option=option)
        for i, option in enumerate(options)
    )


def _version(since_version: int = 1, **fields: Any) -> OperatorVersion:
    return OperatorVersion(domain="com.acme", name="Blur", since_version=since_version, **fields)


# How many inputs and outputs

ARITIES: dict[str, tuple[tuple[Any, ...], int, int]] = {
    "none": ((), 0, 0),
    "one": (("single",), 1, 1),
    "two": (("single", "single"), 2, 2),
    "optional ones behind count at most": (("single", "optional", "optional"), 1, 3),
    "optional ones only": (("optional", "optional"), 0, 2),
    "an optional one before one that has to be there counts": (("optional", "single"), 2, 2),
    "any number, but one": ((1,), 1, UNBOUNDED),
    "any number, even none": ((0,), 0, UNBOUNDED),
    "any number from two on": ((2,), 2, UNBOUNDED),
    "one, and any number behind it": (("single", 1), 2, UNBOUNDED),
    "one, and any number behind it, even none": (("single", 0), 1, UNBOUNDED),
    "an optional one before any number": (("single", "optional", 1), 3, UNBOUNDED),
}


@pytest.mark.parametrize(("options", "least", "most"), ARITIES.values(), ids=ARITIES)
def test_parameters_say_how_many_a_node_may_list(options: tuple[Any, ...], least: int, most: int) -> None:
    parameters = _parameters(*options)
    takes, gives = _version(inputs=parameters), _version(outputs=parameters)
    assert (takes.min_input, takes.max_input, takes.min_output, takes.max_output) == (least, most, 0, 0)
    assert (gives.min_input, gives.max_input, gives.min_output, gives.max_output) == (0, 0, least, most)


# What a version answers


def test_a_version_is_named_by_domain_name_and_opset() -> None:
    assert str(_version(3).id) == "com.acme.Blur:3"
    assert _version(3).id == ("com.acme", "Blur", 3)


def test_a_version_has_its_description_under_the_name_that_onnx_uses() -> None:
    assert _version(description="Blurs a picture.").doc == "Blurs a picture."


def test_a_version_is_deprecated_if_it_says_what_replaced_it() -> None:
    assert _version(deprecation=Deprecation(replaced_by="Sharpen")).deprecated
    assert not _version().deprecated


def test_a_parameter_has_the_types_of_its_variable_or_its_own() -> None:
    version = _version(
        inputs=(Parameter(name="X", type="T"), Parameter(name="axes", type="tensor(int64)")),
        type_constraints={"T": ("tensor(double)", "tensor(float)")},
    )
    assert [version.types_of(each) for each in version.inputs] == [
        ("tensor(double)", "tensor(float)"),
        ("tensor(int64)",),
    ]


def test_parameters_are_found_by_name_with_their_position() -> None:
    version = _version(inputs=_parameters("single", "optional"), outputs=_parameters("single"))
    assert version.input_named("p1") == (1, version.inputs[1])
    assert version.output_named("p0") == (0, version.outputs[0])
    assert (version.input_named("p2"), version.output_named("p1")) == (None, None)


# Which version is in force

LASTING = Operator(domain="com.acme", name="Blur", versions=(_version(2), _version(6), _version(13)))
LEAVING = Operator(
    domain="com.acme",
    name="Blur",
    versions=(
        _version(2),
        _version(6, removal=Removal(removed_in=9, up=Refuse(refuse="it has no successor"))),
    ),
)
IN_FORCE = {
    "before the first": (LASTING, 1, None),
    "at the first": (LASTING, 2, 2),
    "just before the second": (LASTING, 5, 2),
    "at the second": (LASTING, 6, 6),
    "at the last": (LASTING, 13, 13),
    "long after the last": (LASTING, 1000, 13),
    "no opset at all": (LASTING, 0, None),
    "below the opsets": (LASTING, -1, None),
    "of one that leaves, the first": (LEAVING, 2, 2),
    "of one that leaves, the last": (LEAVING, 8, 6),
    "as it leaves": (LEAVING, 9, None),
    "after it left": (LEAVING, 10, None),
}


@pytest.mark.parametrize(("operator", "opset", "since"), IN_FORCE.values(), ids=IN_FORCE)
def test_the_version_in_force_is_the_last_not_above_the_opset(
    operator: Operator, opset: int, since: int | None
) -> None:
    found = operator.at(opset)
    assert (found.since_version if found else None) == since


# What an attribute may hold

MODE = Attribute(type="STRING", values=("nearest", "linear"))
FLAG = Attribute(type="INT", values=(0, 1))
FROM_ONE = Attribute(type="INT", minimum=1)
SHARE = Attribute(type="FLOAT", minimum=0, maximum=1)
UP_TO_FOUR = Attribute(type="INTS", maximum=4)
ALLOWED = {
    "anything where nothing is declared": (Attribute(type="INT"), -5, True),
    "any string where nothing is declared": (Attribute(type="STRING"), "", True),
    "a declared word": (MODE, "linear", True),
    "a word that is not declared": (MODE, "cubic", False),
    "a word in another case": (MODE, "Linear", False),
    "a declared number": (FLAG, 1, True),
    "a number that is not declared": (FLAG, 2, False),
    "the minimum": (FROM_ONE, 1, True),
    "below the minimum": (FROM_ONE, 0, False),
    "far above a minimum": (FROM_ONE, 10**9, True),
    "the maximum": (SHARE, 1.0, True),
    "above the maximum": (SHARE, 1.5, False),
    "between": (SHARE, 0.25, True),
    "below both": (SHARE, -0.5, False),
    "an element at the maximum": (UP_TO_FOUR, 4, True),
    "an element above the maximum": (UP_TO_FOUR, 5, False),
    "an element far below the maximum": (UP_TO_FOUR, -5, True),
}


@pytest.mark.parametrize(("attribute", "value", "allowed"), ALLOWED.values(), ids=ALLOWED)
def test_an_attribute_allows_what_it_declares(
    attribute: Attribute, value: int | float | str, allowed: bool
) -> None:
    assert attribute.allows(value) is allowed


# Defaults

DEFAULTS: dict[str, tuple[dict[str, Any], Any]] = {
    "a float is the nearest of 32 bits": ({"type": "FLOAT", "default": 0.1}, float(np.float32(0.1))),
    "a float that 32 bits hold stays": ({"type": "FLOAT", "default": 0.5}, 0.5),
    "a whole number becomes a float": ({"type": "FLOAT", "default": 1}, 1.0),
    "the largest float": (
        {"type": "FLOAT", "default": 3.4028234663852886e38},
        float(np.finfo(np.float32).max),
    ),
    "infinity": ({"type": "FLOAT", "default": float("-inf")}, float("-inf")),
    "the sign of zero": ({"type": "FLOAT", "default": -0.0}, -0.0),
    "floats, each": ({"type": "FLOATS", "default": [0.1, 1]}, (float(np.float32(0.1)), 1.0)),
    "an integer stays": ({"type": "INT", "default": 16777217}, 16777217),
    "integers": ({"type": "INTS", "default": [0, 2, 3]}, (0, 2, 3)),
    "no integers": ({"type": "INTS", "default": []}, ()),
    "a word": ({"type": "STRING", "default": "NOTSET"}, "NOTSET"),
    "an empty word": ({"type": "STRING", "default": ""}, ""),
    "words": ({"type": "STRINGS", "default": ["LESS", "MORE"]}, ("LESS", "MORE")),
    "none": ({"type": "INT"}, None),
    "none of one that is required": ({"type": "INT", "required": True}, None),
}


@pytest.mark.parametrize(("fields", "default"), DEFAULTS.values(), ids=DEFAULTS)
def test_a_default_is_the_value_that_a_node_would_hold(fields: dict[str, Any], default: object) -> None:
    found = checked(Attribute, fields).default
    assert (repr(found), type(found)) == (repr(default), type(default))


# What cannot be

WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "a required attribute with a default": (
        lambda: Attribute(type="INT", required=True, default=1),
        "a required attribute cannot have a default",
    ),
    "an attribute of no type of ONNX": (lambda: checked(Attribute, {"type": "BOOL"}), "'FLOAT', 'INT'"),
    "a field that does not exist": (
        lambda: checked(Attribute, {"type": "INT", "min": 1}),
        "Unexpected keyword argument",
    ),
    "a type variable without types": (
        lambda: _version(inputs=(Parameter(name="X", type="T"),)),
        "X: 'T' is neither a type nor a type variable",
    ),
    "a type variable of an output without types": (
        lambda: _version(outputs=(Parameter(name="Y", type="T"),)),
        "Y: 'T' is neither a type nor a type variable",
    ),
    "opset 0": (
        lambda: checked(OperatorVersion, {"domain": "com.acme", "name": "Blur", "since_version": 0}),
        "greater than or equal to 1",
    ),
    "a removal from the first opset": (
        lambda: checked(Removal, {"removed_in": 1, "up": {"refuse": "it has no successor"}}),
        "greater than or equal to 2",
    ),
    "no versions": (
        lambda: checked(Operator, {"domain": "com.acme", "name": "Blur", "versions": ()}),
        "at least 1 item",
    ),
    "versions that descend": (
        lambda: Operator(domain="com.acme", name="Blur", versions=(_version(2), _version(1))),
        r"versions must ascend, each once: \[2, 1\]",
    ),
    "a version twice": (
        lambda: Operator(domain="com.acme", name="Blur", versions=(_version(1), _version(1))),
        r"versions must ascend, each once: \[1, 1\]",
    ),
    "a first version with a step": (
        lambda: Operator(domain="com.acme", name="Blur", versions=(_version(1, step=Step(up="compatible")),)),
        "the first version cannot have a step",
    ),
    "a later version that says what was before the operator": (
        lambda: Operator(
            domain="com.acme", name="Blur", versions=(_version(1), _version(2, before="adapter"))
        ),
        "only the first version can have `before`",
    ),
}


@pytest.mark.parametrize(("build", "reason"), WRONG.values(), ids=WRONG)
def test_what_contradicts_itself_is_refused(build: Callable[[], object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        build()


# Nothing changes

FROZEN: dict[str, tuple[Any, str, Any]] = {
    "a parameter": (X, "name", "Y"),
    "an attribute": (MODE, "default", "linear"),
    "a version": (_version(), "since_version", 2),
    "an operator": (LASTING, "versions", ()),
    "a step": (Step(up="compatible"), "up", "adapter"),
    "a refusal": (Refuse(refuse="it has no successor"), "remedy", "use another"),
    "a removal": (LEAVING.versions[1].removal, "removed_in", 10),
    "a deprecation": (Deprecation(), "replaced_by", "Sharpen"),
}


@pytest.mark.parametrize(("value", "field", "other"), FROZEN.values(), ids=FROZEN)
def test_nothing_can_be_assigned(value: Any, field: str, other: object) -> None:
    before = plain(value)
    with pytest.raises(FrozenInstanceError):
        setattr(value, field, other)
    assert plain(value) == before


@pytest.mark.parametrize("value", [row[0] for row in FROZEN.values()], ids=FROZEN)
def test_nothing_can_be_added(value: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        value.colour = "red"
