"""Ways to attack a release, one file each."""
