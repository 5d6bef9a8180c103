"""Operator sets written as documents and read back answer every query like the original registry."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import pytest

from opshift.model.errors import OpshiftError
from opshift.registry.descriptions import texts_of
from opshift.registry.documents.document import (
    Contradiction,
    DocumentError,
    DocumentHeader,
    NoDefinitions,
    OperatorNames,
    OperatorSet,
    RepeatedOperator,
    UnsupportedVersion,
    WrongDomain,
    WrongMagic,
    WrongOpset,
    document_to_dict,
    operator_set,
)
from opshift.registry.documents.files import DocumentFormat, read_document, write_document, write_tree
from opshift.registry.documents.onnxopset import from_onnxopset
from opshift.registry.errors import DefinitionError, UnknownDomain, UnknownOpset
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.registry import Registry, default_registry
from opshift.registry.yaml_files import dump_yaml

DEFAULT = default_registry()
DOMAINS = DEFAULT.domains()
SMALL_DOMAIN = "ai.onnx.ml"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with `<domain>.onnxopset` for every domain."""
    folder = tmp_path_factory.mktemp("documents")
    for domain in DOMAINS:
        content = write_document(operator_set(DEFAULT, domain), DocumentFormat.ONNXOPSET, DEFAULT)
        (folder / f"{domain}.onnxopset").write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def read_back(documents: Path) -> Registry:
    """Registry of the documents only."""
    registry = Registry(())
    for domain in DOMAINS:
        registry = registry.with_document(documents / f"{domain}.onnxopset")
    return registry


# Queries


def _result(query: Callable[..., object], *arguments: object) -> object:
    """Return the result of a query; versions become ids, since they are compared elsewhere, errors fields."""
    try:
        found = query(*arguments)
    except OpshiftError as error:
        return error.as_dict()
    return found.id if isinstance(found, OperatorVersion) else found


class Node(NamedTuple):
    """The part of a node that determines its operator."""

    op_type: str
    domain: str


def test_there_are_five_domains() -> None:
    assert len(DOMAINS) == 5


@pytest.mark.full
def test_a_registry_of_documents_lists_the_same_operators(read_back: Registry) -> None:
    assert read_back.domains() == DOMAINS
    assert read_back.get_all_schemas_with_history() == DEFAULT.get_all_schemas_with_history()
    pairs = zip(read_back.get_all_schemas_with_history(), DEFAULT.get_all_schemas_with_history(), strict=True)
    assert all(texts_of(copied) == texts_of(version) for copied, version in pairs)
    for domain in DOMAINS:
        assert read_back.names(domain) == DEFAULT.names(domain)
        assert read_back.newest_opset(domain) == DEFAULT.newest_opset(domain)
        assert list(read_back.operators(domain)) == list(DEFAULT.operators(domain))


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_registry_of_documents_answers_the_same_queries(read_back: Registry, domain: str) -> None:
    """Queries include unknown, removed and later operators, and opsets beyond the newest."""
    newest = DEFAULT.newest_opset(domain)
    # documents do not declare nonstandard operators
    for name in {*DEFAULT.names(domain), "Cnov"} - DEFAULT.releases.nonstandard.keys():
        for opset in (None, *range(newest + 2)):
            assert _results(read_back, name, opset, domain) == _results(DEFAULT, name, opset, domain)


def _results(registry: Registry, name: str, opset: int | None, domain: str) -> tuple[object, ...]:
    found = _result(registry.get_schema, name, opset, domain)
    if opset is None:
        return (found,)
    return (
        found,
        _result(registry.resolve, Node(name, domain), {domain: opset}),
        _result(registry.at, name, opset, domain),
        registry.has(name, opset, domain),
    )


@pytest.mark.parametrize("form", [DocumentFormat.YAML, DocumentFormat.JSON])
@pytest.mark.parametrize("domain", ["ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"])
def test_other_formats_are_read_back_unchanged(tmp_path: Path, form: DocumentFormat, domain: str) -> None:
    path = tmp_path / f"set.{form}"
    path.write_bytes(write_document(operator_set(DEFAULT, domain), form, DEFAULT))
    assert read_document(path) == operator_set(DEFAULT, domain)


def test_writes_infinite_numbers_as_strict_json(tmp_path: Path) -> None:
    """A step of Clip contains infinities."""
    path = tmp_path / "set.json"
    path.write_bytes(write_document(operator_set(DEFAULT, ""), DocumentFormat.JSON, DEFAULT))
    assert json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert read_document(path) == operator_set(DEFAULT, "")


def test_writes_equal_sets_as_equal_bytes() -> None:
    for form in DocumentFormat:
        first, second = (write_document(operator_set(DEFAULT, SMALL_DOMAIN), form, DEFAULT) for _ in range(2))
        assert first == second


# Readers without definitions


@pytest.mark.parametrize("domain", DOMAINS)
def test_onnx_parses_the_operators_of_a_document(documents: Path, domain: str) -> None:
    message = onnx.OperatorSetProto.FromString((documents / f"{domain}.onnxopset").read_bytes())
    newest = DEFAULT.newest_opset(domain)
    assert (message.magic, message.domain, message.opset_version) == ("ONNXOPSET", domain, newest)
    listed = {each.op_type: (each.since_version, each.status) for each in message.operator}
    in_effect = {name: DEFAULT.at(name, newest, domain) for name in DEFAULT.names(domain)}
    assert listed == {
        name: (version.since_version, int(version.status == "STABLE"))
        for name, version in in_effect.items()
        if version
    }
    assert all(each.doc_string for each in message.operator)


def test_rewriting_a_document_with_onnx_keeps_the_definitions(documents: Path, tmp_path: Path) -> None:
    source = documents / f"{SMALL_DOMAIN}.onnxopset"
    path = tmp_path / "again.onnxopset"
    path.write_bytes(onnx.OperatorSetProto.FromString(source.read_bytes()).SerializeToString())
    assert read_document(path) == read_document(source)


# Headers and documents of other tools


@pytest.mark.parametrize(
    ("domain", "opset", "ir_version"),
    [("ai.onnx", 1, 3), ("ai.onnx", 9, 4), ("ai.onnx", 17, 8), ("ai.onnx", 21, 10), ("ai.onnx.ml", 4, 9)],
)
def test_writes_the_ir_version_of_the_release_with_the_opset(
    domain: str, opset: int, ir_version: int
) -> None:
    found = operator_set(DEFAULT, domain, opset)
    message = onnx.OperatorSetProto.FromString(write_document(found, DocumentFormat.ONNXOPSET, DEFAULT))
    assert (found.header.ir_version, message.ir_version) == (ir_version, ir_version)


def test_writes_the_newest_ir_version_for_a_private_domain(tmp_path: Path) -> None:
    registry = DEFAULT.with_document(_write(tmp_path, _data(BLUR)))
    assert operator_set(registry, "com.acme").header.ir_version == ir_versions().newest


@pytest.mark.parametrize("form", DocumentFormat)
def test_reads_back_the_header(tmp_path: Path, form: DocumentFormat) -> None:
    texts: dict[str, Any] = {
        "prerelease": "rc.1",
        "build_metadata": "2026.011",
        "doc_string": "Two <lines>\nof text",
    }
    path = tmp_path / f"set.{form}"
    path.write_bytes(write_document(operator_set(DEFAULT, "ai.onnx.preview", **texts), form, DEFAULT))
    assert read_document(path).header[1:] == tuple(texts.values())


def _plain(*operators: tuple[str, int], **fields: Any) -> bytes:
    listed = [onnx.OperatorProto(op_type=name, since_version=since, status=1) for name, since in operators]
    header = {"magic": "ONNXOPSET", "ir_version": 8, "domain": "com.acme", "opset_version": 3}
    message: bytes = onnx.OperatorSetProto(**{**header, **fields}, operator=listed).SerializeToString()
    return message


def test_reads_the_names_in_a_document_of_another_tool() -> None:
    found = from_onnxopset(_plain(("Blur", 2), ("Arc", 1), ir_version_prerelease="beta"))
    assert isinstance(found, OperatorNames)
    assert [str(each.id) for each in found.operators] == ["com.acme.Blur:2", "com.acme.Arc:1"]
    assert (found.domain, found.opset_version, found.header) == ("com.acme", 3, DocumentHeader(8, "beta"))


def test_reads_names_of_the_default_domain() -> None:
    found = from_onnxopset(_plain(("Relu", 1), domain=""))
    assert (found.domain, str(found.operators[0].id)) == ("ai.onnx", "ai.onnx.Relu:1")  # type: ignore[union-attr]  # names


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (_plain(("Blur", 2), ("Blur", 3)), RepeatedOperator, "2 times"),
        (_plain(("Blur", 4)), WrongOpset, "Blur:4, which is not a version of opsets 1 to 3"),
        (_plain(("Blur", 0)), WrongOpset, "Blur:0"),
        (_plain(("../Blur", 1)), DocumentError, "invalid name"),
        (_plain(("", 1)), DocumentError, "invalid name ''"),
        (_plain(ir_build_metadata="a b"), DocumentError, "invalid ir_build_metadata 'a b'"),
    ],
)
def test_refuses_invalid_names(content: bytes, error: type[DocumentError], message: str) -> None:
    with pytest.raises(error, match=message):
        from_onnxopset(content)


# Operator sets at an opset


@cache
def _at(opset: int) -> OperatorSet:
    return operator_set(DEFAULT, SMALL_DOMAIN, opset)


@pytest.mark.parametrize("opset", [1, 2, 3, 4, 5])
def test_a_set_at_an_opset_omits_later_versions_and_removals(opset: int) -> None:
    found = _at(opset)
    assert {version.id for version in found.versions_in_effect} == {
        version.id
        for name in DEFAULT.names(SMALL_DOMAIN)
        if (version := DEFAULT.at(name, opset, SMALL_DOMAIN))
    }
    assert max(each.versions[-1].since_version for each in found.operators) <= opset
    removals = [version.removal for each in found.operators for version in each.versions]
    assert all(removal is None or removal.removed_in <= opset for removal in removals)


def test_reads_back_a_set_at_an_opset(tmp_path: Path) -> None:
    path = tmp_path / "old.onnxopset"
    path.write_bytes(write_document(operator_set(DEFAULT, "", 9), DocumentFormat.ONNXOPSET, DEFAULT))
    registry = Registry(()).with_document(path)
    assert registry.newest_opset() == 9
    assert texts_of(registry.get_schema("Softmax")) == texts_of(DEFAULT.get_schema("Softmax", 9))
    assert registry.has("Upsample", 9)
    assert not registry.has("CumSum", 9)


def test_refuses_unknown_opsets_and_domains() -> None:
    with pytest.raises(UnknownOpset):
        operator_set(DEFAULT, SMALL_DOMAIN, 99)
    with pytest.raises(UnknownDomain):
        operator_set(DEFAULT, "com.acme")


# Documents added to a registry

BLUR = {
    "domain": "com.acme",
    "name": "Blur",
    "versions": [
        {
            "since_version": 2,
            "inputs": [{"name": "X", "type": "T"}],
            "outputs": [{"name": "Y", "type": "T"}],
            "attributes": {"size": {"type": "INT", "default": 3}},
            "type_constraints": {"T": ["tensor(float)"]},
        }
    ],
}


def _data(*operators: Any, **fields: Any) -> dict[str, Any]:
    header = {"magic": "ONNXOPSET", "form": 1, "ir_version": 8, "domain": "com.acme", "opset_version": 3}
    return {**header, "operators": list(operators), **fields}


def _write(folder: Path, data: object) -> Path:
    path = folder / "acme.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_adds_a_document_to_the_built_in_definitions(tmp_path: Path) -> None:
    registry = DEFAULT.with_document(_write(tmp_path, _data(BLUR)))
    assert registry.get_schema("Blur", 3, "com.acme").since_version == 2
    assert registry.newest_opset("com.acme") == 3
    assert registry.has("Relu", 17)
    assert not DEFAULT.has("Blur", 3, "com.acme")


def test_adding_a_folder_keeps_the_documents(tmp_path: Path) -> None:
    folder = tmp_path / "tree" / "com.other"
    folder.mkdir(parents=True)
    (folder / "Blur.yaml").write_text(dump_yaml({**BLUR, "domain": "com.other"}), encoding="utf-8")
    registry = DEFAULT.with_document(_write(tmp_path, _data(BLUR))).with_folder(tmp_path / "tree")
    assert {"com.acme", "com.other"} <= set(registry.domains())
    assert registry.documents == (tmp_path / "acme.json",)


def test_refuses_a_document_of_a_defined_domain(documents: Path) -> None:
    with pytest.raises(WrongDomain, match="already defined") as caught:
        DEFAULT.with_document(documents / f"{SMALL_DOMAIN}.onnxopset")
    assert caught.value.place.file.endswith(".onnxopset")


def test_writes_definitions_as_a_tree(tmp_path: Path) -> None:
    found = operator_set(DEFAULT, SMALL_DOMAIN)
    paths = write_tree(found, tmp_path)
    assert len(paths) == len(found.operators)
    assert tuple(Registry((tmp_path,)).operators(SMALL_DOMAIN)) == found.operators
    with pytest.raises(FileExistsError):
        write_tree(found, tmp_path)


# Invalid documents


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in _data(BLUR).items() if name != key}


NEWER = {**BLUR, "versions": [{**BLUR["versions"][0], "since_version": 4}]}  # type: ignore[dict-item]  # the literal is a dict


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        pytest.param([], WrongMagic, "magic", id="a list"),
        pytest.param(_without("magic"), WrongMagic, "magic", id="no magic"),
        pytest.param(_data(magic="ONNX"), WrongMagic, "magic", id="a different magic"),
        pytest.param(_data(form=2), UnsupportedVersion, "`form` is 2", id="a newer form"),
        pytest.param(_without("form"), UnsupportedVersion, "`form` is None", id="no form"),
        pytest.param(_data(ir_version=99), UnsupportedVersion, "IR version 99", id="a newer IR version"),
        pytest.param(_data(ir_version=0), UnsupportedVersion, "IR version 0", id="IR version 0"),
        pytest.param(_without("ir_version"), UnsupportedVersion, "None", id="no IR version"),
        pytest.param(_without("domain"), WrongDomain, "no domain", id="no domain"),
        pytest.param(_data(BLUR, domain=""), WrongDomain, "domain ai.onnx", id="the default domain"),
        *(
            pytest.param(_data(**{key: text}), DocumentError, f"invalid {key}", id=f"{key} {text!r}")
            for key, text in (
                ("ir_version_prerelease", "rc.01"),
                ("ir_version_prerelease", "rc..1"),
                ("ir_version_prerelease", "-rc\n"),
                ("ir_build_metadata", "a+b"),
                ("ir_build_metadata", 7),
                ("doc_string", ["text"]),
            )
        ),
        pytest.param(_data(opset_version=0), WrongOpset, "opset version 0", id="opset 0"),
        pytest.param(_data(opset_version="3"), WrongOpset, "'3'", id="an opset that is a string"),
        pytest.param(_data(BLUR, BLUR), RepeatedOperator, "2 times", id="a repeated operator"),
        pytest.param(
            _data({**BLUR, "domain": "com.x"}), WrongDomain, "com.x", id="an operator of a different domain"
        ),
        pytest.param(_data(NEWER), WrongOpset, "newer than opset 3", id="an operator newer than the opset"),
        pytest.param(_data(operators={}), DocumentError, "not a list", id="operators by name"),
        pytest.param(_data({**BLUR, "versions": []}), DefinitionError, "versions", id="no versions"),
        pytest.param(_data({"name": "Blur"}), DefinitionError, "no domain", id="an operator without keys"),
        pytest.param(_data("Blur"), DefinitionError, "no domain", id="an operator that is a string"),
        pytest.param(_data({**BLUR, "colour": 1}), DefinitionError, "colour", id="an unknown key"),
    ],
)
def test_refuses_invalid_data(
    tmp_path: Path, data: object, error: type[DefinitionError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        read_document(_write(tmp_path, data))
    assert caught.value.place.file.endswith("acme.json")


@pytest.mark.parametrize("form", [DocumentFormat.JSON, DocumentFormat.ONNXOPSET])
def test_refuses_to_write_nan_as_json(form: DocumentFormat) -> None:
    fields = {"attributes": {"a": {"type": "FLOAT", "default": math.nan}}}
    version = {"domain": "com.acme", "name": "Blur", "since_version": 1, **fields}
    operator = from_plain_data(Operator, {"domain": "com.acme", "name": "Blur", "versions": [version]})
    operators = OperatorSet("com.acme", 1, (operator,), DocumentHeader(8))
    with pytest.raises(DocumentError, match="contains NaN, which JSON cannot express"):
        write_document(operators, form, DEFAULT)
    assert b".nan" in write_document(operators, DocumentFormat.YAML, DEFAULT)


def _edited_message(change: Callable[[onnx.OperatorSetProto], None]) -> bytes:
    blur = from_plain_data(
        Operator,
        {**BLUR, "versions": [{**BLUR["versions"][0], "domain": "com.acme", "name": "Blur"}]},  # type: ignore[dict-item]  # the literal is a dict
    )
    content = write_document(
        OperatorSet("com.acme", 3, (blur,), DocumentHeader(8)), DocumentFormat.ONNXOPSET, DEFAULT
    )
    message = onnx.OperatorSetProto.FromString(content)
    change(message)
    edited: bytes = message.SerializeToString()
    return edited


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        pytest.param(
            lambda m: setattr(m, "magic", "ONNX"), WrongMagic, "magic 'ONNX'", id="a different magic"
        ),
        pytest.param(lambda m: m.ClearField("magic"), WrongMagic, "magic", id="no magic"),
        pytest.param(
            lambda m: setattr(m, "ir_version", 99), UnsupportedVersion, "99", id="a newer IR version"
        ),
        pytest.param(lambda m: m.ClearField("domain"), Contradiction, "ai.onnx 3", id="no domain"),
        pytest.param(
            lambda m: setattr(m, "ir_version", 9), Contradiction, "9, but 8", id="a different IR version"
        ),
        pytest.param(
            lambda m: setattr(m, "doc_string", "text"), Contradiction, "doc_string", id="a different text"
        ),
        pytest.param(
            lambda m: setattr(m, "ir_version_prerelease", "01"),
            DocumentError,
            "01",
            id="an invalid pre-release",
        ),
        pytest.param(lambda m: setattr(m, "opset_version", 0), WrongOpset, "0", id="opset 0"),
        pytest.param(lambda m: setattr(m, "opset_version", 4), Contradiction, "4", id="a different opset"),
        pytest.param(
            lambda m: setattr(m, "domain", "com.x"), Contradiction, "com.x", id="a different domain"
        ),
        pytest.param(
            lambda m: m.operator.extend(list(m.operator)),
            RepeatedOperator,
            "2 times",
            id="an operator listed twice",
        ),
        pytest.param(
            lambda m: m.ClearField("operator"), Contradiction, "Blur:2", id="an operator not listed"
        ),
        pytest.param(
            lambda m: setattr(m.operator[0], "since_version", 1),
            Contradiction,
            "Blur:1",
            id="a different version",
        ),
        pytest.param(
            lambda m: setattr(m.operator[0], "status", 0), Contradiction, "Blur:2", id="a different status"
        ),
        pytest.param(
            lambda m: m.DiscardUnknownFields(), NoDefinitions, "does not define", id="no definitions"
        ),
    ],
)
def test_refuses_an_invalid_message(
    tmp_path: Path,
    change: Callable[[onnx.OperatorSetProto], None],
    error: type[DocumentError],
    message: str,
) -> None:
    path = tmp_path / "acme.onnxopset"
    path.write_bytes(_edited_message(change))
    with pytest.raises(error, match=message) as caught:
        read_document(path)
    assert caught.value.place.file == str(path)


@pytest.mark.parametrize("content", [b"\xff\xff", b"", b"not a message"], ids=["broken", "empty", "text"])
@pytest.mark.parametrize("suffix", ["onnxopset", "json", "yaml"])
def test_refuses_content_of_no_known_format(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"set.{suffix}"
    path.write_bytes(content)
    with pytest.raises(DefinitionError):
        read_document(path)


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    for suffix in ("onnxopset", "json", "yaml"):
        with pytest.raises(DefinitionError, match="cannot be read"):
            read_document(tmp_path / f"none.{suffix}")


def test_document_data_has_the_keys_of_a_file() -> None:
    data = document_to_dict(operator_set(DEFAULT, SMALL_DOMAIN))
    assert list(data) == ["magic", "form", "ir_version", "domain", "opset_version", "operators"]
    assert data["operators"][0]["name"] == DEFAULT.names(SMALL_DOMAIN)[0]
