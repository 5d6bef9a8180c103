"""Sizes known only at run time: comparisons of sizes are folded only if they are equal in every run."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import assert_equal, op_types, run

from opshift import convert_version, simplify

NAMES = ("n", "seq", "width", "batch", "T")

INITIALIZERS = """
    float[1, 1, 1] w1 = {1}, float[1, 1, 2] w2 = {1, 1}, float[1, 1, 3] w3 = {1, 1, 1},
    float[1, 1, 4] w4 = {1, 1, 1, 1}, float[3] half = {1, 1, 0.5}, float[3] quarter = {1, 1, 0.25},
    float[3] twice = {1, 1, 2}, float[3] odd = {1, 1, 1.7}, int64[2] one_three = {1, 3},
    int64[6] more = {0, 0, 0, 0, 0, 1}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
    int64[1] three = {3}, int64[2] ones = {1, 1}
"""

SIZE = "s = Shape <start = 2> (x)"
PADDED = "p = Pad (x, more)"

DIFFERENT = {
    "MaxPool kernels": """
        a = MaxPool <kernel_shape = [1], strides = [2]> (x)
        b = MaxPool <kernel_shape = [2], strides = [2]> (x)""",
    "MaxPool ceil_mode": """
        a = MaxPool <kernel_shape = [2], strides = [2]> (x)
        b = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (x)""",
    "window that begins in the padding": """
        a = MaxPool <kernel_shape = [3], strides = [3], pads = [0, 1], ceil_mode = 1> (x)
        b = MaxPool <kernel_shape = [3], strides = [3], pads = [0, 1]> (x)""",
    "Conv kernels": "a = Conv <strides = [2]> (x, w3) b = Conv <strides = [2]> (x, w4)",
    "Conv auto_pad": """
        a = Conv <strides = [2], auto_pad = "SAME_UPPER"> (x, w1)
        b = Conv <strides = [2], auto_pad = "VALID"> (x, w2)""",
    "sums of quotients": f"""
        {PADDED}
        c = MaxPool <kernel_shape = [1], strides = [2]> (x)
        d = MaxPool <kernel_shape = [1], strides = [2]> (p)
        a = Concat <axis = 2> (c, c)
        b = Concat <axis = 2> (c, d)""",
    "Resize to twice the size": f"{PADDED} a = Resize (x, , twice) b = Resize (p, , twice)",
    "Resize to half the size": f"{PADDED} a = Resize (x, , half) b = Resize (p, , half)",
    "Resize by a fraction": f"{PADDED} a = Resize (x, , odd) b = Resize (p, , odd)",
    "Resize that keeps the aspect ratio": """
        a = Resize <axes = [1, 2], keep_aspect_ratio_policy = "not_larger"> (x, , , one_three)
        b = Resize <axes = [1, 2], keep_aspect_ratio_policy = "not_smaller"> (x, , , one_three)""",
    "Split": "a, b = Split <axis = 2, num_outputs = 2> (x)",
    "Slice of tables": f"""
        {SIZE}
        a = Slice (w4, zero, s, two)
        b = Slice (w3, zero, s, two)""",
    "Slice of a table of 1": f"""
        {SIZE}
        a = Slice (w4, zero, s, two)
        b = Slice (w1, zero, s, two)""",
    "Min": f"""
        {SIZE}
        c = Min (s, two) d = Concat <axis = 0> (ones, c) a = ConstantOfShape (d)
        e = Min (s, three) f = Concat <axis = 0> (ones, e) b = ConstantOfShape (f)""",
    "Div": f"""
        {SIZE}
        c = Div (s, two) d = Concat <axis = 0> (ones, c) a = ConstantOfShape (d)
        b = MaxPool <kernel_shape = [1], strides = [2]> (x)""",
    "one-sided DFT": f"""
        {PADDED}
        c = Transpose <perm = [0, 2, 1]> (x) d = DFT <axis = 1, onesided = 1> (c)
        a = Slice (d, zero, one, two)
        e = Transpose <perm = [0, 2, 1]> (p) f = DFT <axis = 1, onesided = 1> (e)
        b = Slice (f, zero, one, two)""",
}

EQUAL = {
    "same MaxPool": """
        a = MaxPool <kernel_shape = [3], strides = [2]> (x)
        c = Neg (x) b = MaxPool <kernel_shape = [3], strides = [2]> (c)""",
    "same ceil_mode": """
        a = MaxPool <kernel_shape = [1], strides = [2], ceil_mode = 1> (x)
        c = Neg (x) b = MaxPool <kernel_shape = [1], strides = [2], ceil_mode = 1> (c)""",
    "ceil_mode and padding": """
        a = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (x)
        b = MaxPool <kernel_shape = [3], strides = [2], pads = [1, 1]> (x)""",
    "kernels with and without padding": """
        a = Conv <strides = [2], pads = [1, 1]> (x, w3)
        b = Conv <strides = [2]> (x, w1)""",
    "SAME_UPPER and padding": """
        a = Conv <strides = [2], auto_pad = "SAME_UPPER"> (x, w3)
        b = Conv <strides = [2], pads = [1, 1]> (x, w3)""",
    "strides of 2 and a stride of 4": """
        c = Conv <strides = [2]> (x, w1) a = Conv <strides = [2]> (c, w1)
        b = Conv <strides = [4]> (x, w1)""",
    "half of twice the size": """
        c = Resize (x, , twice) a = MaxPool <kernel_shape = [2], strides = [2]> (c)
        b = Neg (x)""",
    "half of a half": "c = Resize (x, , half) a = Resize (c, , half) b = Resize (x, , quarter)",
    "same Resize": "a = Resize (x, , odd) c = Neg (x) b = Resize (c, , odd)",
    "Div and MaxPool": f"""
        {SIZE}
        c = Div (s, two) d = Concat <axis = 0> (ones, c) a = ConstantOfShape (d)
        b = MaxPool <kernel_shape = [2], strides = [2]> (x)""",
    "Split and MaxPool": """
        c, a = Split <axis = 2, num_outputs = 2> (x)
        b = MaxPool <kernel_shape = [2], strides = [2]> (x)""",
    "table that is cut to the size it is added to": f"""
        {SIZE}
        c = Slice (w4, zero, s, two) a = Add (x, c)
        b = Neg (x)""",
    "Concat, which requires equal sizes": """
        c = MaxPool <kernel_shape = [1], strides = [2]> (x)
        d = MaxPool <kernel_shape = [2], strides = [2]> (x)
        a = Concat <axis = 1> (c, d)
        e = Concat <axis = 1> (c, c) b = Neg (e)""",
}


def model_of(body: str, name: str) -> onnx.ModelProto:
    """Return a model that compares the sizes of `a` and `b`, computed from `x` with a dimension `name`."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1, 1, {name}] x) => (bool[r] y) <{INITIALIZERS}> {{
            {body}
            sizes = Shape (a) others = Shape (b) y = Equal (sizes, others)
        }}"""
    )


ROWS = [*((body, False) for body in DIFFERENT.values()), *((body, True) for body in EQUAL.values())]


@pytest.mark.parametrize(("body", "is_equal"), ROWS, ids=[*DIFFERENT, *EQUAL])
def test_folds_comparisons_of_sizes_that_are_equal_in_every_run(body: str, is_equal: bool) -> None:
    runs = (1, 4) if "Add" in body else (6, 8) if "Concat <axis = 1>" in body else (7, 8, 9, 10, 11, 12)
    for name in NAMES:
        model = model_of(body, name)
        result = simplify(model)
        assert (op_types(result) == ["Constant"]) == is_equal
        outputs = []
        for size in runs:
            feeds = {"x": np.ones((1, 1, size), np.float32)}
            outputs += [run(each, feeds)[0].tolist() for each in (model, result)]
            assert outputs[-1] == outputs[-2]
        assert all(map(all, outputs)) == is_equal


@pytest.mark.parametrize("shape_of", ["a", "b"], ids=["different", "equal"])
def test_expands_to_sizes_that_may_differ(shape_of: str) -> None:
    for name in NAMES:
        model = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["" : 17]>
            g (float[1, 1, {name}] x) => (float[1, 1, r] y) {{
                a = MaxPool <kernel_shape = [1], strides = [2]> (x)
                b = MaxPool <kernel_shape = [2], strides = [2]> (x)
                sizes = Shape ({shape_of}) c = Expand (b, sizes) y = Neg (c)
            }}"""
        )
        simplified, converted = simplify(model), convert_version(model, 7)
        assert ("Expand" in op_types(simplified)) == (shape_of == "a")
        for size in (2, 3):
            feeds = {"x": np.ones((1, 1, size), np.float32)}
            for result in (simplified, converted):
                assert_equal(run(result, feeds), run(model, feeds))


def test_unsqueeze_without_axes_keeps_sizes() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[3] x) => (float[3] u, float[r] y) <int64[0] axes = {}> {
            u = Unsqueeze (x, axes) sizes = Shape (u) y = ConstantOfShape (sizes)
        }"""
    )
    feeds = {"x": np.ones(3, np.float32)}
    assert_equal(run(simplify(model), feeds), run(model, feeds))
