"""Studies of papers, as TOML files; studies/recipes.py reads them."""
