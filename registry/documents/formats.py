"""File formats of operator-set documents."""

from __future__ import annotations

from enum import StrEnum


class DocumentFormat(StrEnum):
    """File format of a document; also the suffix of the file name."""

    ONNXOPSET = "onnxopset"
    YAML = "yaml"
    JSON = "json"
