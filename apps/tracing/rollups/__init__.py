"""Aggregates as sums of signed contributions: see contributions.py (what a row adds), fold.py (how sums are kept)."""
