"""Diagnosis and repair of wrong opset imports and IR versions."""
