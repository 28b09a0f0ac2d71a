"""How the collector's tables came to be: one file per change, in order. Alembic brings a database
up to date when a server starts."""
