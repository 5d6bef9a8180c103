"""Content of a proposal: its files, the stages of reading them, findings, reviewers and sign-offs."""
