"""A company's own domain: definitions, adapters, and what its operators compute."""
