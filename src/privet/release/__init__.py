"""What ships: a frozen network with its noise law and card, its graph, and ways to run it."""
