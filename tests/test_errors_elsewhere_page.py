"""Each error of docs/errors-elsewhere.md is caused, found by its message, and solved by its commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.checker
import onnx.parser
import onnx.version_converter
import onnxruntime
import pytest
from typer.testing import CliRunner

from opshift.cli.main import app
from opshift.registry.explanations import tool_errors

pytestmark = pytest.mark.every_case

Tool = Callable[[bytes], object]


def run_model(data: bytes) -> object:
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def check_model(data: bytes) -> object:
    return onnx.checker.check_model(data)


def check_fully(data: bytes) -> object:
    return onnx.checker.check_model(data, full_check=True)


def parse(data: bytes) -> object:
    return onnx.load_from_string(data)


def check_file(data: bytes) -> object:
    Path("checked.onnx").write_bytes(data)
    return onnx.checker.check_model("checked.onnx")


def run_file(data: bytes) -> object:
    Path("checked.onnx").write_bytes(data)
    return onnxruntime.InferenceSession("checked.onnx", providers=["CPUExecutionProvider"])


def without_weights(data: bytes) -> bytes:
    """Replace the elements of the initializer by a reference to a missing file."""
    proto = onnx.load_from_string(data)
    tensor = proto.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.data")
    return bytes(proto.SerializeToString())


def convert_to(opset: int) -> Tool:
    return lambda data: onnx.version_converter.convert_version(onnx.load_from_string(data), opset)


def model(text: str, ir_version: int = 8, opset: int = 17) -> bytes:
    head = f'<ir_version: {ir_version}, opset_import: ["" : {opset}]> g '
    return bytes(onnx.parser.parse_model(head + text).SerializeToString())


def without_opset_imports(data: bytes) -> bytes:
    proto = onnx.load_from_string(data)
    proto.ClearField("opset_import")
    return bytes(proto.SerializeToString())


def without_output_shape(data: bytes) -> bytes:
    proto = onnx.load_from_string(data)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return bytes(proto.SerializeToString())


def with_import(data: bytes, domain: str, opset: int) -> bytes:
    proto = onnx.load_from_string(data)
    proto.opset_import.add(domain=domain, version=opset)
    return bytes(proto.SerializeToString())


UPSAMPLE = "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> { y = Upsample(x, s) }"
MUL = "(bfloat16[2] x) => (bfloat16[2] y) { y = Mul(x, x) }"
GRU = (
    "(float[2, 3, 1] x, float[1, 3, 1] w, float[1, 3, 1] r) => (float[2, 3, 1, 1] y)"
    " { y = GRU <hidden_size = 1, layout = 1> (x, w, r) }"
)
RELU = "(float[2] x) => (float[2] y) { y = Relu(x) }"
MIXED = "(float[2] x, float16[2] h) => (float[2] y) { y = Add(x, h) }"
DECLARED = "(float[2] x) => (float16[2] y) { y = Relu(x) }"
CONTRADICTION = "(float[2, 3] x) => (float[2, 4] y) { y = Relu(x) }"
GELU = "(float[2] x) => (float[2] y) { y = Gelu(x) }"
MISH = "(float[2] x) => (float[2] y) { y = Mish(x) }"
MIN = "(int64[2] x) => (int64[2] y) { y = Min(x, x) }"
SQUEEZE = "(float[2, 1] x) => (float[2] y) { y = Squeeze <axes = [1]> (x) }"
CLIP = "(float[2] x) => (float[2] y) <float low = {0}, float high = {1}> { y = Clip(x, low, high) }"
GRID = "(float[1, 1, 2, 2] x, float[1, 2, 2, 2] grid) => (float[1, 1, 2, 2] y) { y = GridSample(x, grid) }"
UNSORTED = "(float[2] x) => (float[2] y) { y = Relu(z) z = Neg(x) }"
FILL = "(int64[2] x) => (float[N, M] y) { y = ConstantFill <input_as_shape = 1, value = 2.0> (x) }"
ADD = "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
GROUPS = (
    "(float[2, 4, 4] x, float[2] s) => (float[2, 4, 4] y)"
    " { y = GroupNormalization <num_groups = 2> (x, s, s) }"
)
NORMALIZATION = "(float[2, 3] x, float[3] scale) => (float[2, 3] y) { y = LayerNormalization(x, scale) }"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4bcd\nsize 218\n"


class Case(NamedTuple):
    """A model and the tools that fail with it; the tests cannot run the tools of other entries."""

    data: bytes
    tools: tuple[Tool, ...] = ()


CASES: Mapping[str, tuple[Case, ...]] = {
    "The IR version is too new": (Case(model(RELU, 14, 26), (run_model,)),),
    "The opset is newer than the runtime": (Case(model(RELU, 10, 28), (run_model,)),),
    "The runtime has no kernel for an operator version": (
        Case(model("(float[2] x) => (float[2] y) { y = Mul(x, x) }", 3, 6), (run_model,)),
    ),
    "The opset import does not contain the operator": (Case(model(GELU), (run_model, check_model)),),
    "The operator is unknown to the runtime": (Case(model(FILL, 3, 8), (run_model,)),),
    "The operator version does not accept the element type": (Case(model(MIN, 8, 11), (run_model,)),),
    "The element types of values contradict each other": (
        Case(model(MIXED), (run_model,)),
        Case(model(DECLARED), (run_model,)),
    ),
    "The nodes are written for a different opset": (
        Case(model(SQUEEZE, 8, 13), (run_model, check_model)),
        Case(model(CLIP, 8, 6), (run_model, check_model)),
    ),
    "ONNX's version converter cannot convert an operator": (
        Case(model(GRID, 9, 20), (convert_to(16),)),
        Case(model(GELU, 9, 20), (convert_to(16),)),
    ),
    "ONNX's version converter does not know the opset": (Case(model(RELU)),),
    "The opset deprecates an operator": (Case(model(UPSAMPLE, 8, 11), (run_model, check_model)),),
    "The nodes are not in topological order": (Case(model(UNSORTED), (check_model,)),),
    "The model has no opset import": (Case(without_opset_imports(model(RELU)), (run_model, check_model)),),
    "Initializers have to be inputs": (Case(model(ADD, 3, 8), (check_model,)),),
    "An input or output has no shape": (Case(without_output_shape(model(RELU)), (check_model,)),),
    "A declared shape contradicts the inferred shape": (Case(model(CONTRADICTION), (check_fully,)),),
    "The file is not a model": (Case(POINTER, (run_model, parse, check_file)),),
    "Weights in separate files are missing": (Case(without_weights(model(ADD)), (run_file, check_file)),),
    "The model is larger than 2 GiB": (Case(model(RELU)),),
    "TensorRT has no importer for an operator": (Case(model(MISH, 8, 18)),),
    "OpenVINO does not support an operator": (Case(model(NORMALIZATION)),),
    "RKNN does not support the opset": (Case(model(RELU, 9, 19)),),
    "An importer requires another opset": (Case(model(RELU, 8, 13)), Case(model(RELU, 9, 19))),
    "The model imports several opsets": (Case(with_import(model(RELU), "com.microsoft", 1)),),
    "The runtime does not compute in bfloat16": (Case(model(MUL)),),
    "TensorRT narrows 64-bit integers": (Case(model(RELU)),),
    "A recurrent operator has the layout 1": (Case(model(GRU), (run_model,)),),
    "An importer does not support an operator version": (Case(model(NORMALIZATION)),),
    "PyTorch cannot export an operator to the opset": (Case(model(NORMALIZATION)),),
}

UNSOLVED = {
    "A declared shape contradicts the inferred shape", "The file is not a model",
    "Weights in separate files are missing",
}  # fmt: skip
"""Errors that need other files or a decision; the commands describe the problem, and exit with 1."""

ERRORS = {each.title: each for each in tool_errors()}


def message_of(tool: Tool, data: bytes) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any error of the tool
        tool(data)
    return str(caught.value)


def explain(text: str) -> str:
    return CliRunner().invoke(app, ["explain", text]).stdout


def test_every_error_has_a_case() -> None:
    assert list(CASES) == list(ERRORS)


@pytest.mark.parametrize("title", CASES)
def test_commands_solve_error(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for case in CASES[title]:
        for path in tmp_path.iterdir():
            path.unlink()
        Path("model.onnx").write_bytes(case.data)
        for tool in case.tools:
            message = message_of(tool, case.data)
            assert [each.title for each in tool_errors() if each.matches(message)] == [title]
            assert explain(message).startswith(title)
        for command in ERRORS[title].commands:
            program, *arguments = shlex.split(command.run)
            written = [each for each in arguments[2:3] if each.endswith(".onnx")]
            Path(*written).unlink(missing_ok=True) if written else None
            result = CliRunner().invoke(app, arguments)
            assert program == "opshift"
            assert result.exit_code == (title in UNSOLVED), result.output
            for path in map(Path, written):
                for tool in case.tools:
                    tool(path.read_bytes())
                onnx.checker.check_model(onnx.load(path), full_check=True)
                run_model(path.read_bytes())


@pytest.mark.parametrize(
    "title", ["TensorRT has no importer for an operator", "OpenVINO does not support an operator"]
)
def test_result_lacks_the_unsupported_operator(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (case,) = CASES[title]
    Path("model.onnx").write_bytes(case.data)
    CliRunner().invoke(app, shlex.split(ERRORS[title].commands[0].run)[1:])
    before, after = (
        {node.op_type for node in each.graph.node}
        for each in (onnx.load_from_string(case.data), onnx.load("fixed.onnx"))
    )
    assert not before & after


def test_conversion_replaces_a_deprecated_group_normalization(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = model(GROUPS, 8, 18)
    message = message_of(check_model, data)
    (found,) = [each for each in tool_errors() if each.matches(message)]
    Path("model.onnx").write_bytes(data)
    result = CliRunner().invoke(app, shlex.split(found.commands[1].run)[1:])
    assert result.exit_code == 0, result.output
    check_model(Path("fixed.onnx").read_bytes())


# excerpts of threads that the entries name, and of programs that the tests cannot run
REPORTED = {
    "max supported IR version: 9": "The IR version is too new",
    "Your model ir_version 11 is higher than the checker's (10).": "The IR version is too new",
    "Opset 13 is under development and support for this is limited.": "The opset is newer than the runtime",
    "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for the node Mul(6)": (
        "The runtime has no kernel for an operator version"
    ),
    "Fatal error: my_bev_pool:bev_pool_v2(-1) is not a registered function/op": (
        "The operator is unknown to the runtime"
    ),
    "Error in Node:batchnorm : Required attribute 'consumed_inputs' is missing.": (
        "The nodes are written for a different opset"
    ),
    "adapter_lookup: Assertion `false` failed: No Adapter For Conv": (
        "ONNX's version converter cannot convert an operator"
    ),
    "No Adapter From Version $16 for Identity": "ONNX's version converter cannot convert an operator",
    "No Adapter From Version 6 for Identity": "ONNX's version converter cannot convert an operator",
    "No Adapter For Current Version $9 for MaxPool": "ONNX's version converter cannot convert an operator",
    "ValueError: Message onnx.ModelProto exceeds maximum protobuf size of 2GB: 2235540927": (
        "The model is larger than 2 GiB"
    ),
    "[I] [TRT] No importer registered for op: GridSample. Attempting to import as plugin.": (
        "TensorRT has no importer for an operator"
    ),
    "OpenVINO does not support the following ONNX operations: com.microsoft.FastGelu, LayerNormalization": (
        "OpenVINO does not support an operator"
    ),
    "E load_onnx: Unsupport onnx opset 16, need <= 15!": "RKNN does not support the opset",
    "Unsupported ONNX opset version. This implementation requires opset 16 or higher. Please upgrade": (
        "An importer requires another opset"
    ),
    "[model_parser.cc:46] unsupported opset [:8]": "An importer requires another opset",
    "BackendIsNotSupposedToImplementIt: Squeeze version 13 is not implemented.": (
        "An importer does not support an operator version"
    ),
    "NotImplementedError: Converter is not implemented (OperationDescription(domain='', "
    "operation_type='NonZero', version=9))": "An importer does not support an operator version",
    "cannot resolve operator 'HardSwish' with opsets: ai.onnx v9": (
        "An importer does not support an operator version"
    ),
    "onnx_parser.cpp:281: parse_graph: Unknown operator: Not": (
        "An importer does not support an operator version"
    ),
    '(-2:Unspecified error) Can\'t create layer "131" of type "Cast" in function \'getLayerInstance\'': (
        "An importer does not support an operator version"
    ),
    "External initializer: w offset: 0 size to read: 1200 given file_length: 69 are out of bounds or": (
        "Weights in separate files are missing"
    ),
    "External data length (1200) exceeds available data (69 bytes from offset 0) for tensor 'w'": (
        "Weights in separate files are missing"
    ),
    "Exporting the operator 'aten::unflatten' to ONNX opset version 12 is not supported.": (
        "PyTorch cannot export an operator to the opset"
    ),
    "RuntimeError: convert.h:86: assertInVersionRange: invalid version (must be between 1 and 21)": (
        "ONNX's version converter does not know the opset"
    ),
    "Failed to convert the model to the target version 12 using the ONNX C API. The model was not modified": (
        "ONNX's version converter cannot convert an operator"
    ),
    "lstm_base.h:53 onnxruntime::LSTMBase::LSTMBase(const OpKernelInfo &) layout_ == 0 was false.": (
        "A recurrent operator has the layout 1"
    ),
    "Fatal error: ai.onnx.ml:TreeEnsemble(-1) is not a registered function/op": (
        "The operator is unknown to the runtime"
    ),
    "Type parameter (T) bound to different types (tensor(float16) and tensor(float) in node ().": (
        "The element types of values contradict each other"
    ),
    "ValidationError: Field 'shape' of type is required but missing.": "An input or output has no shape",
    "(op_type:Add): [ShapeInferenceError] Inferred shape and existing shape differ in rank: (2) vs (1)": (
        "A declared shape contradicts the inferred shape"
    ),
    "Fatal error: QuickGelu(-1) is not a registered function/op": "The operator is unknown to the runtime",
    "[W] Your ONNX model has been generated with INT64 weights, while TensorRT does not natively support "
    "INT64. Attempting to cast down to INT32.": "TensorRT narrows 64-bit integers",
    "[E] Unsupported ONNX data type: BFLOAT16 (16)": "The runtime does not compute in bfloat16",
    "Model has multiple opset versions. This is legal": "The model imports several opsets",
    "Upsample is deprecated, use Resize": "The opset deprecates an operator",
    "No conversion rule found for operator 'Mish'": "An importer does not support an operator version",
    "ValueError: Unsupported ONNX opset version: 13": "PyTorch cannot export an operator to the opset",
}


@pytest.mark.parametrize("message", REPORTED)
def test_finds_reported_messages(message: str) -> None:
    wrapped = message.replace(" ", "\n  ")  # as in a terminal
    for text in (message, message.upper(), wrapped):
        assert [each.title for each in tool_errors() if each.matches(text)] == [REPORTED[message]]


def test_placeholders_in_the_middle_of_long_texts_end_soon() -> None:
    assert not any(each.matches("type error: type ' no op registered for " * 2500) for each in tool_errors())


def test_page_contains_every_message_and_links() -> None:
    page = (Path(__file__).parents[1] / "docs" / "errors-elsewhere.md").read_text("utf-8")
    anchors = {
        re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-")
        for each in re.findall(r"^## (.+)$", page, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) == anchors
    assert {each for error in tool_errors() for each in error.sources} <= set(
        re.findall(r"\]\((https:[^)]+)\)", page)
    )
