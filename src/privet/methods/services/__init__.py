"""Models that exist before a release is learned: a provider's own, or taught here."""
