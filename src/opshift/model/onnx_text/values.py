"""Reader of the tokens, types and tensors of ONNX's text syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from opshift.model.element_types import BY_NAME, BY_NUMBER, ElementType, element_bits
from opshift.model.errors import InvalidModel, Place
from opshift.model.messages import StringStringEntryProto, TensorProto, TypeProto
from opshift.model.offloaded_tensors import EXTERNAL
from opshift.model.tensors import count_elements

# Matching takes linear time: repetitions are possessive, and invalid text also becomes tokens.
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
    """Token of the text; `kind` is a group name in `_TOKEN`, or `end` after the last token."""

    kind: str
    text: str
    start: int


class TokenReader:
    """Reader of a text's tokens; reading a token advances the position."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = ((each.lastgroup or "", each.group(), each.start()) for each in _TOKEN.finditer(text))
        self._tokens = [Token(*each) for each in found if each[0] != "space"]
        self._tokens.append(Token("end", "", len(text)))
        self.position = 0
        self._depth = 0

    @property
    def current(self) -> Token:
        """The token at the position."""
        return self._tokens[self.position]

    def peek(self, distance: int = 1) -> Token:
        """Return the token `distance` tokens after the current token, or the last token of the text."""
        return self._tokens[min(self.position + distance, len(self._tokens) - 1)]

    def error(self, reason: str, remedy: str = "", token: Token | None = None) -> InvalidModel:
        """Return an error at `token`, by default the current token."""
        start = (token or self.current).start
        line, column = self._text.count("\n", 0, start) + 1, start - self._text.rfind("\n", 0, start)
        return InvalidModel(
            reason, place=Place(node=f"line {line}, column {column}", line=line, column=column), remedy=remedy
        )

    def expected(self, what: str) -> InvalidModel:
        """Return the error that the current token is not `what`, such as "a dimension"."""
        text = self.current.text
        quoted = f"{text[:MAX_QUOTED]}..." if len(text) > MAX_QUOTED else text
        return self.error(f"expected {what}, got {repr(quoted) if text else 'the end of the text'}")

    def take(self) -> Token:
        """Return the current token, and advance."""
        found = self.current
        self.position += found.kind != "end"
        return found

    def accept(self, symbol: str) -> bool:
        """Return whether the current token is this symbol; if so, advance."""
        is_next = self.current.kind == "symbol" and self.current.text == symbol
        self.position += is_next
        return is_next

    def require(self, symbol: str) -> None:
        """Advance past this symbol; raise an error if the current token is a different one."""
        if not self.accept(symbol):
            raise self.expected(repr(symbol))

    @contextmanager
    def brackets(self, opening: str, closing: str) -> Iterator[None]:
        """Read the opening bracket before the block, and the closing bracket after it."""
        self.require(opening)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"brackets are nested more than {MAX_DEPTH} deep")
        yield
        self._depth -= 1
        self.require(closing)

    def elements(self, opening: str, closing: str) -> Iterator[None]:
        """Read a list in brackets; yield before each element, which the caller reads."""
        with self.brackets(opening, closing):
            while self.current.text != closing:
                yield
                if not self.accept(","):
                    break

    def is_name(self, token: Token | None = None) -> bool:
        """Return whether a token may be a name: a word, or a string."""
        return (token or self.current).kind in ("name", "string")

    def name(self, what: str) -> str:
        """Return the next name, without quotes and without the `%` that other printers put before it."""
        if not self.is_name():
            raise self.expected(what)
        return self.string() if self.current.kind == "string" else self.take().text.removeprefix("%")

    def string(self) -> str:
        """Return the content of the next string."""
        if self.current.kind != "string":
            raise self.expected("a string")
        return re.sub(r"\\(.)", r"\1", self.take().text[1:-1], flags=re.DOTALL)

    def integer(self, what: str, allowed: range = INT64) -> int:
        """Return the next integer; raise an error if it is not in `allowed`."""
        text = self.current.text
        if self.current.kind != "number" or not text.lstrip("+-").isdecimal():
            raise self.expected(what)
        # the conversion of a long text to an integer takes quadratic time
        if len(text) > MAX_DIGITS or int(text) not in allowed:
            raise self.expected(f"{what} from {allowed[0]} to {allowed[-1]}")
        return int(self.take().text)


CONSTRUCTORS: Final = ("seq", "optional", "map", "sparse_tensor")
"""Names of types with parameters."""

SPECIAL_NUMBERS: Final = ("inf", "infinity", "nan")


class ValueReader(TokenReader):
    """Reader of the types, tensors and numbers in a text."""

    def is_type(self) -> bool:
        """Return whether a type comes next, not a value that is named like a type, such as `float`."""
        after = self.peek()
        is_type_name = self.current.text in BY_NAME or self.current.text in CONSTRUCTORS
        return is_type_name and (after.text in ("[", "(", "{") or self.is_name(after))

    def read_type(self, proto: TypeProto) -> None:
        """Read a type into an empty message."""
        constructor = self.current.text
        if constructor not in CONSTRUCTORS:
            self._read_tensor_type(proto.tensor_type)
            return
        self.take()
        with self.brackets("(", ")"):
            if constructor == "seq":
                self.read_type(proto.sequence_type.elem_type)
            elif constructor == "optional":
                self.read_type(proto.optional_type.elem_type)
            elif constructor == "sparse_tensor":
                self._read_tensor_type(proto.sparse_tensor_type)
            else:
                proto.map_type.key_type = self._element_type()
                self.require(",")
                self.read_type(proto.map_type.value_type)

    def _element_type(self) -> int:
        if self.current.text not in BY_NAME:
            raise self.expected("a type, such as float or int64")
        return BY_NAME[self.take().text].number

    def _read_tensor_type(self, proto: TypeProto.Tensor | TypeProto.SparseTensor) -> None:
        """Read a tensor type: `float[N, 3]`, `float` for a scalar, or `float[]` for an unknown rank."""
        proto.elem_type = self._element_type()
        if self.current.text != "[":
            proto.shape.SetInParent()
            return
        for _ in self.elements("[", "]"):
            dim = proto.shape.dim.add()
            if self.current.kind == "number":
                dim.dim_value = self.integer("a dimension")
            elif not self.accept("?"):
                dim.dim_param = self.name("a dimension: a number, a name or ?")

    def read_elements(self, tensor: TensorProto, type_proto: TypeProto) -> None:
        """Read the elements of a tensor, or the `external_data` entries if a file contains them."""
        kind, dims = type_proto.tensor_type, type_proto.tensor_type.shape.dim
        if not kind.elem_type or not all(dim.HasField("dim_value") for dim in dims):
            raise self.error("a tensor with elements needs an element type and numbers as dimensions")
        tensor.data_type = kind.elem_type
        tensor.dims.extend(dim.dim_value for dim in dims)
        if self.current.text == "[":
            tensor.data_location = EXTERNAL
            tensor.external_data.extend(self.read_entries())
            return
        start = self.current
        values = [self._read_element(BY_NUMBER[tensor.data_type]) for _ in self.elements("{", "}")]
        count = count_elements(tensor.dims)
        if len(values) != count:
            reason = f"the tensor has {len(values):,} elements, and its dimensions need {count:,}"
            raise self.error(reason, token=start)
        getattr(tensor, BY_NUMBER[tensor.data_type].field).extend(values)

    def read_entries(self) -> list[StringStringEntryProto]:
        """Read a list of entries, such as `["location": "weights.bin", "offset": "0"]`."""
        found = []
        for _ in self.elements("[", "]"):
            entry = StringStringEntryProto(key=self.string())
            self.require(":")
            entry.value = self.string()
            found.append(entry)
        return found

    def _read_element(self, kind: ElementType) -> bytes | float | int:
        """Read an element; float16, bfloat16 and smaller floats are written as integers with equal bits."""
        if kind.name == "string":
            return self.string().encode()
        what = f"an element of {kind.name}"
        if kind.field in ("float_data", "double_data"):
            return self.number(what)
        bits = element_bits(kind)
        if kind.name.startswith("int"):
            return self.integer(what, range(-(1 << bits - 1), 1 << bits - 1))
        return self.integer(what, range(2 if kind.name == "bool" else 1 << bits))

    def number(self, what: str) -> float:
        """Return the next number as a float; infinity and NaN are accepted."""
        token = self.current
        if token.kind != "number" and token.text not in SPECIAL_NUMBERS:
            raise self.expected(what)
        return float(self.take().text)
