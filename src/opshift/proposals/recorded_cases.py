"""Examples of a proposal as test data in ONNX's layout, with the outputs of the reference.

Source: ONNX, onnx/backend/test/data: `<test>/model.onnx`, `<test>/test_data_set_0/input_0.pb` and so on.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.model.messages import TensorProto
from opshift.model.types import fill_type
from opshift.proposals.evidence.cases import Arrays
from opshift.proposals.evidence.evidence import Evaluated
from opshift.proposals.evidence.node_models import node_model, write_array


def recorded_files(draft: Evaluated, folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of a folder with one test per example.

    Cases that were derived for other element types are omitted.
    """
    names: set[str] = set()
    for each in draft.evidence.outcomes:
        case = each.case
        if each.outputs is None or case.retyped:
            continue
        # Names come from the proposal: only letters, digits and underscores may become part of a path.
        name = re.sub(r"[^a-z0-9]+", "_", f"test {case.version.name} {case.name}".lower()).strip("_")
        name = f"{name}_{case.position}" if name in names else name
        names.add(name)
        model = node_model(case, each.outputs, case.version.since_version)
        present = (array for array in each.outputs if array is not None)
        for value, array in zip(model.graph.output, present, strict=True):
            fill_type(value.type, array_element_type(array), array.shape)  # onnx.checker requires shapes
        yield folder / name / "model.onnx", model.SerializeToString(deterministic=True)
        data = folder / name / "test_data_set_0"
        yield from _tensor_files(data, "input", case.inputs)
        yield from _tensor_files(data, "output", each.outputs)


def _tensor_files(folder: Path, side: str, arrays: Arrays) -> Iterator[tuple[Path, bytes]]:
    """Yield a file for each array; the names in the tensors are those in the model."""
    present = ((position, each) for position, each in enumerate(arrays) if each is not None)
    for number, (position, array) in enumerate(present):
        tensor = TensorProto()
        write_array(tensor, array, f"{side}_{position}")
        yield folder / f"{side}_{number}.pb", tensor.SerializeToString(deterministic=True)
