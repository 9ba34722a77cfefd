"""Physics and differential equations: neural ODE, leapfrog, n-body, Lennard-Jones, a solver with adaptive steps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.autodiff.programs.toolkit import Program, Toolkit


def neural_ode(k: Toolkit) -> Any:
    """A network as the right-hand side of an ODE, 20 steps of the classical Runge-Kutta method."""
    xp = k.xp

    def loss(params: Any, y0: Any, target: Any) -> Any:
        def f(t: Any, y: Any) -> Any:
            h = y
            for layer in params[:-1]:
                h = xp.tanh(h @ layer["w"] + layer["b"] * (1.0 + t))
            return h @ params[-1]["w"] + params[-1]["b"]

        steps, dt = 20, 0.05

        def step(i: Any, y: Any) -> Any:
            t = i.astype(y.dtype) * dt
            k1 = f(t, y)
            k2 = f(t + dt / 2, y + dt / 2 * k1)
            k3 = f(t + dt / 2, y + dt / 2 * k2)
            k4 = f(t + dt, y + dt * k3)
            return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return xp.mean((k.lax.fori_loop(0, steps, step, y0) - target) ** 2)

    return loss


def neural_ode_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    sizes = (3, 8, 8, 3)
    params = [{"w": 0.5 * rng.randn(a, b), "b": 0.1 * rng.randn(b)} for a, b in itertools.pairwise(sizes)]
    return params, rng.randn(4, 3), rng.randn(4, 3)


def hmc(k: Toolkit) -> Any:
    """Energy after 15 leapfrog steps on a banana-shaped density: the force is itself a gradient."""
    xp = k.xp

    def potential(q: Any, p: Any) -> Any:
        scaled = p["precision"] @ q
        return 0.5 * xp.sum(scaled**2) + xp.sum((q[1:] - p["bend"] * q[:-1] ** 2) ** 2)

    def loss(params: Any, q: Any, momentum: Any) -> Any:
        force = k.ad.grad(potential)
        step = xp.exp(params["log_step"])

        def leapfrog(_: Any, state: Any) -> Any:
            q, r = state
            r = r - 0.5 * step * force(q, params)
            q = q + step * r
            return q, r - 0.5 * step * force(q, params)

        q, r = k.lax.fori_loop(0, 15, leapfrog, (q, momentum))
        return potential(q, params) + 0.5 * xp.dot(r, r)

    return loss


def hmc_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    params = {"precision": np.eye(5) + 0.2 * rng.randn(5, 5), "bend": np.float64(0.7), "log_step": np.float64(-2.5)}
    return params, 0.5 * rng.randn(5), rng.randn(5)


def nbody(k: Toolkit) -> Any:
    """Gravity between bodies, pair by pair in two nested loops inside the time loop; the energy at the end."""
    xp, lax = k.xp, k.lax

    def loss(params: Any, mass: Any) -> Any:
        n, dt = mass.shape[0], 0.02

        def accelerations(x: Any) -> Any:
            def on(i: Any, total: Any) -> Any:
                def by(j: Any, a: Any) -> Any:
                    d = x[j] - x[i]
                    return a + mass[j] * d * (xp.sum(d * d) + 0.05) ** -1.5

                return total.at[i].set(lax.fori_loop(0, n, by, xp.zeros(3, x.dtype)))

            return lax.fori_loop(0, n, on, xp.zeros_like(x))

        def step(_: Any, state: Any) -> Any:
            x, v = state
            v = v + dt * accelerations(x)
            return x + dt * v, v

        x, v = lax.fori_loop(0, 10, step, (params["x"], params["v"]))
        distance = xp.sqrt(xp.sum((x[:, None] - x[None]) ** 2, axis=-1) + 0.05)
        return 0.5 * xp.sum(mass[:, None] * v**2) - 0.5 * xp.sum(mass[:, None] * mass / distance)

    return loss


def nbody_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    return {"x": rng.randn(5, 3), "v": 0.3 * rng.randn(5, 3)}, 0.5 + rng.rand(5)


def lennard_jones(k: Toolkit) -> Any:
    """Energy of particles in a periodic box with a cutoff; the distance of a particle to itself is masked out after the division."""
    xp = k.xp

    def loss(params: Any, box: Any) -> Any:
        x, epsilon, sigma = params["x"], params["epsilon"], params["sigma"]
        d = x[:, None] - x[None]
        d = d - box * xp.round(d / box)
        r2 = xp.sum(d * d, axis=-1)
        other = ~xp.eye(x.shape[0], dtype=bool)
        near = other & (r2 < (box / 2) ** 2)
        safe = xp.where(other, r2, 1.0)
        s6 = (sigma**2 / safe) ** 3
        return 0.5 * xp.sum(xp.where(near, 4 * epsilon * (s6 * s6 - s6), 0.0))

    return loss


def lennard_jones_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    grid = np.stack(np.meshgrid(*[np.arange(2.0)] * 3), -1).reshape(-1, 3) * 1.4
    return {"x": grid + 0.1 * rng.randn(8, 3), "epsilon": np.float64(1.1), "sigma": np.float64(0.9)}, np.float64(2.9)


def adaptive_ode(k: Toolkit) -> Any:
    """Van der Pol's oscillator by Heun's method with an embedded error estimate: rejected steps are repeated at half the size."""
    xp = k.xp

    def loss(params: Any, end: Any) -> Any:
        mu = params["mu"]
        f = lambda y: xp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

        def more(state: Any) -> Any:
            t, _, _ = state
            return t < end

        def step(state: Any) -> Any:
            t, dt, y = state
            dt = xp.minimum(dt, end - t)
            k1 = f(y)
            k2 = f(y + dt * k1)
            error = 0.5 * dt * xp.sqrt(xp.sum((k2 - k1) ** 2))
            grown = xp.clip(0.9 * xp.sqrt(2e-3 / error), 0.5, 2.0) * dt
            accept = lambda: (t + dt, grown, y + 0.5 * dt * (k1 + k2))
            return k.lax.cond(error < 2e-3, accept, lambda: (t, 0.5 * dt, y))

        zero = xp.zeros((), params["y"].dtype)
        _, _, y = k.while_loop(more, step, (zero, zero + 0.2, params["y"]), 80)
        return xp.sum(y**2)

    return loss


PROGRAMS = (
    Program("neural_ode", neural_ode, neural_ode_arguments),
    Program("hmc", hmc, hmc_arguments, f32_tolerance=1e-4, notes="energy is nearly conserved: its gradient is a small difference"),
    Program("nbody", nbody, nbody_arguments),
    Program("lennard_jones", lennard_jones, lennard_jones_arguments, hvp=True),
    Program("adaptive_ode", adaptive_ode, lambda rng: ({"mu": np.float64(1.2), "y": np.array([1.0, 0.5])}, np.float64(2.0)), trips=40),
)
