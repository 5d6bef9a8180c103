"""Local functions: specialization, inlining and attribute references."""
