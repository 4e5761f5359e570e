"""The parts of `benchmarks.search_quality`: tables in place of trainings, methods, and the statistics of their runs."""
