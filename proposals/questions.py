"""Templates for the files of a new proposal, with comments that ask for the missing content."""

from __future__ import annotations

from string import Template
from typing import Final

PROPOSAL_FILE: Final = Template("""\
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

OPERATOR_FILE: Final = Template("""\
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

BEFORE_BODY: Final = "  before: body"
BEFORE_PRIMITIVE: Final = """\
  # Conversion of a node to the previous opset: `adapter`, or {refuse: the reason}.
  # before:"""
BODY: Final = """\
  # Function body: the same computation with existing operators of the opsets in opset_imports.
  body:
    opset_imports: {ai.onnx: 18}
    nodes:
    - {op_type: Identity, inputs: [X], outputs: [Y]}
"""
STEP: Final = """\
  step:
    # What changed, and how does that affect models that are converted?
    change: ''
    # Conversion of a node of the previous version to this one: `compatible`, `adapter`, or verbs.
    # up:
    # Conversion back: as above, or {refuse: the reason}.
    # down:
"""
DEPRECATION: Final = """\
  # Replacement in the operator set, and the mapping of inputs and attributes to it.
  deprecation: {replaced_by: null, mapping: ''}
"""
REMOVAL: Final = Template("""\
  removal:
    removed_in: $opset
    # Replacement in the operator set, and the mapping of inputs and attributes to it.
    replaced_by: null
    mapping: ''
    # Conversion of a node to the replacement: `adapter`, or verbs.
    up: {refuse: not decided yet}
""")

REFERENCE_FILE: Final = Template('''\
"""$name in numpy."""

import numpy as np


def reference($inputs$attributes):
    """Inputs are positional, `None` if omitted; attributes are passed by name, with defaults applied.

    Returns an array, or a tuple of arrays.
    """
    raise NotImplementedError("reference of $name")
''')

EXAMPLES_FILE: Final = """\
# Each example is run with the reference, the body and the adapters, in every allowed element type.
# Cover each attribute and optional input, both present and omitted, and empty tensors, scalars, nan and inf.
# Add `outputs` only if they come from an independent source.
examples:
- name: default
  inputs:
  - {type: float, values: [[-1, 0], [0.5, 2]]}
"""

ADAPTERS_FILE: Final = Template('''\
"""Adapters of $name for opset $opset."""

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

# If `up` or `down` in operator.yaml is `adapter`, implement it here; otherwise delete this file.
#
# @adapter("$name", $previous, $opset, domain="$domain")
# def convert_node(node: Node, out: Rewriter) -> None:
#     """Convert a node of version $previous to version $opset."""
#     out.become(node)
''')
