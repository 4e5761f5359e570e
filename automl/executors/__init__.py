"""Executors: where and how tasks run."""
