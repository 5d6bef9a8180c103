"""Generate a Python module with one typed function per operator; the function builds a NodeProto."""

from __future__ import annotations

import json
import keyword
import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final, get_args

from opshift.model.attributes import ATTRIBUTE_TYPES
from opshift.model.element_types import round_to_float32
from opshift.model.operator_ids import model_domain
from opshift.registry.attribute_values import Value
from opshift.registry.models import Attribute, AttributeTypeName, OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.selection import opsets_at

WIDTH: Final = 88
"""Maximum length of a line in generated docstrings."""

PYTHON_TYPES: Final = {
    "FLOAT": "float",
    "INT": "int",
    "STRING": "str",
    "TENSOR": "TensorProto",
    "GRAPH": "GraphProto",
    "SPARSE_TENSOR": "SparseTensorProto",
    "TYPE_PROTO": "TypeProto",
}
"""Python types of attribute values, by attribute type; a list attribute is a sequence of these."""

TYPING: Final = ("Final", "Literal", "Unpack")
MESSAGES: Final = (
    "AttributeProto",
    "GraphProto",
    "NodeProto",
    "SparseTensorProto",
    "TensorProto",
    "TypeProto",
)
"""Names that the generated code imports if it uses them: `TYPING` from `typing`, `MESSAGES` from `onnx`."""

RESERVED: Final = frozenset(
    (
        *keyword.kwlist,
        *TYPING,
        *MESSAGES,
        *(f"_{name.lower()}" for name in ATTRIBUTE_TYPES),
        *("DOMAIN", "OPSET", "_node", "float", "int", "str", "tuple", "list", "isinstance", "Sequence"),
    )
)
"""Names that generated functions and parameters cannot have: keywords, and names that the code uses."""

HEADER: Final = '''\
"""Functions that build nodes of {domain}, opset {opset}.

Written by `opshift stubs`. A function takes the names of the inputs and outputs, where
the empty name omits an optional one, and attributes. The node omits attributes that are
`None` or equal to their default.
"""

# Functions have the names of operators, and long lists of choices are not wrapped.
# ruff: noqa: A002, E501, E741, N802, N803, PLR0913, RUF002, RUF100, UP044

from __future__ import annotations

from collections.abc import Sequence
from typing import {typing}

from onnx import (
{messages}
)

DOMAIN: Final = {model_domain}
OPSET: Final = {opset}


def _node(
    op_type: str,
    inputs: Sequence[str],
    min_inputs: int,
    outputs: str | Sequence[str],
    name: str,
    attributes: Sequence[AttributeProto | None] = (),
) -> NodeProto:
    names = list(inputs)
    while len(names) > min_inputs and not names[-1]:
        names.pop()
    return NodeProto(
        op_type=op_type,
        domain=DOMAIN,
        name=name,
        input=names,
        output=[outputs] if isinstance(outputs, str) else outputs,
        attribute=[each for each in attributes if each is not None],
    )
'''

ATTRIBUTE: Final = """

def _{function}(
    name: str, value: {type} | None, default: {type} | None = None
) -> AttributeProto | None:
    if value is None or {is_default}:
        return None
    return AttributeProto(name=name, type=AttributeProto.{kind}, {field}={value})
"""

FUNCTION: Final = '''

def {function}(
{parameters}
) -> NodeProto:
    """Build a node of {operator}.

{text}
    """
    return _node(
        {arguments},
    )
'''


def node_builders(registry: Registry, domain: str = "", opset: int | None = None) -> str:
    """Return the code of a module with functions that build nodes of a domain at an opset (default: newest).

    The functions return NodeProto messages of `onnx`, which `onnx.helper.make_graph` accepts.

    Raises:
        UnknownDomain, UnknownOpset: the registry lacks the domain or the opset.
    """
    ((domain, opset),) = opsets_at(registry, domain, opset).items()
    versions = registry.select(domain=domain, opset=opset)
    names = _identifiers(version.name for version in versions)
    kinds = {each.type for version in versions for each in version.attributes.values()}
    functions = "".join([_attribute_function(each) for each in get_args(AttributeTypeName) if each in kinds])
    functions += "".join(map(_function_code, names, versions))
    used = set(re.findall(r"\w+", re.sub('""".*?"""', "", HEADER + functions, flags=re.DOTALL)))
    header = HEADER.format(
        domain=domain,
        opset=opset,
        typing=", ".join(each for each in TYPING if each in used),
        messages="\n".join(f"    {each}," for each in MESSAGES if each in used),
        model_domain=_literal(model_domain(domain)),
    )
    return header + functions


def _identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return a distinct identifier for each name: the name itself, or a variant with underscores."""
    found = [*taken]
    count = len(found)
    for name in names:
        identifier = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
        while identifier in RESERVED or identifier in found:
            identifier += "_"
        found.append(identifier)
    return found[count:]


def _attribute_function(kind: AttributeTypeName) -> str:
    field = ATTRIBUTE_TYPES[kind].field
    values = {"s": "value.encode()", "strings": "[each.encode() for each in value]"}
    # compare floats as text: 0.0 == -0.0 in Python, but the results of operators differ
    is_default = "repr(float(value)) == repr(default)" if field == "f" else "value == default"
    kind_text = _attribute_annotation(Attribute(type=kind))
    return ATTRIBUTE.format(
        function=kind.lower(),
        type=kind_text,
        is_default=is_default,
        kind=kind,
        field=field,
        value=values.get(field, "value"),
    )


def _function_code(function: str, version: OperatorVersion) -> str:
    inputs = [each.name for each in version.inputs]
    names = _identifiers([*inputs, *version.attributes], taken=("outputs", "name"))
    of_inputs, of_attributes = names[: len(inputs)], names[len(inputs) :]
    required = [position for position, each in enumerate(version.inputs) if each.option == "single"]
    parameters = [
        _input_parameter_code(name, each, is_required=position <= max(required, default=-1))
        for position, (name, each) in enumerate(zip(of_inputs, version.inputs, strict=True))
    ]
    if not any(each.startswith("*") for each in parameters):
        parameters.append("*")
    parameters += [f"outputs: {_output_annotation(version)}", 'name: str = ""']
    attributes = list(zip(of_attributes, version.attributes.items(), strict=True))
    parameters += [_attribute_parameter_code(name, each) for name, (_, each) in attributes]
    values = [
        f"*{name}" if each.option == "variadic" else name
        for name, each in zip(of_inputs, version.inputs, strict=True)
    ]
    arguments = [_literal(version.name), f"[{', '.join(values)}]", str(version.min_input), "outputs", "name"]
    if attributes:
        calls = (_attribute_call_code(name, *each) for name, each in attributes)
        arguments.append("[\n" + textwrap.indent("\n".join(calls), " " * 12) + "\n        ]")
    return FUNCTION.format(
        function=function,
        parameters=textwrap.indent(",\n".join((*parameters, ""))[:-1], "    "),
        operator=version.id,
        text="\n".join(_docstring(version, names)),
        arguments=",\n        ".join(arguments),
    )


def _input_parameter_code(name: str, parameter: Parameter, *, is_required: bool) -> str:
    if parameter.option == "variadic":
        return f"*{name}: {_at_least(parameter.min_arity)}"
    return f"{name}: str" if is_required else f'{name}: str = ""'


def _at_least(count: int) -> str:
    """Return the type annotation of a variadic parameter that takes at least `count` names."""
    return f"Unpack[tuple[{'str, ' * count}Unpack[tuple[str, ...]]]]" if count else "str"


def _output_annotation(version: OperatorVersion) -> str:
    """Return the annotation of `outputs`: `str` for one name, a tuple for several, a sequence if variadic."""
    least = max(version.min_output, 1)
    if version.outputs and version.outputs[-1].option == "variadic":
        return "str | Sequence[str]" if least == 1 else "Sequence[str]"
    counts = range(least, len(version.outputs) + 1)
    types = ("str" if count == 1 else f"tuple[{', '.join(['str'] * count)}]" for count in counts)
    return " | ".join(types) or "tuple[()]"


def _attribute_parameter_code(name: str, attribute: Attribute) -> str:
    kind = _attribute_annotation(attribute)
    if attribute.required:
        return f"{name}: {kind}"
    if attribute.default is None:
        return f"{name}: {kind} | None = None"
    return f"{name}: {kind} = {_literal(attribute.default)}"


def _attribute_call_code(argument: str, name: str, attribute: Attribute) -> str:
    default = "" if attribute.default is None else f", {_literal(attribute.default)}"
    return f"_{attribute.type.lower()}({_literal(name)}, {argument}{default}),"


def _attribute_annotation(attribute: Attribute) -> str:
    """Return the annotation of an attribute; strings with a set of allowed values are a `Literal`."""
    text = PYTHON_TYPES[attribute.type.removesuffix("S")]
    if attribute.values and text == "str":
        default = attribute.default or ()
        # Add the default, which may not be an allowed value: `direction` in GRU:1 has the default `foward`.
        choices = dict.fromkeys(attribute.values + (default if isinstance(default, tuple) else (default,)))
        text = f"Literal[{', '.join(map(_literal, choices))}]"
    return f"Sequence[{text}]" if ATTRIBUTE_TYPES[attribute.type].is_repeated else text


def _literal(value: Value) -> str:
    """Return a value as a Python expression; a float has the fewest digits for the same float32."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if not isinstance(value, float):
        return json.dumps(value, ensure_ascii=False)
    if not math.isfinite(value):
        return f'float("{value}")'
    rounded = (float(f"{value:.{digits}g}") for digits in range(1, 17))
    return repr(next(each for each in rounded if round_to_float32(each) == value))


def _docstring(version: OperatorVersion, names: list[str]) -> Iterator[str]:
    """Yield the lines of the docstring of a function after the first line."""
    if version.deprecation:
        instead = version.deprecation.replaced_by
        yield from _paragraph(f"Deprecated{f': use {instead}' if instead else ''}.")
        yield ""
    if version.description:
        yield from _paragraph(version.description)
    for group in version.one_of:
        choices = [f"`{each}`" for each in group if each in version.attributes]
        if len(choices) > 1:
            yield from _paragraph(f"Exactly one of {', '.join(choices)} is required.")
    yield ""
    yield "    Args:"
    texts = [
        *(each.description for each in version.inputs),
        *(each.description for each in version.attributes.values()),
    ]
    for name, text in zip(names[: len(version.inputs)], texts, strict=False):
        yield from _paragraph(f"{name}: {text or 'The name of an input.'}", 8)
    outputs = " ".join(f"`{each.name}`: {each.description}" for each in version.outputs)
    yield from _paragraph(f"outputs: {outputs}", 8)
    yield from _paragraph("name: The name of the node.", 8)
    for name, text in zip(names[len(version.inputs) :], texts[len(version.inputs) :], strict=True):
        yield from _paragraph(f"{name}: {text or 'An attribute.'}", 8)


def _paragraph(text: str, indent: int = 4) -> list[str]:
    """Return the wrapped lines of a text, escaped so that it cannot end the docstring."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    escaped = printable.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    margin = " " * indent
    return textwrap.wrap(
        escaped,
        WIDTH,
        initial_indent=margin,
        subsequent_indent=margin + " " * (4 if indent > 4 else 0),
        break_long_words=False,
        break_on_hyphens=False,
    )
