"""A proposal's folder, read: what its files hold. Code in it is not run here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from opshift.proposals.errors import InvalidProposal
from opshift.proposals.models import Example, Examples, Proposal
from opshift.registry.errors import DefinitionError, Place
from opshift.registry.loader import read_operator
from opshift.registry.models import Operator
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import line_of, load_yaml

PROPOSAL, OPERATOR, EXAMPLES = "proposal.yaml", "operator.yaml", "examples.yaml"
REFERENCE, ADAPTERS = "reference.py", "adapters.py"
FILES = (PROPOSAL, OPERATOR, EXAMPLES, REFERENCE, ADAPTERS)
"""What a proposal consists of; other files in the folder are not part of it."""
AnyModel = TypeVar("AnyModel", bound=BaseModel)


@dataclass(frozen=True)
class Folder:
    """A proposal on disk."""

    path: Path

    def file(self, name: str) -> Path:
        """Where a file of the proposal is, or would be."""
        return self.path / name

    def place(self, name: str, *keys: int | str) -> Place:
        """The line of a YAML file on which the item at the end of `keys` stands, or the nearest above it."""
        path = self.file(name)
        is_readable = path.exists() and path.suffix == ".yaml"
        try:
            return Place(str(path), line_of(path, keys) if is_readable else 1)
        except Exception:  # not YAML; the rule that reads it says so
            return Place(str(path), 1)

    @cached_property
    def proposal(self) -> Proposal:
        """`proposal.yaml`.

        Raises:
            DefinitionError: it cannot be read.
            InvalidProposal: there is none.
        """
        if not self.file(PROPOSAL).is_file():
            raise InvalidProposal(
                "is no proposal: it has no proposal.yaml",
                place=str(self.path),
                remedy="start one with `opshift proposal new`",
            )
        return _read(self.file(PROPOSAL), Proposal)

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """`examples.yaml`; none if there is no such file.

        Raises:
            DefinitionError: it cannot be read.
        """
        path = self.file(EXAMPLES)
        return read_examples(path) if path.is_file() else ()

    def operator(self, types: TypeSets) -> Operator:
        """`operator.yaml`, in the registry's own format.

        Raises:
            DefinitionError: it is not there, breaks the format, or is about another operator.
        """
        about = self.proposal.operator
        return read_operator(self.file(OPERATOR), types, domain=about.domain, name=about.name)


def read_examples(path: Path) -> tuple[Example, ...]:
    """A file of examples.

    Raises:
        DefinitionError: it cannot be read.
    """
    return _read(path, Examples).examples


def _read(path: Path, model: type[AnyModel]) -> AnyModel:
    data: Any = load_yaml(path)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        line = line_of(path, tuple(first["loc"]))
        raise DefinitionError(f"{where}: {first['msg']}", place=Place(str(path), line)) from error
