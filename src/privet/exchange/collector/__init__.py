"""The collector's server: what it stores, what it refuses, and what it answers."""
