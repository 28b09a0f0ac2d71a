"""Past one machine, on Ray (https://docs.ray.io): comparisons as one task per cell, releases of row
ranges with Ray Data.

cluster.py connects; cells.py is a crew of `privet compare`; released.py with ranges.py is `privet
apply`. Learning one release on several GPUs needs no Ray: train/distributed.py. How it is used, and
what it costs, is in docs/scale.md.
"""
