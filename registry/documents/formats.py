"""The ways in which a document is written."""

from __future__ import annotations

from enum import StrEnum


class DocumentFormat(StrEnum):
    """How a document is written; a file's name ends like this."""

    ONNXOPSET = "onnxopset"
    YAML = "yaml"
    JSON = "json"
