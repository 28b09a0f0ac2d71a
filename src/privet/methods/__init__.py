"""Ways to learn a release, one file each."""
