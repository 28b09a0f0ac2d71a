"""Attack a release and report what was found; certify it; hold both against limits."""
