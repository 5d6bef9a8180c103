"""Operator proposals: create one as a folder, check it, review it, accept it into a tree of definitions."""
