"""Models of text, in which nodes without a graph get one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from opshift.checker.ir_features.use import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.model.graphs import captured_names, nested_nodes
from opshift.model.messages import GraphProto, ModelProto, ValueInfoProto
from opshift.model.onnx_text.read import read_text
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, model_domain
from opshift.registry.registry import Registry


def model_of_text(text: str, opset: int, registry: Registry) -> ModelProto:
    """Return the model of a text, see `read_text`.

    A graph, and nodes alone, get `opset`, and the opsets of other domains that were released with it. The
    inputs of nodes alone are the values that no node produces, and their outputs those that no node reads.

    Raises:
        InvalidModel: the text cannot be read.
        OpshiftError: the opset does not exist.
    """
    found = read_text(text)
    if isinstance(found, ModelProto):
        return found
    registry.require_opset(opset)
    domains = {canonical_domain(node.domain) for node in nested_nodes(found)} | {DEFAULT_DOMAIN}
    opsets = {domain: _opset(domain, opset, registry) for domain in sorted(domains)}
    ir_version = max(FIRST_IR_WITH_STANDALONE_INITIALIZERS, registry.releases.ir_version_for(opsets))
    model = ModelProto(ir_version=ir_version, graph=found)
    for domain, version in opsets.items():
        model.opset_import.add(domain=model_domain(domain), version=version)
    if not found.name:
        _complete(model.graph, opsets, registry)
    return model


def _opset(domain: str, opset: int, registry: Registry) -> int:
    """Return the opset of a domain that was released with an opset of ai.onnx."""
    release = registry.releases.first_release_with(DEFAULT_DOMAIN, opset)
    opsets = {**(release.opsets if release else {}), DEFAULT_DOMAIN: opset}
    if domain in opsets:
        return opsets[domain]
    return registry.newest_opset(domain) if registry.has_domain(domain) else 1


def _complete(graph: GraphProto, opsets: Mapping[str, int], registry: Registry) -> None:
    """Name the graph, its inputs, its outputs and those of nodes without any."""
    graph.name = "nodes"
    names = {name for node in nested_nodes(graph) for name in (*node.input, *node.output)}
    numbered: dict[str, Iterator[str]] = {}
    for node in graph.node:
        if not node.output:
            version = registry.known_at(node.op_type, opsets[canonical_domain(node.domain)], node.domain)
            outputs = [each.name for each in version.outputs if each.option == "single"] if version else []
            for name in outputs or ["y"]:
                if name not in numbered:
                    numbered[name] = _numbered(name)
                node.output.append(next(each for each in numbered[name] if each not in names))
                names.add(node.output[-1])
    types = {value.name: value for value in graph.value_info}
    produced = dict.fromkeys(name for node in graph.node for name in node.output if name)
    read = dict.fromkeys(name for name in captured_names(graph) if name)
    del graph.value_info[:]
    graph.value_info.extend(types[name] for name in types if name in produced)
    graph.input.extend(types.get(name) or ValueInfoProto(name=name) for name in read)
    inputs = {name for node in nested_nodes(graph) for name in node.input}
    graph.output.extend(ValueInfoProto(name=name) for name in produced if name not in inputs)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(1))
