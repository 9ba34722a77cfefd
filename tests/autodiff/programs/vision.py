"""Computer vision as in ADBench: bundle adjustment, hand tracking."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.autodiff.programs.toolkit import Program, Toolkit


def bundle_adjustment(k: Toolkit) -> Any:
    """Reprojection errors of points in cameras (rotation vector, centre, focal length, principal point, radial distortion), weighted."""
    xp = k.xp

    def rotate(rotation: Any, x: Any) -> Any:
        """Rodrigues' formula; the small angle by its linear part."""
        square = xp.sum(rotation**2)
        theta = xp.sqrt(xp.where(square > 1e-12, square, 1.0))
        axis = rotation / theta
        cross = xp.cross(axis, x)
        exact = x * xp.cos(theta) + cross * xp.sin(theta) + axis * (axis @ x) * (1 - xp.cos(theta))
        return xp.where(square > 1e-12, exact, x + xp.cross(rotation, x))

    def project(camera: Any, x: Any) -> Any:
        local = rotate(camera[:3], x - camera[3:6])
        image = local[:2] / local[2]
        radius = xp.sum(image**2)
        distorted = image * (1 + camera[9] * radius + camera[10] * radius**2)
        return distorted * camera[6] + camera[7:9]

    def loss(p: Any, cameras: Any, points: Any, features: Any) -> Any:
        found = k.ad.vmap(project)(p["cameras"][cameras], p["points"][points])
        errors = p["weights"][:, None] * (found - features)
        return xp.sum(errors**2) + xp.sum((1 - p["weights"] ** 2) ** 2)

    return loss


def bundle_adjustment_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    n, m, count = 3, 6, 12
    cameras = np.concatenate([0.3 * rng.randn(n, 3), rng.randn(n, 3) - [0, 0, 6], 1 + rng.rand(n, 1), 0.1 * rng.randn(n, 4)], axis=1)
    cameras[0, :3] = 0  # the small angle
    p = {"cameras": cameras, "points": rng.randn(m, 3), "weights": 0.5 + rng.rand(count)}
    return p, rng.randint(0, n, count).astype(np.int32), rng.randint(0, m, count).astype(np.int32), rng.randn(count, 2)


def hand_tracking(k: Toolkit) -> Any:
    """A chain of bones posed by Euler angles; vertices follow by linear blend skinning, and are compared with measured points."""
    xp = k.xp

    def euler(angles: Any) -> Any:
        cos, sin = xp.cos(angles), xp.sin(angles)
        one, zero = xp.ones_like(cos[0]), xp.zeros_like(cos[0])
        x = xp.array([[one, zero, zero], [zero, cos[0], -sin[0]], [zero, sin[0], cos[0]]])
        y = xp.array([[cos[1], zero, sin[1]], [zero, one, zero], [-sin[1], zero, cos[1]]])
        z = xp.array([[cos[2], -sin[2], zero], [sin[2], cos[2], zero], [zero, zero, one]])
        return z @ y @ x

    def loss(p: Any, parents: Any, offsets: Any, vertices: Any, weights: Any, measured: Any) -> Any:
        bones = offsets.shape[0]
        transforms: list[Any] = []
        for b in range(bones):
            local = xp.eye(4, dtype=offsets.dtype).at[:3, :3].set(euler(p["angles"][b])).at[:3, 3].set(offsets[b] * xp.exp(p["log_size"]))
            transforms.append(local if parents[b] < 0 else transforms[parents[b]] @ local)
        stacked = xp.stack(transforms)
        homogeneous = xp.concatenate([vertices, xp.ones((vertices.shape[0], 1), vertices.dtype)], axis=1)
        moved = xp.einsum("bij,vj->vbi", stacked[:, :3], homogeneous)
        skinned = xp.einsum("vb,vbi->vi", weights, moved) + p["translation"]
        return xp.sum((skinned - measured) ** 2) + 0.1 * xp.sum(p["angles"] ** 2)

    parents = (-1, 0, 1, 0, 3)
    return lambda p, *data: loss(p, parents, *data)


def hand_tracking_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    bones, v = 5, 10
    weights = rng.rand(v, bones)
    p = {"angles": 0.5 * rng.randn(bones, 3), "translation": 0.1 * rng.randn(3), "log_size": np.float64(0.1)}
    return p, rng.randn(bones, 3), rng.randn(v, 3), weights / weights.sum(1, keepdims=True), rng.randn(v, 3)


PROGRAMS = (
    Program("bundle_adjustment", bundle_adjustment, bundle_adjustment_arguments),
    Program("hand_tracking", hand_tracking, hand_tracking_arguments),
)
