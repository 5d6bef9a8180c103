"""Conversion of onnx_ir models to messages, with placeholders instead of large tensors, and back."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, cast

from opshift.model.errors import InvalidModel
from opshift.model.messages import IR_VERSION, ModelProto
from opshift.model.offloaded_tensors import MIN_EXTRACTED_TENSOR, Payload, PlaceholderStore
from opshift.model.process_state import signals_deferred
from opshift.model.tensor_pieces import RAW_DATA, ConvertedRange, Range

if TYPE_CHECKING:
    import onnx_ir

    from opshift.model.files import OnnxIrModel, OnnxProgram

    Container = onnx_ir.Graph | onnx_ir.Function
    MetaOwner = onnx_ir.Model | Container | onnx_ir.Node | onnx_ir.Value


class View:
    """Proxy of an object with some attributes replaced; iteration yields `nodes`, for a graph or function."""

    nodes: list[object]

    def __init__(self, viewed: object, **changed: object) -> None:
        self._viewed = viewed
        vars(self).update(changed)

    def __getattr__(self, name: str) -> object:
        return getattr(self._viewed, name)

    def __iter__(self) -> Iterator[object]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


def mapped_content(
    attribute: onnx_ir.Attr,
    tensor: Callable[[onnx_ir.TensorProtocol], object],
    graph: Callable[[onnx_ir.Graph], object],
) -> object:
    """Call `tensor` or `graph` with each tensor or graph of an attribute, and return the result.

    The result is a tuple for a list, and `None` for other types and for an attribute without a value.
    """
    kind, value = attribute.type.name, attribute.value
    if value is not None:
        if kind == "TENSOR":
            return tensor(value)
        if kind == "TENSORS":
            return tuple(map(tensor, value))
        if kind == "GRAPH":
            return graph(value)
        if kind == "GRAPHS":
            return tuple(map(graph, value))
    return None


def initializers_of(container: Container) -> Mapping[str, onnx_ir.Value]:
    """Return the initializers by name; a function has none."""
    return getattr(container, "initializers", {})


def attributes_of(container: Container) -> MutableMapping[str, onnx_ir.Attr]:
    """Return the attributes of a function by name; a graph has none."""
    return getattr(container, "attributes", {})


def carry_over_meta(new: onnx_ir.Model, old: onnx_ir.Model) -> None:
    """Copy `meta`, which onnx_ir does not serialize, from old objects to the new objects of equal names."""
    _add_meta(new, old)
    _carry_over(new.graph, old.graph)
    for key, function in new.functions.items():
        if key in old.functions:
            _carry_over(function, old.functions[key])


def _add_meta(new: MetaOwner, old: MetaOwner) -> None:
    for key, data in old.meta.items():
        new.meta.setdefault(key, data)
        if not old.meta.is_valid(key):
            new.meta.invalidate(key)


def _carry_over(new: Container, old: Container) -> None:
    _add_meta(new, old)
    values = _values_by_name(old)
    for name, value in _values_by_name(new).items():
        twin = values.get(name)
        if twin is not None:
            _add_meta(value, twin)
            _carry_over_node(value.producer(), twin.producer())


def _carry_over_node(new: onnx_ir.Node | None, old: onnx_ir.Node | None) -> None:
    if new is None or old is None or (new.domain, new.op_type) != (old.domain, old.op_type):
        return
    _add_meta(new, old)
    for name in new.attributes.keys() & old.attributes.keys():
        graphs = [_graphs_of_attribute(each.attributes[name]) for each in (new, old)]
        for pair in zip(*graphs, strict=False):
            _carry_over(*pair)


def _values_by_name(container: Container) -> dict[str | None, onnx_ir.Value]:
    """Return the inputs, initializers and outputs of nodes by name."""
    outputs = (output for node in container for output in node.outputs)
    return {each.name: each for each in (*container.inputs, *initializers_of(container).values(), *outputs)}


def _graphs_of_attribute(attribute: onnx_ir.Attr) -> list[onnx_ir.Graph]:
    found: list[onnx_ir.Graph] = []
    mapped_content(attribute, lambda _: None, found.append)
    return found


class OnnxIrMessage(PlaceholderStore):
    """Message of an onnx_ir model, with placeholders instead of its large tensors.

    Large tensors are read only if their elements are needed, within a `with` block. With `with_elements`, all
    tensors are read, and the message needs no block. The model is not modified.
    """

    def __init__(self, given: OnnxIrModel | OnnxProgram, *, with_elements: bool = False) -> None:
        super().__init__(self._read_elements)
        self._given = given
        self._model = cast("onnx_ir.Model", getattr(given, "model", given))
        self._tensors: dict[int, onnx_ir.TensorProtocol] = {}
        """Large tensors by the start of their `Range` in the placeholder store."""
        self._small_tensors: dict[tuple[str | None, bytes], onnx_ir.TensorProtocol] = {}
        """Small tensors by name and elements."""
        self._end = 0
        self._last = -1, b""
        self._with_elements = with_elements
        self.proto = self._serialized_message()
        self._before = self.proto.SerializeToString()

    def _serialized_message(self) -> ModelProto:
        import onnx_ir

        graph = self._container_view(self._model.graph)
        functions = {key: self._container_view(each) for key, each in self._model.functions.items()}
        # For an older IR version, onnx_ir would omit `value_info` of functions, and device configurations.
        view = View(self._model, graph=graph, functions=functions, ir_version=IR_VERSION)
        try:
            proto = onnx_ir.serde.serialize_model(cast("onnx_ir.Model", view))
        except Exception as error:  # onnx_ir and tensor classes may raise any exception
            reason = f"onnx_ir cannot serialize the model: {_root_cause(error)}"
            raise InvalidModel(
                reason, remedy="correct the model so that onnx_ir.to_proto(model) succeeds"
            ) from error
        proto.ir_version = self._model.ir_version
        return cast("ModelProto", proto)

    def _container_view(self, container: Container) -> View:
        return View(
            container,
            initializers={
                name: View(each, const_value=self._tensor_view(each.const_value, name))
                for name, each in initializers_of(container).items()
                if each.const_value is not None
            },
            nodes=[self._node_view(each) for each in container],
            attributes=self._attribute_views(attributes_of(container)),
        )

    def _node_view(self, node: onnx_ir.Node) -> object:
        views = self._attribute_views(node.attributes)
        return node if views is node.attributes else View(node, attributes=views)

    def _attribute_views(self, attributes: Mapping[str, onnx_ir.Attr]) -> Mapping[str, object]:
        """Return the attributes, with a view of each attribute that contains tensors or graphs."""
        views: dict[str, object] = {}
        for name, attribute in attributes.items():
            value = mapped_content(attribute, self._tensor_view, self._container_view)
            if value is not None:
                views[name] = View(attribute, value=value)
        return {**attributes, **views} if views else attributes

    def _tensor_view(self, tensor: onnx_ir.TensorProtocol, name: str | None = None) -> object:
        """Return a view of a tensor with its elements or a placeholder, or a copy of a tensor of strings."""
        import onnx_ir

        if tensor.dtype == onnx_ir.DataType.STRING:
            own = getattr(tensor, "string_data", None)
            return onnx_ir.StringTensor(
                own() if own else tensor.numpy().ravel().tolist(),
                shape=onnx_ir.Shape(tensor.shape.numpy()),
                name=tensor.name,
                doc_string=tensor.doc_string,
                metadata_props=dict(tensor.metadata_props),
            )
        if self._with_elements:
            return View(tensor, tobytes=lambda: _bytes_of(tensor))
        if tensor.nbytes < MIN_EXTRACTED_TENSOR:
            data = _bytes_of(tensor)
            self._small_tensors[name or tensor.name, data] = tensor
        else:
            elements = Range(self._end, self._end + tensor.nbytes)
            self._end, self._tensors[elements.start] = elements.end, tensor
            data = self.placeholder(Payload(RAW_DATA, elements))
        return View(tensor, tobytes=lambda: data)

    def _read_elements(self, start: int, end: int) -> bytes:
        starts = list(self._tensors)
        first = starts[bisect(starts, start) - 1]
        # Cached: a conversion reads a tensor block by block, and `tobytes` may copy all of it each time.
        if first != self._last[0]:
            self._last = first, _bytes_of(self._tensors[first])
        return self._last[1][start - first : end - first]

    def converted(self, proto: ModelProto, *, inplace: bool) -> OnnxIrModel | OnnxProgram:
        """Return the converted message as an object of the given class, with the original tensors.

        With `inplace`, update and return the given object; a conversion without changes leaves it unchanged.
        InvalidModel is raised if onnx_ir cannot read the message.
        """
        import onnx_ir

        if inplace and proto.SerializeToString() == self._before:
            return self._given
        try:
            model = onnx_ir.serde.deserialize_model(proto)  # pyright: ignore  # it is onnx's class
        except Exception as error:  # onnx_ir does not document which errors it raises
            reason = f"onnx_ir cannot read the converted model: {_root_cause(error)}"
            raise InvalidModel(reason, remedy="convert the model as a ModelProto instead") from error
        self._put_tensors_back(model.graph)
        for function in model.functions.values():
            self._put_tensors_back(function)
        carry_over_meta(model, self._model)
        program = None if self._given is self._model else cast("OnnxProgram", self._given)
        if not inplace:
            if program is None:
                return model
            create = cast("Callable[[onnx_ir.Model, object], OnnxProgram]", type(program))
            return create(model, program.exported_program)
        with signals_deferred():
            if program is not None:
                program.release()  # the session of an ONNXProgram runs the original model
            for name in "graph", "ir_version", "model_version", "device_configurations":
                setattr(self._model, name, getattr(model, name, None))
            for name in "functions", "metadata_props":
                contents = getattr(self._model, name)
                contents.clear()
                contents.update(getattr(model, name))
        return self._given

    def _put_tensors_back(self, container: Container) -> None:
        """Replace all tensors of a graph or function, also in subgraphs, by their originals if possible."""
        for value in initializers_of(container).values():
            value.const_value = self._original_tensor(value.const_value)
        for attributes in (attributes_of(container), *(node.attributes for node in container)):
            for name, attribute in list(attributes.items()):
                content = mapped_content(attribute, self._original_tensor, self._put_tensors_back)
                if content is not None and "TENSOR" in attribute.type.name:
                    changed = type(attribute)(name, attribute.type, content, doc_string=attribute.doc_string)
                    attributes[name] = changed

    def _original_tensor(self, tensor: onnx_ir.TensorProtocol | None) -> onnx_ir.TensorProtocol | None:
        """Return the original of an unchanged tensor, or else the tensor with its elements."""
        from onnx_ir.serde import TensorProtoTensor

        if not isinstance(tensor, TensorProtoTensor):
            return tensor
        data = tensor.raw.raw_data
        if self.holds(data):
            elements = self.payload_at(data, 0).elements
            if isinstance(elements, ConvertedRange):
                tensor.raw.raw_data = self.read_piece(elements)
                return tensor
            original = self._tensors[elements.start]
        elif (tensor.name, data) in self._small_tensors:
            original = self._small_tensors[tensor.name, data]
        else:
            return tensor
        fields = [(each.dtype, each.shape.numpy(), dict(each.metadata_props)) for each in (tensor, original)]
        # the conversion may have changed the shape or dropped metadata
        if fields[0] == fields[1]:
            return original
        tensor.raw.raw_data = _bytes_of(original)
        return tensor


def _bytes_of(tensor: onnx_ir.TensorProtocol) -> bytes:
    place = f"tensor {tensor.name!r}"
    try:
        found = bytes(tensor.tobytes())
    except Exception as error:  # tensor classes may raise any exception
        remedy = "load its weights before the conversion"
        raise InvalidModel(f"cannot be read: {_root_cause(error)}", place=place, remedy=remedy) from error
    if len(found) != tensor.nbytes:
        reason = f"has {len(found):,} bytes; its type and shape require {tensor.nbytes:,}"
        raise InvalidModel(reason, place=place, remedy="correct its type or shape")
    return found


def _root_cause(error: BaseException) -> BaseException:
    return _root_cause(error.__cause__) if error.__cause__ else error
