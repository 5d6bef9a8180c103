"""Equations of Einsum, such as `...ij,jk->...ik`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

ELLIPSIS: Final = "..."
"""Any number of dimensions without letters, in a term of an equation."""

_TERM: Final = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")


class Equation(NamedTuple):
    """Terms of an equation: one for each operand, and the term of the result, which may be implied."""

    operands: tuple[str, ...]
    result: str

    def problem(self, ranks: Sequence[int | None]) -> str:
        """Return why the equation is invalid for inputs with these ranks (`None`: unknown), or `""`."""
        if len(self.operands) != len(ranks):
            return f"the equation has {len(self.operands)} terms; the node has {len(ranks)} inputs"
        for term in (*self.operands, self.result):
            if not _TERM.fullmatch(term):
                return f"the term {term!r} does not consist of letters and at most one ellipsis"
        for term, rank in zip(self.operands, ranks, strict=True):
            count = len(term.replace(ELLIPSIS, ""))
            if rank is not None and (rank < count or (rank > count and ELLIPSIS not in term)):
                return f"the term {term!r} names {count} dimensions; its input has rank {rank}"
        letters = self.result.replace(ELLIPSIS, "")
        if unknown := sorted({*letters}.difference(*self.operands)):
            return f"the subscripts {', '.join(unknown)} of the result occur in no input term"
        repeated = sorted(each for each in {*letters} if letters.count(each) > 1)
        return f"the result repeats the subscripts {', '.join(repeated)}" if repeated else ""


def parse_equation(text: str) -> Equation:
    """Split an equation into its terms, which need not be valid.

    Without an arrow, the result has the ellipsis if an operand has one, then sorted letters that occur once.
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    if not arrow:
        once = sorted(each for each in {*left} if each.isalpha() and left.count(each) == 1)
        right = (ELLIPSIS if ELLIPSIS in left else "") + "".join(once)
    return Equation(tuple(left.split(",")), right)
