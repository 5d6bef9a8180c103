"""Options of a conversion: its target, and the inexact conversions that the caller allows."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from numbers import Integral
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypedDict,
    Unpack,
    get_args,
    runtime_checkable,
)

from opshift.converter.arguments import Dims, ShapesLike, members_of, read_shapes
from opshift.model.errors import UsageError, is_collection
from opshift.model.message_text import hint_at_similar
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.shared_data import FrozenRecord
from opshift.registry.definition_files import has_kernel_data
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import Registry, registry_or_default
from opshift.registry.releases import nearest_older, split_release
from opshift.registry.steps import Allow

if TYPE_CHECKING:
    from opshift.adapters.core.equivalents import Unwanted
    from opshift.converter.element_types.requested_types import TypesLike
    from opshift.inference.shared_facts import SharedFacts
    from opshift.registry.runtimes.runtime import Runtime

KEEP: Literal["keep"] = "keep"

IrVersionLike = int | str | None


@runtime_checkable
class SharedTarget(Protocol):
    """Opsets and IR version that several models can have, such as the result of `common_opset`."""

    @property
    def opsets(self) -> Mapping[str, int]:
        """Opset by domain."""
        ...

    @property
    def ir_version(self) -> int:
        """IR version to convert to."""
        ...


PlainTarget = int | str | Mapping[str, int] | Iterable[str]

TargetLike = PlainTarget | SharedTarget

AllowLike = Allow | Iterable[Allow]

WithoutLike = str | Iterable[str]

RecognizeLike = bool | str | Iterable[str]

EVERY_OPERATOR = "all"
"""Member of `Options.recognize` that selects all operators of the default domain with patterns."""

ALLOW_VALUES: tuple[Allow, ...] = get_args(Allow)

EXAMPLE_REMEDY = "give an opset such as 17, or a release such as onnx-1.12"

WITHOUT_REMEDY = "pass a domain such as com.microsoft, or an operator such as ai.onnx.Gelu"

ONNX = "onnx"
"""Product whose releases are exact targets, because they are versions of the format and not of a program."""

INF = sys.maxsize

MAX_DIGITS = 20
"""Texts with at least this many characters are not parsed as numbers, because `int` is slow for them."""


class Target(FrozenRecord):
    """Opsets and IR version to convert to.

    The opsets are keyed by canonical domain. `ir_version` is the newest IR version that the target release
    supports, if there is one; the caller sets `requested_ir_version`. `runtimes` are the target releases
    whose kernels are known, such as `onnxruntime-1.20`. `limits` maps each domain with an upper limit
    to the product that sets the limit; models keep older opsets. `notes` has sentences about releases.
    `documented` has the domains that target programs except onnxruntime document; `None` without these.
    """

    opsets: Mapping[str, int]
    ir_version: int | None = None
    requested_ir_version: int | Literal["keep"] | None = None
    runtimes: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    documented: frozenset[str] | None = None

    def for_imports(self, imports: Mapping[str, int]) -> Target:
        """Return the target for a model with these opset imports: older opsets within the limits stay."""
        kept = {each: imports[each] for each in self.limits if imports.get(each, INF) < self.opsets[each]}
        notes = (
            f"{each} {opset} stays, because {self.limits[each]} supports opsets up to {self.opsets[each]}"
            for each, opset in kept.items()
        )
        return replace(self, opsets={**self.opsets, **kept}, limits={}, notes=(*self.notes, *notes))


class TargetPart(NamedTuple):
    """Part of a target, such as `17` or `onnxruntime-1.20`.

    The opsets are exact, or upper limits if there is a `product`. `note` is set if a release is not listed.
    """

    opsets: Mapping[str, int]
    ir_version: int | None = None
    product: str = ""
    runtime: str = ""
    note: str = ""


class StoredFlags(TypedDict, total=False):
    """Fields of `Options` that are on or off."""

    check: bool
    reversible: bool
    bump: bool
    infer_shapes: bool
    keep_initializer_inputs: bool
    fold: bool
    keep_interface: bool


class SharedArguments(StoredFlags, total=False):
    """Keyword arguments of `convert_version` that are also arguments of `convert_many`."""

    exact: bool
    allow: AllowLike | None
    ir_version: IrVersionLike
    shapes: ShapesLike | None
    without: WithoutLike
    types: TypesLike | None
    recognize: RecognizeLike | None


class ConvertArguments(SharedArguments, total=False):
    """Keyword arguments of `convert_version`, and of functions that convert or plan as it does."""

    inplace: bool
    registry: Registry | None


def require_known(arguments: Collection[str], known: Collection[str]) -> None:
    """Raise TypeError for an unknown name, as Python does for an unknown keyword argument."""
    if unknown := set(arguments).difference(known):
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")


class Options(FrozenRecord):
    """Validated options of a conversion, see `convert_version`.

    Plans omit the nodes at the places in `skipped`; if `only` is a set, they contain only the nodes at its
    places. `without` may also contain element types or equivalents of operator versions, see `Unwanted`.
    `types` are pairs of an old and a new element type. `shared_facts` has facts of earlier plans of the
    same model.
    """

    target: Target
    registry: Registry
    allow: frozenset[Allow] = frozenset()
    inplace: bool = False
    check: bool = False
    reversible: bool = False
    bump: bool = False
    shapes: tuple[tuple[str, Dims], ...] = ()
    infer_shapes: bool = False
    keep_initializer_inputs: bool = False
    skipped: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    without: frozenset[Unwanted] = frozenset()
    fold: bool = False
    types: tuple[tuple[str, str], ...] = ()
    keep_interface: bool = False
    recognize: frozenset[str] = frozenset()
    shared_facts: SharedFacts | None = None

    @classmethod
    def of(
        cls,
        target: TargetLike | None,
        *,
        allow: str | Iterable[str] | None = (),
        ir_version: IrVersionLike = None,
        shapes: ShapesLike | None = (),
        without: WithoutLike = (),
        types: TypesLike | None = (),
        recognize: RecognizeLike | None = False,
        registry: Registry | None = None,
        inplace: bool = False,
        exact: bool = False,
        **flags: Unpack[StoredFlags],
    ) -> Options:
        """Return options from the arguments of `convert_version`; raise its errors for invalid arguments."""
        require_known(flags, StoredFlags.__annotations__)
        registry = registry_or_default(registry)
        removed = read_without(without, registry)
        if removed and flags.get("reversible"):
            reason = "a reversible conversion would restore the operators in `without`"
            raise UsageError(reason, remedy="pass only one of reversible and without")
        changes: tuple[tuple[str, str], ...] = ()
        if types:
            # imported here: few conversions change element types
            from opshift.converter.element_types.requested_types import read_types

            changes = tuple(sorted(read_types(types)))
        if flags.get("keep_interface") and not changes:
            raise UsageError("keep_interface has no effect without types", remedy="pass types, or omit it")
        recognized = read_recognize(recognize, registry) if recognize else frozenset()
        if recognized and flags.get("reversible"):
            reason = "recognized nodes differ from the nodes that a reversible conversion records"
            raise UsageError(reason, remedy="pass only one of reversible and recognize")
        is_optional = target is None and bool(removed or changes or recognized or flags.get("fold"))
        wanted = (
            Target({}) if is_optional and ir_version is None else read_target(target, registry, ir_version)
        )
        if exact:
            wanted = replace(wanted, limits={})
        # the order of the arguments has no meaning
        declared = tuple(sorted(read_shapes(shapes).items(), key=lambda each: str(each[0]))) if shapes else ()
        return cls(
            wanted,
            registry,
            read_allow(allow),
            inplace,
            shapes=declared,
            without=removed,
            types=changes,
            recognize=recognized,
            **flags,
        )


def read_allow(allow: str | Iterable[str] | None) -> frozenset[Allow]:
    """Return the values of an `allow` argument, or raise UsageError for an unknown one."""
    if not allow and not isinstance(allow, str):
        return frozenset()
    wanted = set(map(str, members_of(allow)))
    unknown = sorted(wanted.difference(ALLOW_VALUES))
    if unknown:
        reason = f"unknown allow value {unknown[0]!r}{hint_at_similar(unknown[0], ALLOW_VALUES)}"
        raise UsageError(reason, remedy=f"the allowed values are {', '.join(ALLOW_VALUES)}")
    return frozenset(each for each in ALLOW_VALUES if each in wanted)


def read_without(without: WithoutLike, registry: Registry) -> frozenset[Unwanted]:
    """Return the domains, and operators such as `ai.onnx.Gelu`, that a result may not contain.

    Raises:
        UsageError: a name is not a string, is the default domain, is unknown but similar to a known name, or
            is unknown in a domain that is not open, see `Registry.is_open`. All other unknown names are
            accepted: they may be domains of local functions.
    """
    return frozenset(_operator_or_domain(each, registry) for each in members_of(without))


def read_recognize(recognize: RecognizeLike, registry: Registry) -> frozenset[str]:
    """Return the operators to recognize, such as `ai.onnx.Gelu`, or `EVERY_OPERATOR` for `True`.

    Raises:
        UsageError: an operator is unknown, or has neither a recognized form nor a function body.
    """
    if isinstance(recognize, bool):
        return frozenset([EVERY_OPERATOR] if recognize else [])
    names = {str(each).strip() for each in members_of(recognize)}
    if EVERY_OPERATOR in names:
        return frozenset([EVERY_OPERATOR])
    return frozenset(_recognizable_operator(each, registry) for each in names)


def _recognizable_operator(name: str, registry: Registry) -> str:
    domain, _, op_type = name.rpartition(".")
    domain = canonical_domain(domain)
    operator = registry.operator(op_type, domain) if registry.has_domain(domain) else None
    if operator is None:
        similar = hint_at_similar(op_type, registry.names(domain) if registry.has_domain(domain) else ())
        raise UsageError(f"{name!r} is not an operator{similar}", remedy="pass operators such as Gelu")
    if not operator.is_recognizable:
        reason = f"{name} has no function body, so it cannot be recognized"
        raise UsageError(reason, remedy="pass operators with a function body, such as Gelu")
    return f"{domain}.{op_type}"


def _operator_or_domain(name: object, registry: Registry) -> str:
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of an operator or domain", remedy=WITHOUT_REMEDY)
    name = name.strip()
    if name in ("", DEFAULT_DOMAIN):
        reason = f"{name!r} is not an operator or domain that other operators can express"
        raise UsageError(reason, remedy=WITHOUT_REMEDY)
    if registry.has_domain(name) or name in registry.releases.internal_domains:
        return name
    domain, _, op_type = name.rpartition(".")
    is_default = domain in ("", DEFAULT_DOMAIN)
    if is_default and (registry.operator(op_type) or op_type in registry.releases.nonstandard):
        return f"{DEFAULT_DOMAIN}.{op_type}"
    is_known = bool(domain) and registry.has_domain(domain)
    if is_known and registry.operator(op_type, domain):
        return name
    known = [f"{domain}.{each}" for each in registry.names(domain)] if is_known else []
    similar = hint_at_similar(name, known or (*registry.domains(), *registry.names()))
    if similar or (known and not registry.is_open(domain)):
        raise UsageError(f"{name!r} is not an operator or a domain{similar}", remedy=WITHOUT_REMEDY)
    return name


def read_target(target: TargetLike | None, registry: Registry, ir_version: IrVersionLike = None) -> Target:
    """Parse a conversion target, see `convert_version`; it may be `None` if an IR version is requested.

    If the target names several products, the lowest of their newest opsets is the limit of each domain.

    Raises:
        UsageError: the target is missing or malformed, or contains different opsets for one domain.
        UnknownOpset: an opset is below 1, or newer than all opsets in the registry.
        UnknownDomain: the registry has no definitions for a domain.
    """
    exact: dict[str, int] = {}
    most: dict[str, tuple[int, str]] = {}
    target, ir_version = split_target(target, ir_version)
    requested = _read_ir_version(ir_version)
    parts = list(_target_parts(() if target is None else target, registry))
    for part in parts:
        for domain, opset in zip(map(canonical_domain, part.opsets), part.opsets.values(), strict=True):
            if part.product:
                most[domain] = min(most.get(domain, (INF, "")), (opset, part.product))
            elif exact.setdefault(domain, opset) != opset:
                reason = f"two opsets are requested for {domain}: {exact[domain]} and {opset}"
                raise UsageError(reason, remedy="pass only one")
    opsets = _validated_opsets({**{domain: opset for domain, (opset, _) in most.items()}, **exact}, registry)
    for domain in exact.keys() & most.keys():
        limit, product = most.pop(domain)
        if limit < opsets[domain]:
            reason = f"{domain} has two targets, {opsets[domain]} and at most {limit} for {product}"
            raise UsageError(reason, remedy="pass only one")
    if not opsets and (requested is None or target is not None):
        raise UsageError("no target is given", remedy=EXAMPLE_REMEDY)
    return Target(
        opsets,
        # If several releases are targets, the oldest of their IR versions is the limit.
        min((each.ir_version for each in parts if each.ir_version), default=None),
        requested,
        tuple(each.runtime for each in parts if each.runtime),
        {domain: product for domain, (_, product) in most.items()},
        tuple(each.note for each in parts if each.note),
        _documented_domains(parts, registry),
    )


def _documented_domains(parts: Sequence[TargetPart], registry: Registry) -> frozenset[str] | None:
    """Return the domains that target programs other than onnxruntime document; `None` without such programs.

    onnxruntime does not count: it loads imports of further domains, and other libraries may read its models.
    """
    releases = registry.releases
    documented = [
        frozenset(map(canonical_domain, each.opsets))
        for each in parts
        if releases.product_of(each.product) in releases.consumers
    ]
    return frozenset.union(*documented) if documented else None


def split_target(
    target: TargetLike | None, ir_version: IrVersionLike
) -> tuple[PlainTarget | None, IrVersionLike]:
    """Split a `SharedTarget` into opsets and IR version (or the given one); other targets stay as given."""
    # `isinstance` with a protocol takes half as long as reading all options: test frequent types first.
    if isinstance(target, int | str | Mapping) or not isinstance(target, SharedTarget):
        return target, ir_version
    return target.opsets, target.ir_version if ir_version is None else ir_version


def _read_ir_version(requested: IrVersionLike) -> int | Literal["keep"] | None:
    """Parse a requested IR version, or raise UsageError if models cannot be converted to it."""
    if requested is None or requested == KEEP:
        return requested and KEEP
    known = ir_versions()
    text = str(requested).strip()
    if not _is_number(text) or int(text) not in known.versions:
        remedy = f"pass a version from {known.oldest} to {known.newest}, or keep"
        raise UsageError(f"{requested!r} is not an IR version to convert to", remedy=remedy)
    return int(text)


def _target_parts(target: PlainTarget, registry: Registry) -> Iterator[TargetPart]:
    # Integral, because numpy integers are not instances of `int`.
    if isinstance(target, Integral) and not isinstance(target, bool):
        yield TargetPart({DEFAULT_DOMAIN: int(target)})
    elif isinstance(target, str):
        yield _read_text(target.strip(), registry)
    elif isinstance(target, Mapping):
        yield TargetPart(target)
    elif is_collection(target):
        for text in dict.fromkeys(str(each).strip() for each in target):
            yield _read_text(text, registry)
    else:
        raise UsageError(f"{target!r} is not a target", remedy=EXAMPLE_REMEDY)


def _read_text(text: str, registry: Registry) -> TargetPart:
    domain, equals, version = text.rpartition("=")
    if _is_number(version) and (equals or not domain):
        return TargetPart({canonical_domain(domain): int(version)})
    if equals:
        raise UsageError(f"{text!r} is not a target", remedy="write a domain's opset as ai.onnx.ml=3")
    if text.endswith(".yaml"):
        reason = f"{text!r} is not a target: targets are opsets and names of releases or runtimes"
        remedy = f"use `opshift fit IN OUT --runtime {text}`, or give the newest opset in this file"
        raise UsageError(reason, remedy=remedy)
    found = _release_named(text, registry)
    if found is not None:
        return found
    product, _, version = text.rpartition("-")
    has_one_meaning = product != ONNX and not registry.releases.other_name(text)
    nearest = _nearest_release(product, version, registry) if has_one_meaning else None
    found = None if nearest is None else _release_named(nearest, registry)
    if found is None:
        raise _provider_error(text, registry) or registry.releases.unknown_release(text)
    return found._replace(note=f"{text} is not listed: the target is the nearest release, {nearest}")


def _provider_error(name: str, registry: Registry) -> UsageError | None:
    """Return the error for an execution provider of onnxruntime, such as coreml; `None` for other names."""
    # imported here: few targets are names of runtimes
    from opshift.registry.runtimes.files import runtime_files

    products = {each.rpartition("-")[0] for each in runtime_files()}
    names = registry.releases.runtime_names
    written = (name.lower(), split_release(name)[0].lower())
    runtime = next((found for each in written if (found := names.get(each, each)) in products), None)
    if runtime is None or registry.releases.versions_of(written[-1]):
        return None
    reason = f"{name!r} is an execution provider of onnxruntime, and execution providers have no opsets"
    return UsageError(reason, remedy=f"use `opshift fit IN OUT --runtime {runtime}`")


def _release_named(name: str, registry: Registry) -> TargetPart | None:
    """Return the opsets and IR version of a release or runtime; `None` if the name is unknown."""
    product = name.rpartition("-")[0]
    limited = "" if product == ONNX else name
    release = registry.releases.find(name)
    if release is not None:
        # Only the name of the runtime is stored: most conversions need no data about its kernels.
        return TargetPart(release.opsets, release.ir_version, limited, name if has_kernel_data(name) else "")
    runtime = _runtime_named(name)
    if runtime is None:
        return None
    opsets = {domain: each for domain, each in runtime.opsets.items() if registry.has_domain(domain)}
    return TargetPart(opsets, runtime.ir_version, limited, runtime.name)


def _nearest_release(product: str, version: str, registry: Registry) -> str | None:
    """Return the listed release of a product that `nearest_older` finds for a version, or `None`."""
    # imported here: few targets are names of runtimes
    from opshift.registry.runtimes.files import runtime_files

    names = (each.rpartition("-") for each in runtime_files())
    known = [
        *registry.releases.versions_of(product),
        *(last for first, _, last in names if first == product),
    ]
    nearest = nearest_older(version, known)
    return f"{product}-{nearest}" if nearest else None


def _runtime_named(name: str) -> Runtime | None:
    """Return a runtime with data about its kernels, such as `openvino-2026.4.1`, or `None`."""
    # imported here: few targets are names of runtimes
    from opshift.registry.runtimes.files import find_runtime, get_runtime

    found = find_runtime(name)
    return get_runtime(found) if found else None


def _is_number(text: str) -> bool:
    return len(text) < MAX_DIGITS and text.removeprefix("-").isdecimal()


def _validated_opsets(opsets: Mapping[str, Any], registry: Registry) -> dict[str, int]:
    for domain, opset in opsets.items():
        if not isinstance(opset, Integral) or isinstance(opset, bool):
            raise UsageError(f"{opset!r} is not an opset version of {domain}", remedy=EXAMPLE_REMEDY)
        registry.require_opset(int(opset), domain)
    return {domain: int(opset) for domain, opset in opsets.items()}
