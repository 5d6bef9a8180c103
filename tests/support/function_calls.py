"""Replace the node of a model by the function body of its operator."""

from __future__ import annotations

from contextlib import suppress

import onnx
from onnx import inliner

from opshift import ConversionRefused, convert_version
from opshift.registry.models import OperatorVersion
from support.execution import MAX_ORT_OPSET, opset_of
from support.published import Case

DOMAIN = "test.functions"


def expanded(case: Case, version: OperatorVersion, *, shapes: bool = True, opset: int | None = None) -> Case:
    """Return a case whose node is replaced by the function body of its operator version.

    The body is built for the types of the node's inputs, with or without their shapes. The model is converted
    to an opset that onnxruntime supports, if possible.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = model.graph.node[0]
    built = version.function_body(node, _input_types(model, shapes=shapes), opset=opset)
    function = onnx.FunctionProto.FromString(built.SerializeToString())
    _call(function, node)
    model.functions.append(function)
    model.ir_version = max(model.ir_version, 8)
    model.opset_import.add(domain=DOMAIN, version=1)
    for needed in function.opset_import:
        for each in model.opset_import:
            if each.domain == needed.domain:
                each.version = max(each.version, needed.version)
    model = inliner.inline_local_functions(model)
    if opset_of(model) > MAX_ORT_OPSET:
        with suppress(ConversionRefused):
            model = convert_version(model, MAX_ORT_OPSET)
    return case._replace(model=model)


def _input_types(model: onnx.ModelProto, *, shapes: bool) -> list[onnx.TypeProto | onnx.TensorProto | None]:
    known: dict[str, onnx.TypeProto | onnx.TensorProto] = {}
    for value in model.graph.input:
        known[value.name] = onnx.TypeProto.FromString(value.type.SerializeToString())
        if not shapes and value.type.HasField("tensor_type"):
            known[value.name].tensor_type.ClearField("shape")
    known |= {each.name: each for each in model.graph.initializer}
    return [known.get(name) for name in model.graph.node[0].input]


def _call(function: onnx.FunctionProto, node: onnx.NodeProto) -> None:
    """Turn a node into a call; inlining does not set the defaults of attributes, so the call has them."""
    function.domain = node.domain = DOMAIN
    node.op_type = function.name
    declared = {*function.attribute, *(each.name for each in function.attribute_proto)}
    kept = [each for each in node.attribute if each.name in declared]
    present = {each.name for each in kept}
    kept += [each for each in function.attribute_proto if each.name not in present]
    del node.attribute[:]
    node.attribute.extend(kept)
    del node.input[len(function.input) :], node.output[len(function.output) :]
