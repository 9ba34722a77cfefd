"""Contractions: `nd.dot_general`, every product of two tensors that sums over shared dimensions.

Meaning: docs/numerics.md, row `dot_general, conv`: products and sums in f32 at least, K = 0 gives 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import I64_ARRAY, TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_dims, check_element, check_shape
from gradir.dialects.text import Clause
from gradir.dialects.types import Dim, element_of, i64_array, is_complex, is_integer, rank_of, shape_of, sizes_agree, tensor


def check_product_elements(op: NdOp, lhs: SSAValue, rhs: SSAValue, result: SSAValue) -> None:
    """Floats multiply floats of one type, complex numbers complex numbers, integers integers; the result is as wide and of that kind."""
    for name, value in (("lhs", lhs), ("rhs", rhs), ("result", result)):
        check_element(op, name, value, "number or complex")
    kinds = [is_integer(element_of(value)) + 2 * is_complex(element_of(value)) for value in (lhs, rhs, result)]
    if len(set(kinds)) > 1 or (kinds[0] != 1 and element_of(lhs) != element_of(rhs)):
        op.fail(f"element types do not fit: lhs has {element_of(lhs)}, rhs has {element_of(rhs)}, result has {element_of(result)}")


@irdl_op_definition
class DotGeneralOp(NdOp):
    """`result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k]`.

    b are the paired dimensions `lhs_batch`, `rhs_batch`, k the paired `lhs_contract`, `rhs_contract`; m and n are what is left of lhs
    and rhs, in order. Integers are widened to the result's type first and wrap. StableHLO: dot_general. ONNX: MatMul, Gemm, Einsum.
    """

    name = "nd.dot_general"
    FAMILY: ClassVar[str] = "contraction"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("batch", "lhs_batch", "pair", "rhs_batch", optional=True),
        Clause("contract", "lhs_contract", "pair", "rhs_contract"),
    )
    TYPES: ClassVar[str] = "map"

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    lhs_batch = prop_def(I64_ARRAY)
    rhs_batch = prop_def(I64_ARRAY)
    lhs_contract = prop_def(I64_ARRAY)
    rhs_contract = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_product_elements(self, self.lhs, self.rhs, self.result)
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        check_dims(self, "lhs_batch and lhs_contract", self.numbers("lhs_batch") + self.numbers("lhs_contract"), len(lhs), "lhs")
        check_dims(self, "rhs_batch and rhs_contract", self.numbers("rhs_batch") + self.numbers("rhs_contract"), len(rhs), "rhs")
        for what, name in (("batch", "batch"), ("contracting", "contract")):
            a, b = self.numbers(f"lhs_{name}"), self.numbers(f"rhs_{name}")
            if len(a) != len(b):
                self.fail(f"numbers of {what} dimensions differ: lhs has {len(a)}, rhs has {len(b)}")
            for i, j in zip(a, b):
                if not sizes_agree(lhs[i], rhs[j]):
                    self.fail(f"{what} sizes differ: lhs dim {i} has {lhs[i]}, rhs dim {j} has {rhs[j]}")
        expected = self.result_shape(
            self.lhs,
            self.rhs,
            self.numbers("lhs_contract"),
            self.numbers("rhs_contract"),
            self.numbers("lhs_batch"),
            self.numbers("rhs_batch"),
        )
        check_shape(self, expected, self.result)

    @staticmethod
    def result_shape(
        lhs: SSAValue,
        rhs: SSAValue,
        lhs_contract: Sequence[int],
        rhs_contract: Sequence[int],
        lhs_batch: Sequence[int] = (),
        rhs_batch: Sequence[int] = (),
    ) -> tuple[Dim, ...]:
        """Batch sizes, then what is left of lhs, then what is left of rhs."""
        a, b = shape_of(lhs), shape_of(rhs)
        m = [a[i] for i in range(len(a)) if i not in lhs_contract and i not in lhs_batch]
        n = [b[j] for j in range(len(b)) if j not in rhs_contract and j not in rhs_batch]
        return (*(a[i] for i in lhs_batch), *m, *n)

    @staticmethod
    def infer(
        lhs: SSAValue,
        rhs: SSAValue,
        lhs_contract: Sequence[int],
        rhs_contract: Sequence[int],
        lhs_batch: Sequence[int] = (),
        rhs_batch: Sequence[int] = (),
        element: Attribute | None = None,
    ) -> TensorType[Any]:
        """The result's type; `element` is that of `lhs` unless given."""
        shape = DotGeneralOp.result_shape(lhs, rhs, lhs_contract, rhs_contract, lhs_batch, rhs_batch)
        return tensor(element or element_of(lhs), shape)

    @classmethod
    def make(
        cls,
        lhs: SSAValue,
        rhs: SSAValue,
        lhs_contract: Sequence[int],
        rhs_contract: Sequence[int],
        lhs_batch: Sequence[int] = (),
        rhs_batch: Sequence[int] = (),
        element: Attribute | None = None,
    ) -> Self:
        """`make(x, w, [1], [0])` is the matrix product x w."""
        properties = {
            "lhs_batch": i64_array(lhs_batch),
            "rhs_batch": i64_array(rhs_batch),
            "lhs_contract": i64_array(lhs_contract),
            "rhs_contract": i64_array(rhs_contract),
        }
        return new(cls, (lhs, rhs), cls.infer(lhs, rhs, lhs_contract, rhs_contract, lhs_batch, rhs_batch, element), properties)

    def free_dims(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Dimensions of lhs and of rhs that are neither batch nor contracted."""
        left = set(self.numbers("lhs_batch") + self.numbers("lhs_contract"))
        right = set(self.numbers("rhs_batch") + self.numbers("rhs_contract"))
        lhs_free = tuple(i for i in range(rank_of(self.lhs)) if i not in left)
        return lhs_free, tuple(j for j in range(rank_of(self.rhs)) if j not in right)


OPS = (DotGeneralOp,)
