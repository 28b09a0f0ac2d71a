"""What collectors, owners and participants agree on: manifests, envelopes, checks, messages."""
