"""Reader of the types and tensors of ONNX's text syntax."""

from __future__ import annotations

import math
from typing import Final

from opshift.model.element_types import BY_NAME, BY_NUMBER, ElementType, element_bits
from opshift.model.external_data import EXTERNAL
from opshift.model.messages import StringStringEntryProto, TensorProto, TypeProto
from opshift.model.onnx_text.tokens import TokenReader

CONSTRUCTORS: Final = ("seq", "optional", "map", "sparse_tensor")
"""Names of types with parameters."""

SPECIAL_NUMBERS: Final = ("inf", "infinity", "nan")


class Values(TokenReader):
    """Position in a text, with functions that read types, tensors and numbers."""

    def is_type(self) -> bool:
        """Return whether a type comes next, and not a value with the name of a type."""
        after = self.peek()
        is_type_name = self.next.text in BY_NAME or self.next.text in CONSTRUCTORS
        return is_type_name and (after.text in ("[", "(", "{") or self.is_name(after))

    def read_type(self, proto: TypeProto) -> None:
        """Read a type into an empty message."""
        constructor = self.next.text
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
        if self.next.text not in BY_NAME:
            raise self.expected("a type, such as float or int64")
        return BY_NAME[self.take().text].number

    def _read_tensor_type(self, proto: TypeProto.Tensor | TypeProto.SparseTensor) -> None:
        """Read a type: `float` is a scalar, and `float[]` has an unknown rank."""
        proto.elem_type = self._element_type()
        if self.next.text != "[":
            proto.shape.SetInParent()
            return
        for _ in self.elements("[", "]"):
            dim = proto.shape.dim.add()
            if self.next.kind == "number":
                dim.dim_value = self.integer("a dimension")
            elif not self.accept("?"):
                dim.dim_param = self.name("a dimension: a number, a name or ?")

    def read_elements(self, tensor: TensorProto, type_proto: TypeProto) -> None:
        """Read the elements of a tensor, or the place of the file that contains them."""
        kind, dims = type_proto.tensor_type, type_proto.tensor_type.shape.dim
        if not kind.elem_type or not all(dim.HasField("dim_value") for dim in dims):
            raise self.error("a tensor with elements needs an element type and numbers as dimensions")
        tensor.data_type = kind.elem_type
        tensor.dims.extend(dim.dim_value for dim in dims)
        if self.next.text == "[":
            tensor.data_location = EXTERNAL
            tensor.external_data.extend(self.read_entries())
            return
        start = self.next
        values = [self._read_element(BY_NUMBER[tensor.data_type]) for _ in self.elements("{", "}")]
        count = math.prod(tensor.dims)
        if len(values) != count:
            reason = f"the tensor has {len(values):,} elements, and its dimensions need {count:,}"
            raise self.error(reason, token=start)
        getattr(tensor, BY_NUMBER[tensor.data_type].field).extend(values)

    def read_entries(self) -> list[StringStringEntryProto]:
        """Return a list of keys and values."""
        found = []
        for _ in self.elements("[", "]"):
            entry = StringStringEntryProto(key=self.string())
            self.require(":")
            entry.value = self.string()
            found.append(entry)
        return found

    def _read_element(self, kind: ElementType) -> bytes | float | int:
        """Read an element; those of float16 and smaller floats are written as their bits, as ONNX does."""
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
        """Return the next number, which may be infinite."""
        token = self.next
        if token.kind != "number" and token.text not in SPECIAL_NUMBERS:
            raise self.expected(what)
        return float(self.take().text)
