"""What a new proposal starts from: its files, with the questions that they answer."""

from __future__ import annotations

from string import Template
from typing import Final

PROPOSAL_FILE: Final = Template("""\
# Every key below answers a question; `opshift proposal explain RULE` says why it is asked.
kind: $kind
# What is it, in a few words?
title: $title
operator: {domain: $domain, name: $name}
author: {name: $author, email: $email}
# Do you certify its origin (Developer Certificate of Origin)? Then write your `Name <email>`.
certificate: ''
# Who needs it, what for, and what do they do today?
motivation: ''
# Which public model needs it? A link.
model: ''
# Which frameworks have it, under which name, where is that described, and where does it differ?
# - {name: , function: , link: 'https://...', differs: }
frameworks: []
# What does it compute? A formula, or pseudocode.
formula: ''
# Where does the formula come from? A link.
source: ''
# Which numpy function has the same meaning? None: leave it empty.
numpy: ''
# Of an operator without a body: why can others not express it?
primitive_reason: ''
# What else was considered, and why not?
alternatives: ''
# Of a deprecation, removal or promotion: how do the old operator's nodes become the new one's?
mapping: ''
# Of a promotion: which experimental operator becomes stable?
promotes: '$promotes'
state: draft
sign_offs: []
""")

OPERATOR_FILE: Final = Template("""\
domain: $domain
name: $name
# What does it compute? For its users, in a few sentences.
description: ''
# Which rule of registry/shapes gives the shapes of its outputs?
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
  # How is a node expressed in the opset before? `adapter`, or {refuse: why it cannot be}.
  # before:"""
BODY: Final = """\
  # The same in terms of operators that are there, written for opset_imports.
  body:
    opset_imports: {ai.onnx: 18}
    nodes:
    - {op_type: Identity, inputs: [X], outputs: [Y]}
"""
STEP: Final = """\
  step:
    # What changed, and what does that mean for a model that is moved?
    change: ''
    # How is a node of the version before brought to this one? `compatible`, `adapter`, or verbs.
    # up:
    # And back? The same, or {refuse: why it cannot be}.
    # down:
"""
DEPRECATION: Final = """\
  # Which operator of the set replaces it, and how are its inputs and attributes given to that one?
  deprecation: {replaced_by: null, mapping: ''}
"""
REMOVAL: Final = Template("""\
  removal:
    removed_in: $opset
    # Which operator of the set replaces it, and how are its inputs and attributes given to that one?
    replaced_by: null
    mapping: ''
    # How is a node expressed by it? `adapter`, or verbs.
    up: {refuse: not answered yet}
""")

REFERENCE_FILE: Final = Template('''\
"""$name in numpy."""

import numpy as np


def reference($inputs$attributes):
    """Inputs in order, `None` for one left out; attributes by name, with their defaults put in.

    Returns an array, or a tuple of them.
    """
    raise NotImplementedError("what does $name compute?")
''')

EXAMPLES_FILE: Final = """\
# Each is run in the reference, the body and the adapters, in every element type that the definition allows.
# Have one for every attribute and optional input, there and left out; one that is empty, a scalar, nan, inf.
# State `outputs` that were worked out by other means.
examples:
- name: default
  inputs:
  - {type: float, values: [[-1, 0], [0.5, 2]]}
"""

ADAPTERS_FILE: Final = Template('''\
"""$name: what changed with $opset."""

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

# If operator.yaml answers `up` or `down` with `adapter`, write it here; otherwise delete this file.
#
# @adapter("$name", $previous, $opset, domain="$domain")
# def what_changes(node: Node, out: Rewriter) -> None:
#     """How a node of version $previous is expressed from $opset on."""
#     out.become(node)
''')
