"""From a trained run to a summary: search, the run as an object, and text for people."""
