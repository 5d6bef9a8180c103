"""The adapter table, the rewriter, verbs and the type guard."""
