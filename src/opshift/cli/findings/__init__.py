"""Findings of commands over several models, and writers for SARIF, GitHub and GitLab."""
