"""The registry equals the installed ONNX in every field of every version and at every opset."""

import re
import runpy
import shutil
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import pytest
from onnx import defs, helper
from support.released import NEWEST, is_released

from opshift.model.operator_ids import OperatorId, canonical_domain
from opshift.registry.errors import ResolveError
from opshift.registry.loader import load_operator
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.registry import default_registry
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import load_yaml

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).resolve().parents[2]
OPSETS = ROOT / "opsets"
TOOL = runpy.run_path(str(ROOT / "tools" / "import_onnx.py"))
TOOL_IMPORT: Callable[[Path, bool, Iterable[Any]], int] = TOOL["import_all"]
facts: Callable[[Any], dict[str, Any]] = TOOL["facts"]

REGISTRY = default_registry()
ONCE_EXPERIMENTAL = {
    OperatorId("ai.onnx", "MeanVarianceNormalization", 1),
    OperatorId("ai.onnx", "ThresholdedRelu", 1),
}
"""Removed from ONNX's history when the operators became stable in a later version."""


def _id(schema: Any) -> OperatorId:
    return OperatorId(canonical_domain(schema.domain), schema.name, schema.since_version)


PUBLISHED = {name: release for name, release in REGISTRY.releases.onnx.items() if release.released}
OUR_VERSIONS = {
    version.id: version for version in REGISTRY.get_all_schemas_with_history() if is_released(version)
}
"""Versions without those of a release in preparation."""


def _is_removed(version: OperatorVersion) -> bool:
    return version.removal is not None and version.removal.removed_in <= NEWEST[version.domain]


ONNX_SCHEMAS = {_id(schema): schema for schema in defs.get_all_schemas_with_history()}


# Versions


def test_the_installed_onnx_is_the_source_of_the_definitions() -> None:
    assert onnx.__version__ == "1.23.2"
    assert len(ONNX_SCHEMAS) == len(defs.get_all_schemas_with_history()) == 659
    assert len({each[:2] for each in ONNX_SCHEMAS}) == 227


def test_no_version_is_missing() -> None:
    assert ONNX_SCHEMAS.keys() - OUR_VERSIONS.keys() == set()


def test_extra_versions_are_experiments_that_onnx_removed() -> None:
    extra = {each: OUR_VERSIONS[each] for each in OUR_VERSIONS.keys() - ONNX_SCHEMAS.keys()}
    assert {each for each, version in extra.items() if not _is_removed(version)} == ONCE_EXPERIMENTAL
    assert {version.status for version in extra.values()} == {"EXPERIMENTAL"}
    assert {
        each for each, version in OUR_VERSIONS.items() if _is_removed(version)
    } == extra.keys() - ONCE_EXPERIMENTAL


def test_the_history_lists_every_version_once() -> None:
    ids = [version.id for version in REGISTRY.get_all_schemas_with_history()]
    assert len(ids) == len(set(ids))


def test_has_the_domains_and_names_of_onnx() -> None:
    domains = [each for each in REGISTRY.domains() if REGISTRY.releases.newest_opset(each) is not None]
    assert set(domains) == {each.domain for each in ONNX_SCHEMAS}
    removed = {version.name for version in OUR_VERSIONS.values() if _is_removed(version)}
    for domain in domains:
        theirs = {each.op_type for each in ONNX_SCHEMAS if each.domain == domain}
        ours = {each.op_type for each in OUR_VERSIONS if each.domain == domain}
        assert ours - removed == theirs
        assert list(REGISTRY.names(domain)) == sorted(REGISTRY.names(domain))


# Fields of a version


class Facts(NamedTuple):
    """Facts about one version in a form shared by the registry and ONNX."""

    domain: str
    name: str
    since_version: int
    status: str
    deprecated: bool
    determinism: str
    inputs: list[tuple[object, ...]]
    outputs: list[tuple[object, ...]]
    arities: tuple[int, ...]
    attributes: dict[str, tuple[str, bool, str]]
    type_constraints: dict[str, list[str]]


_MAP_TO_TENSOR = re.compile(r",tensor\((\w+)\)\)")
"""ONNX spells `map(int64, float)` as `map(int64,tensor(float))` where it repeats it for a parameter."""


def _our_parameter(version: OperatorVersion, parameter: Parameter) -> tuple[object, ...]:
    return (
        parameter.name,
        parameter.type,
        set(version.types_of(parameter)),
        parameter.option,
        parameter.homogeneous,
        parameter.min_arity,
        parameter.differentiation,
    )


def _onnx_parameter(parameter: Any) -> tuple[object, ...]:
    category = re.sub(r"(?<=.)(?=[A-Z])", "_", parameter.differentiation_category.name).lower()
    return (
        parameter.name,
        parameter.type_str,
        {_MAP_TO_TENSOR.sub(r", \1)", each) for each in parameter.types},
        parameter.option.name.lower(),
        parameter.is_homogeneous,
        parameter.min_arity,
        category,
    )


def _our_attribute(attribute: Attribute) -> tuple[str, bool, str]:
    default = list(attribute.default) if isinstance(attribute.default, tuple) else attribute.default
    return attribute.type, attribute.required, repr(default)


def _onnx_attribute(attribute: Any) -> tuple[str, bool, str]:
    has_default = attribute.default_value.type != onnx.AttributeProto.UNDEFINED
    default = _text(helper.get_attribute_value(attribute.default_value)) if has_default else None
    return attribute.type.name, attribute.required, repr(default)


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def _our_facts(version: OperatorVersion) -> Facts:
    return Facts(
        version.domain,
        version.name,
        version.since_version,
        version.status,
        # An experimental operator is deprecated in place when it is promoted.
        version.deprecated and version.status == "STABLE",
        version.determinism,
        [_our_parameter(version, parameter) for parameter in version.inputs],
        [_our_parameter(version, parameter) for parameter in version.outputs],
        (version.min_input, version.max_input, version.min_output, version.max_output),
        {name: _our_attribute(attribute) for name, attribute in version.attributes.items()},
        {name: list(types) for name, types in version.type_constraints.items()},
    )


def _onnx_facts(schema: Any) -> Facts:
    return Facts(
        canonical_domain(schema.domain),
        schema.name,
        schema.since_version,
        {"COMMON": "STABLE"}.get(schema.support_level.name, schema.support_level.name),
        schema.deprecated,
        {"NonDeterministic": "non_deterministic"}.get(
            schema.node_determinism.name, schema.node_determinism.name.lower()
        ),
        [_onnx_parameter(parameter) for parameter in schema.inputs],
        [_onnx_parameter(parameter) for parameter in schema.outputs],
        (schema.min_input, schema.max_input, schema.min_output, schema.max_output),
        {name: _onnx_attribute(attribute) for name, attribute in schema.attributes.items()},
        {each.type_param_str: sorted(each.allowed_type_strs) for each in schema.type_constraints},
    )


@pytest.mark.parametrize("each", sorted(ONNX_SCHEMAS), ids=str)
def test_a_version_equals_the_schema_of_onnx(each: OperatorId) -> None:
    assert _our_facts(OUR_VERSIONS[each])._asdict() == _onnx_facts(ONNX_SCHEMAS[each])._asdict()


def test_every_field_varies_between_versions() -> None:
    known = [_onnx_facts(schema) for schema in ONNX_SCHEMAS.values()]
    parameters = [parameter for each in known for parameter in (*each.inputs, *each.outputs)]
    assert {each.status for each in known} == {"STABLE", "EXPERIMENTAL"}
    assert {each.deprecated for each in known} == {True, False}
    assert {each.determinism for each in known} == {"deterministic", "non_deterministic", "unknown"}
    assert {option for _, _, _, option, _, _, _ in parameters} == {"single", "optional", "variadic"}
    assert {homogeneous for _, _, _, _, homogeneous, _, _ in parameters} == {True, False}
    assert {arity for _, _, _, _, _, arity, _ in parameters} >= {0, 1}
    assert {category for *_, category in parameters} == {"unknown", "differentiable", "non_differentiable"}
    assert {required for each in known for _, required, _ in each.attributes.values()} == {True, False}


# The version in effect


def _onnx_version(name: str, opset: int, domain: str) -> int | None:
    theirs = domain if domain != "ai.onnx" else ""
    return defs.get_schema(name, opset, theirs).since_version if defs.has(name, opset, theirs) else None


def _our_version(name: str, opset: int, domain: str) -> int | None:
    try:
        found: int = REGISTRY.get_schema(name, opset, domain).since_version
    except ResolveError:
        return None
    return found


OPERATORS = sorted({each[:2] for each in OUR_VERSIONS})


@pytest.mark.parametrize(("domain", "name"), OPERATORS, ids=[".".join(each) for each in OPERATORS])
def test_an_operator_has_the_version_of_onnx_at_every_opset(domain: str, name: str) -> None:
    opsets = range(1, NEWEST[domain] + 1)
    extra = {
        each.since_version for each in OUR_VERSIONS.keys() - ONNX_SCHEMAS.keys() if each[:2] == (domain, name)
    }
    ours = {opset: _our_version(name, opset, domain) for opset in opsets}
    theirs = {opset: _onnx_version(name, opset, domain) for opset in opsets}
    assert {opset: None if since in extra else since for opset, since in ours.items()} == theirs
    assert {opset: REGISTRY.has(name, opset, domain) for opset in opsets} == {
        opset: since is not None for opset, since in ours.items()
    }


@pytest.mark.parametrize(("domain", "newest"), NEWEST.items(), ids=NEWEST)
def test_a_domain_has_the_newest_opset_of_onnx(domain: str, newest: int) -> None:
    theirs = "" if domain == "ai.onnx" else domain
    published = max(release.opsets.get(domain, 0) for release in PUBLISHED.values())
    assert published == newest == defs.C.schema_version_map()[theirs][1]
    assert max(each.since_version for each in ONNX_SCHEMAS if each.domain == domain) <= newest


# Releases

RELEASES = {row[0]: row for row in helper.VERSION_TABLE}
COLUMNS = ("ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training")


@pytest.mark.parametrize("row", RELEASES.values(), ids=RELEASES)
def test_a_release_has_the_versions_that_onnx_lists(row: tuple[Any, ...]) -> None:
    release = REGISTRY.releases.named(f"onnx-{row[0]}")
    opsets = {domain: opset for domain, opset in release.opsets.items() if domain in COLUMNS}
    assert (release.ir_version, opsets) == (row[1], dict(zip(COLUMNS, row[2:], strict=False)))


def test_lists_releases_of_onnx_only() -> None:
    minors = {".".join(version.split(".")[:2]) for version in RELEASES}
    assert PUBLISHED.keys() - RELEASES.keys() - minors == set()


def test_lists_releases_in_ascending_order() -> None:
    listed = [tuple(int(part) for part in version.split(".")) for version in REGISTRY.releases.onnx]
    assert listed == sorted(set(listed))
    assert list(PUBLISHED)[-1] == ".".join(onnx.__version__.split(".")[:2])


def test_the_last_release_has_the_newest_opset_of_every_domain() -> None:
    assert list(PUBLISHED.values())[-1].opsets == NEWEST


# The import from an installed ONNX


def import_all(folder: Path, write: bool) -> int:
    """Import the definitions of the installed ONNX."""
    return TOOL_IMPORT(folder, write, defs.get_all_schemas_with_history())


def _printed_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


NO_DIFFERENCE = "0 published versions differ"


def test_the_import_finds_no_difference_and_adds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert import_all(OPSETS, False) == 0
    assert _printed_lines(capsys) == [NO_DIFFERENCE]


def _copy_definitions(folder: Path, edit: Callable[[str], str]) -> Path:
    """Copy the definitions to a folder, applying `edit` to each file."""
    shutil.copy(OPSETS / "types.yaml", folder)
    for path in OPSETS.glob("*/*.yaml"):
        target = folder / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(edit(_without_texts(path)), "utf-8")
    return folder


def _without_texts(path: Path) -> str:
    """Return a definition without texts, which appended versions lack, too."""
    return re.sub(r"  descriptions:\n(    .*\n)*", "", path.read_text("utf-8"))


def _without_last_version(text: str) -> str:
    start = text.rindex("\n- since_version:") + 1
    is_only = text.count("\n- since_version:") == 1
    return text if is_only or _last_id(text) not in ONNX_SCHEMAS else text[:start]


def _last_id(text: str) -> OperatorId:
    found = re.findall(r"^(?:domain: (.*)|name: (.*)|- since_version: (\d+))$", text, re.MULTILINE)
    domain, name, *versions = ("".join(groups) for groups in found)
    return OperatorId(domain, name, int(versions[-1]))


def _versions_to_append() -> dict[OperatorId, tuple[Path, str]]:
    """Return the versions removed by `_without_last_version`, with path and remaining text of the file."""
    texts = ((path, _without_texts(path)) for path in sorted(OPSETS.glob("*/*.yaml")))
    edited = ((path, text, _without_last_version(text)) for path, text in texts)
    return {_last_id(old): (path.relative_to(OPSETS), new) for path, old, new in edited if new != old}


TO_APPEND = _versions_to_append()


class Appended(NamedTuple):
    """A folder to which the import has appended the last version of each operator with several versions."""

    folder: Path
    printed: list[str]
    types: TypeSets


@pytest.fixture(scope="module")
def appended(tmp_path_factory: pytest.TempPathFactory) -> Appended:
    folder = _copy_definitions(tmp_path_factory.mktemp("opsets"), _without_last_version)
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setitem(TOOL_IMPORT.__globals__, "print", lambda text: printed.append(str(text)))
        import_all(folder, True)
    return Appended(folder, printed, TypeSets.load(folder / "types.yaml"))


def test_finds_versions_to_append() -> None:
    assert len(TO_APPEND) > 150
    assert OperatorId("ai.onnx", "Cast", 28) in TO_APPEND
    assert OperatorId("ai.onnx.ml", "LabelEncoder", 4) in TO_APPEND


@pytest.mark.some_cases(24)
@pytest.mark.parametrize("each", sorted(TO_APPEND), ids=str)
def test_appends_a_missing_version_with_the_facts_of_onnx(appended: Appended, each: OperatorId) -> None:
    path, before = TO_APPEND[each]
    after = (appended.folder / path).read_text("utf-8")
    assert after.startswith(before)
    assert after.endswith("\n")
    (version,) = load_yaml(appended.folder / path)["versions"][before.count("\n- since_version:") :]
    constraints = version.get("type_constraints", {})
    expanded = {name: list(appended.types.expand(entries)) for name, entries in constraints.items()}
    expected = facts(ONNX_SCHEMAS[each])
    assert version | ({"type_constraints": expanded} if expanded else {}) == expected
    assert list(version) == list(expected)


@pytest.mark.some_cases(24)
@pytest.mark.parametrize("each", sorted(TO_APPEND), ids=str)
def test_loads_an_appended_version(appended: Appended, each: OperatorId) -> None:
    operator = load_operator(
        appended.folder / each.domain / f"{each.op_type}.yaml", appended.types, draft=True
    )
    assert _our_facts(operator.versions[-1])._asdict() == _onnx_facts(ONNX_SCHEMAS[each])._asdict()
    assert [version.id for version in operator.versions] == [
        key for key in OUR_VERSIONS if key[:2] == each[:2]
    ]


def test_prints_the_steps_to_decide_by_hand(appended: Appended) -> None:
    decided = [line for line in appended.printed if line.startswith("decide ")]
    assert sorted(decided) == sorted(f"decide {each}: the step to it, and its texts" for each in TO_APPEND)


def test_a_second_import_appends_nothing(appended: Appended, capsys: pytest.CaptureFixture[str]) -> None:
    import_all(appended.folder, False)
    others = [line for line in _printed_lines(capsys) if not line.startswith("differs: ")]
    assert len(others) == 1


def test_a_dry_run_prints_the_versions_to_append(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _copy_definitions(tmp_path, _without_last_version)
    before = {path: path.read_bytes() for path in folder.rglob("*.yaml")}
    import_all(folder, False)
    lines = _printed_lines(capsys)
    for each, (path, _) in TO_APPEND.items():
        assert f"decide {each}: the step to it, and its texts" in lines
        assert f"would add 1 to {folder / path}" in lines
    assert {path: path.read_bytes() for path in folder.rglob("*.yaml")} == before


@pytest.mark.full
def test_imports_every_version_into_an_empty_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(OPSETS / "types.yaml", tmp_path)
    assert import_all(tmp_path, True) == 0
    steps = {str(each) for each in ONNX_SCHEMAS if each.since_version != _first_version(each)}
    assert {
        line.split()[1].rstrip(":") for line in _printed_lines(capsys) if line.startswith("decide ")
    } == steps
    types = TypeSets.load(tmp_path / "types.yaml")
    operators = [load_operator(path, types, draft=True) for path in tmp_path.glob("*/*.yaml")]
    imported = {version.id: version for operator in operators for version in operator.versions}
    assert {each: _our_facts(version) for each, version in imported.items()} == {
        each: _onnx_facts(schema) for each, schema in ONNX_SCHEMAS.items()
    }
    assert import_all(tmp_path, True) == 0
    assert _printed_lines(capsys) == [NO_DIFFERENCE]


def _first_version(each: OperatorId) -> int:
    return next(opset for opset in count(1) if (*each[:2], opset) in ONNX_SCHEMAS)


CHANGED = {
    "a changed default": ("axis: {type: INT, default: -1}", "axis: {type: INT, default: 1}"),
    "a required attribute": (
        "axis: {type: INT, default: -1}",
        "axis: {type: INT, required: true}",
    ),
    "a missing attribute": ("    axis: {type: INT, default: -1}", "    {}"),
    "a renamed input": (
        "{name: input, type: T, differentiation",
        "{name: X, type: T, differentiation",
    ),
    "a changed option of an output": (
        "{name: output, type: T, ",
        "{name: output, type: T, option: optional, ",
    ),
    "missing differentiability": ("type: T, differentiation: differentiable", "type: T"),
    "a missing type": ("T: [all_float_types_ir4]", "T: [all_float_types]"),
    "a changed determinism": ("- since_version: 13", "- since_version: 13\n  determinism: unknown"),
    "a changed status": (
        "- since_version: 13\n  status: STABLE",
        "- since_version: 13\n  status: EXPERIMENTAL",
    ),
    "a deprecation": ("- since_version: 13", "- since_version: 13\n  deprecation: {}"),
}


@pytest.mark.some_cases(2)
@pytest.mark.parametrize(("original", "changed"), CHANGED.values(), ids=CHANGED)
def test_reports_a_changed_published_version_without_writing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], original: str, changed: str
) -> None:
    shutil.copy(OPSETS / "types.yaml", tmp_path)
    path = tmp_path / "ai.onnx" / "Softmax.yaml"
    path.parent.mkdir()
    text = _without_texts(OPSETS / "ai.onnx" / "Softmax.yaml")
    version = text[text.index("- since_version: 13") :].partition("\n- since_version")[0]
    assert original in version
    path.write_text(text.replace(version, version.replace(original, changed)), "utf-8")
    before = path.read_bytes()
    assert import_all(tmp_path, False) == 1
    lines = _printed_lines(capsys)
    assert [line for line in lines if line.startswith("differs: ")] == ["differs: ai.onnx.Softmax:13"]
    assert lines[-1] == "1 published versions differ"
    assert path.read_bytes() == before
