"""Studies of papers, as TOML files; frontier/recipes.py reads them."""
