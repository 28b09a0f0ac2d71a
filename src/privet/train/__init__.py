"""The training loop of all methods: players, phases, steps, batches, checkpoints."""
