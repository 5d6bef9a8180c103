"""What a change of a definition means for the models that use it: rules with ids, policies, waivers."""
