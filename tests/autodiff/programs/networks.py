"""Networks: an attention block, a residual block with batch norm, a decoder, a variational autoencoder, softmax regression, a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.autodiff.programs.toolkit import Program, Toolkit


def _layer_norm(xp: Any, x: Any, p: Any) -> Any:
    mean = xp.mean(x, axis=-1, keepdims=True)
    variance = xp.var(x, axis=-1, keepdims=True)
    return (x - mean) / xp.sqrt(variance + 1e-5) * p["scale"] + p["bias"]


def attention(k: Toolkit) -> Any:
    """A pre-norm transformer block: multi-head attention by einsum, a GELU network, residuals."""
    xp, nn = k.xp, k.nn

    def loss(p: Any, x: Any, target: Any) -> Any:
        h = _layer_norm(xp, x, p["norm1"])
        query, key, value = (xp.einsum("btd,dhe->bthe", h, p[name]) for name in ("q", "k", "v"))
        scores = xp.einsum("bthe,bshe->bhts", query, key) / query.shape[-1] ** 0.5
        mixed = xp.einsum("bhts,bshe->bthe", nn.softmax(scores, axis=-1), value)
        x = x + xp.einsum("bthe,hed->btd", mixed, p["o"])
        h = _layer_norm(xp, x, p["norm2"])
        x = x + nn.gelu(h @ p["up"]) @ p["down"]
        return xp.mean((x - target) ** 2)

    return loss


def attention_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    b, t, d, h, e = 2, 6, 8, 2, 4
    norm = lambda: {"scale": 1 + 0.1 * rng.randn(d), "bias": 0.1 * rng.randn(d)}
    p = {name: 0.4 * rng.randn(d, h, e) for name in ("q", "k", "v")}
    p |= {"o": 0.4 * rng.randn(h, e, d), "norm1": norm(), "norm2": norm(), "up": 0.3 * rng.randn(d, 16), "down": 0.3 * rng.randn(16, d)}
    return p, rng.randn(b, t, d), rng.randn(b, t, d)


def resnet(k: Toolkit) -> Any:
    """A residual block, batch norm in training mode, with a strided projection; returns its loss."""
    xp, nn = k.xp, k.nn

    def batch_norm(x: Any, p: Any) -> Any:
        mean = x.mean(axis=(0, 1, 2))
        variance = ((x - mean) ** 2).mean(axis=(0, 1, 2))
        return (x - mean) * p["scale"] / xp.sqrt(variance + 1e-5) + p["bias"]

    def loss(p: Any, x: Any, target: Any) -> Any:
        h = nn.relu(batch_norm(k.conv(x, p["conv1"], strides=2, padding="SAME"), p["bn1"]))
        h = batch_norm(k.conv(h, p["conv2"], padding="SAME"), p["bn2"])
        shortcut = batch_norm(k.conv(x, p["project"], strides=2, padding="SAME"), p["bn3"])
        y = nn.relu(h + shortcut).mean(axis=(1, 2))
        return xp.mean((y - target) ** 2)

    return loss


def resnet_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    n, size, c, d = 3, 6, 3, 4
    norm = lambda: {"scale": 1 + 0.1 * rng.randn(d), "bias": 0.1 * rng.randn(d)}
    p = {"conv1": 0.3 * rng.randn(3, 3, c, d), "conv2": 0.3 * rng.randn(3, 3, d, d), "project": 0.5 * rng.randn(1, 1, c, d)}
    p |= {"bn1": norm(), "bn2": norm(), "bn3": norm()}
    return p, rng.randn(n, size, size, c), rng.randn(n, d)


def decoder(k: Toolkit) -> Any:
    """Next-token loss of a decoder layer: embedding lookup, positions, a causal mask, tied output weights."""
    xp, nn = k.xp, k.nn

    def loss(p: Any, tokens: Any) -> Any:
        t = tokens.shape[1] - 1
        x = p["embed"][tokens[:, :-1]] + p["position"][:t]
        q, key, v = (x @ p[name] for name in ("q", "k", "v"))
        scores = q @ xp.swapaxes(key, -1, -2) / float(np.sqrt(q.shape[-1]))
        causal = xp.tril(xp.ones((t, t), bool))
        weights = nn.softmax(xp.where(causal, scores, -xp.inf), axis=-1)
        x = x + weights @ v @ p["o"]
        x = x / xp.sqrt(xp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * p["norm"]
        logits = x @ p["embed"].T
        logp = nn.log_softmax(logits, axis=-1)
        return -xp.mean(xp.take_along_axis(logp, tokens[:, 1:, None], axis=-1))

    return loss


def decoder_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    words, d, b, t = 11, 6, 3, 8
    p = {"embed": 0.5 * rng.randn(words, d), "position": 0.1 * rng.randn(t, d), "norm": 1 + 0.1 * rng.randn(d)}
    p |= {name: 0.4 * rng.randn(d, d) for name in ("q", "k", "v", "o")}
    return p, rng.randint(0, words, (b, t)).astype(np.int32)


def vae(k: Toolkit) -> Any:
    """Negative evidence lower bound of a variational autoencoder with noise from a threefry key."""
    xp, nn = k.xp, k.nn

    def loss(p: Any, x: Any) -> Any:
        h = xp.tanh(x @ p["e1"])
        mean, log_var = h @ p["mean"], h @ p["log_var"]
        u = k.random.uniform(k.random.key(3), (2, *mean.shape), xp.float32).astype(x.dtype)  # the same numbers in f32 and f64
        noise = xp.sqrt(-2 * xp.log1p(-u[0])) * xp.cos(2 * xp.pi * u[1])
        z = mean + xp.exp(0.5 * log_var) * noise
        logits = nn.softplus(z @ p["d1"]) @ p["d2"]
        reconstruction = xp.sum(xp.maximum(logits, 0) - logits * x + xp.log1p(xp.exp(-xp.abs(logits))), axis=-1)
        divergence = -0.5 * xp.sum(1 + log_var - mean**2 - xp.exp(log_var), axis=-1)
        return xp.mean(reconstruction + divergence)

    return loss


def vae_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    n, d, h, z = 6, 8, 7, 3
    sizes = {"e1": (d, h), "mean": (h, z), "log_var": (h, z), "d1": (z, h), "d2": (h, d)}
    return {name: 0.4 * rng.randn(*shape) for name, shape in sizes.items()}, rng.rand(n, d)


def softmax_regression(k: Toolkit) -> Any:
    """Cross entropy with one-hot labels and an L2 penalty on a pytree of parameters."""
    xp, nn = k.xp, k.nn

    def loss(params: Any, x: Any, labels: Any) -> Any:
        logits = x @ params["w"] + params["b"]
        hot = nn.one_hot(labels, params["b"].shape[0], dtype=x.dtype)
        penalty = sum(xp.sum(p**2) for p in params.values())
        return xp.mean(-xp.sum(hot * nn.log_softmax(logits), axis=-1)) + 0.05 * penalty

    return loss


def softmax_regression_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    return {"w": 0.5 * rng.randn(5, 4), "b": 0.1 * rng.randn(4)}, rng.randn(20, 5), rng.randint(0, 4, 20).astype(np.int32)


def graph_network(k: Toolkit) -> Any:
    """Two rounds of messages along edges: gathers of senders, sums at receivers with duplicates, means by degree."""
    xp, nn = k.xp, k.nn

    def loss(p: Any, nodes: Any, senders: Any, receivers: Any, target: Any) -> Any:
        degree = xp.zeros(nodes.shape[0], nodes.dtype).at[receivers].add(1.0)
        h = nodes @ p["in"]
        for layer in p["layers"]:
            messages = nn.relu(xp.concatenate([h[senders], h[receivers]], axis=1) @ layer["message"])
            total = xp.zeros((h.shape[0], messages.shape[1]), h.dtype).at[receivers].add(messages)
            h = h + xp.tanh(total / xp.maximum(degree, 1.0)[:, None] @ layer["update"])
        return xp.sum((xp.mean(h, axis=0) - target) ** 2)

    return loss


def graph_network_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    n, e, d, m = 7, 20, 4, 5
    layers = [{"message": 0.4 * rng.randn(2 * d, m), "update": 0.4 * rng.randn(m, d)} for _ in range(2)]
    edges = [rng.randint(0, n, e).astype(np.int32) for _ in range(2)]
    return {"in": rng.randn(3, d), "layers": layers}, rng.randn(n, 3), *edges, rng.randn(d)


PROGRAMS = (
    Program("attention", attention, attention_arguments),
    Program("resnet", resnet, resnet_arguments),
    Program("decoder", decoder, decoder_arguments),
    Program("vae", vae, vae_arguments),
    Program("softmax_regression", softmax_regression, softmax_regression_arguments, hvp=True, examples=True),
    Program("graph_network", graph_network, graph_network_arguments),
)
