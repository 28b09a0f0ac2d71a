"""What the owner of a campaign does: open it, export what came, train a task model."""
