"""Signatures of operator versions, and values of their attributes, as text."""

from __future__ import annotations

import re

import pytest
from onnx import helper
from onnx.parser import parse_node

from opshift.catalogue.signature import attribute_texts, signature_text
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry

REGISTRY = default_registry()

DEFAULT = re.compile(r'(\w+) = (\[.*?\]|".*?"|[^,>\n]+)')


def _defaults(version: OperatorVersion) -> dict[str, str]:
    """Return the defaults in a signature as text, by the name of the attribute."""
    return dict(DEFAULT.findall(signature_text(version).partition(" = ")[2]))


@pytest.mark.parametrize(
    ("name", "opset", "domain", "attribute", "in_signature", "in_table"),
    [
        ("Clip", 6, "", "max", "3.4028235e+38", "3.4028235e+38"),
        ("Selu", 1, "", "alpha", "1.6732", "1.6732"),
        ("Selu", 22, "", "alpha", "1.6732632", "1.6732632"),
        ("Elu", 22, "", "alpha", "1.0", "1.0"),
        ("Softmax", 13, "", "axis", "-1", "-1"),
        ("RNN", 22, "", "activations", '["Tanh", "Tanh"]', '["Tanh", "Tanh"]'),
        ("RNN", 22, "", "direction", '"forward"', "forward"),
        ("PagedAttention", 1, "com.microsoft", "k_cache_dtype", '""', '""'),
    ],
)
def test_defaults_are_exact(
    name: str, opset: int, domain: str, attribute: str, in_signature: str, in_table: str
) -> None:
    version = REGISTRY.get_schema(name, opset, domain)
    assert _defaults(version)[attribute] == in_signature
    assert attribute_texts(attribute, version.attributes[attribute])[2] == in_table


def test_onnx_reads_the_defaults_in_signatures() -> None:
    for version in REGISTRY.get_all_schemas_with_history():
        texts = ", ".join(f"{name} = {text}" for name, text in _defaults(version).items())
        node = parse_node(f"y = Any <{texts}> (x)" if texts else "y = Any (x)")
        found = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        assert found.keys() == {
            name for name, each in version.attributes.items() if each.default is not None
        }, version.id
        for name, value in found.items():
            stored = helper.get_attribute_value(helper.make_attribute(name, version.attributes[name].default))
            assert value == stored, (version.id, name)
