"""One change of the tables per file."""
