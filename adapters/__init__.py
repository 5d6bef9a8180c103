"""Adapters: functions that rewrite a node from one version of its operator to an adjacent version."""
