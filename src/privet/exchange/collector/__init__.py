"""The server that takes released records."""
