"""Every pass that rewrites one level into the same or the next lower one."""
