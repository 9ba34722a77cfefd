"""`scf`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.scf import *  # noqa: F403 (this module is xDSL's)
