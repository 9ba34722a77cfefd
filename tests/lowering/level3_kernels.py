"""Text of level-3 kernels for the tests of loop generation: a small writer, and the kernels that models are made of."""

from __future__ import annotations

from collections.abc import Sequence


def memref(shape: Sequence[int | str], element: str = "f32") -> str:
    return "memref<" + "".join(f"{n}x" for n in shape) + element + ">"


class KernelText:
    """Writes one kernel: `arg`s first, then `temp`, `fill`, `generic` in order, then `done`."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.args: list[str] = []
        self.lines: list[str] = []
        self.types: dict[str, str] = {}
        self.temps: list[str] = []

    def arg(self, name: str, shape: Sequence[int | str] | None, element: str = "f32", layout: str = "") -> str:
        self.types[name] = element if shape is None else memref(shape, element).replace(">", f"{layout}>")
        self.args.append(f"{self._ref(name)}: {self.types[name]}")
        return name

    def constant(self, name: str, value: str, element: str = "f32") -> str:
        self.types[name] = element
        self.lines.append(f"{self._ref(name)} = arith.constant {value} : {element}")
        return name

    def temp(self, name: str, shape: Sequence[int | str], element: str = "f32", sizes: Sequence[str] = ()) -> str:
        """A temporary; `sizes` names (argument, dim) as `x:0` for its `?` dims."""
        self.types[name] = memref(shape, element)
        values: list[str] = []
        for k, size in enumerate(sizes):
            source, dim = size.split(":")
            self.lines.append(f"%{name}_d{k} = arith.constant {dim} : index")
            self.lines.append(f"%{name}_s{k} = memref.dim {self._ref(source)}, %{name}_d{k} : {self.types[source]}")
            values.append(f"%{name}_s{k}")
        self.lines.append(f"{self._ref(name)} = memref.alloc({', '.join(values)}) : {self.types[name]}")
        self.temps.append(name)
        return name

    def fill(self, value: str, target: str) -> None:
        self.lines.append(f"linalg.fill ins({self._ref(value)} : {self.types[value]}) outs({self._ref(target)} : {self.types[target]})")

    def generic(self, dims: str, ins: Sequence[tuple[str, str]], out: tuple[str, str], body: str, reduced: str = "") -> None:
        """`dims` and `reduced` are comma separated loop names; operands are (name, map results); the body yields %r from %a0, %a1, .., %o."""
        loops = [d.strip() for d in dims.split(",") if d.strip()]
        kinds = ['"reduction"' if d in [r.strip() for r in reduced.split(",")] else '"parallel"' for d in loops]
        maps = [f"affine_map<({', '.join(loops)}) -> ({m})>" for _, m in (*ins, out)]
        elements = [self._element(n) for n, _ in (*ins, out)]
        arguments = ", ".join(f"%{'o' if k == len(ins) else f'a{k}'}: {e}" for k, e in enumerate(elements))
        inputs = f"ins({', '.join(self._ref(n) for n, _ in ins)} : {', '.join(self.types[n] for n, _ in ins)}) " if ins else ""
        self.lines.append(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{', '.join(kinds)}]}} "
            f"{inputs}outs({self._ref(out[0])} : {self.types[out[0]]}) {{\n^bb0({arguments}):\n{body}\nlinalg.yield %r : {elements[-1]}\n}}"
        )

    @staticmethod
    def _ref(name: str) -> str:
        """Names of the writer's values never meet those inside a body."""
        return f"%v_{name}"

    def _element(self, name: str) -> str:
        type_ = self.types[name]
        return type_.split("<", 1)[1].split(",")[0].rstrip(">").split("x")[-1] if type_.startswith("memref") else type_

    def done(self, attributes: str = "") -> str:
        self.lines += [f"memref.dealloc {self._ref(t)} : {self.types[t]}" for t in self.temps]
        body = "\n".join([*self.lines, "return"])
        return f"func.func private @{self.name}({', '.join(self.args)}) attributes {{gradir.kernel = #kernel.{self.kind}}} {{\n{body}\n}}\n"


def sum_body(element: str = "f32") -> str:
    op = "addf" if element[0] in "fb" else "addi"
    return f"%r = arith.{op} %o, %a0 : {element}"


def product_body(element: str = "f32") -> str:
    suffix = "f" if element[0] in "fb" else "i"
    return f"%p = arith.mul{suffix} %a0, %a1 : {element}\n%r = arith.add{suffix} %o, %p : {element}"


def softmax(name: str, rows: int | str, columns: int | str, kind: str = "rows<>") -> str:
    """x, out: softmax of every row."""
    k = KernelText(name, kind)
    k.arg("x", (rows, columns))
    k.arg("out", (rows, columns))
    k.constant("low", "0xFF800000")
    k.constant("zero", "0.0")
    row_sizes = ["x:0"] if rows == "?" else []
    sizes = [f"x:{d}" for d, n in enumerate((rows, columns)) if n == "?"]
    k.temp("m", (rows,), sizes=row_sizes)
    k.fill("low", "m")
    k.generic("i, j", [("x", "i, j")], ("m", "i"), "%r = arith.maximumf %o, %a0 : f32", "j")
    k.temp("e", (rows, columns), sizes=sizes)
    k.generic("i, j", [("x", "i, j"), ("m", "i")], ("e", "i, j"), "%d = arith.subf %a0, %a1 : f32\n%r = math.exp %d : f32")
    k.temp("s", (rows,), sizes=row_sizes)
    k.fill("zero", "s")
    k.generic("i, j", [("e", "i, j")], ("s", "i"), sum_body(), "j")
    k.generic("i, j", [("e", "i, j"), ("s", "i")], ("out", "i, j"), "%r = arith.divf %a0, %a1 : f32")
    return k.done()


def layer_norm(name: str, rows: int | str, columns: int | str, kind: str = "rows<>") -> str:
    """x, scale, bias, 1/columns, eps, out."""
    k = KernelText(name, kind)
    k.arg("x", (rows, columns))
    k.arg("g", (columns,))
    k.arg("b", (columns,))
    k.arg("inv", None)
    k.arg("eps", None)
    k.arg("out", (rows, columns))
    k.constant("zero", "0.0")
    row_sizes = ["x:0"] if rows == "?" else []
    sizes = [f"x:{d}" for d, n in enumerate((rows, columns)) if n == "?"]
    k.temp("s", (rows,), sizes=row_sizes)
    k.fill("zero", "s")
    k.generic("i, j", [("x", "i, j")], ("s", "i"), sum_body(), "j")
    k.temp("d", (rows, columns), sizes=sizes)
    k.generic(
        "i, j", [("x", "i, j"), ("s", "i"), ("inv", "")], ("d", "i, j"), "%q = arith.mulf %a1, %a2 : f32\n%r = arith.subf %a0, %q : f32"
    )
    k.temp("v", (rows,), sizes=row_sizes)
    k.fill("zero", "v")
    k.generic("i, j", [("d", "i, j")], ("v", "i"), "%q = arith.mulf %a0, %a0 : f32\n%r = arith.addf %o, %q : f32", "j")
    k.temp("h", (rows,), sizes=row_sizes)
    k.generic(
        "i",
        [("v", "i"), ("inv", ""), ("eps", "")],
        ("h", "i"),
        "%q = arith.mulf %a0, %a1 : f32\n%t = arith.addf %q, %a2 : f32\n%r = math.sqrt %t : f32",
    )
    k.generic(
        "i, j",
        [("d", "i, j"), ("h", "i"), ("g", "j"), ("b", "j")],
        ("out", "i, j"),
        "%q = arith.divf %a0, %a1 : f32\n%t = arith.mulf %q, %a2 : f32\n%r = arith.addf %t, %a3 : f32",
    )
    return k.done()


def bias_gradient(name: str, rows: int | str, columns: int | str, kind: str = "rows<>") -> str:
    """g, y, b, rate, masked, out: masked = y > 0 ? g : 0;  out = b - rate * sum over rows of masked."""
    k = KernelText(name, kind)
    k.arg("g", (rows, columns))
    k.arg("y", (rows, columns))
    k.arg("b", (columns,))
    k.arg("rate", None)
    k.arg("masked", (rows, columns))
    k.arg("out", (columns,))
    k.constant("zero", "0.0")
    body = "%c = arith.cmpf ogt, %a1, %v_zero : f32\n%r = arith.select %c, %a0, %v_zero : f32"
    k.generic("i, j", [("g", "i, j"), ("y", "i, j")], ("masked", "i, j"), body)
    k.temp("s", (columns,), sizes=["g:1"] if columns == "?" else [])
    k.fill("zero", "s")
    k.generic("i, j", [("masked", "i, j")], ("s", "j"), sum_body(), "i")
    body = "%q = arith.mulf %a1, %a2 : f32\n%r = arith.subf %a0, %q : f32"
    k.generic("j", [("b", "j"), ("s", "j"), ("rate", "")], ("out", "j"), body)
    return k.done()


def loss(name: str, rows: int, columns: int, kind: str = "rows<>") -> str:
    """x, labels, inv, grad, mean, total: softmax cross-entropy: its gradient, the mean loss, and the gradient summed over rows."""
    k = KernelText(name, kind)
    k.arg("x", (rows, columns))
    k.arg("labels", (rows,), "i32")
    k.arg("inv", None)
    k.arg("grad", (rows, columns))
    k.arg("mean", ())
    k.arg("total", (columns,))
    k.constant("low", "0xFF800000")
    k.constant("zero", "0.0")
    k.temp("m", (rows,))
    k.fill("low", "m")
    k.generic("i, j", [("x", "i, j")], ("m", "i"), "%r = arith.maximumf %o, %a0 : f32", "j")
    k.temp("d", (rows, columns))
    k.generic("i, j", [("x", "i, j"), ("m", "i")], ("d", "i, j"), "%r = arith.subf %a0, %a1 : f32")
    k.temp("e", (rows, columns))
    k.generic("i, j", [("d", "i, j")], ("e", "i, j"), "%r = math.exp %a0 : f32")
    k.temp("s", (rows,))
    k.fill("zero", "s")
    k.generic("i, j", [("e", "i, j")], ("s", "i"), sum_body(), "j")
    k.temp("l", (rows,))
    k.generic("i", [("s", "i")], ("l", "i"), "%r = math.log %a0 : f32")
    k.temp("hit", (rows, columns), "i1")
    body = "%j = linalg.index 1 : index\n%k = arith.index_cast %j : index to i32\n%r = arith.cmpi eq, %a0, %k : i32"
    k.generic("i, j", [("labels", "i")], ("hit", "i, j"), body)
    k.temp("p", (rows, columns))
    body = "%q = arith.subf %a0, %a1 : f32\n%r = arith.select %a2, %q, %v_zero : f32"
    k.generic("i, j", [("d", "i, j"), ("l", "i"), ("hit", "i, j")], ("p", "i, j"), body)
    k.temp("t", ())
    k.fill("zero", "t")
    k.generic("i, j", [("p", "i, j")], ("t", ""), sum_body(), "i, j")
    k.generic("", [("t", ""), ("inv", "")], ("mean", ""), "%q = arith.mulf %a0, %a1 : f32\n%r = arith.negf %q : f32")
    body = "%q = arith.divf %a0, %a1 : f32\n%h = arith.uitofp %a2 : i1 to f32\n%t = arith.subf %q, %h : f32\n%r = arith.mulf %t, %a3 : f32"
    k.generic("i, j", [("e", "i, j"), ("s", "i"), ("hit", "i, j"), ("inv", "")], ("grad", "i, j"), body)
    k.fill("zero", "total")
    k.generic("i, j", [("grad", "i, j")], ("total", "j"), sum_body(), "i")
    return k.done()


def matmul(
    name: str,
    m: int | str,
    n: int | str,
    k: int | str,
    element: str = "f32",
    *,
    a: str = "m, k",
    b: str = "k, n",
    kind: str = "contraction<>",
    epilogue: bool = True,
) -> str:
    """x, w, [bias,] out: max(x @ w + bias, 0), operands laid out by the maps `a` and `b`."""
    extent = {"m": m, "n": n, "k": k}
    t = KernelText(name, kind)
    t.arg("x", [extent[d.strip()] for d in a.split(",")], element)
    t.arg("w", [extent[d.strip()] for d in b.split(",")], element)
    if epilogue:
        t.arg("bias", (n,), element)
    t.arg("out", (m, n), element)
    floating = element[0] in "fb"
    t.constant("zero", "0.0" if floating else "0", element)
    target = "out"
    if epilogue:
        sizes = [f"out:{d}" for d, size in enumerate((m, n)) if size == "?"]
        target = t.temp("acc", (m, n), element, sizes)
    t.fill("zero", target)
    t.generic("m, n, k", [("x", a), ("w", b)], (target, "m, n"), product_body(element), "k")
    if epilogue:
        add, top = ("addf", "maximumf") if floating else ("addi", "maxsi")
        body = f"%q = arith.{add} %a0, %a1 : {element}\n%r = arith.{top} %q, %v_zero : {element}"
        t.generic("m, n", [(target, "m, n"), ("bias", "n")], ("out", "m, n"), body)
    return t.done()
