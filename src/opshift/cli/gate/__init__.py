"""Commands over many models: their results one by one, causes of failures, and a summary."""
