"""Gradir: gradient IR, gradually lowered. The public names, nothing else; the compiler loads on first use."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Any

from gradir.errors import GradirError

__version__ = "0.1.0"

_PYTHON = "gradir.frontends.python."
HOMES: dict[str, tuple[str, ...]] = {
    _PYTHON + "dims": ("Dim",),
    _PYTHON + "jit": ("jit", "compile", "bundle"),
    _PYTHON + "compiled": ("Compiled",),
    _PYTHON + "frozen": ("freeze",),
    _PYTHON + "devices": ("device", "device_put"),
    _PYTHON + "dynamic": ("Spec",),
    _PYTHON + "program": ("parse", "Program"),
    _PYTHON + "costs": ("flops",),
    _PYTHON + "batching": ("vmap",),
    _PYTHON + "jacobians": ("hessian", "jacfwd", "jacrev"),
    _PYTHON + "custom_rules": ("checkpoint", "custom_jvp", "custom_vjp"),
    _PYTHON + "gradient_checks": ("check_grads",),
    _PYTHON + "transforms": ("grad", "jvp", "value_and_grad"),
    _PYTHON + "linear_maps": ("linearize", "vjp"),
    _PYTHON + "eager": ("eager",),
    _PYTHON + "arrays": ("Array",),
    _PYTHON + "control": ("cond", "switch", "fori_loop", "while_loop", "scan"),
    _PYTHON + "pytrees": ("tree_map",),
    _PYTHON + "library": ("register_custom_call", "custom_call"),
    _PYTHON + "dtypes": (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
        "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    ),
    _PYTHON + "elementwise": (
        "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin", "cos", "floor", "ceil", "relu", "negative",
        "abs", "sign", "invert", "stop_gradient", "square", "isfinite", "add", "subtract", "multiply",
        "divide", "maximum", "minimum", "fmod", "mod", "floor_divide", "power", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor",
        "left_shift", "right_shift", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_not", "logical_and",
        "logical_or", "where", "clip", "gelu", "pi", "inf", "nan",
    ),
    _PYTHON + "mathematics": (
        "round", "rint", "round_away", "trunc", "cbrt", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh",
        "arctanh", "erfc", "erf_inv", "isnan", "isinf", "population_count", "clz", "logaddexp", "hypot", "log2", "log10", "exp2",
        "reciprocal",
    ),
    _PYTHON + "quantization": ("quantize", "dequantize"),
    _PYTHON + "bits": ("bitcast_convert", "reduce_precision", "nextafter"),
    _PYTHON + "special": ("lgamma", "digamma", "trigamma", "polygamma", "zeta", "i0e", "i1e", "fma"),
    _PYTHON + "complex": ("real", "imag", "conj", "angle", "complex"),
    _PYTHON + "reduction": (
        "sum", "prod", "max", "min", "any", "all", "mean", "average", "var", "std", "norm", "argmax", "argmin", "count_nonzero",
    ),
    _PYTHON + "cumulative": ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"),
    _PYTHON + "shape": (
        "reshape", "flatten", "transpose", "swapaxes", "expand_dims", "squeeze", "broadcast", "concatenate", "stack", "split", "flip",
        "pad",
    ),
    _PYTHON + "rearrange": (
        "ravel", "broadcast_to", "moveaxis", "hstack", "vstack", "tile", "repeat", "roll", "fliplr", "flipud", "tril", "triu", "eye",
        "identity",
        "trace", "diagonal", "diag", "outer", "linspace", "meshgrid",
    ),
    _PYTHON + "einsum": ("einsum",),
    _PYTHON + "contraction": ("dot_general", "matmul", "dot", "tensordot"),
    _PYTHON + "products": ("cross", "inner", "kron", "vdot"),
    _PYTHON + "pooling": ("reduce_window", "max_pool", "avg_pool"),
    _PYTHON + "folding": ("reduce", "sort_by", "select_and_scatter"),
    _PYTHON + "gather_scatter": ("take_along_axis", "gather", "scatter"),
    _PYTHON + "convolution": ("conv", "conv_transpose"),
    _PYTHON + "creation": (
        "array", "asarray", "full", "empty", "zeros", "ones", "zeros_like", "ones_like", "full_like", "arange", "iota", "one_hot",
    ),
    _PYTHON + "composite": ("softmax", "log_softmax", "logsumexp", "layer_norm", "cross_entropy"),
    _PYTHON + "activation": (
        "silu", "softplus", "log_sigmoid", "mish", "elu", "celu", "selu", "leaky_relu", "relu6", "hard_tanh", "hard_sigmoid", "hard_silu",
        "glu",
    ),
    _PYTHON + "normalization": ("batch_norm", "batch_norm_inference", "group_norm", "rms_norm", "attention"),
    _PYTHON + "losses": (
        "mse_loss", "l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "kl_div", "nll_loss",
    ),
    _PYTHON + "effects": ("assert_", "optimization_barrier", "print"),
    "gradir.printing": ("set_print_sink",),
    _PYTHON + "sampled": ("searchsorted", "interp", "diff", "trapezoid", "polyval", "vander"),
    _PYTHON + "special_values": (
        "nan_to_num", "isclose", "allclose", "heaviside", "fmax", "fmin", "nansum", "nanmean", "sinc",
    ),
    _PYTHON + "sorting": ("sort", "argsort", "sort_together", "top_k", "median"),
    _PYTHON + "indexing": ("take", "dynamic_slice", "dynamic_update_slice", "scatter_add"),
}  # fmt: skip
_HOME = {name: home for home, names in HOMES.items() for name in names}

__all__ = ["GradirError", "__version__", "preload", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]  (the names of the table above)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        if name in ("runtime", "reference"):
            return import_module(f"gradir.{name}")
        if name in ("random", "linalg", "fft"):
            return import_module(_PYTHON + name)
        raise AttributeError(f"module 'gradir' has no attribute {name!r}", name=name, obj=sys.modules[__name__])  # "did you mean"
    collecting = gc.isenabled()
    gc.disable()  # what an import makes stays: looking for garbage in it costs a twentieth of the time
    try:
        value = getattr(import_module(home), name)
    finally:
        if collecting:
            gc.enable()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def preload() -> None:
    """Load the compiler and the functions of this module now instead of at the first call."""
    import_module("gradir.driver.preload").preload()
    for home in HOMES:
        import_module(home)
