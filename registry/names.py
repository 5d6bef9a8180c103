"""What identifies an operator: its domain, its name and the opset version that introduced it."""

from __future__ import annotations

from typing import NamedTuple

from opshift.registry.errors import OpshiftError

DEFAULT_DOMAIN = "ai.onnx"
"""The default domain; on the wire it is usually spelled as the empty string."""


def canonical_domain(domain: str) -> str:
    """The domain as the registry spells it: `""` and `ai.onnx` are the same one."""
    return domain or DEFAULT_DOMAIN


class OperatorId(NamedTuple):
    """One immutable operator: `ai.onnx.Softmax:13` is Softmax as opset 13 introduced it."""

    domain: str
    op_type: str
    since_version: int

    def __str__(self) -> str:
        return f"{self.domain}.{self.op_type}:{self.since_version}"

    @classmethod
    def parse(cls, text: str) -> OperatorId:
        """Read `ai.onnx.Softmax:13` or `Softmax:13`.

        Raises:
            OpshiftError: the text has no version, or no name.
        """
        qualified, _, version = text.rpartition(":")
        domain, _, op_type = qualified.rpartition(".")
        if not op_type or not version.isdecimal():
            raise OpshiftError(f"{text!r} is not an operator", remedy="write it as ai.onnx.Softmax:13")
        return cls(canonical_domain(domain), op_type, int(version))
