"""Parsing of the actions that a definition declares for each direction of a step."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from pydantic import ValidationError

from opshift.registry.record import from_plain_data
from opshift.registry.steps import (
    VERBS,
    AddAttribute,
    AttributeToInput,
    DropAttribute,
    IgnoreAttribute,
    InputToAttribute,
    Refuse,
    RenameAttribute,
    RenameOp,
    RenameValue,
    RequireAttribute,
    RequireNoInput,
    RequireNoOutput,
    Step,
    Verb,
    parse_action,
)

VERB_ROWS: dict[str, tuple[Any, Verb]] = {
    "drop an attribute": ({"drop_attribute": "saturate"}, DropAttribute(attribute="saturate")),
    "drop an attribute with all keys": (
        {"drop_attribute": {"attribute": "saturate"}},
        DropAttribute(attribute="saturate"),
    ),
    "ignore an attribute": (
        {"ignore_attribute": "consumed_inputs"},
        IgnoreAttribute(attribute="consumed_inputs"),
    ),
    "add a number": (
        {"add_attribute": {"attribute": "min", "value": 0.5}},
        AddAttribute(attribute="min", value=0.5),
    ),
    "add a string": (
        {"add_attribute": {"attribute": "mode", "value": "linear"}},
        AddAttribute(attribute="mode", value="linear"),
    ),
    "add a list": (
        {"add_attribute": {"attribute": "axes", "value": [0, 2]}},
        AddAttribute(attribute="axes", value=(0, 2)),
    ),
    "rename an attribute": (
        {"rename_attribute": {"attribute": "paddings", "to": "pads"}},
        RenameAttribute(attribute="paddings", to="pads"),
    ),
    "an attribute becomes the input of its name": (
        {"attribute_to_input": "axes"},
        AttributeToInput(attribute="axes"),
    ),
    "an attribute becomes a different input": (
        {"attribute_to_input": {"attribute": "k", "input": "K", "rank": 1}},
        AttributeToInput(attribute="k", input="K", rank=1),
    ),
    "an input becomes the attribute of its name": (
        {"input_to_attribute": "axes"},
        InputToAttribute(input="axes"),
    ),
    "an input becomes a different attribute": (
        {"input_to_attribute": {"input": "K", "attribute": "k"}},
        InputToAttribute(input="K", attribute="k"),
    ),
    "require a value": (
        {"require_attribute": {"attribute": "spatial", "value": 1}},
        RequireAttribute(attribute="spatial", value=1),
    ),
    "rename values": (
        {"rename_value": {"attribute": "mode", "values": {"bilinear": "linear"}}},
        RenameValue(attribute="mode", values={"bilinear": "linear"}),
    ),
    "require that an input is not used": ({"require_no_input": "roi"}, RequireNoInput(input="roi")),
    "require that an output is not used": ({"require_no_output": "mask"}, RequireNoOutput(output="mask")),
    "rename the operator": ({"rename_op": "Resize"}, RenameOp(op_type="Resize")),
}


@pytest.mark.parametrize(("data", "verb"), VERB_ROWS.values(), ids=VERB_ROWS)
def test_parses_a_verb(data: Any, verb: Verb) -> None:
    assert parse_action([data]) == (verb,)
    assert from_plain_data(Step, {"up": [data], "down": [data]}) == Step(up=(verb,), down=(verb,))  # type: ignore[arg-type]  # each row has a Verb


def test_the_table_covers_every_verb() -> None:
    assert {type(verb) for _, verb in VERB_ROWS.values()} == set(VERBS.values())


def test_the_table_of_verbs_uses_their_names() -> None:
    assert {name: verb.name for name, verb in VERBS.items()} == {name: name for name in VERBS}


def test_keeps_a_parsed_verb() -> None:
    verb = DropAttribute(attribute="saturate")
    assert parse_action((verb,)) == (verb,)


def test_keeps_the_order_of_verbs() -> None:
    verbs = [data for data, _ in VERB_ROWS.values()]
    assert parse_action(verbs) == tuple(verb for _, verb in VERB_ROWS.values())


def test_an_input_and_its_attribute_share_a_name_by_default() -> None:
    assert AttributeToInput(attribute="k", input="K").input_name == "K"
    assert AttributeToInput(attribute="axes").input_name == "axes"
    assert InputToAttribute(input="K", attribute="k").attribute_name == "k"
    assert InputToAttribute(input="axes").attribute_name == "axes"


ACTIONS: dict[str, tuple[Any, Any]] = {
    "compatible": ("compatible", "compatible"),
    "an adapter": ("adapter", "adapter"),
    "a refusal": ({"refuse": "it has no successor"}, Refuse(refuse="it has no successor")),
    "a refusal with a remedy": (
        {"refuse": "it has no successor", "remedy": "export the model again"},
        Refuse(refuse="it has no successor", remedy="export the model again"),
    ),
    "no action": (None, None),
}


@pytest.mark.parametrize(("data", "action"), ACTIONS.values(), ids=ACTIONS)
def test_parses_an_action(data: Any, action: Any) -> None:
    assert from_plain_data(Step, {"change": "It is new.", "up": data}) == Step(change="It is new.", up=action)


INVALID_ACTIONS: dict[str, tuple[Any, str]] = {
    "an unknown word": ("compatibel", "Input should be 'compatible' or 'adapter'"),
    "a refusal without a sentence": ({"refuse": "no"}, "at least 10 characters"),
    "a refusal with an unknown key": (
        {"refuse": "it has no successor", "why": "so"},
        "Unexpected keyword",
    ),
    "an unknown verb": (
        [{"remove_attribute": "axes"}],
        "unknown verb 'remove_attribute'; expected one of add_attribute, ",
    ),
    "a verb with two keys": (
        [{"drop_attribute": "axes", "rename_op": "Resize"}],
        "expected a verb, which is a mapping with one key, got {'drop_attribute'",
    ),
    "a verb without a key": ([{}], "expected a verb, which is a mapping with one key, got {}"),
    "a string in a list": (
        ["compatible"],
        "expected a verb, which is a mapping with one key, got 'compatible'",
    ),
    "a verb without a value": ([{"add_attribute": "axes"}], "Field required"),
    "a verb without a name": ([{"rename_attribute": {"to": "pads"}}], "Field required"),
    "a verb with an unknown key": (
        [{"drop_attribute": {"attribute": "axes", "if": 0}}],
        "Unexpected keyword",
    ),
    "a verb with a number": ([{"drop_attribute": 3}], "valid string"),
    "an invalid rank": (
        [{"attribute_to_input": {"attribute": "k", "rank": 2}}],
        "Input should be 0 or 1",
    ),
}


@pytest.mark.parametrize(("data", "reason"), INVALID_ACTIONS.values(), ids=INVALID_ACTIONS)
def test_refuses_an_invalid_action(data: Any, reason: str) -> None:
    for direction in ("up", "down"):
        with pytest.raises(ValidationError) as caught:
            from_plain_data(Step, {direction: data})
        assert reason in str(caught.value)


def test_refuses_an_unknown_key_of_a_step() -> None:
    with pytest.raises(ValidationError, match="Unexpected keyword"):
        from_plain_data(Step, {"up": "compatible", "sideways": "adapter"})


@pytest.mark.parametrize("verb", [verb for _, verb in VERB_ROWS.values()], ids=VERB_ROWS)
def test_a_verb_is_immutable(verb: Verb) -> None:
    field = next(iter(fields(verb))).name
    with pytest.raises(FrozenInstanceError):
        setattr(verb, field, "other")
