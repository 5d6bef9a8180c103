"""Definitions of operators with one mistake each, and the finding that it must have."""

from dataclasses import dataclass

HERE = "# <--"
"""Marks the line of the finding."""

VALID = """\
domain: com.acme
name: Blur
shape: same_as_first
versions:
- since_version: 1
  status: STABLE
  inputs:
  - {name: X, type: T}
  - {name: W, type: T, option: optional}
  outputs:
  - {name: Y, type: T}
  attributes:
    axis: {type: INT, default: 1}
    mode: {type: STRING, default: soft, values: [soft, hard]}
  type_constraints:
    T: [tensor(float)]
- since_version: 2
  step:
    change: Doubles are accepted, and the mode has a third value.
    up: compatible
    down:
    - require_attribute: {attribute: mode, value: soft}
  inputs:
  - {name: X, type: T}
  - {name: W, type: T, option: optional}
  outputs:
  - {name: Y, type: T}
  attributes:
    axis: {type: INT, default: 1}
    mode: {type: STRING, default: soft, values: [soft, hard, none]}
  type_constraints:
    T: [floats]
"""


@dataclass(frozen=True)
class Mistake:
    """A valid definition in which `new` replaces the first `old`, and the expected finding.

    The line of the finding is marked, or the first one. `in_schema`: whether the JSON Schema refuses the
    definition, too; `path` is that of the file.
    """

    rule: str
    old: str
    new: str
    reason: str
    remedy: str = ""
    in_schema: bool = False
    path: str = "com.acme/Blur.yaml"

    @property
    def text(self) -> str:
        """Content of the file."""
        assert self.old in VALID
        return VALID.replace(self.old, self.new, 1)

    @property
    def line(self) -> int:
        """Line of the finding."""
        lines = (number for number, line in enumerate(self.text.splitlines(), 1) if HERE in line)
        return next(lines, 1)


AXIS = "axis: {type: INT, default: 1}"
MODE = "mode: {type: STRING, default: soft, values: [soft, hard]}"
X = "- {name: X, type: T}"
W = "- {name: W, type: T, option: optional}"
TYPES = "  type_constraints:\n    T: [tensor(float)]\n"
STEP = VALID[VALID.index("  step:") : VALID.index("  inputs:", VALID.index("  step:"))]

MISTAKES = {
    # YAML
    "tab": Mistake("yaml.syntax", "  status: STABLE", f"\tstatus: STABLE {HERE}", "tab character"),
    "unclosed bracket": Mistake("yaml.syntax", X, f"- {{name: X, type: T\n  outputs: [] {HERE}", "expected"),
    "wrong indentation": Mistake(
        "yaml.syntax", "  status: STABLE", f"   status: STABLE {HERE}", "mapping values are not allowed"
    ),
    "repeated key": Mistake(
        "yaml.repeated-key", "  status: STABLE", f"  status: STABLE\n  status: STABLE {HERE}", "'status'"
    ),
    "repeated attribute": Mistake(
        "yaml.repeated-key", AXIS, f"{AXIS}\n    {AXIS} {HERE}", "key 'axis' is repeated"
    ),
    "number as key": Mistake("yaml.key", AXIS, f"1: {{type: INT}} {HERE}", "key 1 is not a string"),
    "yes and no": Mistake(
        "yaml.ambiguous",
        MODE,
        f"mode: {{type: STRING, default: soft, values: [yes, no]}} {HERE}",
        "yes is a boolean",
        "put the word in quotes",
    ),
    "on": Mistake("yaml.ambiguous", AXIS, f"axis: {{type: STRING, default: on}} {HERE}", "on is a boolean"),
    "nesting": Mistake("yaml.limits", X, f"- {'[' * 70}{']' * 70} {HERE}", "64 levels of nesting"),
    # Format
    "misspelt key": Mistake(
        "format.unknown-key",
        "  status: STABLE",
        f"  staus: STABLE {HERE}",
        "versions.0.staus: unknown key",
        "did you mean status?",
        in_schema=True,
    ),
    "misspelt key of a parameter": Mistake(
        "format.unknown-key",
        W,
        f"- {{name: W, type: T, optoin: optional}} {HERE}",
        "versions.0.inputs.1.optoin: unknown key",
        "did you mean option?",
        in_schema=True,
    ),
    "key at the wrong level": Mistake(
        "format.unknown-key",
        "shape: same_as_first",
        f"status: STABLE {HERE}",
        "status: unknown key",
        in_schema=True,
    ),
    "missing key": Mistake(
        "format.missing-key",
        "{name: Y, type: T}",
        f"{{name: Y}} {HERE}",
        "versions.0.outputs.0.type: the key is missing",
        in_schema=True,
    ),
    "misspelt status": Mistake(
        "format.choice",
        "status: STABLE",
        f"status: STABEL {HERE}",
        "expected 'STABLE' or 'EXPERIMENTAL', got 'STABEL'",
        "did you mean STABLE?",
        in_schema=True,
    ),
    "unknown attribute type": Mistake(
        "format.choice", AXIS, f"axis: {{type: INTEGER}} {HERE}", "got 'INTEGER'", "INT", in_schema=True
    ),
    "misspelt action": Mistake(
        "format.choice",
        "up: compatible",
        f"up: compatibel {HERE}",
        "got 'compatibel'",
        "did you mean compatible?",
        in_schema=True,
    ),
    "unknown verb": Mistake(
        "format.choice",
        "- require_attribute: {attribute: mode, value: soft}",
        f"- requires_attribute: {{attribute: mode, value: soft}} {HERE}",
        "unknown verb 'requires_attribute'",
        "did you mean require_attribute",
        in_schema=True,
    ),
    "unquoted number as name": Mistake(
        "format.type", X, f"- {{name: 1.0, type: T}} {HERE}", "expected a string, got 1.0", in_schema=True
    ),
    "version that is a fraction": Mistake(
        "format.type",
        "- since_version: 1\n",
        f"- since_version: 1.5 {HERE}\n",
        "expected an integer, got 1.5",
        in_schema=True,
    ),
    "boolean as default": Mistake(
        "format.type",
        AXIS,
        f"axis: {{type: INT, default: true}} {HERE}",
        "expected an integer, a number, a string or a list, got True",
        in_schema=True,
    ),
    "version 0": Mistake(
        "format.value", "- since_version: 1\n", f"- since_version: 0 {HERE}\n", "1 or more", in_schema=True
    ),
    # Files and names
    "name that differs from the file": Mistake(
        "file.identity", "name: Blur", f"name: Blurr {HERE}", "must be Blur to match the path"
    ),
    "domain that differs from the folder": Mistake(
        "file.identity", "domain: com.acme", f"domain: com.acne {HERE}", "must be com.acme to match the path"
    ),
    "malformed domain": Mistake(
        "name.domain",
        "domain: com.acme",
        f"domain: com.ácme {HERE}",
        "'com.ácme' is not a valid domain",
        in_schema=True,
        path="com.ácme/Blur.yaml",
    ),
    "domain with a space": Mistake(
        "name.domain",
        "domain: com.acme",
        f"domain: com acme {HERE}",
        "'com acme' is not a valid domain",
        in_schema=True,
        path="com acme/Blur.yaml",
    ),
    "malformed name": Mistake(
        "name.operator",
        "name: Blur",
        f"name: Blur! {HERE}",
        "'Blur!' is not a valid name",
        in_schema=True,
        path="com.acme/Blur!.yaml",
    ),
    "malformed name of an input": Mistake(
        "name.identifier", X, f"- {{name: x-1, type: T}} {HERE}", "'x-1' is not a valid name", in_schema=True
    ),
    "empty name of an attribute": Mistake(
        "name.identifier", AXIS, f'"": {{type: INT}} {HERE}', "'' is not a valid name", in_schema=True
    ),
    # Types
    "unknown type": Mistake(
        "type.unknown",
        "T: [tensor(float)]",
        f"T: [tensor(flot)] {HERE}",
        "'tensor(flot)' is neither a type nor a set of types",
        "tensor(float)",
        in_schema=True,
    ),
    "unknown nested type": Mistake(
        "type.unknown",
        "T: [tensor(float)]",
        f"T: [seq(tensor(itn64))] {HERE}",
        "'seq(tensor(itn64))' is neither",
        "seq(tensor(int64))",
        in_schema=True,
    ),
    "unknown set of types": Mistake(
        "type.unknown", "T: [tensor(float)]", f"T: [flaots] {HERE}", "'flaots' is neither", "floats"
    ),
    "unknown type of an output": Mistake(
        "type.unknown",
        "{name: Y, type: T}",
        f"{{name: Y, type: tensor(in64)}} {HERE}",
        "'tensor(in64)' is not a type",
        "tensor(int64)",
        in_schema=True,
    ),
    "unknown type variable": Mistake(
        "type.undeclared", X, f"- {{name: X, type: T1}} {HERE}", "'T1' is neither a type nor", "use one of T"
    ),
    "unused type variable": Mistake(
        "type.unused", TYPES, f"{TYPES}    U: [floats] {HERE}\n", "no input or output has the type U"
    ),
    "type variable without types": Mistake(
        "type.none", TYPES, f"  type_constraints:\n    T: [] {HERE}\n", "T allows no type", in_schema=True
    ),
    "unknown type attribute": Mistake(
        "type.attribute",
        "{name: Y, type: T}",
        f"{{name: Y, type: T, type_attribute: axes}} {HERE}",
        "the version has no attribute 'axes'",
        "axis",
    ),
    "unknown list attribute": Mistake(
        "type.attribute",
        "{name: Y, type: T}",
        f"{{name: Y, type: T, element_attributes: [axis]}} {HERE}",
        "the version has no list attribute 'axis'",
    ),
    # Parameters
    "repeated input": Mistake("parameter.repeated", X, f"{X}\n  {X} {HERE}", "'X' is repeated"),
    "variadic input that is not last": Mistake(
        "parameter.variadic",
        X,
        f"- {{name: X, type: T, option: variadic}} {HERE}",
        "'X' is variadic, but not the last",
    ),
    "arity of a single input": Mistake(
        "parameter.arity", X, f"- {{name: X, type: T, min_arity: 2}} {HERE}", "not variadic", in_schema=True
    ),
    "negative arity": Mistake(
        "parameter.arity",
        W,
        f"- {{name: W, type: T, option: variadic, min_arity: -1}} {HERE}",
        "-1 is negative",
        in_schema=True,
    ),
    # Attributes
    "default that is not a number": Mistake(
        "format.nan",
        AXIS,
        f"axis: {{type: FLOAT, default: .nan}} {HERE}",
        "versions.0.attributes.axis.default: NaN is not allowed",
        "describe the value in `absent`",
    ),
    "value of a verb that is not a number": Mistake(
        "format.nan",
        "    up: compatible",
        f"    up: [{{add_attribute: {{attribute: axis, value: .nan}}}}] {HERE}",
        "versions.1.step.up.0.value: NaN is not allowed",
    ),
    "default of a different type": Mistake(
        "attribute.default-type",
        AXIS,
        f'axis: {{type: INT, default: "1"}} {HERE}',
        "the default '1' does not have the type INT",
        "write an integer",
        in_schema=True,
    ),
    "unquoted number as a string": Mistake(
        "attribute.default-type",
        MODE,
        f"mode: {{type: STRING, default: 1.0}} {HERE}",
        "the default 1.0 does not have the type STRING",
        "in quotes",
        in_schema=True,
    ),
    "default of a graph": Mistake(
        "attribute.default-type",
        AXIS,
        f"axis: {{type: GRAPH, default: x}} {HERE}",
        "does not have the type GRAPH",
        "remove it",
        in_schema=True,
    ),
    "scalar as default of a list": Mistake(
        "attribute.default-type",
        AXIS,
        f"axis: {{type: INTS, default: 1}} {HERE}",
        "does not have the type INTS",
        "write a list",
        in_schema=True,
    ),
    "default outside of the values": Mistake(
        "attribute.default-value",
        MODE,
        f"mode: {{type: STRING, default: sfot, values: [soft, hard]}} {HERE}",
        "the default 'sfot' is not allowed",
        "did you mean soft?",
    ),
    "default outside of the range": Mistake(
        "attribute.default-value",
        AXIS,
        f"axis: {{type: INT, default: -1, minimum: 0}} {HERE}",
        "the default -1 is not allowed",
    ),
    "required attribute with a default": Mistake(
        "attribute.default-required",
        AXIS,
        f"axis: {{type: INT, required: true, default: 1}} {HERE}",
        "a required attribute cannot have a default",
        in_schema=True,
    ),
    "value of a different type": Mistake(
        "attribute.values",
        AXIS,
        f"axis: {{type: INT, default: 1, values: [1, two]}} {HERE}",
        "the value 'two' does not have the type INT",
        in_schema=True,
    ),
    "repeated value": Mistake(
        "attribute.values",
        MODE,
        f"mode: {{type: STRING, default: soft, values: [soft, soft]}} {HERE}",
        "the value 'soft' is repeated",
        in_schema=True,
    ),
    "range of a string": Mistake(
        "attribute.values",
        MODE,
        f"mode: {{type: STRING, minimum: 1}} {HERE}",
        "cannot have a minimum",
        in_schema=True,
    ),
    "empty range": Mistake(
        "attribute.values", AXIS, f"axis: {{type: INT, minimum: 2, maximum: 1}} {HERE}", "minimum 2 exceeds"
    ),
    # Versions and steps
    "repeated version": Mistake(
        "version.order",
        "- since_version: 2",
        f"- since_version: 1 {HERE}",
        "must increase from version to version, got [1, 1]",
    ),
    "removal before the version": Mistake(
        "version.removal",
        "- since_version: 2",
        f"- since_version: 3\n  removal: {{removed_in: 2, up: adapter}} {HERE}",
        "version 3 cannot be removed in opset 2",
    ),
    "opset that no release has": Mistake(
        "version.opset",
        VALID[: VALID.index("\n  step:")],
        VALID[: VALID.index("\n  step:")].replace("com.acme", "ai.onnx.preview") + f" {HERE}",
        "no release of ONNX has opset 2",
        path="ai.onnx.preview/Blur.yaml",
    ),
    "unknown shape rule": Mistake(
        "shape.unknown",
        "shape: same_as_first",
        f"shape: same_as_frist {HERE}",
        "there is no shape rule 'same_as_frist'",
        "same_as_first",
    ),
    "invalid requirement": Mistake(
        "requires.invalid",
        "shape: same_as_first",
        f"requires: [rank(1) >= 1] {HERE}\nshape: same_as_first",
        "is not a comparison, a number, a name or a known function",
    ),
    "missing step": Mistake(
        "step.missing", f"2\n{STEP}", f"2 {HERE}\n", "no upgrade from version 1 is declared"
    ),
    "step of the first version": Mistake(
        "step.first",
        "  status: STABLE",
        f"  step: {{up: adapter}} {HERE}",
        "the first version cannot have a step",
        in_schema=True,
    ),
    "before of a later version": Mistake(
        "step.before",
        "- since_version: 2",
        f"- since_version: 2\n  before: adapter {HERE}",
        "only the first version can have `before`",
        in_schema=True,
    ),
    "body that is missing": Mistake(
        "step.before", "  status: STABLE", f"  before: body {HERE}", "the version has no body"
    ),
    "refuted step": Mistake(
        "step.refuted",
        "    up: compatible\n    down:\n    - require_attribute: {attribute: mode, value: soft}\n",
        f"    up: compatible\n    down: compatible {HERE}\n",
        "values-removed: A node may have an attribute value that the target does not allow",
    ),
    "unknown attribute of a verb": Mistake(
        "step.verb",
        "- require_attribute: {attribute: mode, value: soft}",
        f"- require_attribute: {{attribute: moed, value: soft}} {HERE}",
        "com.acme.Blur:2 has no attribute 'moed'",
    ),
    "function body that reads an unknown value": Mistake(
        "body.valid",
        "  status: STABLE",
        "  body:\n    opset_imports: {ai.onnx: 17}\n    nodes:\n"
        f"    - {{op_type: Relu, inputs: [Z], outputs: [Y]}} {HERE}",
        "Relu reads 'Z', which no input or earlier node defines",
    ),
    "form that reads an unknown value": Mistake(
        "form.valid",
        "shape: same_as_first\n",
        f"shape: same_as_first\nrecognize:\n- source: a test\n  form: Y = Relu(Z) {HERE}\n",
        "recognize.0.form: Z is neither an input nor a value of an earlier line",
    ),
    "form of an unknown version": Mistake(
        "form.valid",
        "shape: same_as_first\n",
        f"shape: same_as_first\nrecognize:\n- source: test\n  since_version: 7 {HERE}\n  form: Y = Relu(X)\n",
        "recognize.0.since_version: the operator has no version 7",
    ),
    # Texts
    "missing text": Mistake(
        "text.missing",
        TYPES,
        f"{TYPES}  descriptions:\n    operator: It blurs.\n    inputs: {{X: A picture., W: A picture.}}\n"
        "    outputs: {Y: A picture.}\n    attributes: {axis: A dimension.} # <--\n    types: {T: A type.}\n",
        "versions.0.descriptions.attributes.mode: missing",
    ),
    "text of an unknown input": Mistake(
        "text.unknown",
        TYPES,
        f"{TYPES}  descriptions:\n    inputs: {{XX: A picture.}} {HERE}\n",
        "unknown input; the version has X, W",
        "X",
    ),
    # Rules of `opshift lint` only
    "private shape rule": Mistake(
        "shape.private", "shape: same_as_first", f"shape: qqq_zz {HERE}", "no shape rule 'qqq_zz'"
    ),
    "adapter that is not registered": Mistake(
        "step.adapter",
        "up: compatible",
        f"up: adapter {HERE}",
        "no adapter of com.acme.Blur from 1 to 2 is registered",
        "--adapters",
    ),
    "unknown replacement": Mistake(
        "reference.unknown",
        f"2\n{STEP}",
        f"2\n{STEP}  removal: {{removed_in: 3, up: adapter, replaced_by: ai.onnx.Sofmax}} {HERE}\n",
        "ai.onnx has no operator 'Sofmax'",
        "Softmax",
    ),
}

LINT_ONLY = frozenset({"shape.private", "step.adapter", "step.undeclared", "reference.unknown", "name.case"})

OTHER_RULES = frozenset(
    {
        "file.content",
        "file.ignored",
        "name.case",
        "runtime.condition",
        "runtime.operator",
        "runtime.note",
        "step.undeclared",
        "type.set",
    }
)
"""Rules that more than one file of a tree breaks; they have separate tests."""
