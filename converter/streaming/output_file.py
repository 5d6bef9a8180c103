"""Result of the conversion of a file."""

from __future__ import annotations

from pathlib import Path

from opshift.converter.report import Report
from opshift.converter.streaming.weights import Weights
from opshift.model.files import read_bytes, serialize_model
from opshift.model.messages import ModelProto
from opshift.model.shared_data import FrozenRecord
from opshift.model.tensor_pieces import OutputPiece, Range
from opshift.stores.source_file import Source


class OutputFile(FrozenRecord):
    """Converted model in a temporary file.

    Attributes:
        path: the file; `None` for a model that was sent to a store without a local file.
        report: report of the conversion.
        external: locations of the external data files of the original.
        data: locations of the external data files of the result; one new file if elements are converted.
        data_file: temporary file with converted elements, which becomes the only file in `data`.
    """

    path: Path | None
    report: Report
    external: tuple[str, ...]
    data: tuple[str, ...]
    data_file: Path | None = None


def output_pieces(
    report: Report, message: bytes, model: ModelProto, weights: Weights, file: Source
) -> list[OutputPiece]:
    """Return the pieces of the output: the whole input file if the conversion changes nothing."""
    converted = serialize_model(model, file.place)
    # Serializations by the same library are compared, because the file itself may be encoded differently.
    if not report.opsets and not report.changed and converted == serialize_model(read_bytes(message)):
        return [Range(0, file.size)]
    return weights.restore(converted)
