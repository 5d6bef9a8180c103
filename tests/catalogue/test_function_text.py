"""The text of function bodies: `onnx.parser` reads it as the same function."""

from __future__ import annotations

import onnx
import onnx.parser
import onnx.printer
import pytest

from opshift.catalogue.function_text import BUILT_BODY, function_text
from opshift.registry.registry import default_registry

REGISTRY = default_registry()
FUNCTIONS = {str(each.id): each for each in REGISTRY.get_all_schemas_with_history() if each.has_function}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_onnx_reads_the_text_of_a_function(name: str) -> None:
    version = FUNCTIONS[name]
    found = function_text(version, REGISTRY)
    if not found.text:
        assert found.note == BUILT_BODY
        return
    parsed = onnx.parser.parse_function(found.text)
    assert parsed.name == version.name
    assert [each.name for each in parsed.attribute_proto] == [
        name for name, each in version.attributes.items() if each.default is not None
    ] or version.body is None
    if version.body is not None:
        expected = onnx.FunctionProto.FromString(version.function_body().SerializeToString())
        expected.doc_string = ""
        assert onnx.printer.to_text(parsed) == onnx.printer.to_text(expected)
