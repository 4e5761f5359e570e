"""Items of torch datasets, read by processes of their own where that is asked for."""
