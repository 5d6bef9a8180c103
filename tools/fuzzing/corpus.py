"""Inputs that the fuzzer mutates: models, operator definitions and documents."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import onnx.parser

import opshift
from opshift.opsets import OPSETS
from opshift.registry.documents.document import OperatorSet, operator_set
from opshift.registry.documents.files import DocumentFormat, write_document

GOLDEN = Path(__file__).parents[2] / "tests" / "golden"

ONNX_CASES = Path(onnx.__file__).parent / "backend" / "test" / "data"
"""Test models in the ONNX wheel."""

TEXTS = (
    """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
    g (float[N, 3] x, bool c) => (float[N, 3] y) <float[3] w = {1.0, 2.0, 3.0}, int64[1] a = {1}> {
        h = local.F <alpha = 0.5> (x, w)
        s = ReduceMax <keepdims = 1> (h, a)
        y = If (c) <
            then_branch = t () => (float[N, 3] p) { p = Add (h, s) },
            else_branch = e () => (float[N, 3] q) { r = Gelu (h)  q = Mul (r, w) }
        >
    }
    <domain: "local", opset_import: ["" : 20]>
    F <alpha> (a, b) => (d) { e = LeakyRelu <alpha: float = @alpha> (a)  d = Sub (e, b) }""",
    """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2, 3] x, int64 n) => (float[2, 3] y, float[K, 2, 3] z) {
        one = Constant <value = bool {1}> ()
        y, z = Loop (n, one, x) <
            body = b (int64 i, bool k, float[2, 3] v) => (bool m, float[2, 3] u, float[2, 3] o) {
                m = Identity (k)  u = Softmax (v)  o = Clip (v)
            }
        >
    }""",
    """<ir_version: 7, opset_import: ["" : 13, "ai.onnx.ml" : 2]>
    g (float[1, 3, H, W] x) => (float y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
        r = Resize <mode = "linear"> (x, , s)
        p = Pad <mode = "edge"> (r, q)
        q = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> ()
        l = ai.onnx.ml.Normalizer <norm = "L2"> (f)
        f = Flatten (p)
        y = Identity (l)
    }""",
)
"""Models with functions, subgraphs, symbolic sizes, and nodes out of order."""


@cache
def model_paths() -> tuple[Path, ...]:
    """Return the files of the small test models in the checkout and in the ONNX wheel."""
    found = (*GOLDEN.glob("*.onnx"), *ONNX_CASES.rglob("model.onnx"))
    return tuple(sorted(path for path in found if path.stat().st_size < 1 << 16))


@cache
def text_models() -> tuple[bytes, ...]:
    """Return the models in `TEXTS`, and recorded conversions of them."""
    parsed = [onnx.parser.parse_model(text).SerializeToString() for text in TEXTS]
    recorded = [opshift.convert_version(each, 12, reversible=True) for each in parsed]
    return (*parsed, *recorded)


def any_model(random: Random) -> bytes:
    """Return a serialized model."""
    if random.random() < 0.4:
        return random.choice(text_models())
    return random.choice(model_paths()).read_bytes()


@cache
def definition_paths() -> tuple[Path, ...]:
    """Return the files of operator definitions."""
    return tuple(sorted(OPSETS.glob("ai.onnx*/*.yaml")))


def any_definition(random: Random) -> bytes:
    """Return an operator definition in YAML."""
    return random.choice(definition_paths()).read_bytes()


@cache
def _small_set() -> OperatorSet:
    return operator_set(opshift.default_registry(), "ai.onnx.preview.training")


def any_document(random: Random) -> tuple[str, bytes]:
    """Return the suffix and the content of a document of an operator set."""
    form = random.choice(list(DocumentFormat))
    return f".{form.value}", _serialized_document(form)


@cache
def _serialized_document(form: DocumentFormat) -> bytes:
    return write_document(_small_set(), form, opshift.default_registry())
