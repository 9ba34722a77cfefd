"""What the tables compare with: PyTorch (cuBLAS, cuDNN, its attention), CuPy. Where one is missing its column is empty, and says why."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from bench.gpu.timing import device_seconds, host_seconds


class Torch:
    """PyTorch on a GPU; `missing` says why not."""

    def __init__(self) -> None:
        self.missing = ""
        self.torch: Any = None
        try:
            self.torch = import_module("torch")
        except ImportError as error:
            self.missing = f"torch: {error}"
            return
        if not self.torch.cuda.is_available():
            self.missing = "torch sees no GPU"

    @property
    def version(self) -> str:
        return "" if self.torch is None else str(self.torch.__version__)

    def array(self, value: np.ndarray[Any, Any]) -> Any:
        """A copy on the GPU."""
        torch = self.torch
        if value.dtype.name == "bfloat16":
            return torch.from_numpy(value.astype(np.float32)).cuda().bfloat16()
        return torch.from_numpy(np.ascontiguousarray(value)).cuda()

    def seconds(self, name: str, values: list[np.ndarray[Any, Any]], *, tf32: bool = False) -> float | None:
        """Seconds of the function `name` on these values; None where there is none."""
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        call = self.call(name, [self.array(value) for value in values])
        if call is None:
            return None

        def event() -> Any:
            made = torch.cuda.Event(enable_timing=True)
            made.record()
            return made

        return device_seconds(call, event, lambda a, b: a.elapsed_time(b) * 1e-3, torch.cuda.synchronize)

    def overhead(self) -> float:
        """Seconds of the host for the addition of two arrays of eight elements."""
        a = self.array(np.ones(8, np.float32))
        return host_seconds(lambda: a + a, self.torch.cuda.synchronize)

    def call(self, name: str, x: list[Any]) -> Callable[[], Any] | None:
        """What to run."""
        torch = self.torch
        f = torch.nn.functional
        one = torch.ones((), device="cuda")
        table: dict[str, Callable[[], Any]] = {
            "matmul": lambda: x[0] @ x[1],
            "scaled": lambda: torch.add(one, x[0], alpha=2.0),
            "added": lambda: x[0] + x[1],
            "gelu": lambda: f.gelu(x[0]),
            "transposed": lambda: x[0].t().contiguous(),
            "row_sum": lambda: x[0].sum(1),
            "column_sum": lambda: x[0].sum(0),
            "total": lambda: x[0].sum(),
            "softmax": lambda: torch.softmax(x[0], -1),
            "layer_norm": lambda: f.layer_norm(x[0], x[1].shape, x[1], x[2], 1e-5),
            "cumsum": lambda: x[0].cumsum(1),
            "copy": lambda: x[0].clone(),
            "attention": lambda: f.scaled_dot_product_attention(*(t.transpose(1, 2) for t in x), is_causal=True),
        }
        if name in table:
            return table[name]
        if name == "attention_gradient":
            leaves = [t.requires_grad_() for t in x]

            def backward() -> Any:
                heads = [t.transpose(1, 2) for t in leaves]
                out = f.scaled_dot_product_attention(*heads, is_causal=True)
                return torch.autograd.grad((out * heads[2]).sum(), leaves)

            return backward
        if name in ("convolution", "convolution_gradient"):
            image = x[0].permute(0, 3, 1, 2)  # NHWC in memory: channels last
            weight = x[1].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            pad = x[1].shape[0] // 2
            if name == "convolution":
                return lambda: f.conv2d(image, weight, padding=pad)
            leaves = [image.requires_grad_(), weight.requires_grad_()]
            return lambda: torch.autograd.grad(f.conv2d(*leaves, padding=pad).square().sum(), leaves)
        return None


class Cupy:
    """CuPy on a GPU; `missing` says why not."""

    def __init__(self) -> None:
        self.missing = ""
        self.cupy: Any = None
        try:
            self.cupy = import_module("cupy")
        except ImportError as error:
            self.missing = f"cupy: {error}"
            return
        if not self.cupy.is_available():
            self.missing = "cupy sees no GPU"

    @property
    def version(self) -> str:
        return "" if self.cupy is None else str(self.cupy.__version__)

    def overhead(self) -> float:
        """Seconds of the host for the addition of two arrays of eight elements."""
        a = self.cupy.ones(8, np.float32)
        return host_seconds(lambda: a + a, self.cupy.cuda.Device().synchronize)

    def copy_bandwidth(self, size: int) -> float:
        """Bytes a second of a copy within the device, read and written."""
        cupy = self.cupy
        a = cupy.zeros(size // 4, np.float32)
        b = cupy.empty_like(a)

        def event() -> Any:
            made = cupy.cuda.Event()
            made.record()
            return made

        seconds = device_seconds(
            lambda: cupy.copyto(b, a), event, lambda x, y: cupy.cuda.get_elapsed_time(x, y) * 1e-3, cupy.cuda.Device().synchronize
        )
        return 2 * size / seconds
