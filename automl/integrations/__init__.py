"""Programs of other libraries that work on a study of ours; one package each, named after the library."""
