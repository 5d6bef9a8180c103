"""Operators that runtimes implement, on docs/runtimes.md."""

from __future__ import annotations

from support.toy_runtime import toy_runtime

from generated.runtimes import _unreachable_operators, implements
from opshift.adapters.core.adapter_table import adapter_table
from opshift.registry.registry import default_registry
from opshift.rewriting.version_graph import build_version_graph

REGISTRY = default_registry()


def test_counts_kernels_and_function_bodies() -> None:
    runtime = toy_runtime()
    relu, abs_ = REGISTRY.get_schema("Relu", 20), REGISTRY.get_schema("Abs", 20)
    assert implements(runtime, relu, 20)
    assert not implements(runtime, abs_, 20)
    swish = REGISTRY.get_schema("Swish", 24)
    operators = {f"ai.onnx.{each}": [{"versions": [1, 24]}] for each in ("CastLike", "Constant", "Mul")}
    assert not implements(toy_runtime(opsets={"ai.onnx": 24}, operators=operators), swish, 24)
    operators["ai.onnx.Sigmoid"] = [{"versions": [1, 24]}]
    assert implements(toy_runtime(opsets={"ai.onnx": 24}, operators=operators), swish, 24)


def test_follows_steps_to_implemented_versions_and_operators() -> None:
    graph = build_version_graph(REGISTRY.operators(), adapter_table())
    unreached = _unreachable_operators(toy_runtime(), graph)
    assert "Abs" in unreached
    assert "ImageDecoder" in unreached
    assert not {"Relu", "Add", "Gelu"} & set(unreached)
