"""What collectors, owners and participants agree on: manifests, sealed envelopes, checks,
requests."""
