"""Layers that several models share, each with its equation, and fast forms of some."""
