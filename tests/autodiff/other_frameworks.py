"""Gradients of the rows of `conventions.py` here, in JAX and in PyTorch. Names of functions are ours; what another framework calls otherwise is said here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

import gradir as gd
from tests.autodiff.conventions import Row

Array = np.ndarray[Any, Any]


class Attributes(Mapping[str, Any]):
    """The public names of a module, after some of one's own."""

    def __init__(self, module: Any, own: dict[str, Any]) -> None:
        self._module, self._own = module, own

    def __getitem__(self, name: str) -> Any:
        return self._own[name] if name in self._own else getattr(self._module, name)

    def __iter__(self) -> Any:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def array(value: Any, dtype: str) -> Array:
    return np.asarray(value, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def here() -> Attributes:
    """Our names."""
    return Attributes(
        gd,
        {
            "norm": gd.linalg.norm,
            "take": lambda x, places: gd.take(x, np.asarray(places, np.int32)),
            "set_at": lambda x, places, y: x.at[np.asarray(places, np.int32)].set(y),
            "max_pool": lambda x, size: gd.max_pool(x.reshape((1, -1, 1)), size),
            "dynamic_update_slice": lambda x, y, at: gd.dynamic_update_slice(x, y, [np.int32(at)]),
            "to_int": lambda x: x.astype(np.int32),
            "to_float": lambda x: x.astype(np.float32),
        },
    )


def in_jax(row: Row) -> list[Array]:
    """The gradient by JAX."""
    import jax
    import jax.numpy as jnp

    own = {
        "relu": jax.nn.relu,
        "logsumexp": jax.nn.logsumexp,
        "softmax": jax.nn.softmax,
        "erf_inv": jax.scipy.special.erfinv,
        "grad": jax.grad,
        "norm": jnp.linalg.norm,
        "cummax": jax.lax.cummax,
        "top_k": jax.lax.top_k,
        "fori_loop": jax.lax.fori_loop,
        "take": lambda x, places: jnp.take(x, jnp.asarray(places)),
        "set_at": lambda x, places, y: x.at[jnp.asarray(places)].set(y),
        "max_pool": lambda x, size: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (size,), (size,), "VALID"),
        "dynamic_update_slice": lambda x, y, at: jax.lax.dynamic_update_slice(x, y, (at,)),
        "to_int": lambda x: x.astype(jnp.int32),
        "to_float": lambda x: x.astype(jnp.float32),
    }
    names = Attributes(jnp, own)
    arguments = [jnp.asarray(x) for x in row.arguments(array)]
    total = lambda *xs: jnp.real(jnp.sum(row.call(names, *xs)))
    return [np.asarray(g) for g in jax.grad(total, tuple(range(len(arguments))))(*arguments)]


def in_torch(row: Row) -> list[Array]:
    """The gradient by PyTorch."""
    import torch

    own: dict[str, Callable[..., Any]] = {
        "power": torch.pow,
        "clip": torch.clamp,
        "mod": torch.remainder,
        "erf_inv": torch.erfinv,
        "grad": torch.func.grad,
        "norm": torch.linalg.norm,
        "std": lambda x: torch.std(x, correction=0),
        "cumprod": lambda x: torch.cumprod(x, 0),
        "cummax": lambda x: torch.cummax(x, 0)[0],
        "logsumexp": lambda x: torch.logsumexp(x, 0),
        "softmax": lambda x: torch.softmax(x, 0),
        "sort": lambda x: torch.sort(x)[0],
        "top_k": torch.topk,
        "take": lambda x, places: x[torch.tensor(places)],
        "set_at": lambda x, places, y: x.index_put((torch.tensor(places),), y),
        "max_pool": lambda x, size: torch.nn.functional.max_pool1d(x.reshape(1, 1, -1), size),
        "to_int": lambda x: x.to(torch.int32),
        "to_float": lambda x: x.to(torch.float32),
    }
    names = Attributes(torch, own)
    arguments = [torch.tensor(value, dtype=getattr(torch, row.dtype), requires_grad=True) for value in row.at]
    total = row.call(names, *arguments).sum()
    if total.requires_grad:
        (total.real if total.is_complex() else total).backward()
    found = [torch.zeros_like(x) if x.grad is None else x.grad for x in arguments]
    return [(g.float() if row.dtype == "bfloat16" else g).detach().resolve_conj().numpy() for g in found]
