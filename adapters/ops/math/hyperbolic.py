"""Sinh, Cosh, Asinh, Acosh, Atanh and Erf before opset 9, as formulas of Exp, Log and Sqrt in double.

If a function has two formulas, both are computed, and the result that does not apply is multiplied by 0. This
result must be finite: the power 0 replaces an input that is infinite or NaN by 1.
"""

import math
from collections.abc import Callable, Sequence

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression, cast, cast_between

MAX_ULP = 8
"""Maximum difference from the exact result for double, in units in the last place."""

ERROR = f"at most 1 unit in the last place, or {MAX_ULP} in double"

LARGE = 2.0**28
"""Limit above which `x^2 + 1` rounds to `x^2` in double."""

SINH_SERIES = tuple(1 / math.factorial(2 * power + 1) for power in range(8, -1, -1))
"""Coefficients of sinh(x) / x for powers of x^2, highest first; exact to double precision for |x| < 0.5."""

ERF_SERIES = (
    -7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07, 1.6447424703317362e-06,
    -1.492473690741966e-05, 0.00012055294904839707, -0.0008548325975389692, 0.0052239776071164225,
    -0.02686617064323777, 0.11283791670945006, -0.37612638903183543, 1.1283791670955126,
)  # fmt: skip
"""Coefficients of erf(x) / x for powers of x^2, highest first; for |x| <= 1 the error is at most 1e-17."""

ERFC_SCALE = 0.3

ERFC_SERIES = (
    -0.000878658093958775, 0.001478655830026988, 0.013002972944694298, -0.059618483366133325,
    0.11225861358482768, -0.12106031780127381, 0.09278583057791119, -0.056728847621178406,
    0.01661532497679338, -0.009956174061640479, 0.007552880768474126, 0.021251469238009715,
    0.04372050028382014, 0.07019645932156136, 0.09823274929798784, 0.12458574102160201,
    0.14640719730079504, 0.1616403156809995, 0.16925687506435844, 0.16925687506432685,
)  # fmt: skip
"""Coefficients of erfc(x) e^(x^2) / t for powers of t = 1 / (1 + 0.3 x), where x is at least 1.

The coefficients are a Chebyshev approximation with an error of at most 4e-17.
"""


def _sinh(x: Expression) -> Expression:
    """Return `(e^x - e^-x) / 2`, or a power series where |x| < 0.5."""
    is_small = _test("Less", abs(x), 0.5)
    near = x.apply("Pow", is_small)
    growing, falling = _half_exponentials(x)
    return _select(is_small, near * _polynomial(near * near, SINH_SERIES), growing - falling)


def _cosh(x: Expression) -> Expression:
    """Return `(e^x + e^-x) / 2`."""
    growing, falling = _half_exponentials(x)
    return growing + falling


def _half_exponentials(x: Expression) -> list[Expression]:
    # Squares of e^(x/2), because e^x overflows where Sinh and Cosh do not.
    roots = [(x * factor).apply("Exp") for factor in (0.5, -0.5)]
    return [root * 0.5 * root for root in roots]


def _asinh(x: Expression) -> Expression:
    """Return `log(1 + |x| + x^2 / (1 + sqrt(x^2 + 1)))`, or `log(2 |x|)` for large x, with the sign of x."""
    near, log_of_double, is_large = _split_large(abs(x))
    square = near * near
    series = _log_of_one_plus(near + square / ((square + 1).apply("Sqrt") + 1))
    return _with_sign(x, _select(is_large, log_of_double, series))


def _acosh(x: Expression) -> Expression:
    """Return `log(1 + t + sqrt(t) sqrt(t + 2))` with `t = x - 1`, or `log(2 x)` for large x."""
    near, log_of_double, is_large = _split_large(x)
    rest = near - 1
    series = _log_of_one_plus(rest + rest.apply("Sqrt") * (rest + 2).apply("Sqrt"))
    return _select(is_large, log_of_double, series)


def _split_large(x: Expression) -> tuple[Expression, Expression, Expression]:
    """Return x if x <= `LARGE` else 1, log(2x) if x > `LARGE` else log(2), and 1 if x > `LARGE` else 0."""
    is_large = _test("Greater", x, LARGE)
    far = x.apply("Pow", is_large)
    return x.apply("Pow", 1 - is_large), far.apply("Log") + math.log(2), is_large


def _atanh(x: Expression) -> Expression:
    """Return `log((1 + |x|) / (1 - |x|)) / 2`, with the sign of x."""
    magnitude = abs(x)
    is_small = _test("Less", magnitude, 0.5)
    near = magnitude * is_small
    series = _log_of_one_plus((near + near) / (1 - near))
    far = ((1 + magnitude) / (1 - magnitude)).apply("Log")
    return _with_sign(x, _select(is_small, series, far) * 0.5)


def _erf(x: Expression) -> Expression:
    """Return a power series where |x| < 1, else `1 - t p(t) e^(-x^2)` with `t = 1 / (1 + 0.3 |x|)`.

    The polynomial p has the coefficients `ERFC_SERIES`; the result gets the sign of x.
    """
    magnitude = abs(x)
    is_small = _test("Less", magnitude, 1.0)
    near = magnitude.apply("Pow", is_small)
    t = 1 / (1 + magnitude * ERFC_SCALE)
    complement = t * _polynomial(t, ERFC_SERIES) * (-(magnitude * magnitude)).apply("Exp")
    return _with_sign(x, _select(is_small, near * _polynomial(near * near, ERF_SERIES), 1 - complement))


def _test(comparison: str, x: Expression, limit: float) -> Expression:
    """Return 1 where a comparison with a number is true, and 0 elsewhere."""
    return x.apply(comparison, limit).cast("double")


def _select(flag: Expression, chosen: Expression, other: Expression) -> Expression:
    """Return `chosen` where `flag` is 1 and `other` where it is 0; unselected elements must be finite."""
    return flag * chosen + (1 - flag) * other


def _polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """Evaluate a polynomial by Horner's method; `coefficients` has two or more, highest power first."""
    first, second, *others = coefficients
    total = x * first + second
    for coefficient in others:
        total = total * x + coefficient
    return total


def _log_of_one_plus(x: Expression) -> Expression:
    """Return log(1 + x) for a number x that is not negative.

    The factor `x / ((1 + x) - 1)` cancels the rounding error of the sum (W. Kahan). If the sum rounds to 1,
    the result is x.
    """
    total = x + 1
    difference = total - 1
    is_zero = difference.apply("Greater", 0.0).apply("Not").cast("double")
    return (total.apply("Log") + is_zero) * (x / (difference + is_zero))


def _with_sign(x: Expression, magnitude: Expression) -> Expression:
    """Return a nonnegative value with the sign of x."""
    return magnitude * x.apply("Sign", opset=9)


FORMULAS: dict[str, Callable[[Expression], Expression]] = {
    "Sinh": _sinh, "Cosh": _cosh, "Asinh": _asinh, "Acosh": _acosh, "Atanh": _atanh, "Erf": _erf,
}  # fmt: skip


@adapter(tuple(FORMULAS), 9, 8, error=ERROR)
def expand_formula(node: Node, out: Rewriter) -> None:
    """Emit the formula of the operator, computed in double."""
    out.allow("approximate", f"{node.op_type} is computed by a formula")
    element_type = out.element_type(node.inputs[0])
    x = Expression(cast_between(node.inputs[0], element_type, "double", out), "double", out)
    cast(FORMULAS[node.op_type](x).name, element_type, out, node.outputs)
