"""Tokens of ONNX's text syntax, with errors that name the line and the column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from opshift.model.errors import InvalidModel, Place

# No part is read twice: repetitions are possessive, and an invalid token ends where reading it failed.
_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s|\#[^\n]*+)++)
    |(?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
    |(?P<number>[+-]?(?:(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+(?!\w)|inf(?:inity)?\b|nan\b))
    |(?P<name>%?[^\W\d][\w./]*+|[%/][\w./]++)
    |(?P<symbol>=>|[<>()\[\]{},:=@?])
    |(?P<unclosed>["'].*+)
    |(?P<unknown>\w++|.)""",
    re.VERBOSE | re.DOTALL,
)

MAX_DEPTH: Final = 50
"""Maximum nesting of types and subgraphs; deeper text would exhaust the stack."""

INT64: Final = range(-(1 << 63), 1 << 63)

MAX_DIGITS: Final = 100
"""Maximum number of characters of an integer."""

MAX_QUOTED: Final = 30
"""Maximum number of characters of the text that an error quotes."""


class Token(NamedTuple):
    """A word of the text; its kind is a group of the pattern, or `end`."""

    kind: str
    text: str
    start: int


class TokenReader:
    """Position in a text, which reading moves on."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = ((each.lastgroup or "", each.group(), each.start()) for each in _TOKEN.finditer(text))
        self._tokens = [Token(*each) for each in found if each[0] != "space"]
        self._tokens.append(Token("end", "", len(text)))
        self.position = 0
        self._depth = 0

    @property
    def next(self) -> Token:
        """The token at the position."""
        return self._tokens[self.position]

    def peek(self, distance: int = 1) -> Token:
        """Return a token after the next one."""
        return self._tokens[min(self.position + distance, len(self._tokens) - 1)]

    def error(self, reason: str, remedy: str = "", token: Token | None = None) -> InvalidModel:
        """Return an error at the next token, or at an earlier one."""
        start = (token or self.next).start
        line, column = self._text.count("\n", 0, start) + 1, start - self._text.rfind("\n", 0, start)
        return InvalidModel(
            reason, place=Place(node=f"line {line}, column {column}", line=line, column=column), remedy=remedy
        )

    def expected(self, what: str) -> InvalidModel:
        """Return the error that the next token is something else."""
        text = self.next.text
        quoted = f"{text[:MAX_QUOTED]}..." if len(text) > MAX_QUOTED else text
        return self.error(f"expected {what}, got {repr(quoted) if text else 'the end of the text'}")

    def take(self) -> Token:
        """Return the next token, and move on."""
        found = self.next
        self.position += found.kind != "end"
        return found

    def accept(self, symbol: str) -> bool:
        """Move on and return True if the next token is this symbol."""
        is_next = self.next.kind == "symbol" and self.next.text == symbol
        self.position += is_next
        return is_next

    def require(self, symbol: str) -> None:
        """Move on, or raise an error if the next token is not this symbol."""
        if not self.accept(symbol):
            raise self.expected(repr(symbol))

    @contextmanager
    def brackets(self, opening: str, closing: str) -> Iterator[None]:
        """Read the brackets around a part of the text."""
        self.require(opening)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"brackets are nested more than {MAX_DEPTH} deep")
        yield
        self._depth -= 1
        self.require(closing)

    def elements(self, opening: str, closing: str) -> Iterator[None]:
        """Yield before each element of a list in brackets."""
        with self.brackets(opening, closing):
            while self.next.text != closing:
                yield
                if not self.accept(","):
                    break

    def is_name(self, token: Token | None = None) -> bool:
        """Return whether a token may be a name: a word, or a string."""
        return (token or self.next).kind in ("name", "string")

    def name(self, what: str) -> str:
        """Return the next name, without quotes and without the `%` that other printers put before it."""
        if not self.is_name():
            raise self.expected(what)
        return self.string() if self.next.kind == "string" else self.take().text.removeprefix("%")

    def string(self) -> str:
        """Return the content of the next string."""
        if self.next.kind != "string":
            raise self.expected("a string")
        return re.sub(r"\\(.)", r"\1", self.take().text[1:-1], flags=re.DOTALL)

    def integer(self, what: str, allowed: range = INT64) -> int:
        """Return the next integer, which must be in a range."""
        text = self.next.text
        if self.next.kind != "number" or not text.lstrip("+-").isdecimal():
            raise self.expected(what)
        # the conversion of a long text to an integer takes quadratic time
        if len(text) > MAX_DIGITS or int(text) not in allowed:
            raise self.expected(f"{what} from {allowed[0]} to {allowed[-1]}")
        return int(self.take().text)
