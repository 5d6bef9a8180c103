"""Objects in stores and on web servers as files."""
