"""`bufferization`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.bufferization import *  # noqa: F403 (this module is xDSL's)
