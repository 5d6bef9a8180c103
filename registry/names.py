"""Identity of an operator: its domain, its name and the opset version that introduced it."""

from __future__ import annotations

from typing import NamedTuple

from opshift.registry.errors import OpshiftError

DEFAULT_DOMAIN = "ai.onnx"
"""The default domain, which models usually spell as the empty string."""


def canonical_domain(domain: str) -> str:
    """Return the registry's spelling of a domain: `""` and `ai.onnx` are the same domain."""
    return domain or DEFAULT_DOMAIN


class OperatorId(NamedTuple):
    """Identity of an operator version: `ai.onnx.Softmax:13` is Softmax as introduced in opset 13."""

    domain: str
    op_type: str
    since_version: int

    def __str__(self) -> str:
        return f"{self.domain}.{self.op_type}:{self.since_version}"

    @classmethod
    def parse(cls, text: str) -> OperatorId:
        """Parse `ai.onnx.Softmax:13` or `Softmax:13`.

        Raises:
            OpshiftError: the text has no version, or no name.
        """
        qualified, _, version = text.rpartition(":")
        domain, _, op_type = qualified.rpartition(".")
        if not op_type or not version.isdecimal():
            raise OpshiftError(
                f"{text!r} is not an operator version", remedy="write it as ai.onnx.Softmax:13"
            )
        return cls(canonical_domain(domain), op_type, int(version))
