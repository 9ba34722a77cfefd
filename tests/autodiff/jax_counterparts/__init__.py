"""What the ops of level 1 are in JAX, written by hand, one file per family or for a few small ones. Needs JAX."""
