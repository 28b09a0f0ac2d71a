"""Parts of neural networks, named after what they are."""
