"""Adapters: each rewrites a node of one operator version as the next version, or back.

Adapters outside the project import everything they need from here.
"""

from opshift.adapters.core.adapter_table import adapter as adapter
from opshift.adapters.core.adapter_table import expression as expression
from opshift.adapters.core.adapter_table import function_body as function_body
from opshift.adapters.core.adapter_table import load_adapters as load_adapters
from opshift.adapters.core.rewriter import Rewriter as Rewriter
from opshift.adapters.core.type_guard import require_supported_types as require_supported_types
from opshift.model.errors import CannotConvert as CannotConvert
from opshift.model.errors import UnknownElementType as UnknownElementType
from opshift.model.errors import UnknownShape as UnknownShape
from opshift.model.node import Emitted as Emitted
from opshift.model.node import Graph as Graph
from opshift.model.node import Node as Node
from opshift.model.node import Tensor as Tensor
from opshift.model.node import Value as Value
