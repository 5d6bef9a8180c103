"""Rules for proposals; each module has a group of rules, such as rules for `operator.yaml`."""
