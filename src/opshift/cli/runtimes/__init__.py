"""Commands about runtimes."""
