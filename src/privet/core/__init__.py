"""Errors, files, progress and values as JSON: what every other room may use. Needs only the
standard library and Rich."""
