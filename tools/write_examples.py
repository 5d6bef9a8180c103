"""Write opsets/examples.yaml: a small model with numbers for the newest version of each operator.

    python tools/write_examples.py

A model has one node, from `tools/example_nodes.yaml`, or else from ONNX's test cases or those of
`tests/support/nodes`. Dimensions of cases are cut and numbers are rounded if the node allows it, and a small
one with few inputs and different numbers is written. `onnx.reference` computes the outputs, or
onnxruntime if the reference has no such operator; an operator without either is converted first. Run it after
an operator version was added.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import yaml
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.nodes import nodes  # noqa: E402  # the folder of tests is not installed
from support.published import Case, published  # noqa: E402

import opshift  # noqa: E402
from opshift.catalogue.examples import EXAMPLES, REFERENCE, SESSIONS, plain  # noqa: E402
from opshift.model.operator_ids import model_domain  # noqa: E402
from opshift.registry.models import OperatorVersion  # noqa: E402
from opshift.registry.registry import default_registry  # noqa: E402

HEAD: Final = "# Examples by operator, with inputs and outputs. Written by tools/write_examples.py\n"

NODES: Final = Path(__file__).parent / "example_nodes.yaml"

SIZES: Final = ((None, None), (3, 3), (2, 2), (3, 1), (2, 1))
"""Sizes to which the last two dimensions and those before are cut; `None` keeps them."""

Size = tuple[int | None, int | None]

MAX_ELEMENTS: Final = 120
"""Maximum number of elements of all inputs and outputs."""

MAX_IR_VERSION: Final = 10

SESSION_NAMES: Final = {
    "ReferenceEvaluator": ReferenceEvaluator,
    "InferenceSession": InferenceSession,
    "opshift": opshift,
}
"""Names in the expressions of `SESSIONS`."""

MAIN_OPSET: Final = 22
"""Opset of ai.onnx in models of other domains: the newest opset of IR version 10."""


def main() -> None:
    """Write the file, and print the operators without an example."""
    warnings.simplefilter("ignore")
    written = yaml.safe_load(NODES.read_text("utf-8"))
    found, without = {}, []
    for operator in default_registry().operators():
        version = operator.versions[-1]
        name = f"{operator.domain}.{operator.name}"
        example = example_of_node(version, written[name]) if name in written else best_example(version)
        if example:
            found[name] = example
        else:
            without.append(str(version.id))
    yaml.add_representer(str, _represent_text, Dumper=yaml.SafeDumper)
    text = yaml.safe_dump(found, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    EXAMPLES.write_text(HEAD + text, "utf-8")
    print(f"{len(found)} examples; without: {', '.join(without)}")


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


def example_of_node(version: OperatorVersion, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the example of a node in `NODES`; by default at the opset of the version."""
    node = onnx.parser.parse_node(given["node"])
    feeds = {name: _array_or_list(*each) for name, each in given["inputs"].items()}
    inputs = [onnx.ValueInfoProto(name=name) for name in feeds]
    for value, array in zip(inputs, feeds.values(), strict=True):
        _set_type(value, array)
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    domain = model_domain(version.domain)
    imports = {"": MAIN_OPSET, domain: given.get("opset", version.since_version)}
    model = helper.make_model(
        helper.make_graph([node], "example", inputs, outputs),
        ir_version=MAX_IR_VERSION,
        opset_imports=[helper.make_opsetid(*each) for each in imports.items()],
    )
    computed_by = given.get("computed_by") or _evaluator_of(model)
    session = eval(SESSIONS[computed_by][1], SESSION_NAMES, {"model": model})
    results = session.run(None, feeds)
    for value, result in zip(model.graph.output, results, strict=True):
        _set_type(value, result)
    example = _recorded_example(onnx.printer.to_text(model), feeds, model, results)
    return example if computed_by == REFERENCE else {**example, "computed_by": computed_by}


def _array_or_list(kind: str, value: Any) -> Any:
    """Return an array, or a list of them if the type is that of a sequence."""
    element = kind.removeprefix("seq ")
    dtype = {"float": np.float32, "string": object}.get(element, element)
    return np.array(value, dtype) if element == kind else [np.array(each, dtype) for each in value]


def _evaluator_of(model: onnx.ModelProto) -> str:
    """Return the key in `SESSIONS` of the package that has all operators of a model."""
    try:
        ReferenceEvaluator(model)
    except NotImplementedError:
        return "onnxruntime"
    return REFERENCE


def _recorded_example(
    text: str, feeds: Mapping[str, Any], model: onnx.ModelProto, outputs: Sequence[Any]
) -> Mapping[str, Any]:
    names = [each.name for each in model.graph.output]
    return {
        "model": text + "\n",
        "inputs": {name: plain(each) for name, each in feeds.items()},
        "outputs": dict(zip(names, map(plain, outputs), strict=True)),
    }


def best_example(version: OperatorVersion) -> Mapping[str, Any] | None:
    """Return the most readable example of a version; `None` if no case can be computed."""
    if version.determinism == "non_deterministic" or version.removal:
        return None
    found: list[tuple[int, Mapping[str, Any]]] = []
    for case in _cases_of_version(version):
        for size, count in product(SIZES, (len(case.feeds), 1)):
            example = _example_with_cost(version, case, size, count)
            if example:
                found.append(example)
    return min(found, key=lambda each: each[0])[1] if found else None


def _cases_of_version(version: OperatorVersion) -> Iterator[Case]:
    for case in published().get((model_domain(version.domain), version.name), ()):
        node = case.model.graph.node[0]
        names = {each.name for each in node.attribute}
        if names <= version.attributes.keys() and len(node.input) <= version.max_input:
            yield case
    for each in nodes().get((version.domain, version.name, version.since_version), ()):
        if not each.case.model.graph.initializer:
            yield each.case


def _example_with_cost(
    version: OperatorVersion, case: Case, size: Size, count: int
) -> tuple[int, Mapping[str, Any]] | None:
    """Return an example with its cost; `None` if it is too large, or cannot be computed.

    Args:
        version: the operator version.
        case: a model of one node, and its inputs.
        size: maximum sizes of dimensions, see `SIZES`.
        count: number of inputs to cut.
    """
    try:
        feeds = {
            name: _shortened_array(value, size if position < count else SIZES[0])
            for position, (name, value) in enumerate(case.feeds.items())
        }
        if _count_elements(list(feeds.values())) > MAX_ELEMENTS:
            return None
        model = _model_of_case(version, case.model, feeds)
        feeds = dict(zip((each.name for each in model.graph.input), feeds.values(), strict=True))
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            outputs = ReferenceEvaluator(model).run(None, feeds)
        for value, output in zip(model.graph.output, outputs, strict=True):
            _set_type(value, output)
        onnx.checker.check_model(model, full_check=True)
        text = onnx.printer.to_text(model)
        again = ReferenceEvaluator(onnx.parser.parse_model(text)).run(None, feeds)
        if str(plain(again)) != str(plain(outputs)):
            return None
    except Exception:  # a case that cannot be cut, or that is not valid for this version
        return None
    elements = _count_elements([*feeds.values(), *outputs])
    few = sum(max(0, 3 - _count_distinct(each)) for each in (list(feeds.values()), outputs))
    few += sum(_count_elements([each]) > 2 and _count_distinct([each]) == 1 for each in feeds.values())
    few += bool(re.search(r"(?<![.\d])\d{4}", str(plain(list(feeds.values())))))  # large numbers hide others
    node = model.graph.node[0]
    if elements > MAX_ELEMENTS or min(_count_elements([each]) for each in (*feeds.values(), *outputs)) == 0:
        return None
    # few different numbers show little
    cost = max(elements, 12) + 3 * len(node.attribute) + 10 * len(node.input) + 8 * few
    return cost, _recorded_example(text, feeds, model, outputs)


def _count_elements(values: Sequence[Any] | Any) -> int:
    return sum(_count_elements(each) if isinstance(each, list) else np.asarray(each).size for each in values)


def _count_distinct(values: Sequence[Any]) -> int:
    """Return the number of different numbers in some values."""
    return len(set(re.findall(r"[^][, ]+", str(plain(values)))))


def _shortened_array(value: Any, size: Size) -> Any:
    """Return an array with smaller dimensions and rounded numbers.

    Raises:
        ValueError: the text format of an example has no such type.
    """
    if isinstance(value, list):
        return [_shortened_array(each, size) for each in value]
    if value is None or value.dtype.kind not in "fiubOU" or value.dtype.isbuiltin != 1:
        raise ValueError("a type without a text")
    last, leading = size
    sizes = [leading] * max(0, value.ndim - 2) + [last] * min(2, value.ndim)
    cut = value[tuple(map(slice, sizes))] if value.ndim else value
    if cut.dtype.kind != "f":
        return cut
    short = np.round(cut, 2)
    rounded = short if np.array_equal(short, cut, equal_nan=True) else np.round(cut, 1)
    return np.array(plain(rounded), cut.dtype)  # the numbers of the text


def _model_of_case(
    version: OperatorVersion, given: onnx.ModelProto, feeds: Mapping[str, Any]
) -> onnx.ModelProto:
    """Return a model of a case at the version's opset, with the names of the definition."""
    node = onnx.NodeProto()
    node.CopyFrom(given.graph.node[0])
    node.ClearField("name")
    names: dict[str, str] = {}
    for formals, actual in ((version.inputs, node.input), (version.outputs, node.output)):
        for position, name in enumerate(actual):
            formal = formals[min(position, len(formals) - 1)]
            suffix = str(position - len(formals) + 2) if formal.option == "variadic" else ""
            if name:
                names[name] = actual[position] = formal.name + suffix
    inputs = [onnx.ValueInfoProto(name=names[name]) for name in feeds]
    for value, array in zip(inputs, feeds.values(), strict=True):
        _set_type(value, array)
    outputs = []
    for each in given.graph.output:
        value = onnx.ValueInfoProto()
        value.CopyFrom(each)
        value.name = names[each.name]
        outputs.append(value)
    imports = {each.domain: each.version for each in given.opset_import}
    imports[model_domain(version.domain)] = version.since_version
    return helper.make_model(
        helper.make_graph([node], "example", inputs, outputs),
        ir_version=min(given.ir_version, MAX_IR_VERSION),
        opset_imports=[helper.make_opsetid(*each) for each in imports.items()],
    )


def _set_type(value: onnx.ValueInfoProto, array: Any) -> None:
    if isinstance(array, list):
        element = helper.np_dtype_to_tensor_dtype(array[0].dtype)
        value.type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(element, None)))
    elif array is not None:
        kind = numpy_helper.from_array(np.asarray(array))
        value.type.CopyFrom(helper.make_tensor_type_proto(kind.data_type, np.shape(array)))


if __name__ == "__main__":
    main()
