"""Pages in Markdown and HTML, with diagrams."""
