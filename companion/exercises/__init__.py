"""The exercises of the pages: a module each, with the cases that a reader's functions are checked
with."""
