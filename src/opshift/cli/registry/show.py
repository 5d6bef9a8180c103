"""`opshift show`: definition and history of an operator."""

from collections.abc import Iterable, Iterator, Sequence

from opshift.cli import options
from opshift.cli.options import Format, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.cli.registry import operator_text
from opshift.cli.registry.operator_history import HistoryEntry, history_of
from opshift.model.attributes import graphs_in, read_attribute
from opshift.model.errors import OpshiftError
from opshift.model.messages import AttributeProto, NodeProto, TensorProto
from opshift.model.operator_ids import model_domain
from opshift.model.tensors import require_tensor
from opshift.model.types import short_type
from opshift.registry.bodies import node_text
from opshift.registry.models import Attribute, Deprecation, Operator, OperatorVersion, Parameter
from opshift.registry.registry import Registry


def show(
    operator: options.OperatorArgument,
    opset: options.OpsetOption = None,
    domain: options.DomainOption = None,
    folders: options.DefinitionsOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Show an operator: signature, descriptions and all versions.

    The signature is that of the version at the opset (default: newest). The history lists for each version
    the change, and how nodes are converted from the previous version and back.
    """
    registry = registry_with(folders)
    named = operator_text.parse_operator(operator, domain, opset)
    version, definition = _find(named, registry)
    entries = list(history_of(definition))
    data = {**version.to_dict(), "history": [each.as_dict() for each in entries]}
    print_result(form, data, lambda page: _write(page, version, entries, registry))


def _find(named: operator_text.OperatorReference, registry: Registry) -> tuple[OperatorVersion, Operator]:
    """Return the version to show and its operator; without an opset, removed operators are found, too."""
    domains = operator_text.domains_with(named.op_type, registry)
    if named.domain is None and len(domains) == 1:
        named = named._replace(domain=domains[0])
    operator = registry.operator(named.op_type, named.domain or "")
    if operator is None or named.opset is not None:
        version = operator_text.find_version(named, registry)
        operator = registry.operator(version.name, version.domain)
        assert operator is not None
        return version, operator
    return operator.versions[-1], operator


def _write(page: Page, version: OperatorVersion, entries: list[HistoryEntry], registry: Registry) -> None:
    page.line(str(version.id), style="bold cyan")
    page.line(_availability(version, entries))
    if version.deprecation:
        page.prose(_replacement_text("deprecated", version.deprecation), style="bold magenta")
    if version.removal:
        event = f"removed in opset {version.removal.removed_in}"
        page.prose(_replacement_text(event, version.removal), style="bold magenta")
    page.blank()
    page.prose(" ".join(version.description.split()))
    _write_signature(page, version, registry)
    if version.has_function:
        page.heading("Function body")
        for line in _function_lines(version, registry):
            page.line(line)
    page.heading("History")
    columns = (Column("since", is_number=True, style="cyan"), "", "")
    page.table(columns, [row for entry in entries for row in _entry(entry)])


def _availability(version: OperatorVersion, entries: list[HistoryEntry]) -> str:
    """Return the opsets of a version, its status and its determinism."""
    since = version.since_version
    later = (each.version.since_version for each in entries if each.version.since_version > since)
    end = version.removal.removed_in if version.removal else min(later, default=None)
    span = f"opsets {since} to {end - 1}" if end else f"since opset {since}"
    kind = {"non_deterministic": ", not deterministic", "unknown": ", possibly not deterministic"}
    return f"{span}, {version.status.lower()}{kind.get(version.determinism, '')}"


def _replacement_text(event: str, details: Deprecation) -> str:
    """Format a deprecation or removal: `deprecated, replaced by Resize: ...`."""
    names = " and ".join(details.replacements)
    replacement = f", replaced by {names}" if names else ""
    return f"{event}{replacement}{f': {details.mapping}' if details.mapping else ''}"


def _write_signature(page: Page, version: OperatorVersion, registry: Registry) -> None:
    """Print the inputs, outputs, attributes and type constraints of a version; omit empty tables."""
    for title, parameters in (("Inputs", version.inputs), ("Outputs", version.outputs)):
        rows = [(each.name, each.type, _option(each), each.description) for each in parameters]
        _write_table(page, title, ("type", ""), rows)
    attributes = [_attribute(*each) for each in version.attributes.items()]
    _write_table(page, "Attributes", ("type", "default", "values"), attributes)
    sets = registry.types
    types = [
        (name, operator_text.summarize_types(types, sets), version.type_descriptions.get(name, ""))
        for name, types in version.type_constraints.items()
    ]
    _write_table(page, "Types", ("allowed types",), types)


def _write_table(page: Page, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the last cells of its rows are descriptions, and omitted if all of them are empty."""
    columns = [Column("name", style="cyan"), *map(Column, headings)]
    if any(row[-1] for row in rows):
        columns.append(Column("description"))
    if rows:
        page.heading(title)
        page.table(columns, [row[: len(columns)] for row in rows])


def _option(parameter: Parameter) -> str:
    if parameter.option != "variadic":
        return "" if parameter.option == "single" else parameter.option
    kind = "" if parameter.homogeneous else ", of any types"
    return f"variadic, at least {parameter.min_arity}{kind}"


def _attribute(name: str, attribute: Attribute) -> tuple[str, ...]:
    default = _value(attribute.default) if attribute.default is not None else attribute.absent or "none"
    if attribute.required:
        default = "required"
    return name, attribute.type, default, _allowed_values(attribute), attribute.description


def _allowed_values(attribute: Attribute) -> str:
    if attribute.values is not None:
        return ", ".join(map(_value, attribute.values))
    low, high = attribute.minimum, attribute.maximum
    if low is None and high is None:
        return ""
    if high is None:
        return f"at least {_value(low)}"
    return f"at most {_value(high)}" if low is None else f"{_value(low)} to {_value(high)}"


def _value(value: object) -> str:
    """Format an attribute value; a list is put in brackets."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        text = f"{value:.7g}"  # a float32 has about 7 significant digits
        return f"{text}.0" if text.lstrip("-").isdecimal() else text
    return str(value) or "''"


def _entry(entry: HistoryEntry) -> Iterator[tuple[object, str, str]]:
    version, before = entry.version, entry.before
    facts = [("change", entry.change or "first version")]
    if entry.arriving:
        facts += [(f"down to {version.since_version - 1}", str(entry.arriving))]
    if before:
        facts += [(f"up from {before.since_version}", str(entry.up))]
        facts += [(f"down to {before.since_version}", str(entry.down))]
    if version.status == "EXPERIMENTAL":
        facts += [("status", "experimental")]
    if version.deprecation:
        facts += [("deprecated", version.deprecation.mapping or "yes")]
    if version.removal:
        facts += [(f"removed in {version.removal.removed_in}", str(entry.leaving))]
    yield (version.since_version, *facts[0])
    yield from (("", *fact) for fact in facts[1:])


BUILT_BODY = "The body depends on the node: call function_body(node, input_types) of its schema in Python."
EXAMPLE = "The body depends on the node. With the default attributes and {}:"


def _function_lines(version: OperatorVersion, registry: Registry) -> Iterator[str]:
    """Yield the lines of a function body; if it depends on the node, that of an example node."""
    if version.body is not None:
        yield from str(version.body).splitlines()
        return
    inputs, outputs = (
        [each for each in formals if each.option == "single"] for formals in (version.inputs, version.outputs)
    )
    types = [_example_type(each, version) for each in inputs]
    node = NodeProto(
        op_type=version.name,
        domain=model_domain(version.domain),
        input=[each.name for each in inputs],
        output=[each.name for each in outputs],
    )
    try:
        function = version.function_body(node, types, registry=registry)
    except OpshiftError:  # the body depends on a required attribute, or on a shape
        yield BUILT_BODY
        return
    yield EXAMPLE.format(", ".join(f"{each.name}: {kind}" for each, kind in zip(inputs, types, strict=True)))
    yield ", ".join(f"{each.domain or 'ai.onnx'} {each.version}" for each in function.opset_import)
    yield from _node_lines(function.node, "")


def _example_type(parameter: Parameter, version: OperatorVersion) -> str:
    types = version.types_of(parameter)
    chosen = "tensor(float)" if "tensor(float)" in types else types[0]
    return short_type(chosen)


def _node_lines(nodes: Iterable[NodeProto], indent: str) -> Iterator[str]:
    for node in nodes:
        attributes = {each.name: _plain_value(each) for each in node.attribute if not any(graphs_in(each))}
        yield indent + node_text(node.op_type, node.input, node.output, attributes)
        for attribute in node.attribute:
            for graph in graphs_in(attribute):
                yield f"{indent}  {attribute.name}({', '.join(each.name for each in graph.input)}):"
                yield from _node_lines(graph.node, f"{indent}    ")
                yield f"{indent}    return {', '.join(each.name for each in graph.output)}"


def _plain_value(attribute: AttributeProto) -> object:
    value = read_attribute(attribute)
    if isinstance(value, bytes):
        return value.decode()
    return list(require_tensor(value).values) if isinstance(value, TensorProto) else value
