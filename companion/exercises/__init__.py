"""The exercises of the pages: a module each, with the cases that a reader's functions are checked
with.

The texts, hints and solutions of PAGE's exercises are in `notebooks/PAGE.py`.
"""
