"""Bounds that no adversary can exceed, and the values of certificate.json."""
