"""Create the folder of a new proposal, with questions in its files."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

from opshift.model.errors import UsageError
from opshift.proposals.content.folder import ADAPTERS, EXAMPLES, OPERATOR, PROPOSAL, PROPOSAL_FILES, REFERENCE
from opshift.proposals.content.models import INTRODUCING_KINDS, Kind
from opshift.proposals.content.staged_registry import next_opset
from opshift.proposals.content.text_files import (
    quote_yaml,
    version_block,
    without_header,
    without_key,
    write_files,
)
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry


class ProposalRequest(NamedTuple):
    """Kind, operator and author of a new proposal."""

    kind: Kind
    domain: str
    name: str
    author: str = ""
    email: str = ""


def scaffold(path: Path, request: ProposalRequest, registry: Registry) -> tuple[Path, ...]:
    """Write the files of a new proposal.

    Returns:
        The paths of the written files.

    Raises:
        UsageError: the folder already contains a proposal, or the operator to change does not exist.
    """
    if any((path / name).exists() for name in PROPOSAL_FILES):
        raise UsageError(
            "the folder already contains a proposal", place=str(path), remedy="choose another folder"
        )
    texts = _file_contents(request, registry)
    write_files({path / name: text for name, text in texts.items()})
    return tuple(path / name for name in texts)


def _file_contents(request: ProposalRequest, registry: Registry) -> dict[str, str]:
    opset = next_opset(registry, request.domain)
    texts = {PROPOSAL: _proposal_text(request, registry), EXAMPLES: EXAMPLES_TEMPLATE}
    if request.kind in INTRODUCING_KINDS:
        return {
            **texts,
            OPERATOR: _new_definition(request, opset),
            REFERENCE: _reference_text(request.name, None),
        }
    operator = _published_operator(request, registry)
    newest = operator.versions[-1]
    texts |= {
        OPERATOR: _changed_definition(request, operator, registry, opset),
        REFERENCE: _reference_text(request.name, newest),
    }
    if request.kind == "removal":
        return texts
    names = {"name": request.name, "domain": request.domain, "opset": opset, "previous": newest.since_version}
    return {**texts, ADAPTERS: ADAPTERS_TEMPLATE.substitute(names)}


def _proposal_text(request: ProposalRequest, registry: Registry) -> str:
    promoted = registry.operator(request.name, "ai.onnx.preview") if request.kind == "promotion" else None
    return PROPOSAL_TEMPLATE.substitute(
        kind=request.kind,
        title=quote_yaml(""),
        domain=request.domain,
        name=request.name,
        author=quote_yaml(request.author),
        email=quote_yaml(request.email),
        promotes=promoted.versions[-1].id if promoted else "",
    )


def _new_definition(request: ProposalRequest, opset: int) -> str:
    is_preview = "preview" in request.domain.split(".")
    has_body = request.kind == "new-function"
    return OPERATOR_TEMPLATE.substitute(
        domain=request.domain,
        name=request.name,
        opset=1 if is_preview else opset,
        status="EXPERIMENTAL" if is_preview else "STABLE",
        before=BEFORE_AS_BODY if has_body else BEFORE_TEMPLATE,
        body=BODY_TEMPLATE if has_body else "",
    )


def _published_operator(request: ProposalRequest, registry: Registry) -> Operator:
    operator = registry.operator(request.name, request.domain)
    if operator is None:
        raise UsageError(
            f"domain {request.domain!r} has no operator {request.name!r}",
            remedy="check the name, or propose a new operator",
        )
    return operator


def _changed_definition(request: ProposalRequest, operator: Operator, registry: Registry, opset: int) -> str:
    """Return the published definition with a new version, a copy of the last one, or with a removal."""
    path = registry.file_of(request.name, request.domain)
    text = without_header(path.read_text("utf-8")).rstrip("\n") + "\n"
    if request.kind == "removal":
        return text + REMOVAL_TEMPLATE.substitute(opset=opset)
    # The copied version declares its own step, so those of its source are removed.
    block = without_key(without_key(version_block(path, len(operator.versions) - 1), "step"), "before")
    block = re.sub(
        r"^- since_version: \d+\n(  status: \w+\n)?", rf"- since_version: {opset}\n\1" + "{step}", block
    )
    deprecation = DEPRECATION_TEMPLATE if request.kind == "deprecation" else ""
    return text + block.replace("{step}", STEP_TEMPLATE) + deprecation


def _reference_text(name: str, version: OperatorVersion | None) -> str:
    inputs = ", ".join(each.name for each in version.inputs) if version else "X"
    attributes = "".join(f", {each}" for each in version.attributes) if version else ""
    keywords = f", *{attributes}" if attributes else ""
    return REFERENCE_TEMPLATE.substitute(name=name, inputs=inputs, attributes=keywords)


PROPOSAL_TEMPLATE: Final = Template("""\
# Fill in each key; `opshift proposal explain RULE` describes the rule that requires it.
kind: $kind
# A short title.
title: $title
operator: {domain: $domain, name: $name}
author: {name: $author, email: $email}
# Your `Name <email>`, if you certify the Developer Certificate of Origin.
certificate: ''
# Who needs the operator, for which purpose, and what do they use today?
motivation: ''
# Link to a public model that needs the operator.
model: ''
# Frameworks with an equivalent function: its name, a link to the documentation, and the differences.
# - {name: , function: , link: 'https://...', differs: }
frameworks: []
# Formula or pseudocode of the computation.
formula: ''
# Link to the source of the formula.
source: ''
# numpy function with the same semantics, such as numpy.clip. Leave it empty if there is none.
numpy: ''
# Operator without a body: why can existing operators not express it?
primitive_reason: ''
# Which alternatives were considered, and why were they rejected?
alternatives: ''
# Deprecation, removal or promotion: how are nodes of the old operator converted to the new one?
mapping: ''
# Promotion: the experimental operator that becomes stable.
promotes: '$promotes'
state: draft
sign_offs: []
""")

OPERATOR_TEMPLATE: Final = Template("""\
domain: $domain
name: $name
# Description of the computation for users, in a few sentences.
description: ''
# Rule of registry/shapes that infers the shapes of the outputs.
shape: ''
versions:
- since_version: $opset
  status: $status
$before
  inputs:
  - {name: X, type: T}
  outputs:
  - {name: Y, type: T}
  type_constraints:
    T: [all_float_types_ir4]
$body""")

BEFORE_AS_BODY: Final = "  before: body"

BEFORE_TEMPLATE: Final = """\
  # Conversion of a node to the previous opset: `adapter`, or {refuse: the reason}.
  # before:"""

BODY_TEMPLATE: Final = """\
  # Function body: the same computation with existing operators of the opsets in opset_imports.
  body:
    opset_imports: {ai.onnx: 18}
    nodes:
    - {op_type: Identity, inputs: [X], outputs: [Y]}
"""

STEP_TEMPLATE: Final = """\
  step:
    # What changed, and how does that affect models that are converted?
    change: ''
    # Conversion of a node of the previous version to this one: `compatible`, `adapter`, or verbs.
    # up:
    # Conversion back: as above, or {refuse: the reason}.
    # down:
"""

DEPRECATION_TEMPLATE: Final = """\
  # Replacement in the operator set, and the mapping of inputs and attributes to it.
  deprecation: {replaced_by: null, mapping: ''}
"""

REMOVAL_TEMPLATE: Final = Template("""\
  removal:
    removed_in: $opset
    # Replacement in the operator set, and the mapping of inputs and attributes to it.
    replaced_by: null
    mapping: ''
    # Conversion of a node to the replacement: `adapter`, or verbs.
    up: {refuse: not decided yet}
""")

REFERENCE_TEMPLATE: Final = Template('''\
"""$name in numpy."""

import numpy as np


def reference($inputs$attributes):
    """Inputs are positional, `None` if omitted; attributes are passed by name, with defaults applied.

    Returns an array, or a tuple of arrays.
    """
    raise NotImplementedError("reference of $name")
''')

EXAMPLES_TEMPLATE: Final = """\
# Each example is run with the reference, the body and the adapters, in every allowed element type.
# Cover each attribute and optional input, both present and omitted, and empty tensors, scalars, nan and inf.
# Add `outputs` only if they come from an independent source.
examples:
- name: default
  inputs:
  - {type: float, values: [[-1, 0], [0.5, 2]]}
"""

ADAPTERS_TEMPLATE: Final = Template('''\
"""Adapters of $name for opset $opset."""

from opshift.adapters import Node
from opshift.adapters import CannotConvert
from opshift.adapters import Rewriter
from opshift.adapters import adapter

# If `up` or `down` in operator.yaml is `adapter`, implement it here; otherwise delete this file.
#
# @adapter("$name", $previous, $opset, domain="$domain")
# def convert_node(node: Node, out: Rewriter) -> None:
#     """Convert a node of version $previous to version $opset."""
#     out.become(node)
''')
