"""The verbs as Python functions: they take values or the names of files, do the work, and write
results whole or not at all."""
