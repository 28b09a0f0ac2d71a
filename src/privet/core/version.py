"""The version of Privet, written here and nowhere else."""

__version__ = "0.1.0"
