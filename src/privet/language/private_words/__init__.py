"""Texts whose words are replaced at random under metric privacy, and attacks on such texts."""
