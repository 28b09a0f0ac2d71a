"""Language: models that do not remember their authors, and words that do not tell who wrote
them."""
