"""First calls of a process in many threads: run as a script, prints the faults as JSON.

Arguments: a folder to write to, the number of threads, and a seed for the order of each thread's calls.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser

import opshift
import opshift.defs

MODEL = onnx.parser.parse_model("""
    <ir_version: 4, opset_import: ["" : 10]>
    example (float[2, 4] x) => (float[2, 4] y) {
        a = Clip <min = 0.0, max = 6.0> (x)
        k = Constant <value = int64[2] {2, 4}> ()
        b = Reshape (a, k)
        c = BatchNormalization (b, scale, bias, mean, var)
        d = Upsample <mode = "nearest"> (c, factors)
        m = ReduceSum <axes = [1], keepdims = 1> (d)
        s, t = Split <axis = 1> (d)
        e = Add (s, m)
        y = Softmax <axis = 1> (e)
    }""")
for _name in ("scale", "bias", "mean", "var"):
    MODEL.graph.initializer.append(onnx.helper.make_tensor(_name, 1, [4], [1.0] * 4))
MODEL.graph.initializer.append(onnx.helper.make_tensor("factors", 1, [2], [1.0, 2.0]))
DATA = MODEL.SerializeToString()

ADAPTERS = """\
from opshift import adapter

@adapter("Thin", 1, 2, domain="com.acme")
def thin(node, out):
    out.replace(node)
"""


def _converted(target: int) -> bytes:
    converted: bytes = opshift.convert_version(DATA, target)
    return converted


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """Return a call of each part of the public interface; equal calls return equal results."""
    (folder / "adapters.py").write_text(ADAPTERS)
    registry = opshift.default_registry
    node = MODEL.graph.node[0]

    def file() -> bytes:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            source, out = Path(own, "a.onnx"), Path(own, "b.onnx")
            source.write_bytes(DATA)
            opshift.convert_file(source, out, target=17)
            return out.read_bytes()

    return {
        "convert up": lambda: _converted(21),
        "convert down": lambda: _converted(8),
        "convert reversible": lambda: opshift.convert_version(DATA, 13, reversible=True),
        "convert without": lambda: opshift.convert_version(DATA, 20, without="ai.onnx.Softmax"),
        "plan": lambda: [str(each.place) for each in opshift.plan_version(DATA, 15).graph.changes],
        "file": file,
        "node": lambda: opshift.convert_node(node, 10, 13).nodes[0].SerializeToString(),
        "check": lambda: list(map(str, opshift.check(DATA))),
        "diagnose": lambda: str(opshift.diagnose(DATA)),
        "restamp": lambda: opshift.restamp(DATA),
        "runs": lambda: str(opshift.runs(DATA, ["onnxruntime-1.20.1", "openvino-2026.4.1"])),
        "fit": lambda: opshift.fit(DATA, "onnxruntime-1.20.1").model,
        "common opset": lambda: str(opshift.common_opset([DATA]).highest),
        "compare": lambda: str(opshift.compare(DATA, DATA).changes),
        "diff": lambda: str(opshift.diff_model(DATA, DATA)),
        "verify": lambda: str(opshift.verify(DATA, DATA, runtime="reference", samples=1)),
        "schema": lambda: registry() is registry() and registry().get_schema("Softmax", 12) is _softmax(),
        "texts": lambda: (_softmax().description, _softmax().attributes["axis"].description),
        "types": lambda: _softmax().types_of(_softmax().inputs[0]),
        "fingerprint": lambda: opshift.fingerprint(_softmax()),
        "classify": lambda: str(opshift.classify(_softmax(), registry().get_schema("Softmax", 13))),
        "select": lambda: [str(each.id) for each in registry().select("Reduce*", opset=17)],
        "history": lambda: len(registry().get_all_schemas_with_history()),
        "defs": lambda: repr(opshift.defs.get_schema("Clip", 11).attributes),
        "releases": lambda: (registry().newest_opset("ai.onnx.ml"), list(registry().releases.products)),
        "adapters": lambda: opshift.load_adapters(folder / "adapters.py"),
    }


def _softmax() -> opshift.OperatorVersion:
    return opshift.default_registry().get_schema("Softmax", 12)


def outcome(call: Callable[[], object]) -> object:
    """Return the result of a call, or its error as text."""
    try:
        return call()
    except opshift.OpshiftError as error:
        return f"{type(error).__name__}: {error}"
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        places = (f"{each.filename}:{each.lineno}" for each in frames)
        return f"FAULT {type(error).__name__}: {error} at {' > '.join(places)}"


def main(folder: str, threads: int, seed: int) -> None:
    """Print the names of calls that raise undeclared errors, or whose results differ between threads."""
    every = calls(Path(folder))
    barrier, results = threading.Barrier(threads), [dict[str, object]() for _ in range(threads)]
    sys.setswitchinterval(1e-5)

    def run(position: int) -> None:
        names = list(every)
        random.Random(seed * threads + position).shuffle(names)
        barrier.wait()
        for name in names:
            results[position][name] = outcome(every[name])

    workers = [threading.Thread(target=run, args=(position,)) for position in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    afterwards = {name: outcome(call) for name, call in every.items()}
    faults = []
    for name, expected in afterwards.items():
        found = [each.get(name) for each in results]
        wrong = next((each for each in [expected, *found] if str(each).startswith("FAULT")), None)
        if wrong is not None or any(each != expected for each in found):
            differing = next((each for each in found if each != expected), expected)
            faults.append(f"{name}: {str(wrong or differing)[:300]} instead of {str(expected)[:300]}")
    sys.stdout.write(json.dumps({"calls": list(afterwards), "faults": faults}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
