"""JSON Schema of definition files, for editors."""
