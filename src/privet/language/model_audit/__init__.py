"""What trained language models remember of their authors: attacks, figures and the report."""
