"""Public functions refuse unusable arguments with a UsageError that has a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from onnx import parser

import opshift
from opshift import UsageError

REGISTRY: Any = opshift.default_registry()
ANY: Any = opshift
MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) {y = Relu(x)}'
)
SOFTMAX = REGISTRY.get_schema("Softmax")

CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "adapter from a version to itself": (lambda: ANY.adapter("Foo", 1, 1), "from 1 to itself"),
    "adapter with equal further versions": (lambda: ANY.adapter("Foo", 1, 2, 2), "from 2 to itself"),
    "adapter with versions as text": (
        lambda: ANY.adapter("Foo", "1", "2"),
        "positive integers, got '1', '2'",
    ),
    "adapter with version 0": (lambda: ANY.adapter("Foo", 0, 2), "positive integers, got 0, 2"),
    "adapter with a truth value": (lambda: ANY.adapter("Foo", True, 2), "positive integers, got True, 2"),
    "adapter without a name": (lambda: ANY.adapter("", 1, 2), "expected names of operators"),
    "adapter with no names": (lambda: ANY.adapter((), 1, 2), "expected names of operators"),
    "adapter of a number": (lambda: ANY.adapter(3, 1, 2), "expected names of operators"),
    "adapter with a domain that is not text": (
        lambda: ANY.adapter("Foo", 1, 2, domain=None),
        "expected names of operators",
    ),
    "changes between two operators": (
        lambda: ANY.classify(SOFTMAX, REGISTRY.get_schema("Add")),
        "two versions of an operator, got ai.onnx.Softmax:13 and ai.onnx.Add:14",
    ),
    "changes between names": (
        lambda: ANY.classify("Softmax", SOFTMAX),
        "of an operator, got str and ai.onnx",
    ),
    "fingerprint of a name": (lambda: ANY.fingerprint("Softmax"), "expected an OperatorVersion, got str"),
    "adapters without a path": (lambda: ANY.load_adapters(None), "expected a path, got NoneType"),
    "reference without a version": (
        lambda: ANY.reference("Foo", domain="com.acme"),
        "versions and a domain, got 'Foo', () and 'com.acme'",
    ),
    "reference with a version as text": (
        lambda: ANY.reference("Foo", "1", domain="com.acme"),
        "expected a name, versions",
    ),
    "references without a path": (lambda: ANY.load_references(None), "expected a path, got NoneType"),
    "definitions with a number": (lambda: ANY.load_registry([3]), "expected a path, got int"),
    "added folder without a path": (lambda: REGISTRY.with_folder(None), "expected a path, got NoneType"),
    "added document without a path": (lambda: REGISTRY.with_document(3), "expected a path, got int"),
    "conversion": (
        lambda: ANY.convert_version(MODEL, 17, registry=3),
        "expected a Registry or None, got int",
    ),
    "check": (lambda: ANY.check(MODEL, registry="opsets"), "expected a Registry or None, got str"),
    "inference": (lambda: ANY.infer(MODEL, registry=3), "expected a Registry or None, got int"),
    "diagnosis": (lambda: ANY.diagnose(MODEL, registry=3), "expected a Registry or None, got int"),
    "version as a number": (lambda: ANY.pack_version(1.5), "expected a version such as '1.2.3', got float"),
    "version without a text": (
        lambda: ANY.pack_version(None),
        "expected a version such as '1.2.3', got NoneType",
    ),
    "packed version as text": (
        lambda: ANY.unpack_version("7"),
        "expected the value of model_version, got str",
    ),
}


@pytest.mark.parametrize(("call", "reason"), CALLS.values(), ids=CALLS)
def test_refuses_wrong_arguments(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert reason in caught.value.reason
    assert caught.value.remedy
