"""Equations of Einsum, such as `...ij,jk->...ik`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from opshift.model.message_text import count_text

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
            inputs = count_text(len(ranks), "input")
            return f"the equation has {count_text(len(self.operands), 'term')}; the node has {inputs}"
        for term in (*self.operands, self.result):
            if not _TERM.fullmatch(term):
                return f"the term {term!r} does not consist of letters and at most one ellipsis"
        for term, rank in zip(self.operands, ranks, strict=True):
            count = len(term.replace(ELLIPSIS, ""))
            if rank is not None and (rank < count or (rank > count and ELLIPSIS not in term)):
                return f"the term {term!r} has {count_text(count, 'letter')}; its input has rank {rank}"
            if rank is not None and rank > count and ELLIPSIS not in self.result:
                return f"the result omits the dimensions of the ellipsis in {term!r}"
        letters = self.result.replace(ELLIPSIS, "")
        for letter in letters:
            if letters.count(letter) > 1:
                return f"the result repeats the letter {letter}"
            if not any(letter in term for term in self.operands):
                return f"the letter {letter} of the result is in no term of an input"
        return ""


def parse_equation(text: str) -> Equation:
    """Split an equation into its terms, which need not be valid.

    Without an arrow, the result has the ellipsis if an operand has one, then sorted letters that occur once.
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    if not arrow:
        once = sorted(each for each in {*left} if each.isalpha() and left.count(each) == 1)
        right = (ELLIPSIS if ELLIPSIS in left else "") + "".join(once)
    return Equation(tuple(left.split(",")), right)
