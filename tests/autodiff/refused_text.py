"""Requests in IR that must be refused: text, with `<<` in front of the op at which the error is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refused:
    """What `gradir-opt -p differentiate` must say: a code, and every one of `words` somewhere in the diagnostics."""

    text: str
    code: str
    op: str
    words: tuple[str, ...]

    @property
    def source(self) -> str:
        """The text without the mark."""
        return self.text.replace("<<", "")

    @property
    def line(self) -> int:
        """The line of the error, from 1."""
        return self.text[: self.text.index("<<")].count("\n") + 1


LOSS = """func.func private @loss(%x: tensor<2xf64>, %n: tensor<i32>) -> tensor<f64> {
  %0 = nd.reduce_sum %x dims [0] : tensor<2xf64> -> tensor<f64>
  return %0 : tensor<f64>
}
"""


def request(line: str, before: str = LOSS, arguments: str = "%x: tensor<2xf64>, %n: tensor<i32>") -> str:
    """A function that makes one request, behind the functions that it names."""
    return f"{before}func.func @g({arguments}) {{\n  {line}\n  return\n}}\n"


def gradient(body: str, before: str = "", head: str = "func.func private @f(%x: tensor<2xf64>) -> tensor<f64> {") -> str:
    """The gradient of a function `@f` of that body."""
    asked = "func.func @g(%x: tensor<2xf64>) -> tensor<2xf64> {\n  %0 = ad.grad @f(%x) wrt [0] : (tensor<2xf64>) -> tensor<2xf64>\n"
    return f"{before}{head}\n{body}}}\n{asked}  return %0 : tensor<2xf64>\n}}\n"


def returning(kind: str, body: str) -> str:
    """A private `@f` of a vector that returns `%0` of that type."""
    return f"func.func private @f(%x: tensor<2xf64>) -> {kind} {{\n  {body}\n  return %0 : {kind}\n}}\n"


CALLS_F = """func.func private @h(%x: tensor<2xf64>) -> tensor<f64> {
  %0 = func.call @f(%x) : (tensor<2xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}
"""
SLOPE_OF_F = """func.func private @h(%x: tensor<2xf64>) -> tensor<f64> {
  %0 = <<ad.grad @f(%x) wrt [0] : (tensor<2xf64>) -> tensor<2xf64>
  %1 = nd.reduce_sum %0 dims [0] : tensor<2xf64> -> tensor<f64>
  return %1 : tensor<f64>
}
"""
RULES = """func.func private @k(%x: tensor<2xf64>) -> tensor<f64> {
  %0 = nd.reduce_sum %x dims [0] : tensor<2xf64> -> tensor<f64>
  return %0 : tensor<f64>
}
func.func private @fw(%x: tensor<2xf64>) -> (tensor<f64>, tensor<2xf64>) {
  %0 = nd.reduce_sum %x dims [0] : tensor<2xf64> -> tensor<f64>
  return %0, %x : tensor<f64>, tensor<2xf64>
}
func.func private @bw(%x: tensor<2xf64>, %c: tensor<f64>) -> tensor<2xf64> {
  return %x : tensor<2xf64>
}
func.func private @one(%x: tensor<2xf64>) -> tensor<2xf64> {
  return %x : tensor<2xf64>
}
func.func private @number(%x: tensor<2xf64>, %c: tensor<f64>) -> tensor<f64> {
  return %c : tensor<f64>
}
func.func private @still(%x: tensor<2xf64>, %t: tensor<2xf64>) -> tensor<f64> {
  %0 = nd.reduce_sum %t dims [0] : tensor<2xf64> -> tensor<f64>
  return %0 : tensor<f64>
}
"""
ITSELF = """func.func private @fw(%x: tensor<2xf64>) -> (tensor<f64>, tensor<2xf64>) {
  %0 = func.call @f(%x) : (tensor<2xf64>) -> tensor<f64>
  return %0, %x : tensor<f64>, tensor<2xf64>
}
func.func private @bw(%x: tensor<2xf64>, %c: tensor<f64>) -> tensor<2xf64> {
  %0 = <<ad.grad @f(%x) wrt [0] : (tensor<2xf64>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}
"""
BLOCKS = """  %c = arith.constant true
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %0 = nd.reduce_sum %x dims [0] : tensor<2xf64> -> tensor<f64>
  return %0 : tensor<f64>
^bb2:
  %1 = nd.reduce_max %x dims [0] : tensor<2xf64> -> tensor<f64>
  return %1 : tensor<f64>
"""
STORE = """  %m = memref.alloc() : memref<f64>
  %c0 = arith.constant 0 : index
  %s = tensor.extract %x[%c0] : tensor<2xf64>
  <<memref.store %s, %m[] : memref<f64>
  %v = memref.load %m[] : memref<f64>
  %0 = tensor.from_elements %v : tensor<f64>
  return %0 : tensor<f64>
"""
VECTOR = """  %c0 = arith.constant 0 : index
  %p = arith.constant 0.0 : f64
  %v = <<vector.transfer_read %x[%c0], %p : tensor<2xf64>, vector<2xf64>
  %s = vector.reduction <add>, %v : vector<2xf64> into f64
  %0 = tensor.from_elements %s : tensor<f64>
  return %0 : tensor<f64>
"""
PARALLEL = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = arith.constant 0.0 : f64
  %s = <<scf.parallel (%k) = (%c0) to (%c1) step (%c1) init (%i) -> f64 {
    %v = tensor.extract %x[%k] : tensor<2xf64>
    scf.reduce(%v : f64) {
    ^bb0(%a: f64, %b: f64):
      %t = arith.addf %a, %b : f64
      scf.reduce.return %t : f64
    }
  }
  %0 = tensor.from_elements %s : tensor<f64>
  return %0 : tensor<f64>
"""
PADDED = """func.func private @f(%x: tensor<?xf64, ["n"]>) -> tensor<?xf64> {
  %z = nd.constant splat(0.0 : f64) : tensor<f64>
  %0 = <<nd.pad %x, %z low [1] high [0] : tensor<?xf64, ["n"]>, tensor<f64> -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
"""
FEW = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %1 = nd.reduce_sum %x dims [0] : tensor<2xf64> -> tensor<f64>
  %0 = <<scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %1) -> (tensor<f64>) {
    %2 = nd.sin %s : tensor<f64>
    scf.yield %2 : tensor<f64>
  } {gradir.residuals = "few"}
  return %0 : tensor<f64>
"""
RETURN = "  return %0 : tensor<f64>\n"
V, S = "tensor<2xf64>", "tensor<f64>"

TEXTS: dict[str, Refused] = {
    # what is differentiated has no derivative
    "op without a rule": Refused(
        gradient(f'  %0 = <<"foo.bar"(%x) : ({V}) -> {S}\n{RETURN}'), "AD001", "foo.bar", ("@vjp(Op)", "ad.grad @f wrt [0]", "in function: @f")
    ),
    "parallel loop": Refused(gradient(PARALLEL), "AD001", "scf.parallel", ("active path",)),
    "operand without a derivative": Refused(
        gradient(f"  %1 = <<nd.zeta %x, %x : {V}\n  %0 = nd.reduce_sum %1 dims [0] : {V} -> {S}\n{RETURN}"), "AD001", "nd.zeta", ("exponent",)
    ),
    "call by name": Refused(
        gradient(f"  %0 = <<nd.custom_call @nobody(%x) : ({V}) -> {S}\n{RETURN}"),
        "AD009", "nd.custom_call", ("gradir.register_custom_call", "vjp=rule"),
    ),
    "a size without a name": Refused(
        request('%0, %1 = ad.vjp @f(%x, %c) wrt [0] : (tensor<?xf64, ["n"]>, tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64, ["n"]>)',
                PADDED, '%x: tensor<?xf64, ["n"]>, %c: tensor<?xf64>'),
        "AD008", "nd.pad", ("static sizes", "tensor<?xf64>"),
    ),
    "stored": Refused(gradient(STORE), "AD018", "memref.store", ("memref<f64>", "before the program is lowered")),
    "vector": Refused(gradient(VECTOR), "AD018", "vector.transfer_read", ("vector<2xf64>",)),
    "several blocks": Refused(gradient(BLOCKS, head="<<func.func private @f(%x: tensor<2xf64>) -> tensor<f64> {"), "GR063", "func.func", ("scf.if",)),
    # cycles
    "recursion": Refused(
        gradient(f"  %0 = func.call @f(%x) : ({V}) -> {S}\n{RETURN}", head="<<func.func private @f(%x: tensor<2xf64>) -> tensor<f64> {"),
        "AD006", "func.func", ("@f -> @f", "as a loop"),
    ),
    "recursion through another": Refused(
        "<<" + gradient(f"  %0 = func.call @h(%x) : ({V}) -> {S}\n{RETURN}", CALLS_F), "AD006", "func.func", ("@h -> @f -> @h",)
    ),
    "recursion under a checkpoint": Refused(
        gradient(f"  %0 = ad.checkpoint @f(%x) : ({V}) -> {S}\n{RETURN}", head="<<func.func private @f(%x: tensor<2xf64>) -> tensor<f64> {"),
        "AD006", "func.func", ("@f -> @f",),
    ),
    "its own derivative": Refused(
        gradient(f"  %0 = <<ad.grad @f(%x) wrt [0] : ({V}) -> {V}\n  %1 = nd.reduce_sum %0 dims [0] : {V} -> {S}\n  return %1 : {S}\n"),
        "AD006", "ad.grad", ("@f -> @f", "requests without cycles"),
    ),
    "a derivative in a callee of what is differentiated": Refused(
        gradient(f"  %0 = func.call @h(%x) : ({V}) -> {S}\n{RETURN}", SLOPE_OF_F), "AD006", "ad.grad", ("requests without cycles",)
    ),
    "a rule that differentiates its caller": Refused(
        gradient(f"  %0 = ad.custom_vjp @k forward @fw backward @bw(%x) : ({V}) -> {S}\n{RETURN}", ITSELF + returning(S, f"%0 = nd.reduce_sum %x dims [0] : {V} -> {S}").replace("@f", "@k")),
        "AD006", "ad.grad", ("@bw -> @f",),
    ),
    # functions that are not there
    "no such function": Refused(request(f"%0 = <<ad.grad @nobody(%x, %n) wrt [0] : ({V}, tensor<i32>) -> {V}"), "GR011", "ad.grad", ("@nobody",)),
    "no body": Refused(
        request(f"%0 = <<ad.grad @f(%x) wrt [0] : ({V}) -> {V}", f"func.func private @f({V}) -> {S}\n"), "AD004", "ad.grad", ("no body",)
    ),
    "a callee without body": Refused(
        gradient(f"  %0 = <<func.call @h(%x) : ({V}) -> {S}\n{RETURN}", f"func.func private @h({V}) -> {S}\n"), "AD004", "func.call", ("@h",)
    ),
    "a module instead of a function": Refused(
        request(f"%0 = <<ad.grad @m(%x, %n) wrt [0] : ({V}, tensor<i32>) -> {V}", "builtin.module @m {}\n"), "GR011", "ad.grad", ("builtin.module",)
    ),
    "checkpoint of nothing": Refused(request(f"%0 = <<ad.checkpoint @nobody(%x) : ({V}) -> {S}"), "GR011", "ad.checkpoint", ("@nobody",)),
    "checkpoint of a module": Refused(
        request(f"%0 = <<ad.checkpoint @m(%x) : ({V}) -> {S}", "builtin.module @m {}\n"), "GR011", "ad.checkpoint", ("not a function",)
    ),
    "checkpoint of too few arguments": Refused(
        request(f"%0 = <<ad.checkpoint @loss(%x) : ({V}) -> {S}"), "GR011", "ad.checkpoint", ("expected 2 arguments", "found 1")
    ),
    # positions
    "by an integer": Refused(
        request(f"%0 = <<ad.grad @loss(%x, %n) wrt [1] : ({V}, tensor<i32>) -> tensor<i32>"), "GR011", "ad.grad", ("argument 1", "tensor<i32>", "floats")
    ),
    "by no argument": Refused(request(f"%0 = <<ad.grad @loss(%x, %n) wrt [2] : ({V}, tensor<i32>) -> {V}"), "GR011", "ad.grad", ("expected 0 to 1",)),
    "by an argument twice": Refused(
        request(f"%0, %1 = <<ad.grad @loss(%x, %n) wrt [0, 0] : ({V}, tensor<i32>) -> ({V}, {V})"), "GR011", "ad.grad", ("twice: [0, 0]",)
    ),
    "by nothing": Refused(
        request(f'"<<ad.grad"(%x, %n) <{{callee = @loss, wrt = array<i64>}}> : ({V}, tensor<i32>) -> ()'), "GR011", "ad.grad", ("wrt is empty",)
    ),
    # losses
    "a loss of two elements": Refused(
        request(f"%0 = <<ad.grad @f(%x) wrt [0] : ({V}) -> {V}", returning(V, f"%0 = nd.sin %x : {V}")), "GR011", "ad.grad", ("scalar float", V)
    ),
    "an integer loss": Refused(
        request(f"%0 = <<ad.grad @f(%x) wrt [0] : ({V}) -> {V}", returning("tensor<i32>", f"%0 = nd.argmax %x dim 0 : {V} -> tensor<i32>")),
        "GR011", "ad.grad", ("scalar float", "found tensor<i32>"),
    ),
    "a complex loss": Refused(
        request("%0 = <<ad.grad @f(%x) wrt [0] : (tensor<complex<f64>>) -> tensor<complex<f64>>",
                "func.func private @f(%x: tensor<complex<f64>>) -> tensor<complex<f64>> {\n  return %x : tensor<complex<f64>>\n}\n",
                "%x: tensor<complex<f64>>"),
        "GR011", "ad.grad", ("scalar float", "found tensor<complex<f64>>"),
    ),
    "no result": Refused(
        request(f"%0 = <<ad.grad @f(%x) wrt [0] : ({V}) -> {V}", f"func.func private @f(%x: {V}) {{\n  return\n}}\n"),
        "GR011", "ad.grad", ("found no result",),
    ),
    # what loops keep
    "a policy that is none": Refused(gradient(FEW), "AD020", "scf.for", ("one of all, none, sqrt", "found: few")),
    # operands and results of requests
    "too few arguments": Refused(request(f"%0 = <<ad.grad @loss(%x) wrt [0] : ({V}) -> {V}"), "GR011", "ad.grad", ("expected 2 arguments", "found 1")),
    "a gradient of another shape": Refused(
        request(f"%0 = <<ad.grad @loss(%x, %n) wrt [0] : ({V}, tensor<i32>) -> tensor<3xf64>"), "GR011", "ad.grad", (f"must have type {V}",)
    ),
    "a cotangent of another shape": Refused(
        request(f"%0, %1 = <<ad.vjp @loss(%x, %n, %x) wrt [0] : ({V}, tensor<i32>, {V}) -> ({S}, {V})"),
        "GR011", "ad.vjp", ("argument 2 must have type tensor<f64>",),
    ),
    "no cotangent": Refused(
        request(f"%0, %1 = <<ad.vjp @loss(%x, %n) wrt [0] : ({V}, tensor<i32>) -> ({S}, {V})"), "GR011", "ad.vjp", ("expected 3 arguments",)
    ),
    "a tangent of another type": Refused(
        request(f"%0, %1 = <<ad.jvp @loss(%x, %n, %n) wrt [0] : ({V}, tensor<i32>, tensor<i32>) -> ({S}, {S})"),
        "GR011", "ad.jvp", (f"argument 2 must have type {V}, found tensor<i32>",),
    ),
    "lanes of different numbers": Refused(
        request("%0 = <<ad.batch @loss(%x, %n) over [0, 1] : (tensor<3x2xf64>, tensor<4xi32>) -> tensor<3xf64>", LOSS, "%x: tensor<3x2xf64>, %n: tensor<4xi32>"),
        "GR011", "ad.batch", ("must have type tensor<3xi32>, found tensor<4xi32>",),
    ),
    "lanes of a scalar": Refused(
        request(f"%0 = <<ad.batch @loss(%x, %n) over [1] : ({V}, tensor<i32>) -> tensor<3xf64>"), "GR011", "ad.batch", ("found tensor<i32>",)
    ),
    "a result without lanes": Refused(
        request(f"%0 = <<ad.batch @loss(%x, %n) over [0] : (tensor<3x2xf64>, tensor<i32>) -> {S}", LOSS, "%x: tensor<3x2xf64>, %n: tensor<i32>"),
        "GR011", "ad.batch", ("must have type tensor<3xf64>",),
    ),
    "stop_gradient to another type": Refused(
        request(f'%0 = "<<ad.stop_gradient"(%x) : ({V}) -> tensor<3xf64>', ""), "GR011", "ad.stop_gradient", ("types differ",)
    ),
    # rules of one's own
    "a forward function without the results": Refused(
        request(f"%0 = <<ad.custom_vjp @k forward @one backward @bw(%x) : ({V}) -> {S}", RULES), "GR011", "ad.custom_vjp", (f"must have type {S}, found {V}",)
    ),
    "a backward function of too few arguments": Refused(
        request(f"%0 = <<ad.custom_vjp @k forward @fw backward @one(%x) : ({V}) -> {S}", RULES), "GR011", "ad.custom_vjp", ("@one", "expected 2")
    ),
    "a cotangent that is no cotangent": Refused(
        request(f"%0 = <<ad.custom_vjp @k forward @fw backward @number(%x) : ({V}) -> {S}", RULES),
        "GR011", "ad.custom_vjp", (f"must have type {V}, found {S}",),
    ),
    "a tangent rule without tangents": Refused(
        request(f"%0 = <<ad.custom_jvp @k tangents @still(%x) : ({V}) -> {S}", RULES), "GR011", "ad.custom_jvp", ("expected 2 results of @still",)
    ),
}  # fmt: skip
