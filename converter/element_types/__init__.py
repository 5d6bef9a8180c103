"""Conversion of the element types of a whole model, such as bfloat16 to float16."""
