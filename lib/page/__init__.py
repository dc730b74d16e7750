"""The page that a browser shows for a summary."""
