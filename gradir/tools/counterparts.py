"""What the ops of level 1 are called elsewhere: StableHLO (and CHLO), ONNX, torch, numpy, JAX.

One row per op. A framework without the op is left empty; an op that StableHLO lacks says why in `none`. docs/ops.md prints the rows, and a
test compares the column `stablehlo` with the exporter's rules. A plugin adds rows to `COUNTERPARTS`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Counterpart:
    """Names of one op; `none`: why StableHLO has no counterpart, where `stablehlo` is empty."""

    stablehlo: str = ""
    onnx: str = ""
    torch: str = ""
    numpy: str = ""
    jax: str = ""
    none: str = ""


COMPOSITE = "composite"
"""In the column `stablehlo`: several ops there, written as a `stablehlo.composite` that keeps the op's name."""

LINES = """
nd.relu          | composite          | Relu               | relu           |              | nn.relu
nd.neg           | negate             | Neg                | neg            | negative     | lax.neg
nd.abs           | abs                | Abs                | abs            | abs          | lax.abs
nd.sign          | sign               | Sign               | sgn            | sign         | lax.sign
nd.exp           | exponential        | Exp                | exp            | exp          | lax.exp
nd.expm1         | exponential_minus_one |                    | expm1          | expm1        | lax.expm1
nd.log           | log                | Log                | log            | log          | lax.log
nd.log1p         | log_plus_one       |                    | log1p          | log1p        | lax.log1p
nd.sqrt          | sqrt               | Sqrt               | sqrt           | sqrt         | lax.sqrt
nd.rsqrt         | rsqrt              |                    | rsqrt          |              | lax.rsqrt
nd.tanh          | tanh               | Tanh               | tanh           | tanh         | lax.tanh
nd.logistic      | logistic           | Sigmoid            | sigmoid        |              | lax.logistic
nd.erf           | chlo.erf           | Erf                | erf            |              | lax.erf
nd.sin           | sine               | Sin                | sin            | sin          | lax.sin
nd.cos           | cosine             | Cos                | cos            | cos          | lax.cos
nd.floor         | floor              | Floor              | floor          | floor        | lax.floor
nd.ceil          | ceil               | Ceil               | ceil           | ceil         | lax.ceil
nd.not           | not                | BitwiseNot, Not    | bitwise_not    | invert       | lax.bitwise_not
nd.is_finite     | is_finite          |                    | isfinite       | isfinite     | lax.is_finite
nd.convert       | convert            | Cast               | Tensor.to      | astype       | lax.convert_element_type
nd.add           | add                | Add                | add            | add          | lax.add
nd.sub           | subtract           | Sub                | sub            | subtract     | lax.sub
nd.mul           | multiply           | Mul                | mul            | multiply     | lax.mul
nd.mul_strong    | composite          |                    |                |              |
nd.div           | divide             | Div                | div            | divide       | lax.div
nd.rem           | remainder          | Mod (fmod=1)       | fmod           | fmod         | lax.rem
nd.pow           | power              | Pow                | pow            | power        | lax.pow
nd.max           | maximum            | Max                | maximum        | maximum      | lax.max
nd.min           | minimum            | Min                | minimum        | minimum      | lax.min
nd.atan2         | atan2              |                    | atan2          | arctan2      | lax.atan2
nd.and           | and                | BitwiseAnd, And    | bitwise_and    | bitwise_and  | lax.bitwise_and
nd.or            | or                 | BitwiseOr, Or      | bitwise_or     | bitwise_or   | lax.bitwise_or
nd.xor           | xor                | BitwiseXor, Xor    | bitwise_xor    | bitwise_xor  | lax.bitwise_xor
nd.shl           | shift_left         | BitShift (LEFT)    | bitwise_left_shift | left_shift   | lax.shift_left
nd.shr_s         | shift_right_arithmetic |                    | bitwise_right_shift | right_shift  | lax.shift_right_arithmetic
nd.shr_u         | shift_right_logical | BitShift (RIGHT)   |                |              | lax.shift_right_logical
nd.compare       | compare            | Less, Equal, ..    | lt, eq, ..     | less, equal, .. | lax.lt, lax.eq, ..
nd.select        | select             | Where              | where          | where        | lax.select
nd.clamp         | clamp              | Clip               | clamp          | clip         | lax.clamp
nd.round_even    | round_nearest_even | Round              | round          | rint         | lax.round
nd.round_away    | round_nearest_afz  |                    |                |              | lax.round
nd.trunc         | composite          |                    | trunc          | trunc        | numpy.trunc
nd.cbrt          | cbrt               |                    |                | cbrt         | lax.cbrt
nd.tan           | tan                | Tan                | tan            | tan          | lax.tan
nd.asin          | chlo.asin          | Asin               | asin           | arcsin       | lax.asin
nd.acos          | chlo.acos          | Acos               | acos           | arccos       | lax.acos
nd.atan          | chlo.atan          | Atan               | atan           | arctan       | lax.atan
nd.sinh          | chlo.sinh          | Sinh               | sinh           | sinh         | lax.sinh
nd.cosh          | chlo.cosh          | Cosh               | cosh           | cosh         | lax.cosh
nd.asinh         | chlo.asinh         | Asinh              | asinh          | arcsinh      | lax.asinh
nd.acosh         | chlo.acosh         | Acosh              | acosh          | arccosh      | lax.acosh
nd.atanh         | chlo.atanh         | Atanh              | atanh          | arctanh      | lax.atanh
nd.erfc          | chlo.erfc          |                    | erfc           |              | lax.erfc
nd.erf_inv       | chlo.erf_inv       |                    | erfinv         |              | lax.erf_inv
nd.is_nan        | compare            | IsNaN              | isnan          | isnan        | numpy.isnan
nd.is_inf        | chlo.is_inf        | IsInf              | isinf          | isinf        | numpy.isinf
nd.lgamma        | chlo.lgamma        |                    | lgamma         |              | lax.lgamma
nd.digamma       | chlo.digamma       |                    | digamma        |              | lax.digamma
nd.trigamma      | composite          |                    | polygamma(1, x) |             | scipy.special.polygamma
nd.bessel_i1e    | chlo.bessel_i1e    |                    | special.i1e    |              | lax.bessel_i1e
nd.zeta          | chlo.zeta          |                    | special.zeta   |              | lax.zeta
nd.polygamma     | chlo.polygamma     |                    | polygamma      |              | lax.polygamma
nd.fma           | composite          |                    |                |              | 
nd.popcnt        | popcnt             |                    |                | bitwise_count | lax.population_count
nd.clz           | count_leading_zeros |                    |                |              | lax.clz
nd.reduce_sum    | reduce             | ReduceSum          | sum            | sum          | lax.reduce_sum
nd.reduce_prod   | reduce             | ReduceProd         | prod           | prod         | lax.reduce_prod
nd.reduce_max    | reduce             | ReduceMax          | amax           | max          | lax.reduce_max
nd.reduce_min    | reduce             | ReduceMin          | amin           | min          | lax.reduce_min
nd.reduce_any    | reduce             | ReduceMax          | any            | any          | lax.reduce_or
nd.reduce_all    | reduce             | ReduceMin          | all            | all          | lax.reduce_and
nd.argmax        | reduce             | ArgMax             | argmax         | argmax       | lax.argmax
nd.argmin        | reduce             | ArgMin             | argmin         | argmin       | lax.argmin
nd.cumsum        | composite          | CumSum             | cumsum         | cumsum       | lax.cumsum
nd.cumprod       | composite          |                    | cumprod        | cumprod      | lax.cumprod
nd.cummax        | composite          |                    | cummax         | maximum.accumulate | lax.cummax
nd.cummin        | composite          |                    | cummin         | minimum.accumulate | lax.cummin
nd.cumlogsumexp  | composite          |                    | logcumsumexp   | logaddexp.accumulate | lax.cumlogsumexp
nd.dot_general   | dot_general        | MatMul, Gemm, Einsum | matmul, einsum | tensordot, einsum | lax.dot_general
nd.conv_general  | convolution        | Conv               | nn.functional.conv2d |              | lax.conv_general_dilated
nd.reduce_window | reduce_window      | MaxPool, AveragePool | nn.functional.max_pool2d |              | lax.reduce_window
nd.select_and_scatter | select_and_scatter | MaxUnpool          | nn.functional.max_unpool2d |              | lax.select_and_scatter_add
nd.reshape       | reshape            | Reshape            | reshape        | reshape      | lax.reshape
nd.transpose     | transpose          | Transpose          | permute        | transpose    | lax.transpose
nd.broadcast     | broadcast_in_dim   | Expand             | expand         | broadcast_to | lax.broadcast_in_dim
nd.slice         | slice              | Slice              | x[a:b:c]       | x[a:b:c]     | lax.slice
nd.pad           | pad                | Pad                | nn.functional.pad | pad          | lax.pad
nd.concatenate   | concatenate        | Concat             | cat            | concatenate  | lax.concatenate
nd.reverse       | reverse            |                    | flip           | flip         | lax.rev
nd.gather        | gather             | Gather             | index_select   | take (mode=clip) | lax.gather
nd.scatter_add   | scatter            | ScatterND (add)    | index_add      | add.at       | lax.scatter_add
nd.dynamic_slice | dynamic_slice      |                    | narrow         |              | lax.dynamic_slice
nd.dynamic_update_slice | dynamic_update_slice |                    | slice_scatter  |              | lax.dynamic_update_slice
nd.index_at      | dynamic_slice      |                    | select         | x[i]         | lax.dynamic_index_in_dim
nd.update_at     | dynamic_update_slice |                    | select_scatter | x[i] = v     | lax.dynamic_update_index_in_dim
nd.constant      | constant           | Constant           | tensor         | array        | numpy.array
nd.iota          | iota               | Range              | arange         | arange       | lax.broadcasted_iota
nd.empty         | constant           |                    | empty          | empty        | lax.empty
nd.bitcast_convert | bitcast_convert    |                    | Tensor.view    | view         | lax.bitcast_convert_type
nd.reduce_precision | reduce_precision   |                    |                |              | lax.reduce_precision
nd.next_after    | chlo.next_after    |                    | nextafter      | nextafter    | lax.nextafter
nd.real          | real               |                    | real           | real         | lax.real
nd.imag          | imag               |                    | imag           | imag         | lax.imag
nd.complex       | complex            |                    | complex        | re + 1j * im | lax.complex
nd.conj          | composite          |                    | conj           | conj         | lax.conj
nd.gather_general | gather             | GatherND           |                |              | lax.gather
nd.scatter_general | scatter            | ScatterND          | scatter_reduce |              | lax.scatter, lax.scatter_max, ..
nd.take_along_axis | composite          | GatherElements     | take_along_dim | take_along_axis | numpy.take_along_axis
nd.sort          | sort               |                    | sort           | sort, argsort | lax.sort
nd.top_k         | composite          | TopK               | topk           |              | lax.top_k
nd.reduce        | reduce             |                    |                |              | lax.reduce
nd.reduce_window_general | reduce_window      |                    |                |              | lax.reduce_window
nd.select_and_scatter_general | select_and_scatter |                    |                |              | lax.select_and_scatter
nd.optimization_barrier | optimization_barrier |                    |                |              | lax.optimization_barrier
nd.random_bits   | composite          |                    |                |              | random.bits
nd.threefry2x32  | composite          |                    |                |              | extend.random.threefry_2x32
nd.philox4x32    | composite          |                    |                |              |
nd.silu          | composite          | Swish              | nn.functional.silu |              | nn.silu
nd.softplus      | composite          | Softplus           | nn.functional.softplus | logaddexp(x, 0) | nn.softplus
nd.batch_norm_train | composite          | BatchNormalization | nn.functional.batch_norm |              |
nd.batch_norm_infer | composite          | BatchNormalization | nn.functional.batch_norm |              |
nd.group_norm    | composite          | GroupNormalization | nn.functional.group_norm |              |
nd.rms_norm      | composite          | RMSNormalization   | nn.functional.rms_norm |              |
nd.attention     | composite          | Attention          | nn.functional.scaled_dot_product_attention | | nn.dot_product_attention
nd.cholesky      | cholesky           |                    | linalg.cholesky | linalg.cholesky | lax.linalg.cholesky
nd.triangular_solve | triangular_solve   |                    | linalg.solve_triangular |          | lax.linalg.triangular_solve
nd.fft           | fft                | DFT                | fft.fftn       | fft.fftn     | lax.fft
nd.ifft          | fft                | DFT (inverse)      | fft.ifftn      | fft.ifftn    | lax.fft
nd.rfft          | fft                | DFT (onesided)     | fft.rfftn      | fft.rfftn    | lax.fft
nd.irfft         | fft                |                    | fft.irfftn     | fft.irfftn   | lax.fft
nd.variance      | composite          |                    | var            | var          | numpy.var
nd.norm          | composite          | ReduceL1, ReduceL2 | linalg.vector_norm | linalg.norm | numpy.linalg.norm
nd.split         | composite          | Split              | split          | split        | lax.split
nd.one_hot       | composite          | OneHot             | nn.functional.one_hot |       | nn.one_hot
nd.quantize      | composite          | QuantizeLinear     | quantize_per_tensor |         |
nd.dequantize    | composite          | DequantizeLinear   | Tensor.dequantize |           |
nd.custom_call   | custom_call        |                    | library.custom_op |           | ffi.ffi_call, pure_callback
nd.softmax       | composite          | Softmax            | softmax        |              | nn.softmax
nd.log_softmax   | composite          | LogSoftmax         | log_softmax    |              | nn.log_softmax
nd.logsumexp     | composite          | ReduceLogSumExp    | logsumexp      |              | scipy.special.logsumexp
nd.layer_norm    | composite          | LayerNormalization | nn.functional.layer_norm |              |
nd.gelu          | composite          | Gelu               | nn.functional.gelu |              | nn.gelu
nd.cross_entropy | composite          | SoftmaxCrossEntropyLoss | nn.functional.cross_entropy |              |
"""
"""op | StableHLO (without `stablehlo.`) | ONNX | torch | numpy | JAX (without `jax.`)"""

NO_SUCH_FACTORISATION = "no such op there; JAX calls LAPACK by custom_call"

NONE: dict[str, str] = {
    **dict.fromkeys(("nd.lu", "nd.qr", "nd.eigh", "nd.svd"), NO_SUCH_FACTORISATION),
    "nd.symbol": "names of sizes are ours; StableHLO asks a tensor for its size",
    "nd.bessel_i0e": "CHLO has bessel_i1e only; JAX writes a polynomial",
    "nd.dim": "the exporter writes static sizes only",
    "nd.yield": "the end of a region: stablehlo.return",
    "nd.assert": "StableHLO has no assertions",
    "nd.print": "StableHLO has no output",
    "nd.bind": "names of sizes are ours; StableHLO asks a tensor for its size",
}
"""Op -> why StableHLO has nothing like it."""


def _rows() -> dict[str, Counterpart]:
    cells = [[cell.strip() for cell in line.split("|")] for line in LINES.strip().splitlines()]
    return {op: Counterpart(*names) for op, *names in cells} | {op: Counterpart(none=reason) for op, reason in NONE.items()}


COUNTERPARTS: dict[str, Counterpart] = _rows()
"""Op -> its names elsewhere."""
