"""Language models trained on texts with authors: corpus, tokens, networks, training."""
