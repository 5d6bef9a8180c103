"""What `proposal.yaml` and `examples.yaml` hold."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from opshift.registry.frozen import Frozen

Kind = Literal["new-operator", "new-function", "update", "deprecation", "removal", "promotion"]
KINDS: tuple[Kind, ...] = (
    "new-operator", "new-function", "update", "deprecation", "removal", "promotion"
)  # fmt: skip
State = Literal["draft", "proposed", "in-review", "accepted", "withdrawn"]
INTRODUCING: frozenset[str] = frozenset({"new-operator", "new-function", "promotion"})
"""The kinds that bring an operator which its domain has not."""


class Person(Frozen):
    """Who wrote the proposal."""

    name: str
    email: str = ""


class Framework(Frozen):
    """A framework that has the operator: what it calls it, where that is described, how it differs."""

    name: str
    function: str = ""
    link: str = ""
    differs: str = ""


class SignOff(Frozen):
    """Somebody's consent to the content that has this fingerprint."""

    name: str
    date: str
    fingerprint: str


class Operators(Frozen):
    """Which operator the proposal is about."""

    domain: str = "ai.onnx"
    name: str


class Proposal(Frozen):
    """`proposal.yaml`; what is left empty a rule asks for where the kind needs it."""

    kind: Kind
    title: str
    operator: Operators
    author: Person
    certificate: str = ""
    """The author's `Name <email>` under the Developer Certificate of Origin."""
    motivation: str = ""
    model: str = ""
    """A link to a public model that needs it."""
    frameworks: tuple[Framework, ...] = ()
    formula: str = ""
    source: str = ""
    """A link to where the formula comes from: a paper, a framework's documentation."""
    numpy: str = ""
    """The numpy function whose meaning it has, such as `numpy.clip`."""
    primitive_reason: str = ""
    """Of an operator without a body: why others cannot express it."""
    alternatives: str = ""
    mapping: str = ""
    """Of a deprecation, removal or promotion: how the old operator's nodes become the new one's."""
    promotes: str = ""
    """Of a promotion: the experimental operator, as `ai.onnx.preview.FlexAttention:1`."""
    state: State = "draft"
    sign_offs: tuple[SignOff, ...] = ()


class Given(Frozen):
    """One input of an example, as its values or as what makes them."""

    type: str = "float"
    values: Any
    """Nested lists, `[]` for none, a number for a scalar; `nan`, `inf` and `-inf` as text too."""
    shape: tuple[int, ...] | None = None
    """Needed where the values do not tell it, as of an empty tensor."""


class Example(Frozen):
    """A node with its inputs and, unless the reference is to compute them, its outputs."""

    name: Annotated[str, Field(min_length=1)]
    about: str = ""
    version: int | None = None
    """The version of the operator that the node is of, if not the one that is proposed."""
    inputs: tuple[Given | None, ...] = ()
    """By position; `null` for one left out."""
    attributes: dict[str, Any] = {}
    outputs: tuple[Given | None, ...] | None = None
    """What has to come out; by default whatever the reference computes."""
    tolerance: Annotated[float, Field(ge=0)] | None = None
    """Relative and absolute; by default what the element type bears."""


class Examples(Frozen):
    """`examples.yaml`."""

    examples: tuple[Example, ...] = ()
