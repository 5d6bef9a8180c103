"""Registry of operator definitions: look up an operator at an opset, and read its definition on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opshift.model.errors import Place, path_argument, path_arguments, require_type
from opshift.model.message_text import did_you_mean
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    LocalFunction,
    NodeLike,
    OperatorId,
    canonical_domain,
    overload_of,
)
from opshift.model.shared_data import share_results
from opshift.opsets import OPSETS
from opshift.registry.definition_files import RELEASES, TYPES
from opshift.registry.descriptions import set_texts_on_demand, texts_of
from opshift.registry.errors import (
    DomainNotImported,
    ResolveError,
    UnknownDomain,
    UnknownOpset,
    require_argument_types,
    require_node_and_imports,
    resolve_error,
)
from opshift.registry.installed import DefinitionFiles
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.precompiled import is_precompiled, load_precompiled, load_texts
from opshift.registry.releases import Releases

if TYPE_CHECKING:
    from opshift.registry.selection import Status, Versions
    from opshift.registry.type_sets import TypeSets


class Sources:
    """Base of `Registry`: the read-only paths of its folders and documents."""

    def __init__(self, folders: tuple[Path, ...], documents: tuple[Path, ...]) -> None:
        self._folders: Final = folders
        self._documents: Final = documents

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of definitions; the first is the project's own, or the one that replaces it."""
        return self._folders

    @property
    def documents(self) -> tuple[Path, ...]:
        """The operator-set documents that were added to the folders."""
        return self._documents


class Registry(Sources):
    """Operator definitions from folders (`<domain>/<operator>.yaml`) and from operator-set documents.

    `load_registry` creates a registry. A registry is immutable: methods such as `with_folder` return a new
    one. A file is read when its operator is first used. If `installed`, installed packages add domains.
    """

    def __init__(
        self,
        folders: tuple[Path, ...],
        documents: tuple[Path, ...] = (),
        operators: tuple[Operator, ...] = (),
        installed: bool = False,
    ) -> None:
        super().__init__(folders, documents)
        self._staged = operators
        self._files = DefinitionFiles(folders, installed=installed)
        self._operators: dict[tuple[str, str], Operator] = {}
        self._newest: dict[str, int] = {}
        self._types: dict[Path, TypeSets] = {}
        # Cache by domain, opset and name, because every node of a model is resolved. The domain is spelled as
        # in the node, so that a hit needs no `canonical_domain`. Opset None means the newest.
        self._resolved: dict[str, dict[int | None, dict[str, OperatorVersion]]] = {}
        for document in documents:
            self._add_document(document)
        for operator in operators:
            self._set_operator(operator)

    def with_folder(self, folder: Path | str) -> Registry:
        """Return a registry with the definitions in `folder` added.

        Raises:
            DefinitionError: the folder contains no definitions, or redefines an operator.
            UsageError: the folder does not exist.
        """
        folders = (*self.folders, path_argument("folder", folder))
        return Registry(folders, self.documents, self._staged, self._files.installed)

    def with_document(self, path: Path | str) -> Registry:
        """Return a registry with an operator-set document added, as the only source of its domain.

        Raises:
            DocumentError: the file is not a valid operator-set document, or its domain is already defined.
            DefinitionError: a definition in it is invalid.
        """
        documents = (*self.documents, path_argument("path", path))
        return Registry(self.folders, documents, self._staged, self._files.installed)

    def with_operator(self, operator: Operator) -> Registry:
        """Return a registry with an operator added or replaced; raise `InvalidDefinition` for a mistake."""
        from opshift.registry.lint.apply import consistent

        staged = (*self._staged, consistent(operator))
        return Registry(self.folders, self.documents, staged, self._files.installed)

    @cached_property
    def types(self) -> TypeSets:
        """The named type sets of all folders; a set of an earlier folder overrides one with the same name."""
        from opshift.registry.type_sets import TypeSets

        return TypeSets.of_folders(self.folders)

    def types_of(self, folder: Path) -> TypeSets:
        """Return the type sets for the definitions in a folder, where its own sets override all others."""
        if folder not in self._types:
            self._types[folder] = self.types.merged(self.types.load(folder / TYPES))
        return self._types[folder]

    @cached_property
    def releases(self) -> Releases:
        """The releases of ONNX, of runtimes and of other consumers, with the opsets they support."""
        return Releases.of_folders(self.folders)

    def domains(self) -> tuple[str, ...]:
        """Return all domains that have definitions."""
        return self._files.domains()

    def has_domain(self, domain: str) -> bool:
        """Return whether a domain has definitions."""
        return bool(self._files[canonical_domain(domain)])

    def is_open(self, domain: str) -> bool:
        """Return whether models may use operators of a domain that lack a definition, as in com.microsoft."""
        return not self.has_domain(domain) or domain in self.releases.open_domains

    def is_undefined(self, op_type: str, opset: int, domain: str) -> bool:
        """Return whether a domain is open (see `is_open`), and has no definition of the operator or opset."""
        names = self._files[canonical_domain(domain)]
        is_defined = op_type in names and 1 <= opset <= self.newest_opset(domain)
        return not is_defined and self.is_open(domain)

    def names(self, domain: str = "") -> tuple[str, ...]:
        """Return the names of a domain's operators: sorted, or in the order of the document of the domain."""
        return tuple(self._files[canonical_domain(domain)])

    def operator(self, op_type: str, domain: str = "") -> Operator | None:
        """Return an operator with all its versions, or `None` if the domain has no operator of this name.

        Raises:
            DefinitionError: its file is invalid, or a version is newer than all ONNX releases.
        """
        key = (canonical_domain(domain), op_type)
        found = self._operators.get(key)
        if found is None and op_type in self._files[key[0]]:
            # `setdefault`, because another thread may have loaded the operator in the meantime
            found = self._operators.setdefault(key, self._load_lazily(Path(self._files[key[0]][op_type])))
        return found

    def _load_lazily(self, path: Path) -> Operator:
        operator = load_precompiled(path, self._files.common_sources, lambda: self._load(path))
        if is_precompiled(path):
            set_texts_on_demand(operator, lambda: load_texts(path, lambda: self._read_texts(path)))
        return operator

    def _load(self, path: Path) -> Operator:
        # Precompiled definitions need neither pydantic nor a YAML parser, so both are imported late.
        from opshift.registry.loader import load_operator, require_known_opsets, with_compatible_steps

        types = self.types_of(path.parents[1])
        operator = require_known_opsets(load_operator(path, types), path, self.releases)
        return with_compatible_steps(operator) if is_precompiled(path) else operator

    def _read_texts(self, path: Path) -> list[list[str]]:
        return [list(texts_of(version).values()) for version in self._load(path).versions]

    def file_of(self, op_type: str, domain: str = "") -> Path:
        """Return the file that defines an existing operator."""
        return Path(self._files[canonical_domain(domain)][op_type])

    def operators(self, domain: str | None = None) -> Iterator[Operator]:
        """Yield every operator of a domain, or of all domains."""
        for each in self.domains() if domain is None else (canonical_domain(domain),):
            yield from filter(None, (self.operator(name, each) for name in self.names(each)))

    def newest_opset(self, domain: str = "") -> int:
        """Return the newest opset version of a domain, or raise `UnknownDomain` if it has no definitions."""
        domain = canonical_domain(domain)
        if not self._files[domain]:
            reason = f"no definitions for domain {domain!r}"
            if internal := self.releases.internal_domains.get(domain):
                raise UnknownDomain(f"{reason}; {internal.meaning}", remedy=internal.remedy)
            remedy = did_you_mean(domain, self.domains(), "add a folder with its definitions")
            raise UnknownDomain(reason, remedy=remedy)
        if domain not in self._newest:
            published = self.releases.newest_opset(domain) or self.releases.open_domains.get(domain)
            self._newest[domain] = published or max(each.newest_opset for each in self.operators(domain))
        return self._newest[domain]

    def require_opset(self, opset: int, domain: str = "") -> None:
        """Raise `UnknownDomain` or `UnknownOpset` unless the domain has the opset."""
        newest = self.newest_opset(domain)
        if not 1 <= opset <= newest:
            reason = f"there is no opset {opset} of {canonical_domain(domain)}"
            raise UnknownOpset(reason, remedy=f"use an opset version from 1 to {newest}")

    def at(self, op_type: str, opset: int, domain: str = "") -> OperatorVersion | None:
        """Return the version of an operator in effect at an opset, or `None` if the opset lacks it."""
        operator = self.operator(op_type, domain)
        return operator.at(opset) if operator else None

    def known_at(self, op_type: str, opset: int, domain: str = "") -> OperatorVersion | None:
        """Return the version as `at` does, but also find nonstandard operators of the default domain.

        For example, onnxruntime writes some operators of com.microsoft to the default domain; see
        `Releases.nonstandard`.
        """
        found = self.at(op_type, opset, domain)
        if found is None and canonical_domain(domain) == DEFAULT_DOMAIN:
            home = self.releases.nonstandard.get(op_type)
            return self.at(op_type, opset, home) if home else None
        return found

    def known_or_removed_at(self, op_type: str, opset: int, domain: str = "") -> OperatorVersion | None:
        """Return the version as `known_at` does; for an operator that the opset removed, the last version.

        Some exporters write removed operators, such as Crop: conversions treat such a node as one of the last
        version.
        """
        found = self.known_at(op_type, opset, domain)
        if found is None and (operator := self.operator(op_type, domain)):
            last = operator.versions[-1]
            return last if last.removal and last.removal.removed_in <= opset else None
        return found

    def resolve(
        self,
        node: NodeLike,
        opset_imports: Mapping[str, int],
        functions: Collection[tuple[str, str, str]] = (),
    ) -> OperatorVersion | LocalFunction:
        """Return the operator version or local function that a node refers to.

        Args:
            node: any object with `op_type` and `domain` (and `overload`, for functions).
            opset_imports: domain to opset version; `""` and `ai.onnx` are the same domain.
            functions: (domain, name, overload) of the model's local functions, which take precedence.

        Raises:
            ResolveError: no operator matches the node; the subclass gives the reason.
            UsageError: the arguments are not a node and opsets by domain.
        """
        if not functions:  # checked before the cache, because local functions take precedence over operators
            try:
                domain = node.domain
                return self._resolved[domain][opset_imports[domain]][node.op_type]
            except (AttributeError, KeyError, TypeError):
                require_node_and_imports(node, opset_imports)
        call = LocalFunction(node.domain, node.op_type, overload_of(node))
        other_spelling = {"": DEFAULT_DOMAIN, DEFAULT_DOMAIN: ""}.get(node.domain, node.domain)
        for each in (call, call._replace(domain=other_spelling)):
            if each in functions:
                return each
        domain = canonical_domain(node.domain)
        opset = next((v for d, v in opset_imports.items() if canonical_domain(d) == domain), None)
        if opset is None:
            reason = f"{node.op_type} belongs to domain {domain!r}, which has no opset import"
            raise DomainNotImported(reason, remedy=f"add an opset import for {domain!r}")
        return self.get_schema(node.op_type, opset, node.domain)

    def get_schema(
        self, op_type: str, max_inclusive_version: int | str | None = None, domain: str = ""
    ) -> OperatorVersion:
        """Return the version in effect at an opset (the newest by default), like `onnx.defs.get_schema`.

        The second argument may also be the domain, as in `get_schema("Relu", "")`.

        Raises:
            UnknownDomain, UnknownOpset: the registry lacks the domain or the opset.
            UnknownOperator, NotYetIntroduced, OperatorRemoved: the opset lacks the operator.
            UsageError: an argument has the wrong type.
        """
        if isinstance(max_inclusive_version, str):
            return self.get_schema(op_type, None, domain or max_inclusive_version)
        try:
            return self._resolved[domain][max_inclusive_version][op_type]
        except (KeyError, TypeError):  # TypeError: an argument is not hashable
            require_argument_types(op_type, max_inclusive_version, domain)
            found = self._find(op_type, max_inclusive_version, canonical_domain(domain))
        self._resolved.setdefault(domain, {}).setdefault(max_inclusive_version, {})[op_type] = found
        return found

    def _find(self, op_type: str, opset: int | None, domain: str) -> OperatorVersion:
        """Return the version of an operator at an opset, or raise a ResolveError."""
        opset = self.newest_opset(domain) if opset is None else opset
        self.require_opset(opset, domain)
        operator = self.operator(op_type, domain)
        found = operator.at(opset) if operator else None
        if found is None:
            raise resolve_error(operator, OperatorId(domain, op_type, opset), self.names(domain))
        return found

    def _add_document(self, document: Path) -> None:
        from opshift.registry.documents.document import WrongDomain
        from opshift.registry.documents.files import read_document

        found, path = read_document(document), str(document)
        if found.domain in self._files:
            raise WrongDomain(f"domain {found.domain} is already defined", place=Place(path))
        self._files[found.domain] = dict.fromkeys((each.name for each in found.operators), path)
        self._operators |= {(each.domain, each.name): each for each in found.operators}
        self._newest[found.domain] = found.opset_version

    def _set_operator(self, operator: Operator) -> None:
        domain = canonical_domain(operator.domain)
        newest = self.newest_opset(domain) if self._files[domain] else 0
        # A new operator gets the path at which a file is written when the proposal is accepted.
        path = str(self.folders[0] / domain / f"{operator.name}.yaml")
        self._files[domain] = dict(sorted({operator.name: path, **self._files[domain]}.items()))
        self._operators[domain, operator.name] = operator
        self._newest[domain] = max(newest, operator.newest_opset)

    def has(self, op_type: str, max_inclusive_version: int | str | None = None, domain: str = "") -> bool:
        """Return whether `get_schema` finds a version; the arguments are the same."""
        try:
            self.get_schema(op_type, max_inclusive_version, domain)
        except ResolveError:
            return False
        return True

    def get_all_schemas_with_history(self) -> tuple[OperatorVersion, ...]:
        """Return every version of every operator, including operators that were removed."""
        operators = self.operators()
        return tuple(version for operator in operators for version in operator.versions)

    def select(
        self,
        name: str = "*",
        *,
        domain: str | None = None,
        opset: int | None = None,
        versions: Versions = "current",
        status: Status | Collection[Status] | None = None,
        accepts: str | None = None,
        produces: str | None = None,
        parameter: str | None = None,
        attribute: str | None = None,
        function: bool | None = None,
        changed: tuple[int, int] | None = None,
    ) -> tuple[OperatorVersion, ...]:
        """Return the operator versions that match all given filters.

        Versions are grouped by domain, and sorted by name and version; in each domain, removed ones are last.

        Args:
            name: the name of an operator, or a pattern such as `Reduce*`.
            domain: the domain to search; by default all.
            opset: the opset to search (default: the newest, or the newer one of `changed`). Without a domain,
                it is an opset of `ai.onnx`: ONNX's other domains have the opsets of the release that
                introduced this opset, and domains outside ONNX have their newest opset.
            versions: `current` for the version in effect at the opset, `first` for the first version up to
                the opset that matches the other filters, or `all` for every version up to the opset.
            status: one or several statuses at the opset: `active`, `preview`, `deprecated` or `removed`. By
                default all but `removed`, or all if `changed` is given.
            accepts: the type of an input: an element type of tensors, such as `int8`, or a type such as
                `seq(tensor(int8))`.
            produces: the type of an output, written in the same way.
            parameter: the name of an input or output; with `accepts` or `produces`, it must have this type.
            attribute: the name of an attribute.
            function: whether the operator is a function.
            changed: an older and a newer opset, between which the operator was added, changed or removed.

        Raises:
            UnknownDomain, UnknownOpset: the registry lacks the domain or an opset.
            UnknownOperator: no operator has the name. For a pattern without matches, the result is empty.
            UsageError: no operator has the given type, parameter or attribute, or an argument is invalid.
        """
        # imported here: conversions do not select operators
        from opshift.registry.selection import Filters, select

        filters = Filters(accepts, produces, parameter, attribute, function)
        # pyright finds this class under two names, because `src/opshift/registry` is a symbolic link
        return select(self, name, filters, domain, opset, versions, status, changed)  # pyright: ignore


@share_results
def default_registry() -> Registry:
    """Return the registry of the project's definitions and those of installed packages."""
    return Registry((OPSETS,), installed=True)


def registry_or_default(registry: Registry | None) -> Registry:
    """Return the argument `registry` of a public function; `None` stands for `default_registry()`."""
    if registry is None:
        return default_registry()
    require_type("registry", registry, Registry, "a Registry or None")
    return registry


def load_registry(sources: Path | str | Iterable[Path | str] = ()) -> Registry:
    """Return a registry of the project's definitions, those of installed packages, and those in `sources`.

    Args:
        sources: one or several folders with definitions, or operator-set documents. The first folder with a
            `releases.yaml` is a complete tree and replaces the project's definitions and those of installed
            packages.

    Raises:
        DefinitionError: a folder has no definitions, a document is invalid, or an operator is redefined.
        UsageError: a source does not exist.
    """
    paths = path_arguments("sources", sources)
    if not paths:
        return default_registry()
    folders = [each for each in paths if not each.is_file()]
    base = next((each for each in folders if (each / RELEASES).exists()), None)
    added = (each for each in folders if each is not base)
    documents = tuple(each for each in paths if each.is_file())
    return Registry((base or OPSETS, *added), documents, installed=base is None)
