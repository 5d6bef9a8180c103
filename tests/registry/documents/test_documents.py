"""Operator sets as documents: read back, a set answers as the registry that wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import pytest

from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.documents.document import OperatorSet, document_data, operator_set
from opshift.registry.documents.errors import (
    Contradiction,
    DocumentError,
    NoDefinitions,
    RepeatedOperator,
    UnsupportedVersion,
    WrongDomain,
    WrongMagic,
    WrongOpset,
)
from opshift.registry.documents.files import read_document, write_document, write_tree
from opshift.registry.documents.formats import DocumentFormat
from opshift.registry.errors import DefinitionError, OpshiftError, UnknownDomain, UnknownOpset
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import checked
from opshift.registry.yaml_files import dump_yaml

OURS = default_registry()
DOMAINS = OURS.domains()
SMALL = "ai.onnx.ml"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`<domain>.onnxopset` for every domain."""
    folder = tmp_path_factory.mktemp("documents")
    for domain in DOMAINS:
        content = write_document(operator_set(OURS, domain), DocumentFormat.ONNXOPSET)
        (folder / f"{domain}.onnxopset").write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def read_back(documents: Path) -> Registry:
    """A registry of the documents alone."""
    registry = Registry(())
    for domain in DOMAINS:
        registry = registry.with_document(documents / f"{domain}.onnxopset")
    return registry


# Every query


def _answer(ask: Callable[..., object], *arguments: object) -> object:
    """What a query answers: a version, which is compared elsewhere, as its identity; an error as fields."""
    try:
        found = ask(*arguments)
    except OpshiftError as error:
        return error.as_dict()
    return found.id if isinstance(found, OperatorVersion) else found


class Asked(NamedTuple):
    """A node."""

    op_type: str
    domain: str


def test_there_are_four_domains() -> None:
    assert len(DOMAINS) == 4


def test_the_registry_lists_the_same(read_back: Registry) -> None:
    assert read_back.domains() == DOMAINS
    assert read_back.get_all_schemas_with_history() == OURS.get_all_schemas_with_history()
    for domain in DOMAINS:
        assert read_back.names(domain) == OURS.names(domain)
        assert read_back.newest_opset(domain) == OURS.newest_opset(domain)
        assert list(read_back.operators(domain)) == list(OURS.operators(domain))


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_name_at_every_opset_is_answered_the_same(read_back: Registry, domain: str) -> None:
    """Also those that are not there yet, or no longer, or beyond the newest opset."""
    newest = OURS.newest_opset(domain)
    for name in (*OURS.names(domain), "Cnov"):
        for opset in (None, *range(newest + 2)):
            assert _queries(read_back, name, opset, domain) == _queries(OURS, name, opset, domain)


def _queries(registry: Registry, name: str, opset: int | None, domain: str) -> tuple[object, ...]:
    found = _answer(registry.get_schema, name, opset, domain)
    if opset is None:
        return (found,)
    return (
        found,
        _answer(registry.resolve, Asked(name, domain), {domain: opset}),
        _answer(registry.at, name, opset, domain),
        registry.has(name, opset, domain),
    )


@pytest.mark.parametrize("form", [DocumentFormat.YAML, DocumentFormat.JSON])
@pytest.mark.parametrize("domain", ["ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"])
def test_other_formats_hold_the_same(tmp_path: Path, form: DocumentFormat, domain: str) -> None:
    path = tmp_path / f"set.{form}"
    path.write_bytes(write_document(operator_set(OURS, domain), form))
    assert read_document(path) == operator_set(OURS, domain)


def test_infinite_numbers_pass_through_strict_json(tmp_path: Path) -> None:
    """A step of Clip writes them."""
    path = tmp_path / "set.json"
    path.write_bytes(write_document(operator_set(OURS, ""), DocumentFormat.JSON))
    assert json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert read_document(path) == operator_set(OURS, "")


def test_equal_sets_give_equal_bytes() -> None:
    for form in DocumentFormat:
        first, second = (write_document(operator_set(OURS, SMALL), form) for _ in range(2))
        assert first == second


# What plain readers see


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_plain_reader_of_onnx_parses_it(documents: Path, domain: str) -> None:
    message = onnx.OperatorSetProto.FromString((documents / f"{domain}.onnxopset").read_bytes())
    newest = OURS.newest_opset(domain)
    assert (message.magic, message.domain, message.opset_version) == ("ONNXOPSET", domain, newest)
    listed = {each.op_type: (each.since_version, each.status) for each in message.operator}
    in_force = {name: OURS.at(name, newest, domain) for name in OURS.names(domain)}
    assert listed == {
        name: (version.since_version, int(version.status == "STABLE"))
        for name, version in in_force.items()
        if version
    }
    assert all(each.doc_string for each in message.operator)


def test_a_plain_reader_that_writes_it_keeps_the_definitions(documents: Path, tmp_path: Path) -> None:
    source = documents / f"{SMALL}.onnxopset"
    path = tmp_path / "again.onnxopset"
    path.write_bytes(onnx.OperatorSetProto.FromString(source.read_bytes()).SerializeToString())
    assert read_document(path) == read_document(source)


# At an opset


@cache
def _at(opset: int) -> OperatorSet:
    return operator_set(OURS, SMALL, opset)


@pytest.mark.parametrize("opset", [1, 2, 3, 4, 5])
def test_a_set_at_an_opset_knows_nothing_that_came_later(opset: int) -> None:
    found = _at(opset)
    assert {version.id for version in found.in_force} == {
        version.id for name in OURS.names(SMALL) if (version := OURS.at(name, opset, SMALL))
    }
    assert max(each.versions[-1].since_version for each in found.operators) <= opset
    removals = [version.removal for each in found.operators for version in each.versions]
    assert all(removal is None or removal.removed_in <= opset for removal in removals)


def test_a_set_at_an_opset_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "old.onnxopset"
    path.write_bytes(write_document(operator_set(OURS, "", 9), DocumentFormat.ONNXOPSET))
    registry = Registry(()).with_document(path)
    assert registry.newest_opset() == 9
    assert registry.has("Upsample", 9)
    assert not registry.has("CumSum", 9)


def test_opsets_and_domains_that_there_are_not() -> None:
    with pytest.raises(UnknownOpset):
        operator_set(OURS, SMALL, 99)
    with pytest.raises(UnknownDomain):
        operator_set(OURS, "com.acme")


# Beside other definitions

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
    head = {"magic": "ONNXOPSET", "form": 1, "ir_version": 8, "domain": "com.acme", "opset_version": 3}
    return {**head, "operators": list(operators), **fields}


def _write(folder: Path, data: object) -> Path:
    path = folder / "acme.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_document_stands_beside_the_projects_own_definitions(tmp_path: Path) -> None:
    registry = OURS.with_document(_write(tmp_path, _data(BLUR)))
    assert registry.get_schema("Blur", 3, "com.acme").since_version == 2
    assert registry.newest_opset("com.acme") == 3
    assert registry.has("Relu", 17)
    assert not OURS.has("Blur", 3, "com.acme")


def test_a_document_stays_when_a_folder_joins(tmp_path: Path) -> None:
    folder = tmp_path / "tree" / "com.other"
    folder.mkdir(parents=True)
    (folder / "Blur.yaml").write_text(dump_yaml({**BLUR, "domain": "com.other"}), encoding="utf-8")
    registry = OURS.with_document(_write(tmp_path, _data(BLUR))).with_folder(tmp_path / "tree")
    assert {"com.acme", "com.other"} <= set(registry.domains())
    assert registry.documents == (tmp_path / "acme.json",)


def test_a_domain_that_is_defined_is_not_defined_again(documents: Path) -> None:
    with pytest.raises(WrongDomain, match="already defined") as caught:
        OURS.with_document(documents / f"{SMALL}.onnxopset")
    assert caught.value.place.file.endswith(".onnxopset")


def test_definitions_are_written_as_a_tree(tmp_path: Path) -> None:
    found = operator_set(OURS, SMALL)
    paths = write_tree(found, tmp_path)
    assert len(paths) == len(found.operators)
    assert tuple(Registry((tmp_path,)).operators(SMALL)) == found.operators
    with pytest.raises(FileExistsError):
        write_tree(found, tmp_path)


# What is no document


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in _data(BLUR).items() if name != key}


NEWER = {**BLUR, "versions": [{**BLUR["versions"][0], "since_version": 4}]}  # type: ignore[dict-item]  # a dict


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        pytest.param([], WrongMagic, "magic", id="a list"),
        pytest.param(_without("magic"), WrongMagic, "magic", id="no magic"),
        pytest.param(_data(magic="ONNX"), WrongMagic, "magic", id="another magic"),
        pytest.param(_data(form=2), UnsupportedVersion, "form 2", id="a newer form"),
        pytest.param(_without("form"), UnsupportedVersion, "form None", id="no form"),
        pytest.param(_data(ir_version=99), UnsupportedVersion, "IR version 99", id="a newer IR version"),
        pytest.param(_data(ir_version=0), UnsupportedVersion, "IR version 0", id="IR version 0"),
        pytest.param(_without("ir_version"), UnsupportedVersion, "None", id="no IR version"),
        pytest.param(_data(domain=""), WrongDomain, "no domain", id="no domain"),
        pytest.param(_data(opset_version=0), WrongOpset, "opset version 0", id="opset 0"),
        pytest.param(_data(opset_version="3"), WrongOpset, "'3'", id="an opset that is a word"),
        pytest.param(_data(BLUR, BLUR), RepeatedOperator, "2 times", id="an operator twice"),
        pytest.param(_data({**BLUR, "domain": "com.x"}), WrongDomain, "com.x", id="another domain's"),
        pytest.param(_data(NEWER), WrongOpset, "newer than opset 3", id="an operator that is newer"),
        pytest.param(_data(operators={}), DocumentError, "not a list", id="operators by name"),
        pytest.param(_data({**BLUR, "versions": []}), DefinitionError, "versions", id="no versions"),
        pytest.param(_data({"name": "Blur"}), DefinitionError, "no domain", id="no operator"),
        pytest.param(_data("Blur"), DefinitionError, "no domain", id="a word"),
        pytest.param(_data({**BLUR, "colour": 1}), DefinitionError, "colour", id="an unknown key"),
    ],
)
def test_what_is_wrong_with_data(
    tmp_path: Path, data: object, error: type[DefinitionError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        read_document(_write(tmp_path, data))
    assert caught.value.place.file.endswith("acme.json")


def _tampered(change: Callable[[onnx.OperatorSetProto], None]) -> bytes:
    blur = checked(
        Operator,
        {**BLUR, "versions": [{**BLUR["versions"][0], "domain": "com.acme", "name": "Blur"}]},  # type: ignore[dict-item]  # a dict
    )
    content = write_document(OperatorSet("com.acme", 3, (blur,)), DocumentFormat.ONNXOPSET)
    message = onnx.OperatorSetProto.FromString(content)
    change(message)
    changed: bytes = message.SerializeToString()
    return changed


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        pytest.param(lambda m: setattr(m, "magic", "ONNX"), WrongMagic, "magic 'ONNX'", id="another magic"),
        pytest.param(lambda m: m.ClearField("magic"), WrongMagic, "magic", id="no magic"),
        pytest.param(lambda m: setattr(m, "ir_version", 99), UnsupportedVersion, "99", id="IR version"),
        pytest.param(lambda m: m.ClearField("domain"), WrongDomain, "no domain", id="no domain"),
        pytest.param(lambda m: setattr(m, "opset_version", 0), WrongOpset, "0", id="opset 0"),
        pytest.param(lambda m: setattr(m, "opset_version", 4), Contradiction, "4", id="another opset"),
        pytest.param(lambda m: setattr(m, "domain", "com.x"), Contradiction, "com.x", id="another domain"),
        pytest.param(
            lambda m: m.operator.extend(list(m.operator)), RepeatedOperator, "2 times", id="listed twice"
        ),
        pytest.param(lambda m: m.ClearField("operator"), Contradiction, "Blur:2", id="not listed"),
        pytest.param(
            lambda m: setattr(m.operator[0], "since_version", 1),
            Contradiction,
            "Blur:1",
            id="another version",
        ),
        pytest.param(
            lambda m: setattr(m.operator[0], "status", 0), Contradiction, "Blur:2", id="another status"
        ),
        pytest.param(
            lambda m: m.DiscardUnknownFields(), NoDefinitions, "does not define", id="no definitions"
        ),
    ],
)
def test_what_is_wrong_with_a_message(
    tmp_path: Path,
    change: Callable[[onnx.OperatorSetProto], None],
    error: type[DocumentError],
    message: str,
) -> None:
    path = tmp_path / "acme.onnxopset"
    path.write_bytes(_tampered(change))
    with pytest.raises(error, match=message) as caught:
        read_document(path)
    assert caught.value.place.file == str(path)


@pytest.mark.parametrize("content", [b"\xff\xff", b"", b"not a message"], ids=["broken", "empty", "text"])
@pytest.mark.parametrize("suffix", ["onnxopset", "json", "yaml"])
def test_what_is_no_message_and_no_text(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"set.{suffix}"
    path.write_bytes(content)
    with pytest.raises(DefinitionError):
        read_document(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for suffix in ("onnxopset", "json", "yaml"):
        with pytest.raises(DefinitionError, match="cannot be read"):
            read_document(tmp_path / f"none.{suffix}")


def test_document_data_is_what_the_files_hold() -> None:
    data = document_data(operator_set(OURS, SMALL))
    assert list(data) == ["magic", "form", "ir_version", "domain", "opset_version", "operators"]
    assert data["operators"][0]["name"] == OURS.names(SMALL)[0]
