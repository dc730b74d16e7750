"""Pages in which a model writes in a browser."""
