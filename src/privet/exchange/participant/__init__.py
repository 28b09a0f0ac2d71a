"""What a participant does: check a campaign, run its release, send, withdraw."""
