"""Classify changes of operator definitions by their effect on models: rules, policies and waivers."""
