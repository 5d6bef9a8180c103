"""Read and write operator-set documents as protobuf, YAML or JSON files."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.model.atomic_files import destination_below, write_files
from opshift.model.errors import Place
from opshift.model.plain_data import PlainDataError, json_text, parse_json
from opshift.registry.documents.document import (
    DOCUMENT_REMEDY,
    DocumentError,
    NoDefinitions,
    OperatorNames,
    OperatorSet,
    WrongMagic,
    document_to_dict,
    parse_document,
)
from opshift.registry.errors import DefinitionError
from opshift.registry.to_yaml import operator_to_dict
from opshift.registry.yaml_files import dump_yaml, load_yaml

if TYPE_CHECKING:
    from opshift.registry.registry import Registry


def write_document(operators: OperatorSet, form: DocumentFormat, registry: Registry) -> bytes:
    """Return the serialized document; equal operator sets give equal bytes.

    `registry` defines the operators of other domains in function bodies.

    Raises:
        DocumentError: a definition contains NaN, which JSON cannot express, and the form is not YAML.
    """
    if form is DocumentFormat.YAML:
        return dump_yaml(document_to_dict(operators)).encode()
    try:
        if form is DocumentFormat.ONNXOPSET:
            from opshift.registry.documents.onnxopset import to_onnxopset

            return to_onnxopset(operators, registry)
        return (json_text(document_to_dict(operators), indent=1) + "\n").encode()
    except PlainDataError as error:
        reason = f"a definition of {operators.domain} {error}"
        raise DocumentError(reason, remedy="write YAML, or remove NaN") from error


def read_document(path: Path) -> OperatorSet:
    """Read the operator set of a document.

    Raises:
        NoDefinitions: the document lists names only.
        DocumentError: the document is invalid; a subclass gives the reason, and the place is the file.
        DefinitionError: the file cannot be read, or a definition is invalid.
    """
    found = read_set_or_names(path)
    if isinstance(found, OperatorSet):
        return found
    remedy = "export the set with opshift, which adds the definitions, or write definitions as YAML files"
    raise NoDefinitions("lists operators but does not define them", place=Place(str(path)), remedy=remedy)


def read_set_or_names(path: Path) -> OperatorSet | OperatorNames:
    """Read a document: YAML or JSON according to the file's suffix, otherwise an OperatorSetProto.

    Return `OperatorNames` for a message without definitions, which other tools write. Raise the errors of
    `read_document`, except `NoDefinitions`.
    """
    try:
        return _read_definitions(path)
    except DefinitionError as error:
        if not error.place.file:
            error.place = Place(str(path), node=error.place.node)
        raise


def write_tree(operators: OperatorSet, folder: Path) -> list[Path]:
    """Write the definitions as YAML files, `<domain>/<operator>.yaml`, and return their paths.

    Raises:
        FileExistsError: a file already exists. No file is written.
        UsageError: a file would be outside of the folder.
        CannotWrite: a file cannot be written.
    """
    texts: dict[Path, str] = {}
    for operator in operators.operators:
        path = destination_below(folder, operators.domain, f"{operator.name}.yaml")
        if os.path.lexists(path):
            raise FileExistsError(17, "file already exists", str(path))
        texts[path] = dump_yaml(operator_to_dict(operator))
    write_files(texts, new=texts)
    return list(texts)


def _read_definitions(path: Path) -> OperatorSet | OperatorNames:
    if path.suffix in (".yaml", ".yml"):
        return parse_document(load_yaml(path))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror}") from error
    if path.suffix == ".json":
        try:
            data = parse_json(content)
        except PlainDataError as error:
            raise WrongMagic(str(error), remedy=DOCUMENT_REMEDY) from error
        return parse_document(data)
    from opshift.registry.documents.onnxopset import from_onnxopset

    return from_onnxopset(content)


class DocumentFormat(StrEnum):
    """File format of a document; also the suffix of the file name."""

    ONNXOPSET = "onnxopset"
    YAML = "yaml"
    JSON = "json"
