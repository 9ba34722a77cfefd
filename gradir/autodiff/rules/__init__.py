"""The derivative of each op, one file per family; importing a family registers its rules."""
