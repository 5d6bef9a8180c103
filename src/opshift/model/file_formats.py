"""Formats of files mistaken for ONNX models, by their first and last bytes; errors for unreadable files."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from opshift.model.errors import InvalidModel
from opshift.model.wire_format import ReadBytes

HEAD_SIZE, TAIL_SIZE = 1 << 12, 1 << 20
"""Number of bytes to read at the start and at the end of a file: zip archives list their files at the end."""

MAX_QUOTED_TEXT = 60
"""Maximum number of characters that an error quotes from a text file."""


class FileFormat(NamedTuple):
    """File format: the file starts with the pattern `start`; its first or last bytes contain `content`."""

    name: str
    remedy: str
    start: bytes
    content: bytes = b""


CHECK_FILE = "check that it is the right file"

CHECK_TEXT = f"{CHECK_FILE}; if it was downloaded, check the address"

DOWNLOAD = "check the address, and download the file again"

EXTRACT = "extract it, and name the .onnx file in it"

EXPORT = "load the model in PyTorch, and export it with torch.onnx.export"

CHECKPOINT = "a PyTorch checkpoint: a state dict, or a pickled module"

EXPORT_CHECKPOINT = "load it into the model in PyTorch, and export this model with torch.onnx.export"

EXPORT_ORIGINAL = "export the original model to ONNX: this format cannot be converted to it"

SOURCE = "use the .onnx file from which it was built"

ZIP = rb"PK\x03\x04"

NUMBER = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
"""Pattern of a varint of protobuf, such as a length."""

FORMATS = (
    FileFormat(
        "a Git LFS pointer: the file itself was not downloaded",
        "download the file: git lfs install, then git lfs pull",
        rb"version https://git-lfs\.github\.com/",
    ),
    FileFormat(
        "a program saved by torch.export", EXPORT, ZIP, rb"archive_format|serialized_exported_program"
    ),
    FileFormat("a TorchScript archive", EXPORT, ZIP, rb"/code/__torch__|/constants\.pkl"),
    FileFormat(CHECKPOINT, EXPORT_CHECKPOINT, ZIP, rb"/data\.pkl"),
    FileFormat(CHECKPOINT, EXPORT_CHECKPOINT, rb"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P"),
    FileFormat("a zip archive that contains an ONNX model", EXTRACT, ZIP, rb"\.onnx"),
    FileFormat(
        "a Keras model", "load it in Keras: model.export('model.onnx', format='onnx')", ZIP, rb"\.weights\.h5"
    ),
    FileFormat("a zipped Core ML package", EXPORT_ORIGINAL, ZIP, rb"\.mlmodel|\.mlpackage"),
    FileFormat("a zip archive of NumPy arrays", CHECK_FILE, ZIP, rb"\.npy"),
    FileFormat("a zip archive", EXTRACT, rb"PK(\x03\x04|\x05\x06)"),
    FileFormat("a 7z archive", EXTRACT, rb"7z\xbc\xaf\x27\x1c"),
    FileFormat("a tar archive", EXTRACT, rb"(?s).{257}ustar"),
    FileFormat("a gzip file", EXTRACT, rb"\x1f\x8b"),
    FileFormat("a zstd file", EXTRACT, rb"\x28\xb5\x2f\xfd"),
    FileFormat("an xz file", EXTRACT, rb"\xfd7zXZ\x00"),
    FileFormat("a bzip2 file", EXTRACT, rb"BZh[1-9]1AY&SY"),
    FileFormat("a NumPy array", CHECK_FILE, rb"\x93NUMPY"),
    FileFormat(
        "a safetensors file, which contains weights and no graph",
        EXPORT_CHECKPOINT,
        rb"(?s).{5}\x00{3}\{",
    ),
    FileFormat("a GGUF file", EXPORT_ORIGINAL, rb"GGUF"),
    FileFormat(
        "a TensorFlow Lite model",
        "convert it with tf2onnx: python -m tf2onnx.convert --tflite IN --output OUT",
        rb"(?s).{4}TFL3",
    ),
    FileFormat("a model in the ORT format of onnxruntime", SOURCE, rb"(?s).{4}ORTM"),
    FileFormat("a TensorRT engine", SOURCE, rb"[fp]trt"),
    FileFormat(
        "an HDF5 file, such as a Keras model",
        "load it in Keras: model.export('model.onnx', format='onnx')",
        rb"\x89HDF\r\n\x1a\n",
    ),
    FileFormat("a pickle file", EXPORT, rb"\x80[\x02-\x05]"),
    FileFormat("an operator-set document", "read it with opshift opset load", rb"\x0a\x09ONNXOPSET"),
    # formats of protobuf messages: many such messages can also be parsed as a model without nodes
    FileFormat(
        "a serialized TensorProto, such as the data of a test",
        CHECK_FILE,
        rb"(\x08" + NUMBER + rb")*\x10[\x01-\x7f][\x22-\x7a]",
    ),
    FileFormat(
        "a TensorFlow graph",
        "convert it with tf2onnx: python -m tf2onnx.convert --graphdef IN --output OUT",
        rb"\x0a" + NUMBER + rb"\x0a" + NUMBER,
        rb"\x12(\x0bPlaceholder|\x05Const)",
    ),
    FileFormat(
        "a Core ML model", EXPORT_ORIGINAL, rb"\x08[\x01-\x1f]\x12" + NUMBER + rb"\x0a" + NUMBER + rb"\x0a"
    ),
    FileFormat(
        "a TensorFlow SavedModel",
        "convert its folder with tf2onnx: python -m tf2onnx.convert --saved-model FOLDER --output OUT",
        rb"\x08\x01\x12" + NUMBER + rb"\x0a",
    ),
    FileFormat("an HTML page", DOWNLOAD, rb"(?i)\s*<(!doctype html|html|head)"),
    FileFormat("an OpenVINO model", SOURCE, rb"\s*<(\?xml|net)", rb"<net\s[^>]{0,99}name="),
    FileFormat(
        "the text of a model",
        "write the model as binary: onnx.save(onnx.load(IN, format='onnxtxt'), OUT)",
        rb"\s*<\s*(ir_version|opset_import)",
    ),
    FileFormat(
        "the text of a model",
        "write the model as binary: onnx.save(onnx.load(IN, format='textproto'), OUT)",
        rb"\s*(#[^\n]*\n\s*)*(ir_version|opset_import|producer_name|graph)\s*[:{]",
    ),
    FileFormat(
        "a model as JSON",
        "write the model as binary: onnx.save(onnx.load(IN, format='json'), OUT)",
        rb"\s*\{",
        rb'"(irVersion|ir_version|opsetImport|opset_import)"',
    ),
    FileFormat("filled with zeros, as after an interrupted download", DOWNLOAD, rb"\x00{16}"),
)

FOLDERS = (
    ("*.onnx", "", "name a file in the folder, such as {}"),
    (
        "saved_model.pb",
        ": a TensorFlow SavedModel",
        "convert it with tf2onnx: python -m tf2onnx.convert --saved-model {.parent} --output OUT",
    ),
    ("Manifest.json", ": a Core ML package", EXPORT_ORIGINAL),
    ("*.safetensors", " with weights and no ONNX model", EXPORT),
)
"""File pattern, description and remedy for each kind of folder that users pass instead of a model."""


def format_of(read: ReadBytes, size: int) -> FileFormat | None:
    """Return the format of an input; `None` for unknown data that is not text.

    Unknown text is quoted in the name.
    """
    head = read(0, min(size, HEAD_SIZE))
    content = head + read(max(len(head), size - TAIL_SIZE), size)
    for each in FORMATS:
        if re.match(each.start, head) and re.search(each.content, content):
            return each
    text = " ".join(head.decode(errors="replace")[:MAX_QUOTED_TEXT].split())
    is_text = text.isprintable() and "\ufffd" not in text
    return FileFormat(f"text, {text!r}", CHECK_TEXT, b"") if is_text else None


def named_format(read: ReadBytes, size: int, place: str) -> InvalidModel | None:
    """Return an error that names the format of an input, or `None` if the format is unknown."""
    found = format_of(read, size)
    if found is None:
        return None
    return InvalidModel(f"is not an ONNX model: it is {found.name}", place=place, remedy=found.remedy)


def folder_problem(folder: Path) -> tuple[str, str]:
    """Return the reason and the remedy of the error for a folder that is passed instead of a model."""
    for pattern, what, remedy in FOLDERS:
        found = min(filter(Path.is_file, folder.glob(pattern)), default=None)
        if found is not None:
            return f"is a folder{what}", remedy.format(found)
    return "is a folder", "name a file in the folder"


def unreadable(place: str, error: OSError | ValueError) -> InvalidModel:
    """Return the error for a file that cannot be read; `place` is its path, or empty for a file object.

    A ValueError is about a null character in the path, or a closed file object.
    """
    if place and os.path.isdir(place):  # methods of Path raise an error for a name that is too long
        reason, remedy = folder_problem(Path(place))
        return InvalidModel(reason, place=place, remedy=remedy)
    if place and isinstance(error, FileNotFoundError) and os.path.islink(place):
        reason = f"is a link to {os.readlink(place)}, which does not exist"
        return InvalidModel(reason, place=place, remedy="restore that file, or remove the link")
    reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return InvalidModel(reason, place=place, remedy="check the path, and the permissions of the file")


def changed_file(reason: str, place: str) -> InvalidModel:
    """Return the error for a file that another process changed while the file was read."""
    return InvalidModel(reason, place=place, remedy="try again when no other process writes to it")
