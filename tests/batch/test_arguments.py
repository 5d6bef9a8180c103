"""`convert_many` accepts the forms of `convert_version`, and raises the same errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_models import opset, save

import opshift
from opshift.batch.convert_many import settings_of
from opshift.batch.settings import Settings
from opshift.converter.options import Options, SharedArguments
from opshift.model.errors import OpshiftError, UsageError


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return save(Path("m.onnx"))


FORMS: dict[str, dict[str, Any]] = {
    "mapping of shapes": {"shapes": {"x": (6,)}},
    "text of a shape": {"shapes": "x=6"},
    "numbers of numpy in a shape": {"shapes": {"x": (np.int64(6),)}},
    "no shapes": {"shapes": None},
    "no allow": {"allow": None},
    "one allow": {"allow": "approximate"},
    "keys of a mapping": {"allow": {"clamp": 1}, "without": {"com.microsoft": 1}, "recognize": {"Gelu": 1}},
    "iterator of sizes": {"shapes": {"x": iter([6])}},
    "no types": {"types": None},
    "iterator of types": {"types": iter(["float=double"])},
    "no recognize": {"recognize": None},
    "recognize": {"recognize": True},
    "number of numpy": {"target": np.int64(17)},
    "number of numpy in a mapping": {"target": {"ai.onnx": np.int64(17)}},
    "iterator of targets": {"target": iter(["17"])},
    "jobs of numpy": {"jobs": np.int64(1)},
    "no definitions": {"opsets": None, "adapters": None},
}


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_accepts_forms_of_arguments(model: Path, options: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"target": 17} | options
    (found,) = opshift.convert_many(model, out="out", **arguments)
    assert (found.status, found.error) == ("converted", None)
    assert opset(Path("out/m.onnx")) == 17


ARGUMENTS: dict[str, Any] = {
    "allow": ("clamp", "approximate"),
    "bump": True,
    "check": True,
    "exact": True,
    "fold": True,
    "infer_shapes": True,
    "ir_version": 9,
    "keep_initializer_inputs": True,
    "keep_interface": True,
    "recognize": True,
    "reversible": True,
    "shapes": {"x": (1, "N", None), "scalar": ()},
    "types": {"float": "double"},
    "without": "com.microsoft",
}
REQUIRED: dict[str, Any] = {"keep_interface": {"types": "float=double"}}


class _ReversedSet(set[str]):
    """Set with another order than that of the hashes, which differ from process to process."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__(), reverse=True))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"recognize": True}, {"recognize": "all"}),
        ({"recognize": True}, {"recognize": ["all", "Gelu"]}),
        ({"recognize": "Gelu"}, {"recognize": "ai.onnx.Gelu"}),
        ({"recognize": ["Swish", "Gelu"]}, {"recognize": ["Gelu", "Swish"]}),
        ({"allow": ["clamp", "approximate"]}, {"allow": ["approximate", "clamp", "clamp"]}),
        ({"allow": ["approximate", "clamp"]}, {"allow": _ReversedSet(["clamp", "approximate"])}),
        ({"without": ["Gelu", "com.microsoft"]}, {"without": ["com.microsoft", "ai.onnx.Gelu"]}),
        ({"shapes": {"x": (1,), "a": (2,)}}, {"shapes": ["a=2", "x=1"]}),
        ({"types": ["float=double", "float16=double"]}, {"types": ["float16=double", "float=double"]}),
        ({"ir_version": 9}, {"ir_version": " 9"}),
        ({"fold": 1}, {"fold": True}),
        ({"exact": 1}, {"exact": True}),
        ({"shapes": {"x": "1, 2"}}, {"shapes": {"x": iter((1, 2))}}),
        ({"types": {"float": "double"}}, {"types": "float=double"}),
        ({"allow": None}, {}),
    ],
)
def test_equal_arguments_become_equal_settings(first: Any, second: Any) -> None:
    assert settings_of(17, first, Settings()) == settings_of(17, second, Settings())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (17, "17"),
        (17, {"ai.onnx": np.int64(17)}),
        (["17", "ai.onnx.ml=3"], {"ai.onnx.ml": 3, "": 17}),
        ("onnxruntime-1.20", [" onnxruntime-1.20", "onnxruntime-1.20"]),
        (["onnx-1.16", "onnxruntime-1.20"], _ReversedSet(["onnx-1.16", "onnxruntime-1.20"])),
    ],
)
def test_equal_targets_become_equal_settings(first: Any, second: Any) -> None:
    found = [settings_of(each, {}, Settings()) for each in (first, second)]
    assert found[0] == found[1]
    assert found[0].read() == Options.of(second, inplace=True)


def test_each_argument_has_a_value_here() -> None:
    assert ARGUMENTS.keys() == SharedArguments.__annotations__.keys()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_workers_read_the_same_options(name: str) -> None:
    arguments: Any = {name: ARGUMENTS[name]} | REQUIRED.get(name, {})
    found = settings_of("onnxruntime-1.20", arguments, Settings()).read()
    assert found == Options.of("onnxruntime-1.20", inplace=True, **arguments)
    assert found != Options.of("onnxruntime-1.20", inplace=True, **REQUIRED.get(name, {}))


def test_an_unknown_argument_is_a_type_error(model: Path) -> None:
    unknown: Any = {"inplace": True}
    with pytest.raises(TypeError, match="unexpected keyword argument 'inplace'"):
        opshift.convert_many(model, 17, "out", **unknown)


SAME_ERRORS: dict[str, dict[str, Any]] = {
    "fraction": {"target": 17.0},
    "text in a mapping": {"target": {"ai.onnx": "17"}},
    "flag": {"target": True},
    "bytes": {"target": b"17"},
    "no opset": {"target": None},
    "unknown opset": {"target": 999},
    "IR version": {"ir_version": 1.5},
    "allow": {"allow": "approximat"},
    "types": {"types": {"float": "floats"}},
    "recognize": {"recognize": "Gelo"},
    "shape": {"shapes": "x"},
    "dimension": {"shapes": {"x": (1.5,)}},
    "without": {"without": None},
    "interface": {"keep_interface": True},
}


@pytest.mark.parametrize("options", SAME_ERRORS.values(), ids=SAME_ERRORS)
def test_errors_are_those_of_one_model(model: Path, options: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"target": 17} | options
    with pytest.raises(OpshiftError) as one:
        opshift.convert_version(model, **arguments)
    with pytest.raises(OpshiftError) as many:
        opshift.convert_many(model, out="out", **arguments)
    assert type(many.value) is type(one.value)
    assert str(many.value) == str(one.value)
    assert not Path("out").exists()


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no jobs": ({"jobs": 0}, "0 is not a number of processes"),
    "negative jobs": ({"jobs": -1}, "-1 is not a number of processes"),
    "fraction of jobs": ({"jobs": 1.5}, "1.5 is not a number of processes"),
    "flag as jobs": ({"jobs": True}, "True is not a number of processes"),
    "case of external": ({"external": "Keep"}, "unknown external value 'Keep'; did you mean 'keep'?"),
    "unknown external": ({"external": "foo"}, "unknown external value 'foo'"),
    "no external": ({"external": None}, "unknown external value None"),
    "standard input": ({"sources": "-"}, "is standard input"),
    "standard input among others": ({"sources": ["m.onnx", "-"]}, "is standard input"),
    "one path of definitions": ({"opsets": "defs"}, "does not exist"),
    "comma in a dimension": ({"shapes": {"x": ("a,b",)}}, "has a dimension with a comma"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_refuses_arguments(model: Path, options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"sources": model} | options
    with pytest.raises(UsageError) as error:
        opshift.convert_many(target=17, out="out", **arguments)
    assert message in error.value.reason
    assert error.value.remedy
    assert not Path("out").exists()


def test_accepts_one_path_of_adapters(model: Path) -> None:
    Path("a.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    list(opshift.convert_many(model, 17, "out", adapters="a.py"))
    assert Path("ran").exists()


@pytest.mark.parametrize("external", ["Keep", "foo", None])
def test_convert_file_refuses_unknown_external(model: Path, external: Any) -> None:
    with pytest.raises(UsageError, match="unknown external value"):
        opshift.convert_file(model, "new.onnx", 17, external=external)


SCRIPT = """
import opshift
{guard}
    for outcome in opshift.convert_many("many", 17, "out", jobs=2):
        print(outcome.status)
"""
UNGUARDED, GUARDED = (SCRIPT.format(guard=each) for each in ("if True:", 'if __name__ == "__main__":'))


def from_stdin() -> list[str]:
    return ["-"]


def from_file() -> list[str]:
    Path("script.py").write_text(UNGUARDED)
    return ["script.py"]


@pytest.mark.parametrize("script", [from_stdin, from_file])
def test_processes_that_do_not_start_end_the_run(model: Path, script: Callable[[], list[str]]) -> None:
    for number in range(20):
        save(Path("many", f"{number}.onnx"))
    arguments = [sys.executable, *script()]
    done = subprocess.run(arguments, input=UNGUARDED, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("opshift.batch.errors.WorkersNotStarted: ")
    assert 'below `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


def test_guarded_script_converts(model: Path) -> None:
    save(Path("many/m.onnx"))
    Path("script.py").write_text(GUARDED)
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "converted\n", "")
