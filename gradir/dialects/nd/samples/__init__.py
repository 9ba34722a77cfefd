"""Small valid inputs of every op, from which value tests, gradient tests and the op reference are generated. One file per family."""
