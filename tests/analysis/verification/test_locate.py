"""A failed verification names the first node with a different value."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper
from support.planted import install_wrong_adapter, install_wrong_clip

from opshift import VerificationFailed, convert_version, verify
from opshift.analysis.verification import locate
from opshift.analysis.verification.executable_graph import ExecutableGraph
from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.result import DifferenceLocation
from opshift.model.progress import Progress

GOLDEN = Path(__file__).parents[2] / "golden" / "segmenter-9.onnx"


class Planted(NamedTuple):
    """Model, a step whose adapter is replaced by a wrong one, and the place of the first wrong node."""

    text: str
    opset: int
    target: int
    step: tuple[str, int, int]
    place: str
    enclosing: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = {}
    more: str = ""

    def model(self) -> onnx.ModelProto:
        imports = f'"" : {self.opset}, "local" : 1'
        model = onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]>{self.text}{self.more}")
        for function in model.functions:
            del function.opset_import[:]
            function.opset_import.extend(model.opset_import)
        return model


def function(signature: str, body: str) -> str:
    return f'<domain: "local", opset_import: ["" : 1]> {signature} {{ {body} }}'


def weight(name: str, *shape: int) -> str:
    values = np.random.default_rng(len(name)).normal(0, 0.5, shape).round(3).ravel()
    return f"float[{','.join(map(str, shape))}] {name} = {{{', '.join(map(str, values))}}}"


SOFTMAX, CLIP = ("Softmax", 11, 13), ("Clip", 6, 11)
X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(2, 3, 4)

CNN = f"""cnn (float[1, 3, 8, 8] x) => (float[N, M] y)
<{weight("k", 4, 3, 3, 3)}, {weight("b", 4)}, {weight("mean", 4)}, float[4] scale = {{1, 2, 3, 4}},
 float[4] var = {{1, 1, 2, 2}}, {weight("w", 36, 5)}> {{
    conv = Conv (x, k, b)
    norm = BatchNormalization (conv, scale, b, mean, var)
    act = Clip <min = 0.0, max = 6.0> (norm)
    pool = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (act)
    again = Clip <min = 0.0, max = 6.0> (pool)
    flat = Flatten (again)
    y = MatMul (flat, w)
}}"""

TRANSFORMER = f"""transformer (float[2, 6, 8] x) => (float[2, 6, 8] y)
<{weight("wq", 8, 8)}, {weight("wk", 8, 8)}, {weight("scale", 8)}, {weight("up", 8, 16)},
 {weight("down", 16, 8)}> {{
    normal = LayerNormalization (x, scale)
    q = MatMul (normal, wq)
    k = MatMul (normal, wk)
    kt = Transpose <perm = [0, 2, 1]> (k)
    scores = MatMul (q, kt)
    p = Softmax (scores)
    mixed = MatMul (p, normal)
    h = Add (mixed, x)
    wide = MatMul (h, up)
    act = Gelu (wide)
    narrow = MatMul (act, down)
    y = Add (h, narrow)
}}"""

LSTM = f"""lstm (float[3, 2, 4] x) => (float[S, B, H] y, float[1, 2, 5] last)
<{weight("w", 1, 20, 4)}, {weight("recurrent", 1, 20, 5)}> {{
    scaled = Mul (x, x)
    all, h, c = LSTM <hidden_size = 5> (scaled, w, recurrent)
    y = Squeeze <axes = [1]> (all)
    last = Softmax <axis = 1> (h)
}}"""

DETECTION = """head (float[1, 6, 4] boxes, float[1, 2, 6] scores)
=> (float[M] best, int64[N, 3] kept, float[1, 2, 6] p)
<int64 count = {3}, float iou = {0.5}, float least = {0.1}, int64[1] all = {-1}, int64[1] k = {2}> {
    p = Softmax <axis = 1> (scores)
    kept = NonMaxSuppression (boxes, p, count, iou, least)
    flat = Reshape (p, all)
    best, index = TopK (flat, k)
}"""

LOOP = """loop (float[2, 3] x, int64 n) => (float[2, 3] y, float[A, 2, 3] steps)
<bool go = {1}> {
    start = Clip <min = -9.0, max = 90.0> (x)
    y, steps = Loop (n, go, start) <body = body (int64 i, bool more, float[2, 3] state)
        => (bool next, float[2, 3] result, float[2, 3] kept) {
        next = Identity (more)
        grown = Add (state, state)
        kept = Clip <min = -50.0, max = 5.0> (grown)
        result = Add (kept, x)
    }>
}"""

SCAN = """scan (float[3] state, float[4, 3] x) => (float[3] last, float[4, 3] y) {
    last, y = Scan <num_scan_inputs = 1, body = body (float[3] before, float[3] row)
        => (float[3] after, float[3] out) {
        sum = Add (before, row)
        column = Unsqueeze <axes = [1]> (sum)
        wide = Softmax <axis = 0> (column)
        after = Squeeze <axes = [1]> (wide)
        out = Neg (after)
    }> (state, x)
}"""

IF = """branches (float[2, 3] x, bool c) => (float[2, 3] y) {
    a = Relu (x)
    y = If (c) <then_branch = t () => (float[2, 3] yt) {
        doubled = Add (a, x)
        clipped = Clip <min = -1.0, max = 0.5> (doubled)
        yt = Neg (clipped)
    }, else_branch = e () => (float[2, 3] ye) {
        ye = Clip <min = 0.0, max = 0.25> (a)
    }>
}"""

NESTED = """nested (float[2, 3] x, bool c) => (float[2, 3] y) <int64 n = {3}> {
    y = Loop (n, c, x) <body = body (int64 i, bool more, float[2, 3] state)
        => (bool next, float[2, 3] result) {
        next = Identity (more)
        result = If (more) <then_branch = t () => (float[2, 3] yt) {
            yt = local.limit (state)
        }, else_branch = e () => (float[2, 3] ye) { ye = Identity (state) }>
    }>
}"""

PLANTED = {
    "CNN": Planted(CNN, 10, 17, CLIP, "graph, node Clip -> act"),
    "CNN, node before the others": Planted(
        CNN, 7, 17, ("BatchNormalization", 7, 9), "graph, node BatchNormalization -> norm"
    ),
    "transformer, expanded node": Planted(
        TRANSFORMER, 20, 17, ("Gelu", 20, 19), "graph, node Gelu -> act"
    ),
    "transformer, node with followers": Planted(
        TRANSFORMER, 20, 13, ("LayerNormalization", 17, 16), "graph, node LayerNormalization -> normal"
    ),
    "transformer, node that other steps change": Planted(
        TRANSFORMER, 20, 11, ("Softmax", 13, 11), "graph, node Softmax -> p"
    ),
    "LSTM": Planted(LSTM, 8, 17, SOFTMAX, "graph, node Softmax -> last"),
    "LSTM, several outputs": Planted(
        LSTM.replace("Squeeze <axes = [1]> (all)", "Identity (all)")
        .replace("Softmax <axis = 1> (h)", "Tanh (c)").replace("[S, B, H]", "[3, 1, 2, 5]"),
        14, 7, ("LSTM", 14, 7), "graph, node LSTM -> all, h, c",
    ),
    "detection head": Planted(DETECTION, 12, 17, SOFTMAX, "graph, node Softmax -> p"),
    "detection head, second output of integers": Planted(
        DETECTION.replace("float[M] best", "int64[M] index"), 11, 10, ("TopK", 11, 10),
        "graph, node TopK -> best, index",
    ),
    "parallel branches": Planted(
        """g (float[2, 3, 4] x) => (float[2, 3, 4] y) {
            a = Neg (x) b = Exp (x)
            c = Softmax <axis = 1> (b) d = Softmax <axis = 1> (a)
            e = Mul (d, c) y = Abs (e)
        }""", 11, 13, SOFTMAX, "graph, node Softmax -> c",
    ),
    "node without influence before": Planted(
        """g (float[2, 3, 4] x) => (float[2, 3, 4] y) {
            unused = Softmax <axis = 1> (x) a = Neg (x) b = Softmax <axis = 1> (a) y = Abs (b)
        }""", 11, 13, SOFTMAX, "graph, node Softmax -> b",
    ),
    "nodes out of order": Planted(
        """g (float[2, 3, 4] x) => (float[2, 3, 4] y) {
            y = Abs (b) b = Softmax <axis = 1> (a) a = Softmax <axis = 1> (x)
        }""", 11, 13, SOFTMAX, "graph, node Softmax -> a",
    ),
    "initializers": Planted(
        f"""g (float[2, 3] x) => (float[2, 3] y) <{weight("w", 1, 3)}, int64[1] axes = {{0}}> {{
            a = Squeeze (w, axes) b = Unsqueeze (a, axes) y = Add (x, b)
        }}""", 13, 11, ("Squeeze", 13, 11), "graph, node Squeeze -> a",
    ),
    "If": Planted(
        IF, 10, 17, CLIP, "graph / If.then_branch, node Clip -> clipped", ("graph, node If -> y",),
        {"c": np.array(True)},
    ),
    "If, other branch": Planted(
        IF, 10, 17, CLIP, "graph / If.else_branch, node Clip -> ye", ("graph, node If -> y",),
        {"c": np.array(False)},
    ),
    "Loop": Planted(
        LOOP, 10, 17, CLIP, "graph, node Clip -> start", (),
        {"x": np.full((2, 3), 0.5, np.float32), "n": np.array(4)},
    ),
    "Loop, body": Planted(
        LOOP.replace("Clip <min = -9.0, max = 90.0>", "Identity"), 10, 17, CLIP,
        "graph / Loop.body, node Clip -> kept", ("graph, node Loop -> y, steps in iteration 0",),
        {"x": np.full((2, 3), 0.5, np.float32), "n": np.array(4)},
    ),
    "Scan": Planted(
        SCAN, 11, 13, SOFTMAX, "graph / Scan.body, node Softmax -> wide",
        ("graph, node Scan -> last, y in iteration 0",),
    ),
    "Scan, initializer among the inputs of the body": Planted(
        SCAN.replace("float[3] before", "float[3] w = {1, 2, 3}, float[3] before").replace("sum)", "w)"),
        11, 13, SOFTMAX, "graph / Scan.body, node Softmax -> wide",
        ("graph, node Scan -> last, y in iteration 0",),
    ),
    "function": Planted(
        "g (float[2, 3] x) => (float[2, 3] y) { a = Neg (x) b = local.limit (a) y = Add (a, b) }",
        10, 17, CLIP, "function local.limit, node Clip -> c", ("graph, node limit -> b",),
        more=function("limit (v) => (r)", "c = Clip <min = -1.0, max = 0.5> (v) r = Neg (c)"),
    ),
    "function with attribute": Planted(
        "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { a = local.f <axis = 1> (x) y = Neg (a) }",
        11, 13, SOFTMAX, "function local.f, node Softmax -> c", ("graph, node f -> a",),
        more=function("f <axis> (v) => (r)", "c = Softmax <axis: int = @axis> (v) r = Identity (c)"),
    ),
    "function, If and Loop": Planted(
        NESTED, 10, 17, CLIP, "function local.limit, node Clip -> r",
        (
            "graph, node Loop -> y in iteration 0",
            "graph / Loop.body, node If -> result",
            "graph / Loop.body / If.then_branch, node limit -> yt",
        ),
        {"c": np.array(True)},
        function("limit (v) => (r)", "w = Neg (v) r = Clip <min = -1.0, max = 0.5> (w)"),
    ),
    "half precision": Planted(
        """g (float16[2, 3, 4] x) => (float16[2, 3, 4] y) {
            a = Neg (x) b = Softmax <axis = 1> (a) y = Abs (b)
        }""", 11, 13, SOFTMAX, "graph, node Softmax -> b",
    ),
}  # fmt: skip


def location_of(model: onnx.ModelProto, converted: Any, **options: Any) -> DifferenceLocation:
    """Return where a model and its conversion first differ."""
    with pytest.raises(VerificationFailed) as error:
        verify(model, converted, **options)
    assert error.value.location is not None
    return error.value.location


@pytest.mark.parametrize("case", PLANTED.values(), ids=PLANTED)
def test_finds_node_with_wrong_adapter(case: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    model = case.model()
    assert verify(model, convert_version(model, case.target), case.inputs).equal
    op_type, source, target = case.step
    install_wrong_adapter(monkeypatch, op_type, source, target)
    location = location_of(model, convert_version(model, case.target), inputs=case.inputs)
    assert (location.place, location.enclosing) == (case.place, case.enclosing)
    assert location.operator.startswith(f"ai.onnx.{op_type}:")
    assert any(step.startswith(f"ai.onnx.{op_type}:") for step in location.steps)
    assert location.becomes[-1].startswith("ai.onnx.Add:")
    worst = location.value.worst
    assert worst is not None
    assert worst.difference == pytest.approx(1, rel=1e-2)
    assert not location.value.equal


SMALL_ERRORS = {
    "graph": (
        """g (float[2, 3, 4] x) => (float[2, 3, 4] y) <float size = {1000.0}> {
            a = Softmax <axis = 1> (x) b = Mul (a, size) c = Sin (b) y = Softmax <axis = 2> (c)
        }""",
        "graph, node Sin -> c",
    ),
    "body": (
        """g (float[2, 3, 4] x) => (float[2, 3, 4] y) <float size = {1000.0}, bool yes = {1}> {
            a = Softmax <axis = 1> (x)
            y = If (yes) <then_branch = t () => (float[2, 3, 4] yt) { b = Mul (a, size) yt = Sin (b) },
                else_branch = e () => (float[2, 3, 4] ye) { ye = Identity (a) }>
        }""",
        "graph / If.then_branch, node Sin -> yt",
    ),
}


@pytest.mark.parametrize(("text", "exceeded_at"), SMALL_ERRORS.values(), ids=SMALL_ERRORS)
def test_finds_small_error_that_grows(text: str, exceeded_at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong value is within the tolerance; a later node, which computes correctly, exceeds it."""
    install_wrong_adapter(monkeypatch, *SOFTMAX, error=5e-7)
    model = Planted(text, 11, 13, SOFTMAX, "").model()
    with pytest.raises(VerificationFailed, match="a small difference grows in later nodes") as error:
        verify(model, convert_version(model, 13))
    location = error.value.location
    assert location is not None
    assert (location.place, location.exceeded_at) == ("graph, node Softmax -> a", exceeded_at)
    assert location.enclosing == ()
    assert location.value.equal
    assert location.value.absolute == pytest.approx(5e-7, rel=0.3)


def test_counts_at_least_twenty_models() -> None:
    assert len(PLANTED) >= 20


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
@pytest.mark.parametrize(
    "name", ["LSTM, several outputs", "If", "Loop, body", "initializers", "function, If and Loop"]
)
def test_finds_node_with_each_runtime(name: str, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = PLANTED[name]
    install_wrong_adapter(monkeypatch, *case.step)
    model = case.model()
    converted = convert_version(model, case.target)
    location = location_of(model, converted, inputs=case.inputs, runtime=runtime)
    assert (location.place, location.enclosing) == (case.place, case.enclosing)


def test_finds_later_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong limits of Clip matter only when the state has grown."""
    install_wrong_clip(monkeypatch)
    model = Planted(LOOP, 10, 17, CLIP, "").model()
    inputs = {"x": np.full((2, 3), 0.75, np.float32), "n": np.array(6)}
    location = location_of(model, convert_version(model, 17), inputs=inputs)
    assert location.place == "graph / Loop.body, node Clip -> kept"
    assert location.enclosing == ("graph, node Loop -> y, steps in iteration 2",)
    assert location.value.worst is not None
    assert (location.value.worst.original, location.value.worst.converted) == (5.0, 10.0)


def test_describes_node_value_and_step(monkeypatch: pytest.MonkeyPatch) -> None:
    install_wrong_clip(monkeypatch)
    text = "g (float[2, 3] x) => (float[6] y) <int64[1] all = {-1}> {"
    text += " a = Neg (x) b = Clip <min = 0.0, max = 6.0> (a) y = Reshape (b, all) }"
    model = Planted(text, 10, 17, CLIP, "").model()
    x = np.array([[0, -1, -2], [-3, -9, -4]], np.float32)
    with pytest.raises(VerificationFailed, match="first at graph, node Clip -> b") as error:
        verify(model, convert_version(model, 17), {"x": x})
    location = error.value.location
    assert location is not None
    assert (location.operator, location.becomes) == ("ai.onnx.Clip:6", ("ai.onnx.Clip:13",))
    assert location.steps[0].startswith("ai.onnx.Clip:6 -> 11: ")
    value = location.value
    assert (value.name, value.type, value.shape, value.count, value.differing) == ("b", "float", (2, 3), 6, 1)
    worst = value.worst
    assert worst is not None
    assert (worst.position, worst.original, worst.converted, worst.difference) == ("[1, 1]", 6.0, 9.0, 3.0)
    assert 0 < worst.allowed < 1e-3
    received = pickle.loads(pickle.dumps(error.value))
    assert (received.location, received.verification) == (location, error.value.verification)


def clip_chain(length: int, wrong: int) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Build a chain of Clip nodes, and a copy in which one of them has a different limit."""
    models = []
    for limit in (5.0, 4.0):
        nodes = [
            helper.make_node("Clip", [f"v{at}"], [f"v{at + 1}"], min=-6.0, max=limit if at == wrong else 5.0)
            for at in range(length)
        ]
        values = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in ("v0", f"v{length}")
        ]
        graph = helper.make_graph(nodes, "chain", values[:1], values[1:])
        models.append(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=7))
    return models[0], models[1]


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("wrong", [0, 1, 7, 8, 500, 1998])
def test_finds_node_of_long_chain_in_few_runs(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    values_of = ExecutableGraph.values

    def values(self: ExecutableGraph, names: Iterable[str], feeds: Feeds) -> dict[str, object]:
        listed = list(names)
        runs.append(len(listed))
        return values_of(self, listed, feeds)

    monkeypatch.setattr(ExecutableGraph, "values", values)
    model, other = clip_chain(2000, wrong)
    location = location_of(model, other, inputs={"v0": np.full(8, 9, np.float32)})
    assert location.value.name == f"v{wrong + 1}"
    assert (location.becomes, location.steps) == ((), ())
    assert len(runs) <= 2 * 6


def test_bounds_values_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run returns no more values than fit the limit, and at least one."""
    sizes = []
    values_of = ExecutableGraph.values

    def values(self: ExecutableGraph, names: Iterable[str], feeds: Feeds) -> dict[str, object]:
        found = values_of(self, names, feeds)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(ExecutableGraph, "values", values)
    monkeypatch.setattr(locate, "MAX_BYTES", 3 * 32)  # the size of three values
    model, other = clip_chain(40, 38)
    assert location_of(model, other, inputs={"v0": np.full(8, 9, np.float32)}).value.name == "v39"
    assert set(sizes) == {locate.FIRST_COUNT, 3, 2} or set(sizes) == {locate.FIRST_COUNT, 3}


def test_skips_values_that_runtime_cannot_return() -> None:
    """In Python, onnxruntime returns no int4 values."""
    texts = [
        f"""g (float[2, 3] x) => (float[2, 3] y) {{
            a = Neg (x) narrow = Cast <to = 22> (a) wide = Cast <to = 1> (narrow)
            b = Add (wide, x) c = {op} (b) y = Neg (c)
        }}"""
        for op in ("Relu", "Abs")
    ]
    models = [Planted(text, 21, 21, CLIP, "").model() for text in texts]
    for model in models:
        model.ir_version = 10
    assert location_of(*models, runtime="onnxruntime").place == "graph, node Relu -> c"


def test_names_producer_of_output_without_comparable_values() -> None:
    """Only inputs and outputs keep their names."""
    models = [
        Planted(
            f"g (float[2, 3] x) => (float[2, 3] y) {{ {name} = {op} (x) y = Neg ({name}) }}", 17, 17, CLIP, ""
        )
        for name, op in (("a", "Relu"), ("b", "Abs"))
    ]
    location = location_of(*(each.model() for each in models))
    assert location.place == "graph, node Neg -> y"


def test_finds_changed_shape() -> None:
    texts = [
        f"""g (float[2, 3] x) => (float[N] y) <int64[1] all = {{-1}}> {{
            a = Transpose <perm = {perm}> (x) b = Exp (a) y = Reshape (b, all)
        }}"""
        for perm in ("[0, 1]", "[1, 0]")
    ]
    location = location_of(*(Planted(text, 13, 13, CLIP, "").model() for text in texts))
    assert location.place == "graph, node Transpose -> a"
    assert location.value.reason == "the shape of the output changed from [2, 3] to [3, 2]"
    assert location.value.worst is None


def test_compares_inner_values_of_different_types_by_value() -> None:
    """A conversion may compute in a different type; the node after it is the first with a different value."""
    texts = [
        f"""g (int32[4] x) => (float[4] y) {{
            a = Cast <to = {kind}> (x) b = Add (a, a) c = Cast <to = 1> (b) d = {op} (c) y = Abs (d)
        }}"""
        for kind, op in ((6, "Exp"), (7, "Relu"))
    ]
    location = location_of(*(Planted(text, 13, 13, CLIP, "").model() for text in texts))
    assert location.place == "graph, node Exp -> d"


def test_converted_model_that_does_not_run_has_no_location() -> None:
    text = "g (float[2, 3] x) => (float[2, 3] y) {{ y = Relu {} (x) }}"
    models = [Planted(text.format(each), 17, 17, CLIP, "").model() for each in ("", "<nonsense = 1>")]
    with pytest.raises(VerificationFailed) as error:
        verify(*models)
    assert error.value.location is None
    assert pickle.loads(pickle.dumps(error.value)).location is None


def test_golden_model_with_wrong_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is a file with overridable initializers, as IR version 3 has them."""
    install_wrong_adapter(monkeypatch, *SOFTMAX)
    with pytest.raises(VerificationFailed) as error:
        verify(GOLDEN, convert_version(GOLDEN, 17))
    assert error.value.location is not None
    assert error.value.location.place == "graph, node 'softmax'"


def test_updates_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress()
    case = PLANTED["CNN"]
    model = case.model()
    verify(model, convert_version(model, case.target), samples=2, progress=progress)
    assert (progress.done, progress.total) == (4, 4)
    install_wrong_adapter(monkeypatch, *case.step)
    with pytest.raises(VerificationFailed):
        verify(model, convert_version(model, case.target), progress=progress)
    assert progress.note == "searching graph for the first difference"
    assert progress.total == len(model.graph.node)


def test_equal_models_do_not_load_the_search() -> None:
    script = f"import sys, opshift; opshift.verify({str(GOLDEN)!r}, {str(GOLDEN)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "opshift.analysis.verification.compare" in modules
    assert "opshift.analysis.verification.locate" not in modules
