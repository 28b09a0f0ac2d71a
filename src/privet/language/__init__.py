"""Texts: language models that must not remember their authors, private words, and embeddings."""
