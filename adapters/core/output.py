"""Interface of a conversion for the nodes, names and constants that adapters add."""

from typing import Protocol

from opshift.model.node import Tensor
from opshift.registry.steps import Allow


class Output(Protocol):
    """Names, constants and allowances of a conversion, which adapters request."""

    def fresh(self, hint: str) -> str:
        """Return a name that is not used in the model, derived from `hint`."""
        ...

    def add_constant(self, tensor: Tensor) -> str:
        """Return the name of a constant with this value; equal constants share one name."""
        ...

    def declare_rank(self, name: str) -> None:
        """Declare the known rank of an input of the node in the converted model.

        Runtimes that infer less than opshift may need it to recognize the nodes that they fuse.
        """
        ...

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows a deviation; if so, record the reason for the plan."""
        ...
