"""Files of other formats are named, with advice on how to get an ONNX model from them."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import pickle
import random
import struct
import tarfile
import zipfile
from bz2 import compress as bzip2
from pathlib import Path

import numpy as np
import onnx
import onnx.printer
import onnxruntime
import pytest
from google.protobuf import json_format, text_format
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app
from opshift.model.errors import InvalidModel
from opshift.model.file_formats import FORMATS, HEAD_SIZE
from opshift.model.wire_format import bytes_field


def _model() -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


MODEL = _model()


def zipped(*names: str, content: bytes = b"x") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.onnx"), io.BytesIO())
    return buffer.getvalue()


def saved(array: bool) -> bytes:
    buffer = io.BytesIO()
    if array:
        np.save(buffer, np.ones(3))
    else:
        np.savez(buffer, x=np.ones(3))
    return buffer.getvalue()


def safetensors(count: int = 1) -> bytes:
    header = json.dumps({f"w{each}": {"dtype": "F32", "shape": [2]} for each in range(count)}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8 * count)


def saved_model() -> bytes:
    """SavedModel: schema version and a MetaGraphDef, whose MetaInfoDef has tags and a version."""
    info = bytes_field(2, bytes_field(1, bytes_field(1, b"Placeholder"))) + bytes_field(4, b"serve")
    return b"\x08\x01" + bytes_field(2, bytes_field(1, info) + bytes_field(2, graph_def()))


def graph_def() -> bytes:
    nodes = [(b"input", b"Placeholder"), (b"weights/read", b"Identity"), (b"dense/MatMul", b"MatMul")]
    return b"".join(bytes_field(1, bytes_field(1, name) + bytes_field(2, op)) for name, op in nodes)


def core_ml(version: int) -> bytes:
    """Core ML Model: version, a description with features, and one of the kinds of models."""
    feature = bytes_field(1, b"image") + bytes_field(2, b"The image.")
    return bytes([8, version]) + bytes_field(2, bytes_field(1, feature)) + bytes_field(500, b"")


SAMPLES = {
    "git-lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4bcdabf3da95da\nsize 21840\n",
        "Git LFS pointer",
        "git lfs pull",
    ),
    "torch.save": (
        zipped("net/data.pkl", "net/byteorder", "net/data/0", "net/version"),
        "PyTorch checkpoint",
        "torch.onnx.export",
    ),
    "torch.save, many tensors": (
        zipped("net/data.pkl", *(f"net/data/{each}" for each in range(2000))),
        "PyTorch checkpoint",
        "torch.onnx.export",
    ),
    "torch.save before 1.6": (
        pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2),
        "PyTorch checkpoint",
        "torch.onnx.export",
    ),
    "torch.jit.save": (
        zipped("net/data.pkl", "net/code/__torch__.py", "net/constants.pkl"),
        "TorchScript",
        "torch.onnx.export",
    ),
    "torch.export.save": (
        zipped("net/data/weights/weight_0", "net/models/model.json", "net/archive_format"),
        "torch.export",
        "torch.onnx.export",
    ),
    "Keras 3": (zipped("metadata.json", "config.json", "model.weights.h5"), "Keras", "format='onnx'"),
    "Keras 2": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5", "format='onnx'"),
    "zip with a model": (zipped("a/model.onnx"), "zip archive that contains an ONNX model", "extract"),
    "zip": (zipped("readme.txt"), "zip archive", "extract"),
    "empty zip": (zipped(), "zip archive", "extract"),
    "npz": (saved(array=False), "NumPy arrays", "right file"),
    "npy": (saved(array=True), "NumPy array", "right file"),
    "zipped mlpackage": (zipped("net.mlpackage/Manifest.json"), "Core ML package", "original"),
    "mlmodel of version 1": (core_ml(1), "Core ML model", "original"),
    "mlmodel of version 5": (core_ml(5), "Core ML model", "original"),
    "gzip": (gzip.compress(MODEL.SerializeToString()), "gzip", "extract"),
    "xz": (lzma.compress(MODEL.SerializeToString()), "xz", "extract"),
    "bzip2": (bzip2(MODEL.SerializeToString()), "bzip2", "extract"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x58\x19\x00\x00model", "zstd", "extract"),
    "7z": (b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(30), "7z", "extract"),
    "tar": (tarred(), "tar", "extract"),
    "safetensors": (safetensors(), "safetensors", "torch.onnx.export"),
    "large safetensors": (safetensors(20_000), "safetensors", "torch.onnx.export"),
    "gguf": (b"GGUF\x03\x00\x00\x00" + bytes(40), "GGUF", "original"),
    "tflite": (b"\x1c\x00\x00\x00TFL3" + bytes(40), "TensorFlow Lite", "--tflite"),
    "ort": (b"\x20\x00\x00\x00ORTM" + bytes(40), "ORT format", ".onnx"),
    "tensorrt": (b"ftrt\x00\x00\x00\x00" + bytes(40), "TensorRT engine", ".onnx"),
    "pickle": (pickle.dumps({"weights": [1.0]}), "pickle", "torch.onnx.export"),
    "old pickle": (pickle.dumps({"weights": [1.0]}, 2), "pickle", "torch.onnx.export"),
    "operator set": (bytes_field(1, b"ONNXOPSET"), "operator-set document", "opshift opset load"),
    "GraphDef": (graph_def(), "TensorFlow graph", "--graphdef"),
    "SavedModel": (saved_model(), "SavedModel", "--saved-model"),
    "OpenVINO": (b'<?xml version="1.0"?>\n<net name="g" version="11"></net>', "OpenVINO", ".onnx"),
    "HTML": (b"\n<!DOCTYPE html>\n<html><title>Sign in</title></html>", "HTML", "download"),
    "text of a failed download": (b"Entry not found", "it is text, 'Entry not found'", "download"),
    "long text": (b"# Readme\n\n" + "Größe ".encode() * 900, "it is text, '# Readme", "download"),
    "onnx.printer": (onnx.printer.to_text(MODEL).encode(), "text of a model", "format='onnxtxt'"),
    "textproto": (text_format.MessageToString(MODEL).encode(), "text of a model", "format='textproto'"),
    "textproto with comments": (
        b"# a model\n# of one node\n" + text_format.MessageToString(MODEL).encode(),
        "text of a model",
        "format='textproto'",
    ),
    "JSON of protobuf": (json_format.MessageToJson(MODEL).encode(), "model as JSON", "format='json'"),
    "other JSON": (b'{"architectures": ["Net"]}', "it is text", "download"),
    "tensor": (
        numpy_helper.from_array(np.ones((2, 300), np.float32), "x").SerializeToString(),
        "TensorProto",
        "right file",
    ),
    "scalar": (numpy_helper.from_array(np.array(1.5)).SerializeToString(), "TensorProto", "right file"),
    "zeros": (bytes(5000), "zeros", "download"),
}


def named(data: bytes) -> InvalidModel:
    with pytest.raises(InvalidModel) as caught:
        opshift.convert_version(data, 17)
    return caught.value


@pytest.mark.parametrize("name", SAMPLES)
def test_names_format_of_bytes(name: str) -> None:
    data, description, remedy = SAMPLES[name]
    error = named(data)
    assert error.reason.startswith("is not an ONNX model: it is ")
    assert description in error.reason
    assert remedy in error.remedy


@pytest.mark.parametrize("size", [0, 3 << 20], ids=["small", "streamed"])
@pytest.mark.parametrize("name", [each for each in SAMPLES if "text" not in each and "JSON" not in each])
def test_names_format_of_files(name: str, size: int, tmp_path: Path) -> None:
    data, description, _ = SAMPLES[name]
    source = tmp_path / "model.onnx"
    # a file above 1 MiB is scanned and not parsed; archives are extended in front of their directory
    is_zip = data.startswith(b"PK")
    source.write_bytes(data[:60] + bytes(size) + data[60:] if is_zip else data + bytes(size))
    for convert in (
        lambda: opshift.convert_file(source, tmp_path / "out.onnx", 17),
        lambda: opshift.convert_version(source, 17),
    ):
        with pytest.raises(InvalidModel) as caught:
            convert()
        assert description in caught.value.reason
        assert str(caught.value.place) == str(source)
    assert not (tmp_path / "out.onnx").exists()


def test_names_file_that_onnxruntime_saved_in_its_format(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "model.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(MODEL.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert "ORT format" in named((tmp_path / "model.ort").read_bytes()).reason


def test_names_exported_operator_set(tmp_path: Path) -> None:
    path = tmp_path / "ml.onnxopset"
    result = CliRunner().invoke(app, ["opset", "export", str(path), "--domain", "ai.onnx.ml"])
    assert result.exit_code == 0
    assert "operator-set document" in named(path.read_bytes()).reason


def test_every_format_has_a_sample() -> None:
    names = {each.name for each in FORMATS}
    reasons = [named(data).reason for data, *_ in SAMPLES.values()]
    assert {name for name in names if not any(reason.endswith(name) for reason in reasons)} == set()


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.parametrize("text", ["json", "textproto", "onnxtxt"])
def test_remedy_for_text_writes_the_model(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(MODEL, "model.onnx", format=text)
    code = named(Path("model.onnx").read_bytes()).remedy.partition(": ")[2]
    assert text in code
    exec(code, {"onnx": onnx, "IN": "model.onnx", "OUT": "binary.onnx"})  # the project's own advice
    assert opshift.read_model("binary.onnx").graph.node[0].op_type == "Relu"


def test_keeps_the_general_error_for_unknown_formats() -> None:
    error = named(random.Random(7).randbytes(3000))
    assert error.reason.startswith("is not an ONNX model or is truncated: byte ")


@pytest.mark.parametrize("size", [0, 2 << 20], ids=["small", "streamed"])
def test_truncated_models_state_the_expected_size(size: int, tmp_path: Path) -> None:
    model = _model()
    model.graph.doc_string = "a" * size
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1000, np.float32), "w"))
    del model.opset_import[:]  # the graph is the last field
    data = model.SerializeToString()
    source = tmp_path / "model.onnx"
    source.write_bytes(data[:-100])
    for convert in (
        lambda: opshift.convert_file(source, tmp_path / "out.onnx", 17),
        lambda: opshift.convert_version(source, 17),
        lambda: opshift.convert_version(data[:-100], 17),
    ):
        with pytest.raises(InvalidModel) as caught:
            convert()
        assert caught.value.reason == (
            "is not an ONNX model or is truncated: byte 2 starts a field that ends at byte "
            f"{len(data):,}, after the end at byte {len(data) - 100:,}"
        )
        assert "copied completely" in caught.value.remedy


def test_names_files_larger_than_a_message(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    with open(source, "wb") as file:
        file.write(safetensors())
        file.truncate(2**31 + 5)
    with pytest.raises(InvalidModel, match="safetensors"):
        opshift.read_model(source)
    with pytest.raises(InvalidModel, match="safetensors"):
        opshift.convert_file(source, tmp_path / "out.onnx", 17)


def test_accepts_models_that_start_like_another_format() -> None:
    model = _model()
    model.producer_name = "\n\x05Const\n\x05\n\x03"
    assert opshift.convert_version(model.SerializeToString(), 17)


@pytest.mark.parametrize(
    "hostile", [b"#\t" * 2000 + b"!", b"\x08\x81" * 2048, b"<" + b" " * HEAD_SIZE, b"<net " * 200_000]
)
def test_hostile_input_ends_soon(hostile: bytes) -> None:
    assert named(hostile).reason


def test_check_reports_format() -> None:
    (finding,) = opshift.check(SAMPLES["git-lfs"][0])
    assert (finding.rule, "Git LFS pointer" in finding.reason) == ("model.readable", True)
    assert "git lfs pull" in finding.remedy


FOLDERS = {
    "saved_model.pb": ("TensorFlow SavedModel", "--saved-model {}"),
    "Manifest.json": ("Core ML package", "original"),
    "model.safetensors": ("weights", "torch.onnx.export"),
    "net.onnx": ("is a folder", "such as {}/net.onnx"),
    "": ("is a folder", "name a file in the folder"),
}


@pytest.mark.parametrize("content", FOLDERS)
def test_names_kind_of_folder(content: str, tmp_path: Path) -> None:
    folder = tmp_path / "model.onnx"
    folder.mkdir()
    if content:
        (folder / content).touch()
    description, remedy = FOLDERS[content]
    for convert in (
        lambda: opshift.convert_file(folder, tmp_path / "out.onnx", 17),
        lambda: opshift.convert_version(folder, 17),
    ):
        with pytest.raises(InvalidModel) as caught:
            convert()
        assert description in caught.value.reason
        assert remedy.format(folder) in caught.value.remedy


COMMANDS = [
    ["convert", "model.onnx", "out.onnx", "-t", "17"],
    ["plan", "model.onnx", "-t", "17"],
    *([each, "model.onnx"] for each in ("reach", "doctor", "check", "inspect")),
    ["compare", "model.onnx", "model.onnx"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_name_the_format(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("git-lfs", "GraphDef"):
        data, description, remedy = SAMPLES[name]
        Path("model.onnx").write_bytes(data)
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 1
        assert description in result.output
        assert remedy in " ".join(result.output.split())
