"""Past one machine, on Ray (https://docs.ray.io): comparisons as one task per cell, releases of row
ranges with Ray Data.

`cluster` connects, `ray_cells` has the workers of `privet compare`, `ray_apply` releases files.
Learning one release on several GPUs needs no Ray: `privet.train.distributed`. How it is used, and
what it costs, is in docs/scale.md.
"""
