"""Names in models and of files, which may not control the terminal or CI systems in any command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from opshift.cli.main import app

HOSTILE = "n\n::error::x\r##[error]y ##vso[task]z\x1b]0;OWNED\x07\x9b2J\u202eabc\u2066\u2028<b>`|"

FINDINGS = ("text", "json", "github", "gitlab", "sarif")
COMMANDS: dict[str, tuple[str, ...]] = {
    "plan {model} -t 9": FINDINGS,
    "plan {model} -t 20 --explain": FINDINGS,
    "check {model}": FINDINGS,
    "check {model} {other}": FINDINGS,
    "reach {model}": FINDINGS,
    "doctor {model}": FINDINGS,
    "runs {model}": FINDINGS,
    "runs {model} -r onnxruntime-1.20.1": FINDINGS,
    "inspect {model}": ("text", "json"),
    "textconv {model}": ("text", "json"),
    "compare {model} {other}": ("text", "json"),
    "diff-model {model} {other}": ("text", "json"),
    "diff-model {model} {other} --report {out}.md": ("text",),
    "diff-model {model} {other} --report {out}.html": ("text",),
    "convert {model} {out}.onnx -t 9": ("text",),
    "convert {model} {out}.onnx -t 20 --report {out}.md": ("text",),
    "convert {model} {out}.onnx -t 9 --report {out}.html": ("text",),
    "convert {model} {other} --out {out} -t 9": ("text",),
    "fit {model} {out}.onnx -r onnxruntime-1.16.3": ("text",),
    "simplify {model} {out}.onnx": ("text",),
    "check {model} --sarif {out}.sarif": ("text",),
    "plan {missing} -t 9": FINDINGS,
    "node y=Softmax(HOSTILE)": ("text", "json"),
    "show HOSTILE": ("text", "json"),
    "explain HOSTILE": ("text", "json"),
    "opset load {model}": ("text",),
    "opset export 17 --name HOSTILE --out {out}.data": ("text",),
    "list HOSTILE": ("text", "json"),
    "list --domain HOSTILE": ("text", "json"),
    "resolve HOSTILE 17": ("text", "json"),
    "diff HOSTILE 1 2": ("text", "json"),
    "diff Relu 13 HOSTILE": ("text", "json"),
    "breaking {tree}": FINDINGS,
    "stubs {model} --domain HOSTILE": ("text",),
    "stubs --opsets {tree}": ("text",),
    "lint {tree}": FINDINGS,
    "lint {missing}": FINDINGS,
    "list --opsets {tree}": ("text", "json"),
    "show Relu --opsets {tree}": ("text", "json"),
    "site {model}": ("text", "json"),
    "site {out} --opsets {tree}": ("text", "json"),
    "data --opsets {tree}": ("text",),
    "targets HOSTILE": ("text", "json"),
    "runtimes HOSTILE": ("text", "json"),
    "runtimes onnxruntime-1.20.1 HOSTILE": ("text", "json"),
    "proposal new {out} --operator HOSTILE": ("text",),
    "proposal check {tree}": ("text", "json", "github"),
    "proposal status {model}": ("text", "json"),
    "proposal sign {missing} --name HOSTILE": ("text",),
    "convert {model} {out}.onnx --target HOSTILE": ("text",),
    "convert {model} {out}.onnx -t 9 --allow HOSTILE": ("text",),
    "fit {model} {out}.onnx -r HOSTILE": ("text",),
    "HOSTILE": ("text",),
    "list --HOSTILE": ("text",),
}

CASES = [(command, form) for command, forms in COMMANDS.items() for form in forms]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write a model with the hostile name everywhere, and one with other values."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = {name: str(folder / f"{name}{HOSTILE.replace('/', '')}.onnx") for name in ("model", "other")}
    for number, path in enumerate(paths.values()):
        name = f"{HOSTILE}{number}"
        nodes = [
            helper.make_node("GridSample", ["x", "x"], [name], name=name, mode=f"bicubic{name}"),
            helper.make_node("Softmax", [name], [f"{name}y"], name=f"{name}2", axis=number),
            helper.make_node(name, ["x"], [f"{name}z"], domain=name),
        ]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, name, 2])
        outputs = [helper.make_tensor_value_info(f"{name}{each}", TensorProto.FLOAT, None) for each in "yz"]
        graph = helper.make_graph(nodes, name, [x], outputs, doc_string=name)
        opsets = [helper.make_opsetid("", 16), helper.make_opsetid(name, 1)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name=name, ir_version=8)
        model.metadata_props.add(key=name, value=name)
        onnx.save(model, path)
    others = {"out": "out", "missing": f"missing{HOSTILE}.onnx", "tree": f"tree{HOSTILE.replace('/', '')}"}
    tree = folder / others["tree"] / "ai.onnx" / "math"
    tree.mkdir(parents=True)
    text = json.dumps(HOSTILE)
    for name in ("Relu", "proposal"):
        tree.joinpath(f"{name}.yaml").write_text(
            f"name: {text}\ndomain: ai.onnx\n{text}: [{text}]\n", "utf-8"
        )
    return {**paths, **{name: str(folder / each) for name, each in others.items()}}


@pytest.mark.parametrize(("command", "form"), CASES, ids=[f"{each[0]} {each[1]}" for each in CASES])
def test_names_are_escaped(command: str, form: str, models: dict[str, str]) -> None:
    out = Path(models["out"])
    for path in out.parent.glob("out.*"):
        path.unlink()
    arguments = [each.format_map(models).replace("HOSTILE", HOSTILE) for each in command.split()]
    arguments += [] if form == "text" else ["--format", form]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (0, 1, 2), result.exception
    _require_harmless(result.stdout, form)
    _require_harmless(result.stderr, "text")
    for path in out.parent.glob("out.[mhs][dta]*"):
        _require_harmless(path.read_text("utf-8"), path.suffix[1:])


def _require_harmless(text: str, form: str) -> None:
    """Check that a text has no control characters but line ends, and no commands of CI systems."""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text)
    if form in ("md", "html", "sarif"):  # files, which no CI system reads as a log
        return
    for line in text.splitlines():
        if not (form == "github" and re.match(r"::(error|warning|notice) (file|title)=", line)):
            assert not re.search(r"^\s*::|##(vso)?\[", line), line
    while form == "json" and text:
        _, end = json.JSONDecoder().raw_decode(text)
        text = text[end:].lstrip()
