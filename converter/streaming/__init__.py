"""Conversion from file to file, without reading large weights into memory."""
