"""Small PTX kernels for the tests, put together from their bodies."""

from __future__ import annotations

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
INDEX = """
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd9, %r4, 4; mul.wide.u32 %rd8, %r3, 4; cvt.u32.u64 %r9, %rd8;
"""
"""%r3: thread, %r4: global index, %rd9: its bytes, %r9: bytes of the thread within its block."""


def kernel(body: str, parameters: str = ".param .u64 x, .param .u64 y", variables: str = "") -> str:
    """A kernel `k`; pointers x, y are in %rd1, %rd2 and this thread's elements of them at %rd3, %rd4."""
    loads = "".join(
        f"  ld.param.u64 %rd{k + 1}, [{name}]; add.s64 %rd{k + 3}, %rd{k + 1}, %rd9;\n"
        for k, name in enumerate("xy")
        if f".u64 {name}" in parameters
    )
    return f"""{HEAD}.visible .entry k({parameters})
{{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<32>; .reg .f32 %f<32>; .reg .b64 %rd<32>; .reg .f64 %d<9>;
  {variables}
{INDEX}{loads}{body}
  ret;
}}
"""


SAXPY = kernel(
    """
  ld.param.f32 %f1, [a]; ld.param.u32 %r5, [n];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra DONE;
  ld.global.f32 %f2, [%rd3]; ld.global.f32 %f3, [%rd4]; fma.rn.f32 %f4, %f1, %f2, %f3; st.global.f32 [%rd4], %f4;
DONE:""",
    ".param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n",
)

BLOCK_SUM = kernel(
    """
  ld.global.f32 %f1, [%rd3]; mov.u32 %r10, buffer; add.s32 %r11, %r10, %r9; st.shared.f32 [%r11], %f1;
  bar.sync 0;
  mov.u32 %r12, 64;
LOOP: setp.ge.u32 %p1, %r3, %r12;
  @%p1 bra NEXT;
  shl.b32 %r13, %r12, 2; add.s32 %r14, %r11, %r13; ld.shared.f32 %f2, [%r14]; ld.shared.f32 %f3, [%r11]; add.rn.f32 %f3, %f3, %f2;
  st.shared.f32 [%r11], %f3;
NEXT: bar.sync 0;
  shr.u32 %r12, %r12, 1; setp.ne.u32 %p2, %r12, 0;
  @%p2 bra LOOP;
  setp.ne.u32 %p3, %r3, 0;
  @%p3 bra DONE;
  ld.shared.f32 %f4, [%r11]; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd2, %rd5; st.global.f32 [%rd6], %f4;
DONE:""",
    variables=".shared .align 4 .b8 buffer[512];",
)
"""Sums of blocks of 128 elements, by halves in shared memory."""
