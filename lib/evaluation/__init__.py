"""Scores of summaries, intervals of differences, and what changes of a model show."""
