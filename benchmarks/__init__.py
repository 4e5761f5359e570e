"""Measurements beside what users would pick instead; figures in RESULTS.md."""
