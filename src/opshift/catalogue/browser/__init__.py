"""Page that converts models in the browser: its Python session, and the files that it loads."""
