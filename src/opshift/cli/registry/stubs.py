"""`opshift stubs`: a Python module with a function per operator."""

from opshift.cli.errors import names_in_arguments
from opshift.cli.options import (
    DefinitionsOption,
    DomainOption,
    ForceOption,
    OpsetOption,
    OutArgument,
    registry_with,
)
from opshift.cli.output import write_out


@names_in_arguments()
def stubs(
    out: OutArgument = None,
    opset: OpsetOption = None,
    domain: DomainOption = None,
    force: ForceOption = False,
    folders: DefinitionsOption = None,
) -> None:
    """Write a Python module that builds the nodes of an opset.

    It has one function per operator of the domain (default: ai.onnx), with types, defaults and texts, which
    returns an onnx.NodeProto. The module needs onnx, but not opshift.
    """
    from opshift.registry.documents.node_builders import node_builders

    code = node_builders(registry_with(folders), domain or "", opset)
    write_out(out, code.encode(), force=force)
