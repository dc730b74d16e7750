"""Corpora, texts and batches: from a file or a name to the numbers that a model reads."""
