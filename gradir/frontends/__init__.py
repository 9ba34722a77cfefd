"""Ways into the tensor dialect. `python/` traces ordinary functions; importers for other frameworks stand beside it."""
