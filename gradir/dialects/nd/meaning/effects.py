"""`print`, the function that `nd.print` calls by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradir import printing
from gradir.dialects.custom_calls import Config, CustomCall, define


def _print(config: Config, _results: Sequence[Any], *values: Any) -> Sequence[Any]:
    printing.emit(config["format"], values)
    return ()


define(CustomCall("print", _print, lambda _types, _config: (), effects=True))
