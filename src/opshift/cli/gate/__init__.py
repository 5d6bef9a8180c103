"""Run a command over many models: print each result, the causes of failures, and a summary."""
