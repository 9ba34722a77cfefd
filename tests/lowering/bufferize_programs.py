"""Level-2 programs for the tests of `bufferize`: a small library of kernels, and random programs made of them.

All tensors are 3x3 f32 ("cells") or 5x3x3 ("stacks"). Every kernel keeps values bounded, so that loops of any length stay comparable.
"""

from __future__ import annotations

import random

CELL = "tensor<3x3xf32>"
STACK = "tensor<5x3x3xf32>"
DEPTH = 5

_ID, _T = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (j, i)>"
_PAR = '"parallel", "parallel"'


def _elementwise(maps: str, ins: str, types: str, args: str, body: str, out: str = "%d", result: str = "%r") -> str:
    return f"""    {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{_PAR}]}} ins({ins} : {types}) outs({out} : {CELL}) {{
    ^bb0({args}, %o: f32):
{body}
    }} -> {CELL}
"""


def _product(a: str, b: str, init: str, result: str) -> str:
    maps = ", ".join(f"affine_map<(m, n, k) -> ({d})>" for d in ("m, k", "k, n", "m, n"))
    return f"""    {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({a}, {b} : {CELL}, {CELL}) outs({init} : {CELL}) {{
    ^bb0(%p: f32, %q: f32, %s: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %s, %0 : f32
      linalg.yield %1 : f32
    }} -> {CELL}
"""


def _kernel(name: str, kind: str, inputs: int, body: str, results: str = "%r") -> str:
    count = results.count("%")
    names = [f"%{c}" for c in "abc"[:inputs]] + ["%d", "%e"][:count]
    arguments = ", ".join(f"{n}: {CELL}" for n in names)
    types = CELL if count == 1 else "(" + ", ".join([CELL] * count) + ")"
    return f"""  func.func private @{name}({arguments}) -> {types} attributes {{gradir.kernel = #kernel.{kind}<>}} {{
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
{body}    return {results} : {", ".join([CELL] * count)}
  }}
"""


_HALF_SUM = "      %0 = arith.addf %p, %q : f32\n      %1 = arith.mulf %0, %half : f32\n      linalg.yield %1 : f32"
_HALF_DIFFERENCE = _HALF_SUM.replace("addf", "subf", 1)
_SCALED = "      %0 = arith.mulf %p, %half : f32\n      %1 = arith.addf %0, %half : f32\n      linalg.yield %1 : f32"
_FILL = "    %f = linalg.fill ins(%zero : f32) outs({0} : {1}) -> {1}\n"

KERNELS: dict[str, tuple[int, int, str]] = {
    "mean": (2, 1, _kernel("mean", "elementwise", 2, _elementwise(f"{_ID}, {_ID}, {_ID}", "%a, %b", f"{CELL}, {CELL}", "%p: f32, %q: f32", _HALF_SUM))),
    "scale": (1, 1, _kernel("scale", "elementwise", 1, _elementwise(f"{_ID}, {_ID}", "%a", CELL, "%p: f32", _SCALED))),
    "flip": (1, 1, _kernel("flip", "elementwise", 1, _elementwise(f"{_T}, {_ID}", "%a", CELL, "%p: f32", _SCALED))),
    "flipped_mean": (
        2, 1,
        _kernel("flipped_mean", "elementwise", 2, _elementwise(f"{_ID}, {_T}, {_ID}", "%a, %b", f"{CELL}, {CELL}", "%p: f32, %q: f32", _HALF_SUM)),
    ),
    "product": (
        2, 1,
        _kernel(
            "product", "contraction", 2,
            f"    %t = tensor.empty() : {CELL}\n" + _FILL.format("%t", CELL) + _product("%a", "%b", "%f", "%m")
            + _elementwise(f"{_ID}, {_ID}", "%m", CELL, "%p: f32", "      %0 = math.tanh %p : f32\n      linalg.yield %0 : f32"),
        ),
    ),
    "accumulate": (
        3, 1,
        _kernel(
            "accumulate", "contraction", 3,
            f"    %t = tensor.empty() : {CELL}\n" + _FILL.format("%t", CELL) + _product("%a", "%b", "%f", "%m")
            + f"    %u = tensor.empty() : {CELL}\n"
            + _elementwise(f"{_ID}, {_ID}, {_ID}", "%c, %m", f"{CELL}, {CELL}", "%p: f32, %q: f32", _HALF_SUM, "%u", "%v")
            + _elementwise(f"{_ID}, {_ID}", "%v", CELL, "%p: f32", "      %0 = math.tanh %p : f32\n      linalg.yield %0 : f32"),
        ),
    ),
    "zeros": (0, 1, _kernel("zeros", "elementwise", 0, _FILL.format("%d", CELL).replace("%f", "%r"))),
    "both": (
        2, 2,
        _kernel(
            "both", "elementwise", 2,
            _elementwise(f"{_ID}, {_ID}, {_ID}", "%a, %b", f"{CELL}, {CELL}", "%p: f32, %q: f32", _HALF_SUM, "%d", "%r")
            + _elementwise(f"{_ID}, {_ID}, {_ID}", "%a, %b", f"{CELL}, {CELL}", "%p: f32, %q: f32", _HALF_DIFFERENCE, "%e", "%s"),
            "%r, %s",
        ),
    ),
}  # fmt: skip


def module(body: str, signature: str = f"(%x: {CELL}, %y: {CELL}, %s: {STACK}, %n: index, %flag: i1)", results: str = CELL) -> str:
    """A module with all kernels and one public function `@f`."""
    kernels = "".join(text for _, _, text in KERNELS.values())
    return f"module {{\n{kernels}  func.func @f{signature} -> {results} {{\n{body}\n  }}\n}}\n"


def call(result: str, kernel: str, *operands: str) -> str:
    """`%result = call @kernel(operands, destinations)`; several results as `result#k` are named result, result_1, ..."""
    inputs, outputs, _ = KERNELS[kernel]
    assert len(operands) == inputs
    bare = result.removeprefix("%")
    empties = [f"%{bare}_e{k}" for k in range(outputs)]
    lines = [f"{e} = tensor.empty() : {CELL}" for e in empties]
    names = ", ".join([result, *(f"{result}_{k}" for k in range(1, outputs))])
    types = CELL if outputs == 1 else "(" + ", ".join([CELL] * outputs) + ")"
    arguments = ", ".join([*operands, *empties])
    signature = ", ".join([CELL] * (inputs + outputs))
    return "\n".join([*lines, f"{names} = func.call @{kernel}({arguments}) : ({signature}) -> {types}"]) + "\n"


def get(result: str, stack: str, at: str) -> str:
    """A cell of a stack."""
    return f"{result} = tensor.extract_slice {stack}[{at}, 0, 0] [1, 3, 3] [1, 1, 1] : {STACK} to {CELL}\n"


def put(result: str, cell: str, stack: str, at: str) -> str:
    """The stack with one cell replaced."""
    return f"{result} = tensor.insert_slice {cell} into {stack}[{at}, 0, 0] [1, 3, 3] [1, 1, 1] : {CELL} into {STACK}\n"


class Generator:
    """Random programs: calls, slices, loops, branches over a pool of values in scope."""

    def __init__(self, seed: int, size: int = 14) -> None:
        self.random = random.Random(seed)
        self.left = size
        self.count = 0

    def name(self) -> str:
        """A fresh SSA name."""
        self.count += 1
        return f"%v{self.count}"

    def program(self) -> str:
        """One module."""
        head = "".join(f"%c{k} = arith.constant {k} : index\n" for k in range(DEPTH + 1))
        text, cells, stacks = self.block(["%x", "%y"], ["%s"], ["%c0", "%c1", "%c2", "%c3", "%c4"], 0)
        count = self.random.randint(1, 3)
        returned = [self.pick(cells) for _ in range(count)] + [self.pick_stack(stacks)]
        types = ", ".join([CELL] * count + [STACK])
        return module(f"{head}{text}return {', '.join(returned)} : {types}", results=f"({types})")

    def pick(self, values: list[str]) -> str:
        """A cell, rather a recent one."""
        return values[-1] if self.random.random() < 0.4 else self.random.choice(values)

    def pick_stack(self, values: list[str]) -> str:
        """A stack, mostly the last version, so that updates in place are possible."""
        return values[-1] if self.random.random() < 0.85 else self.random.choice(values)

    def pick_one(self, type_: str, cells: list[str], stacks: list[str]) -> str:
        """A value of that type."""
        return self.pick(cells) if type_ == CELL else self.pick_stack(stacks)

    def block(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> tuple[str, list[str], list[str]]:
        """Some ops; the values in scope at their end."""
        cells, stacks = list(cells), list(stacks)
        text = ""
        for _ in range(self.random.randint(1, 5)):
            if self.left <= 0:
                break
            self.left -= 1
            kinds = {
                "call": 7,
                "get": 2,
                "put": 3,
                "window": 3,
                "build": 1,
                "for": 3 - depth,
                "record": 3 - depth,
                "if": 3 - depth,
                "while": depth < 2,
            }
            kind = self.random.choices(list(kinds), [int(weight) for weight in kinds.values()])[0]
            text += getattr(self, kind)(cells, stacks, indices, depth)
        return text, cells, stacks

    def call(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        kernel = self.random.choice(list(KERNELS))
        inputs, outputs, _ = KERNELS[kernel]
        name = self.name()
        text = call(name, kernel, *(self.pick(cells) for _ in range(inputs)))
        cells += [name, *(f"{name}_{k}" for k in range(1, outputs))]
        return text

    def get(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        cells.append(self.name())
        return get(cells[-1], self.pick_stack(stacks), self.pick(indices))

    def put(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        stacks.append(self.name())
        return put(stacks[-1], self.pick(cells), self.pick_stack(stacks[:-1]), self.pick(indices))

    def window(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        """A cell is made, the stack is read and maybe changed, then the cell is put into the stack: may it be made there?"""
        text = self.call(cells, stacks, indices, depth)
        made, stack = cells[-1], stacks[-1]
        text += get(old := self.name(), stack, self.pick(indices)) + call(new := self.name(), "scale", old)
        cells += [old, new]
        if self.random.random() < 0.3:
            stacks.append(self.name())
            text += put(stacks[-1], new, stack, self.pick(indices))
        stacks.append(self.name())
        return text + put(stacks[-1], made, stacks[-2], self.pick(indices))

    def build(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        last = self.name()
        text = f"{last} = tensor.empty() : {STACK}\n"
        for k in range(DEPTH):
            new = self.name()
            text += put(new, self.pick(cells), last, f"%c{k}")
            last = new
        stacks.append(last)
        return text

    def carried(self, cells: list[str], stacks: list[str]) -> tuple[list[str], list[str], int]:
        """Initial values and their types, cells first; how many are cells."""
        some = [self.pick(cells) for _ in range(self.random.randint(0, 3))]
        more = [self.pick_stack(stacks) for _ in range(self.random.randint(0, 2))]
        if not some and not more:
            some = [self.pick(cells)]
        return some + more, [CELL] * len(some) + [STACK] * len(more), len(some)

    def both(self, results: list[str], count: int, cells: list[str], stacks: list[str]) -> None:
        cells += results[:count]
        stacks += results[count:]

    def yielded(self, types: list[str], cells: list[str], stacks: list[str]) -> str:
        values = [self.pick_one(t, cells, stacks) for t in types]
        return f"scf.yield {', '.join(values)} : {', '.join(types)}\n" if values else "scf.yield\n"

    def signature(self, types: list[str]) -> str:
        return "(" + ", ".join(types) + ")"

    def for_(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        initial, types, count = self.carried(cells, stacks)
        arguments, variable = [self.name() for _ in initial], self.name()
        body, inner, more = self.block(cells + arguments[:count], stacks + arguments[count:], [*indices, variable], depth + 1)
        low = self.random.choice(["%c0", "%c1", "%c0"])
        high = self.random.choice(["%n", "%c3", "%c5", "%c0", "%c1"])
        results = [self.name() for _ in initial]
        pairs = ", ".join(f"{a} = {v}" for a, v in zip(arguments, initial))
        self.both(results, count, cells, stacks)
        head = f"{', '.join(results)} = scf.for {variable} = {low} to {high} step %c1 iter_args({pairs}) -> {self.signature(types)} {{\n"
        return head + body + self.yielded(types, inner, more) + "}\n"

    def record(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        """A recurrence that saves its states in a stack, forwards or backwards."""
        a, b, variable, at, new, saved, h, st = (self.name() for _ in range(8))
        body, inner, more = self.block([*cells, a], [*stacks, b], [*indices, variable], depth + 1)
        if self.random.random() < 0.8:
            more = [b]  # otherwise whatever the body made of the stack
        kernel = self.random.choice(["product", "scale", "flip", "mean"])
        body += call(new, kernel, *[a, self.pick(inner)][: KERNELS[kernel][0]])
        body += f"{at} = arith.{self.random.choice([f'addi {variable}, %c1', f'subi %c3, {variable}', f'subi {variable}, %c0'])} : index\n"
        body += put(saved, new, self.pick_stack(more), at) + f"scf.yield {new}, {saved} : {CELL}, {STACK}\n"
        initial = f"{a} = {self.pick(cells)}, {b} = {self.pick_stack(stacks)}"
        high = self.random.choice(["%n", "%c3", "%c4", "%c1"])
        cells.append(h)
        stacks.append(st)
        return f"{h}, {st} = scf.for {variable} = %c0 to {high} step %c1 iter_args({initial}) -> ({CELL}, {STACK}) {{\n{body}}}\n"

    def if_(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        _, types, count = self.carried(cells, stacks)
        condition = self.name()
        text = f"{condition} = arith.cmpi ult, {self.pick(indices)}, {self.random.choice(['%n', '%c2'])} : index\n"
        branches = ""
        for number in range(2):
            body, inner, more = self.block(cells, stacks, indices, depth + 1)
            branches += (" else {\n" if number else "{\n") + body + self.yielded(types, inner, more) + "}"
        results = [self.name() for _ in types]
        self.both(results, count, cells, stacks)
        return f"{text}{', '.join(results)} = scf.if {condition} -> {self.signature(types)} {branches}\n"

    def while_(self, cells: list[str], stacks: list[str], indices: list[str], depth: int) -> str:
        initial, types, count = self.carried(cells, stacks)
        before, after = [self.name() for _ in initial], [self.name() for _ in initial]
        results = [self.name() for _ in initial]
        i, j, k, go, next_ = (self.name() for _ in range(5))
        body0, inner, more = self.block(cells + before[:count], stacks + before[count:], indices, depth + 2)
        forwarded = [self.pick_one(t, inner, more) if self.random.random() < 0.3 else b for t, b in zip(types, before)]
        text = body0 + f"{go} = arith.cmpi slt, {i}, {self.random.choice(['%n', '%c3', '%c0'])} : index\n"
        text += f"scf.condition({go}) {', '.join([*forwarded, i])} : {', '.join([*types, 'index'])}\n}} do {{\n"
        text += f"^bb0({', '.join(f'{a}: {t}' for a, t in zip([*after, j], [*types, 'index']))}):\n"
        body, inner, more = self.block(cells + after[:count], stacks + after[count:], [*indices, j], depth + 2)
        values = [self.pick_one(t, inner, more) for t in types]
        text += body + f"{next_} = arith.addi {j}, %c1 : index\n"
        text += f"scf.yield {', '.join([*values, next_])} : {', '.join([*types, 'index'])}\n}}\n"
        pairs = ", ".join(f"{b} = {v}" for b, v in zip([*before, i], [*initial, "%c0"]))
        types_ = ", ".join([*types, "index"])
        self.both(results, count, cells, stacks)
        return f"{', '.join([*results, k])} = scf.while ({pairs}) : ({types_}) -> ({types_}) {{\n" + text


setattr(Generator, "for", Generator.for_)
setattr(Generator, "if", Generator.if_)
setattr(Generator, "while", Generator.while_)


TEMPLATE = """module {
  func.func private @histogram(%keys: tensor<6xi32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.template<>} {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<4xf32>) -> tensor<4xf32>
    %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%t = %f) -> (tensor<4xf32>) {
      %k = tensor.extract %keys[%i] : tensor<6xi32>
      %j = arith.index_cast %k : i32 to index
      %old = tensor.extract %t[%j] : tensor<4xf32>
      %new = arith.addf %old, %one : f32
      %n = tensor.insert %new into %t[%j] : tensor<4xf32>
      scf.yield %n : tensor<4xf32>
    }
    return %r : tensor<4xf32>
  }
  func.func private @add_to(%keys: tensor<6xi32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.template<>} {
    %one = arith.constant 1.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%t = %d) -> (tensor<4xf32>) {
      %k = tensor.extract %keys[%i] : tensor<6xi32>
      %j = arith.index_cast %k : i32 to index
      %old = tensor.extract %t[%j] : tensor<4xf32>
      %new = arith.addf %old, %one : f32
      %n = tensor.insert %new into %t[%j] : tensor<4xf32>
      scf.yield %n : tensor<4xf32>
    }
    return %r : tensor<4xf32>
  }
  func.func @f(%keys: tensor<6xi32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %h = func.call @histogram(%keys, %e) : (tensor<6xi32>, tensor<4xf32>) -> tensor<4xf32>
    %g = func.call @add_to(%keys, %x) : (tensor<6xi32>, tensor<4xf32>) -> tensor<4xf32>
    %g2 = func.call @add_to(%keys, %g) : (tensor<6xi32>, tensor<4xf32>) -> tensor<4xf32>
    return %h, %g2 : tensor<4xf32>, tensor<4xf32>
  }
}
"""
