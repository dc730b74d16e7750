"""Measurements whose results the texts quote."""
