"""Adapters of mathematical operators, most of which are defined in `onnx/defs/math` of the ONNX repository.

ConvInteger, QLinearConv and Shrink are defined in `onnx/defs/nn`. The operators that broadcast like Add, such
as And and Equal, are defined in `onnx/defs/logical`.
"""
