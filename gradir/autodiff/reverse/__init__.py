"""Reverse mode on structured control flow: a forward sweep that records, a backward sweep that accumulates."""
