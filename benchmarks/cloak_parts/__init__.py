"""The parts of cloak_maps.py: the service, the pictures of its maps, and their results files."""
