"""The parts of saliency.py: ways to rank pixels, and their page."""
