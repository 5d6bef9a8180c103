"""Adapters of mathematical operators: those of ONNX's `math` folder, and a few of other folders.

ConvInteger, QLinearConv and Shrink are in ONNX's `nn` folder. The operators that share their broadcasting
with Add, such as And and Equal, are in its `logical` folder.
"""
