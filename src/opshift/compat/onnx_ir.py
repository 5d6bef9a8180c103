"""Pass for onnx_ir that converts a model to other opsets.

    import onnx_ir
    from opshift.compat.onnx_ir import ConvertVersionPass

    result = onnx_ir.passes.Sequential(ConvertVersionPass(13), ...)(model)

This module needs `pip install 'opshift[onnx-ir]'`. `opshift.convert_version` converts a model without a pass.
"""

from typing import Unpack

import onnx_ir

from opshift.converter.convert import convert_and_plan
from opshift.converter.options import ConvertArguments, Options, TargetLike

__all__ = ["ConvertVersionPass"]


class ConvertVersionPass(onnx_ir.passes.InPlacePass):
    """Conversion of a model to other operator-set versions, in place.

    The model keeps its tensors, and gets a new graph and functions. If the conversion raises an error, the
    model is not modified. `Sequential` and `PassManager` raise a `PassError` with that error as `__cause__`.

    Args:
        target: as for `convert_version`, which documents the keyword arguments and errors, too.
        **arguments: keyword arguments of `convert_version`, except `inplace`.
    """

    def __init__(self, target: TargetLike | None = None, **arguments: Unpack[ConvertArguments]) -> None:
        self._options = Options.of(target, **(arguments | {"inplace": True}))

    def call(self, model: onnx_ir.Model) -> onnx_ir.passes.PassResult:
        """Convert the model; `modified` of the result is true if the conversion replaced the graph."""
        graph = model.graph
        convert_and_plan(model, self._options)
        return onnx_ir.passes.PassResult(model, modified=model.graph is not graph)
