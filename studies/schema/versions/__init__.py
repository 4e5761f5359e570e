"""One file per migration, in the order of their revisions."""
