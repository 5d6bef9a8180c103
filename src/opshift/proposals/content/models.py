"""Pydantic classes for `proposal.yaml` and `examples.yaml`, and a check of attribute values."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from opshift.registry.attribute_values import stored_value
from opshift.registry.models import Attribute

Kind = Literal["new-operator", "new-function", "update", "deprecation", "removal", "promotion"]

KINDS: tuple[Kind, ...] = get_args(Kind)

State = Literal["draft", "proposed", "in-review", "accepted", "withdrawn"]

INTRODUCING_KINDS: frozenset[str] = frozenset({"new-operator", "new-function", "promotion"})
"""Kinds of proposals that add an operator to its domain."""


class Frozen(BaseModel):
    """Immutable data class that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Person(Frozen):
    """Author of a proposal."""

    name: str
    email: str = ""


class Framework(Frozen):
    """Framework with an equivalent function, a link to the documentation, and the semantic differences."""

    name: str
    function: str = ""
    link: str = ""
    differs: str = ""


class SignOff(Frozen):
    """Approval by a reviewer of the content with this fingerprint."""

    name: str
    date: str
    fingerprint: str
    signature: str = ""
    """SSH signature of fingerprint, date and name, in base64; empty if the sign-off is not signed."""


class OperatorName(Frozen):
    """Domain and name of the proposed operator."""

    domain: str = "ai.onnx"
    name: str


class Proposal(Frozen):
    """Content of `proposal.yaml`. Rules report empty fields that the kind of proposal requires."""

    kind: Kind
    title: str
    operator: OperatorName
    author: Person
    certificate: str = ""
    """`Name <email>` of the author, who thereby certifies the Developer Certificate of Origin."""
    motivation: str = ""
    model: str = ""
    """Link to a public model that needs the operator."""
    frameworks: tuple[Framework, ...] = ()
    formula: str = ""
    source: str = ""
    """Link to the source of the formula: a paper or the documentation of a framework."""
    numpy: str = ""
    """numpy function with the same semantics, such as `numpy.clip`."""
    primitive_reason: str = ""
    """For an operator without a body: the reason why existing operators cannot express it."""
    alternatives: str = ""
    mapping: str = ""
    """For a deprecation, removal or promotion: how to convert nodes of the old operator to the new one."""
    promotes: str = ""
    """For a promotion: the preview or private operator, such as `ai.onnx.preview.FlexAttention:1`."""
    state: State = "draft"
    sign_offs: tuple[SignOff, ...] = ()


class ExampleTensor(Frozen):
    """Tensor given in an example, as an input or an expected output."""

    type: str = "float"
    values: Any
    """Elements as nested lists, or a number for a scalar; `nan`, `inf` and `-inf` may be strings."""
    shape: tuple[int, ...] | None = None
    """Required if `values` does not determine the shape, such as `[0, 2]` for an empty tensor."""


class Example(Frozen):
    """Node with its inputs and, optionally, its expected outputs."""

    name: Annotated[str, Field(min_length=1)]
    about: str = ""
    version: int | None = None
    """`since_version` of the node's operator version; `None` for the proposed version."""
    inputs: tuple[ExampleTensor | None, ...] = ()
    """Inputs by position; `null` for an omitted input."""
    attributes: dict[str, Any] = {}
    outputs: tuple[ExampleTensor | None, ...] | None = None
    """Expected outputs by position; `None` if the example does not declare them."""
    tolerance: Annotated[float, Field(ge=0)] | None = None
    """Relative and absolute tolerance; `None` for the default of the element type."""


class ExampleFile(Frozen):
    """Content of `examples.yaml`."""

    examples: tuple[Example, ...] = ()


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"FLOAT": (int, float), "INT": (int,), "STRING": (str,)}


def attribute_value_problem(name: str, value: object, declared: Attribute) -> str | None:
    """Return the reason why a value does not match the type of an attribute; `None` if it matches.

    Only numbers, strings and lists of these match: the YAML files cannot contain graphs or tensors.
    """
    listed = value if isinstance(value, list | tuple) else (value,)
    allowed = _PYTHON_TYPES.get(declared.type.removesuffix("S"), ())
    # In Python, bool is a subclass of int, but it is not an ONNX attribute type.
    has_type = all(isinstance(each, allowed) and not isinstance(each, bool) for each in listed)
    if not has_type or isinstance(value, list | tuple) != declared.type.endswith("S"):
        return f"expected a value of type {declared.type} for {name!r}, got {value!r}"
    try:
        for each in listed:
            if isinstance(each, int | float):
                stored_value(each, declared.type.removesuffix("S"))
    except ValueError as error:
        return f"{name!r}: {error}"
    return None
