"""Verbs that change the value of an attribute for nodes that omit it."""

from typing import Any

import pytest

from opshift.registry.models import OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.step_rules import refutations
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    DropAttribute,
    RenameAttribute,
    RenameValue,
    RequireAttribute,
)

Fields = dict[str, Any]

HALF = {"type": "FLOAT", "default": 0.5}
ONE = {"type": "FLOAT", "default": 1.0}
CUBIC = {"type": "STRING", "default": "bicubic", "values": ["bicubic"]}


def _version(since_version: int, attributes: Fields) -> OperatorVersion:
    data = {"domain": "com.acme", "name": "Blur", "since_version": since_version, "attributes": attributes}
    return from_plain_data(OperatorVersion, data)


def _mode(fields: Fields) -> Fields:
    return {"mode": fields}


CHANGED_DEFAULTS: dict[str, tuple[Fields, Fields, tuple[AnyVerb, ...], bool]] = {
    "another value is added": (
        _mode(ONE),
        _mode(HALF),
        (AddAttribute(attribute="mode", value=0.7),),
        True,
    ),
    "the new default is added": (
        _mode(ONE),
        _mode(HALF),
        (AddAttribute(attribute="mode", value=0.5),),
        True,
    ),
    "the old default is added": (_mode(ONE), _mode(HALF), (AddAttribute(attribute="mode", value=1),), False),
    "the old default is added with more digits": (
        _mode({"type": "FLOAT", "default": 0.1}),
        _mode(HALF),
        (AddAttribute(attribute="mode", value=0.10000000149011612),),
        False,
    ),
    "a value out of range is added": (
        _mode(ONE),
        _mode(HALF),
        (AddAttribute(attribute="mode", value=1e300),),
        True,
    ),
    "another value is added at the same default": (
        _mode(ONE),
        _mode(ONE),
        (AddAttribute(attribute="mode", value=0.7),),
        True,
    ),
    "the old default is dropped": (_mode(ONE), _mode(HALF), (DropAttribute(attribute="mode"),), True),
    "the old default is dropped and added": (
        _mode(ONE),
        _mode(HALF),
        (DropAttribute(attribute="mode"), AddAttribute(attribute="mode", value=1.0)),
        False,
    ),
    "the old default is required": (
        _mode(ONE),
        _mode(HALF),
        (RequireAttribute(attribute="mode", value=1.0),),
        True,
    ),
    "the new default is required": (
        _mode(ONE),
        _mode(HALF),
        (RequireAttribute(attribute="mode", value=0.5),),
        False,
    ),
    "an attribute with another default gets the value": (
        _mode(ONE),
        {"method": HALF},
        (RenameAttribute(attribute="mode", to="method"),),
        True,
    ),
    "an attribute with another default gets the value and the old default": (
        _mode(ONE),
        {"method": HALF},
        (RenameAttribute(attribute="mode", to="method"), AddAttribute(attribute="method", value=1.0)),
        False,
    ),
    "the old default is added and renamed": (
        _mode(ONE),
        {"method": HALF},
        (AddAttribute(attribute="mode", value=1.0), RenameAttribute(attribute="mode", to="method")),
        False,
    ),
    "the default is renamed": (
        _mode(CUBIC),
        _mode({**CUBIC, "default": "cubic", "values": ["cubic"]}),
        (RenameValue(attribute="mode", values={"bicubic": "cubic"}),),
        False,
    ),
    "the default is renamed to another one": (
        _mode(CUBIC),
        _mode({**CUBIC, "default": "linear", "values": ["cubic", "linear"]}),
        (RenameValue(attribute="mode", values={"bicubic": "cubic"}),),
        True,
    ),
    "a default that is not allowed is corrected": (
        _mode({"type": "STRING", "default": "foward", "values": ["forward"]}),
        _mode({"type": "STRING", "default": "forward", "values": ["forward"]}),
        (AddAttribute(attribute="mode", value="forward"),),
        False,
    ),
}


@pytest.mark.parametrize(
    ("old", "new", "verbs", "is_refuted"), CHANGED_DEFAULTS.values(), ids=CHANGED_DEFAULTS
)
def test_verbs_keep_the_default_of_a_node(
    old: Fields, new: Fields, verbs: tuple[AnyVerb, ...], is_refuted: bool
) -> None:
    found = refutations(_version(1, old), _version(2, new), verbs)
    assert [each.rule for each in found] == ["default-changed"] * is_refuted
