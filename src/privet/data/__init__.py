"""Reading, describing, splitting and encoding records: one file per kind of source."""
