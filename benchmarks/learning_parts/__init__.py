"""Parts of benchmarks/learning.py, by topic."""
