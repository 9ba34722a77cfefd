"""`func`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.func import *  # noqa: F403 (this module is xDSL's)
