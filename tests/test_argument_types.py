"""Every public function raises a typed error with a remedy for arguments of wrong types."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import opshift
from opshift import OpshiftError, UsageError

Call = tuple[Callable[..., Any], dict[str, Any]]

WRONG: dict[str, Any] = {
    "None": None,
    "a number": 3,
    "a fraction": 1.5,
    "bytes": b"x",
    "numbers": [1],
    "a list of None": [None],
    "an object": object(),
    "a mapping": {"a": 1},
    "a null character": "a\0b",
    "a class": int,
    "an empty text": "",
    "True": True,
    "a negative number": -1,
    "a huge number": 10**30,
}

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
NODE = helper.make_node("Softmax", ["x"], ["y"])
MODEL = helper.make_model(
    helper.make_graph([NODE], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8
)
FLAGS = {"inplace", "check", "exact", "force", "keep_initializer_inputs", "skip_existing"}
"""Arguments that are true or false: Python accepts any value."""

CONVERT: dict[str, Any] = {
    "target": 17,
    "allow": (),
    "ir_version": None,
    "shapes": (),
    "without": (),
    "types": (),
    "registry": None,
}
FILE: dict[str, Any] = {"source": "m.onnx", "out": "o.onnx", "force": True, "external": "copy", **CONVERT}
BATCH = {
    **{name: value for name, value in CONVERT.items() if name != "registry"},
    "sources": ["m.onnx"],
    "out": "many",
    "executor": None,
    "ledger": None,
    "opsets": (),
    "adapters": (),
    "force": True,
}
CALLS: dict[str, dict[str, Any]] = {
    "check": {"model": MODEL, "registry": None, "folder": None},
    "classify": {name: opshift.default_registry().get_schema("Softmax", 13) for name in ("old", "new")},
    "common_opset": {"models": [MODEL], "domain": "", "allow": (), "registry": None},
    "compare": {"old": MODEL, "new": MODEL},
    "convert": {"model": MODEL, **CONVERT},
    "convert_file": FILE,
    "convert_many": BATCH,
    "convert_node": {"node": NODE, "source": 11, "target": 13, "inputs": None, "taken": (), "registry": None},
    "diagnose": {"model": MODEL, "registry": None},
    "diff_model": {"old": MODEL, "new": MODEL},
    "fingerprint": {"version": None},
    "fit": {"model": MODEL, "runtime": "onnxruntime-1.31.1", "registry": None},
    "infer": {"model": MODEL, "shapes": (), "registry": None},
    "load_adapters": {"path": "none.py"},
    "load_registry": {"sources": ()},
    "pack_version": {"text": "1.2.3"},
    "read_model": {"path": "m.onnx"},
    "restamp": {"model": MODEL, "registry": None},
    "runs": {"model": MODEL, "runtimes": ("onnxruntime-1.31.1",), "registry": None},
    "unpack_version": {"packed": 3},
    "validate_node": {"node": NODE, "opset": 13, "inputs": None, "registry": None},
    "verify": {
        "original": MODEL,
        "converted": MODEL,
        "samples": 1,
        "seed": 0,
        "tolerance": None,
        "inputs": None,
        "folder": None,
        "custom_ops": (),
        "registry": None,
    },
    "write_model": {"model": MODEL, "path": "q.onnx"},
    "write_report": {
        "result": opshift.plan_version(MODEL, 17),
        "path": "r.html",
        "verification": None,
    },
}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(MODEL, "m.onnx")


def cases() -> Iterator[Any]:
    for name, arguments in CALLS.items():
        for argument in arguments:
            if argument not in FLAGS:
                yield pytest.param(name, argument, id=f"{name} {argument}")


def problem_of(name: str, arguments: dict[str, Any]) -> str:
    """Return a text about an error of another class or without a remedy, or an empty text."""
    try:
        found = getattr(opshift, name)(**arguments)
        if inspect.isgenerator(found):
            list(found)
    except OpshiftError as error:
        return "" if error.remedy else f"without remedy: {error}"
    except Exception as error:
        return repr(error)
    return ""


@pytest.mark.some_cases(30)
@pytest.mark.parametrize(("name", "argument"), [*cases()])
def test_reports_wrong_types(name: str, argument: str) -> None:
    problems = {
        kind: problem
        for kind, wrong in WRONG.items()
        if (problem := problem_of(name, {**CALLS[name], argument: wrong}))
    }
    assert problems == {}


CLOSED = io.BytesIO()
CLOSED.close()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: opshift.read_model(MODEL), "argument source: expected a path, or a file"),
        (lambda: opshift.convert_file(b"", "o", 17), "argument source: expected a path"),  # type: ignore[arg-type]
        (
            lambda: opshift.common_opset("m.onnx"),
            "argument models: expected a list of models",
        ),
        (lambda: opshift.common_opset(MODEL), "argument models: .* got ModelProto"),
        (lambda: opshift.convert_many(None, 17, "o"), "argument sources: .* got NoneType"),  # type: ignore[arg-type]
        (lambda: opshift.convert_many(["m.onnx"], 17, None), "argument out: expected a path"),  # type: ignore[arg-type]
        (lambda: opshift.check(MODEL, registry=3), "argument registry: expected a Registry or None"),  # type: ignore[arg-type]
        (lambda: opshift.write_report(opshift.runs(MODEL, ()), "r.md"), "argument result: .* got Runs"),  # type: ignore[arg-type]
        (lambda: opshift.convert_version(MODEL, np.array(17)), "is not a target"),
        (
            lambda: opshift.convert_node(NODE, 11, 13, inputs={"x": ("float", 2)}),  # type: ignore[dict-item]
            r"argument inputs\['x'\]: expected dimensions",
        ),
    ],
)
def test_names_the_argument(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


def test_writes_a_plan_as_the_command_does() -> None:
    opshift.write_report(opshift.plan_version(MODEL, 17), "plan.md")
    assert "ai.onnx" in Path("plan.md").read_text()


@pytest.mark.parametrize("path", [CLOSED, "a\0b"])
def test_error_of_an_unusable_path_has_a_remedy(path: Any) -> None:
    with pytest.raises(OpshiftError) as caught:
        opshift.write_model(MODEL, path)
    assert caught.value.remedy
