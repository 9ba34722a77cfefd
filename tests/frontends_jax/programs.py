"""Programs as people write them for JAX: each a function and its arguments. Nothing of Gradir here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def normal(*shape: int, seed: int = 0, scale: float = 0.5) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(scale=scale, size=shape), np.float32)


def _resnet_block() -> Program:
    def block(params: dict[str, Any], x: Any) -> Any:
        def norm(y: Any, scale: Any, bias: Any) -> Any:
            mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
            return (y - mean) * jax.lax.rsqrt(var + 1e-5) * scale + bias

        def conv(y: Any, w: Any, stride: int = 1) -> Any:
            return jax.lax.conv_general_dilated(y, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

        y = jax.nn.relu(norm(conv(x, params["a"], 2), params["s1"], params["b1"]))
        y = norm(conv(y, params["b"]), params["s2"], params["b2"])
        return jax.nn.relu(y + conv(x, params["skip"], 2))

    params = {
        "a": normal(3, 3, 3, 4), "b": normal(3, 3, 4, 4, seed=1), "skip": normal(1, 1, 3, 4, seed=2),
        "s1": np.ones(4, np.float32), "s2": np.ones(4, np.float32), "b1": np.zeros(4, np.float32), "b2": np.zeros(4, np.float32),
    }  # fmt: skip
    return jax.value_and_grad(lambda p, x: jnp.mean(block(p, x) ** 2)), (params, normal(2, 8, 8, 3, seed=3))


def _transformer_with_dropout() -> Program:
    def layer(p: dict[str, Any], x: Any, key: Any) -> Any:
        t = x.shape[1]
        q, k, v = (jnp.einsum("btd,dhe->bhte", x, p[n]) for n in "qkv")
        scores = jnp.einsum("bhte,bhse->bhts", q, k) / np.sqrt(q.shape[-1])
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
        mixed = jnp.einsum("bhts,bhse,hed->btd", jax.nn.softmax(scores), v, p["o"])
        keep = jax.random.bernoulli(key, 0.9, mixed.shape)
        x = x + jnp.where(keep, mixed / 0.9, 0)
        mean = x.mean(-1, keepdims=True)
        x = (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x + jax.nn.gelu(x @ p["w1"]) @ p["w2"]

    def loss(p: dict[str, Any], tokens: Any, key: Any) -> Any:
        x = p["embed"][tokens]
        x = layer(p, x, key)
        logits = x @ p["embed"].T
        logp = jax.nn.log_softmax(logits[:, :-1])
        return -jnp.mean(jnp.take_along_axis(logp, tokens[:, 1:, None], -1))

    def step(p: dict[str, Any], state: Any, tokens: Any, key: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, tokens, key)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], grads)
        nu = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, state["nu"], grads)
        p = jax.tree.map(lambda a, m, n: a - 1e-2 * (m / (jnp.sqrt(n) + 1e-8) + 0.01 * a), p, mu, nu)
        return value, p, {"mu": mu, "nu": nu}

    d, h, e = 8, 2, 4
    p = {
        "embed": normal(11, d), "q": normal(d, h, e, seed=1), "k": normal(d, h, e, seed=2), "v": normal(d, h, e, seed=3),
        "o": normal(h, e, d, seed=4), "w1": normal(d, 16, seed=5), "w2": normal(16, d, seed=6),
    }  # fmt: skip
    zeros = jax.tree.map(np.zeros_like, p)
    tokens = np.random.default_rng(1).integers(0, 11, (2, 6)).astype(np.int32)
    return step, (p, {"mu": zeros, "nu": zeros}, tokens, jax.random.key(3))


def _lstm_scan() -> Program:
    def loss(w: Any, u: Any, xs: Any) -> Any:
        def cell(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(x @ w + h @ u, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((xs.shape[1], u.shape[0]))
        _, hs = jax.lax.scan(jax.checkpoint(cell), (zero, zero), xs)
        return jnp.mean(hs**2)

    return jax.value_and_grad(loss, (0, 1)), (normal(3, 16), normal(4, 16, seed=1), normal(7, 2, 3, seed=2))


def _vmapped_per_example_gradients() -> Program:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return (jnp.tanh(x @ w).sum() - y) ** 2

    return jax.vmap(jax.grad(loss), (None, 0, 0)), (normal(4, 3), normal(5, 4, seed=1), normal(5, seed=2))


def _vmapped_while() -> Program:
    def steps(n: Any) -> Any:
        return jax.lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1]

    return jax.vmap(steps), (np.arange(1, 12, dtype=np.int32),)


def _kalman_filter() -> Program:
    def run(a: Any, c: Any, q: Any, r: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            m, p = carry
            m, p = a @ m, a @ p @ a.T + q
            s = c @ p @ c.T + r
            gain = jnp.linalg.solve(s, c @ p).T
            m = m + gain @ (y - c @ m)
            return (m, p - gain @ c @ p), m

        return jax.lax.scan(step, (jnp.zeros(3), jnp.eye(3)), ys)[1]

    eye = np.eye(3, dtype=np.float32)
    return run, (eye + 0.1 * normal(3, 3), normal(2, 3, seed=1), 0.1 * eye, 0.1 * np.eye(2, dtype=np.float32), normal(6, 2, seed=2))


def _gaussian_process() -> Program:
    def fit(x: Any, y: Any, length: Any) -> Any:
        k = jnp.exp(-((x[:, None] - x[None]) ** 2) / length**2) + 0.1 * jnp.eye(x.size)
        chol = jnp.linalg.cholesky(k)
        alpha = jax.scipy.linalg.cho_solve((chol, True), y)
        return 0.5 * y @ alpha + jnp.log(jnp.diag(chol)).sum()

    return jax.value_and_grad(fit, 2), (np.linspace(0, 3, 8, dtype=np.float32), normal(8), np.float32(0.7))


def _linear_algebra() -> Program:
    def several(a: Any) -> Any:
        sym = a @ a.T + jnp.eye(4)
        q, r = jnp.linalg.qr(a)
        return (
            jnp.linalg.det(sym),
            jnp.linalg.inv(sym),
            jnp.linalg.eigvalsh(sym),
            jnp.abs(r),
            q @ r,
            jnp.linalg.svd(a)[1],
            jnp.linalg.slogdet(sym)[1],
        )

    return several, (normal(4, 4),)


def _spectrum() -> Program:
    def band(x: Any) -> Any:
        f = jnp.fft.rfft(x)
        f = jnp.where(jnp.arange(f.shape[-1]) < 5, f, 0)
        return jnp.fft.irfft(f, n=x.shape[-1]), jnp.abs(jnp.fft.fft(x)) ** 2

    return band, (normal(3, 16),)


def _order_statistics() -> Program:
    def several(x: Any) -> Any:
        return (
            jnp.sort(x, axis=0), jnp.argsort(-x, axis=1), jnp.median(x, axis=1), jnp.percentile(x, jnp.array([10.0, 90.0])),
            jax.lax.top_k(x, 3), jnp.searchsorted(jnp.sort(x.ravel()), jnp.array([-0.2, 0.0, 0.3])), jnp.partition(x, 2),
            jnp.unique(jnp.round(x), size=5, fill_value=0), jnp.lexsort((x[0], jnp.round(x[1]))),
        )  # fmt: skip

    return several, (normal(4, 9),)


def _indexing() -> Program:
    def several(x: Any, i: Any, m: Any) -> Any:
        return (
            x[i], x[:, i], x[i, i[::-1]], x.at[i].add(1.0), x.at[i, 0].set(5.0), x.at[:, i].multiply(2.0), x.at[i].max(0.1),
            jnp.where(m, x, 0), jnp.take(x, i, axis=1), jax.nn.one_hot(i, 5), jax.ops.segment_sum(x, i, num_segments=6),
            jnp.roll(x, 2, 1), jnp.flip(x, 0), jnp.pad(x, ((1, 0), (0, 2)), mode="reflect"), jnp.diag(x), jnp.tril(x),
            x[::2, 1:-1:2], jnp.nonzero(m, size=4), jnp.bincount(i, length=6), jax.lax.dynamic_slice(x, (i[0], i[1]), (2, 3)),
            jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.tile(x, (1, 2)), jnp.repeat(x, 2, 0), jnp.select([x > 0.5, x > 0], [x, 2 * x], -1.0),
        )  # fmt: skip

    x = normal(5, 5)
    return several, (x, np.array([0, 3, 3, 1, 4], np.int32), x > 0)


def _pooling_and_transposed_convolution() -> Program:
    def net(x: Any, w: Any) -> Any:
        pooled = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        mean = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9
        up = jax.lax.conv_transpose(pooled, w, (2, 2), "SAME")
        return jnp.sum((up - mean) ** 2)

    return jax.value_and_grad(net, (0, 1)), (normal(2, 6, 6, 2), normal(3, 3, 2, 2, seed=1))


def _depthwise_and_grouped() -> Program:
    def net(x: Any, depthwise: Any, grouped: Any) -> Any:
        numbers = ("NCHW", "OIHW", "NCHW")
        y = jax.lax.conv_general_dilated(x, depthwise, (1, 1), "SAME", feature_group_count=4, dimension_numbers=numbers)
        y = jax.lax.conv_general_dilated(
            y, grouped, (2, 2), [(1, 1), (1, 1)], rhs_dilation=(2, 2), feature_group_count=2, dimension_numbers=numbers
        )
        return jnp.sum(jax.nn.silu(y))

    return jax.grad(net, (0, 1, 2)), (normal(1, 4, 6, 6), normal(4, 1, 3, 3, seed=1), normal(6, 2, 2, 2, seed=2))


def _scans() -> Program:
    def several(x: Any) -> Any:
        return (
            jnp.cumsum(x, 1), jnp.cumprod(x, 0), jax.lax.cummax(x, 1), jax.lax.cummin(x, 0, reverse=True), jax.lax.cumlogsumexp(x, 0),
            jax.lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1), axis=1),
            jax.lax.map(lambda r: jnp.sort(r) * 2, x), jax.lax.fori_loop(0, 4, lambda k, s: s * 0.5 + k, x),
        )  # fmt: skip

    return several, (normal(4, 7),)


def _random_numbers() -> Program:
    def draw(key: Any) -> Any:
        a, b, c, d, e, f, g = jax.random.split(key, 7)
        return (
            jax.random.normal(a, (5,)), jax.random.uniform(b, (3, 2), minval=-1, maxval=2), jax.random.randint(c, (6,), 0, 10),
            jax.random.categorical(d, jnp.zeros((4, 3))), jax.random.permutation(e, 8), jax.random.gumbel(f, (4,)),
            jax.random.truncated_normal(g, -1.0, 1.0, (4,)), jax.random.bits(jax.random.fold_in(a, 3), (2,)),
            jax.random.choice(b, 5, (4,)), jax.random.exponential(c, (3,)), jax.random.laplace(d, (3,)), jax.random.bernoulli(e, 0.3, (5,)),
        )  # fmt: skip

    return draw, (jax.random.key(11),)


def _special_functions() -> Program:
    from jax.scipy import special

    def several(x: Any) -> Any:
        y = jnp.abs(x) + 0.5
        return (
            special.gammaln(y), special.digamma(y), special.erfinv(x / 3), special.erfc(x), special.logsumexp(x, 0), special.expit(x),
            special.xlogy(y, y), special.i0e(x), special.i1e(x), special.ndtri(jax.nn.sigmoid(x)), jnp.logaddexp(x, y), jnp.hypot(x, y),
            jnp.sinc(x), jnp.arctan2(x, y), jnp.nan_to_num(jnp.log(x)), jnp.cbrt(x), jnp.nextafter(x, y), jnp.float_power(y, x),
            special.betaln(y, y), jax.nn.softplus(x), jax.nn.elu(x), jax.nn.leaky_relu(x), jax.nn.hard_tanh(x), jax.nn.mish(x),
        )  # fmt: skip

    return several, (normal(3, 4, scale=1.0),)


def _special_gradients() -> Program:
    from jax.scipy import special

    def total(x: Any) -> Any:
        y = jnp.abs(x) + 0.5
        return jnp.sum(special.gammaln(y) + special.erfc(x) + jnp.arctan2(x, y) + jnp.cumsum(x) * jnp.sort(x) + jnp.prod(y))

    return jax.grad(total), (normal(6, scale=1.0),)


def _mixed_precision() -> Program:
    def loss(w: Any, x: Any) -> Any:
        y = jnp.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
        return jnp.mean(jax.nn.relu(y) ** 2)

    return jax.value_and_grad(loss), (normal(4, 3), normal(5, 4, seed=1))


def _complex_numbers() -> Program:
    def several(x: Any, y: Any) -> Any:
        z = x + 1j * y
        return jnp.abs(z), jnp.angle(z), (z * jnp.conj(z)).real, jnp.exp(z).imag, jnp.einsum("ij,jk->ik", z, z.T)

    return several, (normal(3, 4), normal(3, 4, seed=1))


def _integers() -> Program:
    def several(a: Any, b: Any) -> Any:
        return (
            a // b, a % b, a << 2, a >> 1, a & b, a ^ b, ~a, jnp.divmod(a, b), jax.lax.population_count(a), jax.lax.clz(a), jnp.gcd(a, b),
            a.astype(jnp.uint8), a.astype(jnp.float16), jax.lax.bitcast_convert_type(a, jnp.float32), jnp.sign(a), jnp.power(b, 3),
            jnp.packbits((a > 0)[:8]), jnp.floor_divide(a, -b), jnp.fmod(a, b), jnp.invert(a > 0), jnp.left_shift(1, b % 5),
        )  # fmt: skip

    rng = np.random.default_rng(0)
    return several, (rng.integers(-100, 100, 9).astype(np.int32), rng.integers(1, 9, 9).astype(np.int32))


def _newton_by_custom_derivative() -> Program:
    @jax.custom_vjp
    def root(a: Any) -> Any:
        return jax.lax.while_loop(lambda x: jnp.any(jnp.abs(x * x - a) > 1e-5), lambda x: 0.5 * (x + a / x), a)

    root.defvjp(lambda a: ((y := root(a)), y), lambda y, ct: (ct / (2 * y),))
    return jax.value_and_grad(lambda a: jnp.sum(root(a))), (np.array([2.0, 3.0, 5.0], np.float32),)


def _hessian() -> Program:
    def energy(x: Any) -> Any:
        return jnp.sum(x**4) + jnp.prod(jnp.cos(x)) + jnp.linalg.norm(x)

    return jax.hessian(energy), (normal(4, scale=1.0),)


def _switch_and_cond() -> Program:
    def several(i: Any, x: Any) -> Any:
        a = jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.exp, lambda y: y * 2], x)
        return jax.lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, a)

    return jax.vmap(several), (np.array([0, 1, 2, 3, 9], np.int32), normal(5, 3))


def _beam_step() -> Program:
    @partial(jax.jit, static_argnums=2)
    def step(scores: Any, logp: Any, k: int) -> Any:
        total = (scores[:, None] + jax.nn.log_softmax(logp)).ravel()
        best, at = jax.lax.top_k(total, k)
        return best, at // logp.shape[1], at % logp.shape[1]

    return lambda s, p: step(s, p, 3), (normal(3), normal(3, 7, seed=1))


def _statistics() -> Program:
    def several(x: Any) -> Any:
        return (
            jnp.mean(x), jnp.std(x, 0), jnp.var(x, 1, ddof=1), jnp.cov(x), jnp.corrcoef(x), jnp.histogram(x, 4)[0], jnp.nanmean(x),
            jnp.average(x, weights=jnp.abs(x)), jnp.linalg.norm(x, axis=0), jnp.ptp(x), jnp.quantile(x, 0.3), jnp.interp(x, jnp.arange(3.0) - 1, jnp.arange(3.0) ** 2),
            jnp.convolve(x[0], x[1][:3]), jnp.gradient(x[0]), jnp.diff(x), jnp.trapezoid(x), jnp.outer(x[0], x[1]), jnp.kron(x[:2, :2], x[:2, :2]),
            jnp.cross(x[:, :3], x[:, 1:4]), jnp.polyval(x[0], x[1]), jnp.isclose(x, x + 1e-9), jnp.allclose(x, x),
        )  # fmt: skip

    return several, (normal(3, 6),)


PROGRAMS: dict[str, Callable[[], Program]] = {
    name.removeprefix("_"): make
    for name, make in list(globals().items())
    if name.startswith("_") and callable(make) and not name.startswith("__")
}
