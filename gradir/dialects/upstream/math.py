"""`math`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.math import *  # noqa: F403 (this module is xDSL's)
