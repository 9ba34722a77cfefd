"""What an oracle says of a program that its question cannot be asked of."""

from __future__ import annotations


class RefusedError(Exception):
    """The question cannot be asked of this program."""
