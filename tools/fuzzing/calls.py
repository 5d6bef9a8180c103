"""Public calls that the fuzzer runs on one file, and the mutated files."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_args

import opshift
from fuzzing import corpus
from fuzzing.large import large_model, large_text
from fuzzing.mutations import mutate_bytes, mutate_model, mutate_text
from opshift.analysis.model_text import model_of_text
from opshift.analysis.reach import reach as reach_opsets
from opshift.converter.element_types.requested_types import CHANGES
from opshift.model.files import read_bytes
from opshift.registry.documents.files import read_document, write_tree
from opshift.registry.documents.node_builders import node_builders
from opshift.registry.selection import STATUSES
from opshift.registry.steps import Allow

ALLOWANCES: tuple[Allow, ...] = get_args(Allow)

TARGETS = (1, 6, 7, 8, 9, 11, 12, 13, 17, 18, 20, 21, 23, 26, "onnx-1.8", "onnxruntime-1.14", "ai.onnx.ml=3")

RUNTIMES = (
    "onnxruntime-1.16.3",
    "onnxruntime-1.20.1",
    "onnxruntime-1.31.1",
    "tensorrt-10.1",
    "openvino-2026.4.1",
)


class Case(NamedTuple):
    """One run: a public call, the suffix and content of its file, and a seed for its arguments."""

    call: str
    suffix: str
    content: bytes
    seed: str


def case_at(seed: int, index: int) -> Case:
    """Return the case with a number, which is the same in every run."""
    name = f"{seed}:{index}"
    random = Random(name)
    kind = random.random()
    if kind < 0.82:
        return Case(
            random.choice(list(MODEL_CALLS)), ".onnx", mutate_model(corpus.any_model(random), random), name
        )
    return _text_case(random, name)


def _text_case(random: Random, name: str) -> Case:
    """Return a case with a mutated definition or document."""
    if random.random() < 0.5:
        return Case("registry", ".yaml", mutate_text(corpus.any_definition(random), random), name)
    suffix, document = corpus.any_document(random)
    mutate = mutate_bytes if suffix == ".onnxopset" else mutate_text
    return Case("document", suffix, mutate(document, random), name)


def text_case_at(seed: int, index: int) -> Case:
    """Return the case of a text, definition or document with a number, which is the same in every run."""
    name = f"text:{seed}:{index}"
    random = Random(name)
    if random.random() < 0.5:
        return Case("text", ".txt", large_text(random), name)
    return _text_case(random, name)


def large_case_at(seed: int, index: int) -> Case:
    """Return the case of a large model or text with a number, which is the same in every run."""
    name = f"large:{seed}:{index}"
    random = Random(name)
    if random.random() < 0.2:
        return Case("text", ".txt", large_text(random), name)
    return Case(random.choice(list(MODEL_CALLS)), ".onnx", large_model(random), name)


def run_case(case: Case) -> str:
    """Run a case and return its outcome: `result`, or the class of an OpshiftError.

    Every other error is a finding, and is raised.
    """
    with TemporaryDirectory(prefix="opshift-fuzz-") as folder:
        try:
            CALLS[case.call](case.content, case.suffix, Random(case.seed), Path(folder))
        except opshift.OpshiftError as error:
            str(error), error.as_dict()
            return type(error).__name__
    return "result"


def _random_target(random: Random) -> Any:
    return random.choice(TARGETS)


def _random_allow(random: Random) -> list[Allow]:
    return [each for each in ALLOWANCES if random.random() < 0.3]


def _random_shapes(content: bytes, random: Random, *, infer: bool = True) -> dict[str, Any]:
    """Return arguments about shapes that name some values of a model."""
    dims = random.choices((0, 1, 2, 7, 2**61, "N", "M", "?", None), k=random.randint(0, 5))
    try:
        graph = read_bytes(content).graph
        names = [each.name for each in graph.input] + [name for node in graph.node for name in node.output]
    except (UnicodeDecodeError, opshift.OpshiftError):
        names = []
    shapes = {random.choice(names): dims} if names and random.random() < 0.3 else {}
    return {"shapes": shapes, **({"infer_shapes": random.random() < 0.3} if infer else {})}


def _call_convert(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    options: Any = {
        "allow": _random_allow(random),
        "check": random.random() < 0.2,
        "reversible": random.random() < 0.2,
        "ir_version": random.choice((None, None, None, 3, 8, 10, "keep")),
    }
    model = opshift.ModelProto.FromString(content) if random.random() < 0.5 and _parses(content) else content
    before = content if isinstance(model, bytes) else model.SerializeToString()
    try:
        opshift.convert(model, _random_target(random), **options)
    finally:
        after = model if isinstance(model, bytes) else model.SerializeToString()
        assert before == after, "the argument was modified"


def _parses(content: bytes) -> bool:
    try:
        read_bytes(content)
    except opshift.OpshiftError:
        return False
    return True


def _convert_in_place(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    model = read_bytes(content)
    before = model.SerializeToString()
    try:
        options = {"allow": _random_allow(random), **_random_shapes(content, random)}
        opshift.convert_version(model, _random_target(random), inplace=True, **options)
    except opshift.OpshiftError:
        assert model.SerializeToString() == before, "a refused model was modified"
        raise


def _convert_with_options(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    """Convert with the options that affect nodes of all operators."""
    model = read_bytes(content)
    before = model.SerializeToString()
    options: Any = {"types": _random_types(random)} if random.random() < 0.5 else {}
    if options and random.random() < 0.4:
        options["keep_interface"] = True
    if random.random() < 0.5:
        options["recognize"] = True
    if random.random() < 0.5:
        options["fold"] = True
    if random.random() < 0.3:
        options["without"] = random.choice(("com.microsoft", "Softmax", "If", "types:bfloat16"))
    options.update(allow=_random_allow(random), inplace=random.random() < 0.5, exact=random.random() < 0.5)
    target = None if random.random() < 0.3 and options.keys() & _WITHOUT_TARGET else _random_target(random)
    try:
        opshift.convert_version(model, target, **options, **_random_shapes(content, random))
    except opshift.OpshiftError:
        assert model.SerializeToString() == before, "a refused model was modified"
        raise
    if not options["inplace"]:
        assert model.SerializeToString() == before, "the argument was modified"


_WITHOUT_TARGET = {"types", "recognize", "fold", "without"}


def _random_types(random: Random) -> dict[str, str]:
    return dict(random.sample(sorted(CHANGES), k=random.choice((1, 1, 2))))


def _call_infer(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    str(opshift.infer(content, **_random_shapes(content, random, infer=False)))


def _validate_node(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    nodes = read_bytes(content).graph.node
    for node in random.sample(nodes, min(3, len(nodes))):
        for finding in opshift.validate_node(node, random.randint(1, 26)):
            str(finding)


def _call_plan(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    options = {"allow": _random_allow(random), **_random_shapes(content, random)}
    opshift.Report.of(opshift.plan_version(content, _random_target(random), **options)).as_dict()


def _call_check(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    for finding in opshift.check(content):
        str(finding)


def _call_doctor(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    opshift.diagnose(content).as_dict()
    opshift.restamp(content)


def _call_reach(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    reach_opsets(content, allow=_random_allow(random)).as_dict()


def _common_opset(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    opshift.common_opset([content, corpus.any_model(random)], allow=_random_allow(random))


def _call_compare(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    other = mutate_model(content, random) if _parses(content) else content
    opshift.compare(content, other).as_dict()


def _call_diff(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    other = mutate_model(content, random) if _parses(content) else content
    opshift.write_report(opshift.diff_model(content, other), folder / "report.html")


def _round_trip(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    model = read_bytes(content)
    opsets = {each.domain or "ai.onnx": each.version for each in model.opset_import}
    down = opshift.convert_version(
        content, _random_target(random), allow=_random_allow(random), reversible=True
    )
    opshift.convert_version(down, opsets)
    opshift.convert_version(mutate_model(down, random), opsets, reversible=True)


def _call_runs(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    runtimes = None if random.random() < 0.5 else random.choice(RUNTIMES)
    opshift.runs(content, runtimes)


def _call_fit(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    opshift.fit(content, random.choice(RUNTIMES), allow=_random_allow(random)).report.as_dict()


def _fit_provider(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    provider = random.choice(("onnxruntime-coreml", "onnxruntime-cuda", "onnxruntime-1.31.1"))
    opshift.fit(content, provider, allow=_random_allow(random), provider_only=True).report.as_dict()


def _call_simplify(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    opshift.simplify(content, **_random_shapes(content, random, infer=False))


def _call_report(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    plan = opshift.plan_version(content, _random_target(random), allow=_random_allow(random))
    opshift.write_report(opshift.Report.of(plan), folder / random.choice(("report.html", "report.md")))


def _call_text(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    model = model_of_text(content.decode(errors="replace"), 17, opshift.default_registry())
    opshift.convert_version(model, _random_target(random), allow=_random_allow(random))


def _call_of_command(name: str) -> Callable[[bytes, str, Random, Path], None]:
    def call(content: bytes, suffix: str, random: Random, folder: Path) -> None:
        from opshift.cli.main import app

        source = folder / f"in{suffix}"
        source.write_bytes(content)
        arguments = [name, str(source), "--format", random.choice(("text", "json"))]
        if name == "convert":
            arguments[2:2] = [str(folder / "out.onnx")]
        if name in ("convert", "plan"):
            arguments += ["-t", str(_random_target(random))]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code = None
            try:
                app(arguments)
            except SystemExit as ended:
                code = ended.code
            assert code in (0, 1, 2), f"exit code {code}"
        left = {path.name for path in folder.iterdir()} - {source.name, "out.onnx"}
        assert not left, f"files remain: {left}"

    return call


def _convert_file(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    source, out = folder / f"in{suffix}", folder / "out.onnx"
    source.write_bytes(content)
    try:
        opshift.convert_file(
            source, out, _random_target(random), allow=_random_allow(random), reversible=random.random() < 0.2
        )
    except opshift.OpshiftError:
        assert not out.exists(), "an output was written"
        raise


def _call_registry(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    (folder / "com.acme").mkdir()
    lines = re.sub(rb"^domain: [^\n]*", b"domain: com.acme", content, flags=re.MULTILINE)
    name = re.search(rb"^name: (\w{1,200})", content, re.MULTILINE)
    path = folder / "com.acme" / f"{name[1].decode() if name else 'Unnamed'}.yaml"
    path.write_bytes(lines)
    registry = opshift.default_registry().with_folder(folder)
    for version in registry.select(domain="com.acme", versions="all", status=STATUSES):
        json.dumps(version.to_dict(), allow_nan=False)
    compile(node_builders(registry, "com.acme"), "builders.py", "exec")


def _call_document(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    path, out = folder / f"document{suffix}", folder / "out"
    path.write_bytes(content)
    document = read_document(path)
    out.mkdir()
    for written in write_tree(document, out):
        assert written.resolve().is_relative_to(out.resolve()), f"{written} is outside of the folder"
    assert {each.name for each in folder.iterdir()} == {path.name, "out"}, "a file outside of the folder"


def _self_test(content: bytes, suffix: str, random: Random, folder: Path) -> None:
    """Run the action that the content names (a crash, a hang and so on), to test the worker."""
    if content == b"kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif content == b"sleep":
        time.sleep(60)
    raise KeyError


MODEL_CALLS: dict[str, Callable[[bytes, str, Random, Path], None]] = {
    "convert": _call_convert,
    "convert in place": _convert_in_place,
    "convert with options": _convert_with_options,
    "convert file": _convert_file,
    "plan": _call_plan,
    "check": _call_check,
    "infer": _call_infer,
    "validate node": _validate_node,
    "doctor": _call_doctor,
    "reach": _call_reach,
    "common opset": _common_opset,
    "compare": _call_compare,
    "diff": _call_diff,
    "round trip": _round_trip,
    "runs": _call_runs,
    "fit": _call_fit,
    "fit provider": _fit_provider,
    "simplify": _call_simplify,
    "report": _call_report,
    "command inspect": _call_of_command("inspect"),
    "command plan": _call_of_command("plan"),
    "command reach": _call_of_command("reach"),
    "command runs": _call_of_command("runs"),
    "command doctor": _call_of_command("doctor"),
    "command convert": _call_of_command("convert"),
    "command check": _call_of_command("check"),
    "command textconv": _call_of_command("textconv"),
}
"""Calls that take a model."""

CALLS = {
    **MODEL_CALLS,
    "registry": _call_registry,
    "document": _call_document,
    "text": _call_text,
    "self-test": _self_test,
}
"""All calls; each takes the content and suffix of a file, a source of random numbers, and an empty folder."""
