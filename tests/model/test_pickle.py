"""Errors and results cross the boundary of a process, as in process pools."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import onnx
import onnx.parser
import pytest

import opshift
from opshift.analysis.fit.result import DoesNotFit
from opshift.analysis.reach import NoCommonOpset, reach
from opshift.analysis.verification.result import Verification, VerificationFailed
from opshift.checker.findings import Finding, IllegalModel, Level
from opshift.converter.refusals import ConversionRefused, Refusal
from opshift.model.errors import OpshiftError, Place, UnknownElementType, UnknownShape
from opshift.model.extensions import ExtensionFailed
from opshift.proposals.content.findings import NotAcceptable, ProposalFinding
from opshift.registry.errors import DefinitionFinding, InvalidDefinition
from opshift.runtimes.check_support import UnsupportedGroup

SOFTMAX = onnx.parser.parse_model("""
<ir_version: 7, opset_import: ["" : 11]>
example (float[2, 3] x) => (float[2, 3] y) { y = Softmax (x) }
""")


def _subclasses(base: type[OpshiftError]) -> Iterator[type[OpshiftError]]:
    yield base
    for each in base.__subclasses__():
        yield from _subclasses(each)


def _errors() -> Iterator[OpshiftError]:
    """Yield an error of each class of the project."""
    for package in (
        "model",
        "registry",
        "adapters",
        "checker",
        "stores",
        "rewriting",
        "runtimes",
        "converter",
        "analysis",
        "batch",
        "proposals",
    ):
        root = importlib.import_module(f"opshift.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
                importlib.import_module(module.name)
    made: dict[type[OpshiftError], OpshiftError] = {
        DoesNotFit: DoesNotFit(
            "onnxruntime-1.20.1", 17, [UnsupportedGroup(("node a",), "ai.onnx.Mod:1", {}, "reason", "remedy")]
        ),
        ExtensionFailed: ExtensionFailed(
            "adapter com.acme.Scale 1 -> 2",
            "raises KeyError: 0",
            place=Place("a.py", 3),
            exception="KeyError: 0",
        ),
        ConversionRefused: ConversionRefused(
            [Refusal("node a", "ai.onnx.Mod:1", "reason", "remedy", "type.unsupported")] * 2
        ),
        InvalidDefinition: InvalidDefinition(
            [DefinitionFinding("type.unknown", Place("f.yaml", 3), "reason", "remedy")]
        ),
        IllegalModel: IllegalModel([Finding("graph.order", Level.ERROR, "node a", "reason", "remedy")]),
        NoCommonOpset: NoCommonOpset([reach(SOFTMAX)] * 2),
        NotAcceptable: NotAcceptable(
            "reason", [ProposalFinding("rule", Level.ERROR, Place("f.yaml", 3), "reason", "remedy")]
        ),
        UnknownElementType: UnknownElementType("x"),
        UnknownShape: UnknownShape("reason", "x", "y", otherwise="remedy"),
        VerificationFailed: VerificationFailed(Verification(("runtime", "runtime"), 1, 0, (), ()), "reason"),
    }
    for kind in dict.fromkeys(_subclasses(OpshiftError)):
        if kind.__module__.startswith("opshift."):
            yield made.get(kind) or kind("reason", place=Place("file", 3, "node"), remedy="remedy")


def _echo(value: object) -> object:
    return value


def _raise(error: OpshiftError) -> None:
    raise error


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as workers:
        yield workers


def test_errors_pass_through_process_pool(pool: ProcessPoolExecutor) -> None:
    errors = list(_errors())
    assert len(errors) > 25
    for error in errors:
        with pytest.raises(type(error)) as caught:
            pool.submit(_raise, error).result()
        assert str(caught.value) == str(error)
        assert vars(caught.value).keys() == vars(error).keys()
        assert repr(vars(caught.value)) == repr(vars(error))


@pytest.mark.full
def test_results_pass_through_process_pool(pool: ProcessPoolExecutor) -> None:
    registry = opshift.default_registry()
    results = [
        opshift.convert(SOFTMAX, 13),
        opshift.convert(SOFTMAX, 13).report,
        opshift.check(onnx.ModelProto()),
        opshift.compare(SOFTMAX, SOFTMAX),
        opshift.common_opset([SOFTMAX]),
        opshift.convert_node(SOFTMAX.graph.node[0], 11, 13, inputs={"x": ("float", [2, 3])}),
        registry.get_schema("Softmax"),
        registry.operator("Softmax"),
    ]
    for result in results:
        assert pool.submit(_echo, result).result() == result
    plan = pool.submit(_echo, opshift.plan_version(SOFTMAX, 13)).result()
    assert isinstance(plan, type(opshift.plan_version(SOFTMAX, 13)))
