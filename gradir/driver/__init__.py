"""Pipelines as tables, compilation of whole programs, the caches, reports."""
