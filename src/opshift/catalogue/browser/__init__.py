"""Page that converts models in the browser: its commands in Python, and the files that it loads."""
