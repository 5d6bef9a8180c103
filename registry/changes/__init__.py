"""The effect of changed definitions on existing models: rules, policies and waivers."""
