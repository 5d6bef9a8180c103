"""Steps as data: what a file may say of a direction, and what it means."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from pydantic import ValidationError

from opshift.registry.record import checked
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
    answer_of,
)

WRITTEN: dict[str, tuple[Any, Verb]] = {
    "drop an attribute": ({"drop_attribute": "saturate"}, DropAttribute(attribute="saturate")),
    "drop an attribute, in full": (
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
    "add a word": (
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
    "an attribute feeds the input of its name": (
        {"attribute_to_input": "axes"},
        AttributeToInput(attribute="axes"),
    ),
    "an attribute feeds another input": (
        {"attribute_to_input": {"attribute": "k", "input": "K", "rank": 1}},
        AttributeToInput(attribute="k", input="K", rank=1),
    ),
    "an input becomes the attribute of its name": (
        {"input_to_attribute": "axes"},
        InputToAttribute(input="axes"),
    ),
    "an input becomes another attribute": (
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
    "another operator": ({"rename_op": "Resize"}, RenameOp(op_type="Resize")),
}


@pytest.mark.parametrize(("written", "verb"), WRITTEN.values(), ids=WRITTEN)
def test_a_verb_is_read(written: Any, verb: Verb) -> None:
    assert answer_of([written]) == (verb,)
    assert checked(Step, {"up": [written], "down": [written]}) == Step(up=(verb,), down=(verb,))  # type: ignore[arg-type]  # a row's verb is some Verb


def test_every_verb_is_in_the_table() -> None:
    assert {type(verb) for _, verb in WRITTEN.values()} == set(VERBS.values())


def test_a_verb_is_found_by_the_name_it_says() -> None:
    assert {name: verb.name for name, verb in VERBS.items()} == {name: name for name in VERBS}


def test_a_verb_that_is_one_already_stays() -> None:
    verb = DropAttribute(attribute="saturate")
    assert answer_of((verb,)) == (verb,)


def test_verbs_keep_their_order() -> None:
    verbs = [written for written, _ in WRITTEN.values()]
    assert answer_of(verbs) == tuple(verb for _, verb in WRITTEN.values())


def test_names_of_inputs_and_attributes_default_to_each_other() -> None:
    assert AttributeToInput(attribute="k", input="K").input_name == "K"
    assert AttributeToInput(attribute="axes").input_name == "axes"
    assert InputToAttribute(input="K", attribute="k").attribute_name == "k"
    assert InputToAttribute(input="axes").attribute_name == "axes"


ANSWERS: dict[str, tuple[Any, Any]] = {
    "compatible": ("compatible", "compatible"),
    "an adapter": ("adapter", "adapter"),
    "a refusal": ({"refuse": "it has no successor"}, Refuse(refuse="it has no successor")),
    "a refusal with a remedy": (
        {"refuse": "it has no successor", "remedy": "export the model again"},
        Refuse(refuse="it has no successor", remedy="export the model again"),
    ),
    "none": (None, None),
}


@pytest.mark.parametrize(("written", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_read(written: Any, answer: Any) -> None:
    assert checked(Step, {"change": "It is new.", "up": written}) == Step(change="It is new.", up=answer)


NOT_ANSWERS: dict[str, tuple[Any, str]] = {
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
    "a verb of two keys": (
        [{"drop_attribute": "axes", "rename_op": "Resize"}],
        "expected a verb, which is a mapping with one key, got {'drop_attribute'",
    ),
    "a verb of no key": ([{}], "expected a verb, which is a mapping with one key, got {}"),
    "a bare word in a list": (
        ["compatible"],
        "expected a verb, which is a mapping with one key, got 'compatible'",
    ),
    "a verb that lacks a value": ([{"add_attribute": "axes"}], "Field required"),
    "a verb that lacks a name": ([{"rename_attribute": {"to": "pads"}}], "Field required"),
    "a verb with an unknown key": (
        [{"drop_attribute": {"attribute": "axes", "if": 0}}],
        "Unexpected keyword",
    ),
    "a verb of a number": ([{"drop_attribute": 3}], "valid string"),
    "a rank that is none": (
        [{"attribute_to_input": {"attribute": "k", "rank": 2}}],
        "Input should be 0 or 1",
    ),
}


@pytest.mark.parametrize(("written", "reason"), NOT_ANSWERS.values(), ids=NOT_ANSWERS)
def test_what_is_no_answer_is_refused(written: Any, reason: str) -> None:
    for direction in ("up", "down"):
        with pytest.raises(ValidationError) as caught:
            checked(Step, {direction: written})
        assert reason in str(caught.value)


def test_a_step_has_no_other_keys() -> None:
    with pytest.raises(ValidationError, match="Unexpected keyword"):
        checked(Step, {"up": "compatible", "sideways": "adapter"})


@pytest.mark.parametrize("verb", [verb for _, verb in WRITTEN.values()], ids=WRITTEN)
def test_a_verb_does_not_change(verb: Verb) -> None:
    field = next(iter(fields(verb))).name
    with pytest.raises(FrozenInstanceError):
        setattr(verb, field, "other")
