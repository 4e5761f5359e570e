"""The samplers: one file, one method; the file's name is the name that people give."""
