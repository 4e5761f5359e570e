"""The tables of the shared database, and the migrations that make ours."""
