"""Random loop nests as text: any number of inputs, index maps with factors, offsets, windows, diagonals and reversals, bodies of all kinds.

Extents come first, so that the sizes of the operands follow from the maps. Bodies are smooth where they are evaluated, but for extrema.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

COMBINERS = ("sum", "sum", "product", "maximum", "minimum", "masked", "damped", "elementwise")


@dataclass(frozen=True)
class Program:
    """The text of a module with `@f`, and the shapes of its arguments."""

    text: str
    shapes: tuple[tuple[int, ...], ...]


def _expression(rng: Random, extents: list[int]) -> tuple[str, int]:
    """An index expression over the loops, and the size that the operand needs along it."""
    loops = rng.sample(range(len(extents)), min(len(extents), rng.choice((1, 1, 1, 2))))
    text, low, high = "", 0, 0
    for d in loops:
        factor = rng.choice((1, 1, 1, 2, -1))
        text += f" + d{d} * {factor}"
        low += min(0, factor * (extents[d] - 1))
        high += max(0, factor * (extents[d] - 1))
    shift = rng.choice((0, 0, 1)) - low
    return f"{text[3:]} + {shift}", high + shift + 1


def _plain(rng: Random, extents: list[int]) -> tuple[list[str], list[int]]:
    """A map of single loops: what upstream calls a projected permutation."""
    loops = rng.sample(range(len(extents)), rng.randint(0, len(extents)))
    return [f"d{d}" for d in loops], [extents[d] for d in loops]


def _input(rng: Random, extents: list[int]) -> tuple[list[str], list[int]]:
    if rng.random() < 0.4:
        return _plain(rng, extents)
    pairs = [_expression(rng, extents) for _ in range(rng.randint(1, 2))]
    return [e for e, _ in pairs], [n for _, n in pairs]


def _type(shape: list[int] | tuple[int, ...], element: str = "f64") -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def _term(rng: Random, names: list[str], lines: list[str], fresh: list[int]) -> str:
    """A few ops on the elements; the name of the last one."""

    def emit(text: str) -> str:
        fresh[0] += 1
        lines.append(f"    %v{fresh[0]} = {text}")
        return f"%v{fresh[0]}"

    values = list(names)
    if rng.random() < 0.4:
        index = emit("linalg.index 0 : index")
        number = emit(f"arith.index_cast {index} : index to i64")
        values.append(emit(f"arith.sitofp {number} : i64 to f64"))
    for _ in range(rng.randint(1, 4)):
        x, y = rng.choice(values), rng.choice(values)
        kind = rng.choice(("mulf", "mulf", "addf", "subf", "sin", "tanh", "exp", "div", "select", "max"))
        if kind in ("mulf", "addf", "subf"):
            values.append(emit(f"arith.{kind} {x}, {y} : f64"))
        elif kind in ("sin", "tanh"):
            values.append(emit(f"math.{kind} {x} : f64"))
        elif kind == "exp":
            values.append(emit(f"math.exp {emit(f'math.tanh {x} : f64')} : f64"))
        elif kind == "div":
            square = emit(f"arith.mulf {y}, {y} : f64")
            one = emit("arith.constant 1.5 : f64")
            values.append(emit(f"arith.divf {x}, {emit(f'arith.addf {square}, {one} : f64')} : f64"))
        elif kind == "select":
            test = emit(f"arith.cmpf olt, {x}, {y} : f64")
            values.append(emit(f"arith.select {test}, {emit(f'math.sin {x} : f64')}, {y} : f64"))
        else:
            values.append(emit(f"arith.maximumf {x}, {y} : f64"))
    return values[-1]


def _combined(rng: Random, how: str, term: str, lines: list[str]) -> str:
    """The new element of the output from the term and `%acc`."""
    simple = {"sum": "addf", "product": "mulf", "maximum": "maximumf", "minimum": "minimumf"}
    if how in simple:
        operands = ["%acc", term]
        rng.shuffle(operands)
        lines.append(f"    %new = arith.{simple[how]} {operands[0]}, {operands[1]} : f64")
    elif how == "masked":
        lines.append("    %limit = arith.constant 0.1 : f64")
        lines.append(f"    %on = arith.cmpf ogt, {term}, %limit : f64")
        lines.append(f"    %more = arith.addf %acc, {term} : f64")
        lines.append("    %new = arith.select %on, %more, %acc : f64")
    elif how == "damped":
        lines.append("    %old = math.tanh %acc : f64")
        lines.append(f"    %new = arith.addf %old, {term} : f64")
    elif rng.random() < 0.5:
        lines.append(f"    %new = arith.mulf %acc, {term} : f64")
    else:
        return term
    return "%new"


def program(seed: int) -> Program:
    """One nest in a function of its inputs; a third of them have two outputs, read a scalar by name, or elements of a tensor."""
    rng = Random(seed)
    rank = rng.randint(1, 3)
    extents = [rng.randint(1, 3) for _ in range(rank)]
    how = rng.choice(COMBINERS)
    written = rng.sample(range(rank), rank if how == "elementwise" else rng.randint(0, rank))
    inputs = [_input(rng, extents) for _ in range(rng.randint(1, 3))]
    told = {e for exprs, _ in inputs for e in exprs} | {f"d{d}" for d in written}
    missing = [d for d in range(rank) if f"d{d}" not in told]
    if missing:
        inputs.append(([f"d{d}" for d in missing], [extents[d] for d in missing]))
    outputs = [([f"d{d}" for d in written], [extents[d] for d in written])]
    two, scalar, gathers = rng.random() < 0.33, rng.random() < 0.33, rng.random() < 0.33
    if two:  # over the same dimensions, or over all of them: a value for each point
        outputs.append(outputs[0] if rng.random() < 0.5 else ([f"d{d}" for d in range(rank)], list(extents)))
    dims = ", ".join(f"d{d}" for d in range(rank))
    maps = ", ".join(f"affine_map<({dims}) -> ({', '.join(exprs)})>" for exprs, _ in (*inputs, *outputs))
    kinds = ", ".join('"parallel"' if d in written else '"reduction"' for d in range(rank))
    shapes = [tuple(shape) for _, shape in (*inputs, *outputs)]
    types = [_type(shape) for shape in shapes]
    names = [f"%x{k}" for k in range(len(inputs))]
    initial = [f"%init{k}" for k in range(len(outputs))]
    lines: list[str] = []
    elements = [f"%e{k}" for k in range(len(inputs))]
    outside: list[str] = []
    more: list[str] = []
    if scalar:
        outside.append("  %number = tensor.extract %scalar[] : tensor<f64>")
        more.append("%scalar: tensor<f64>")
        shapes.append(())
    if gathers:
        more.append("%table: tensor<3xf64>")
        shapes.append((3,))
        lines += [
            "    %i0 = linalg.index 0 : index",
            "    %three = arith.constant 3 : index",
            "    %at = arith.remsi %i0, %three : index",
            "    %looked = tensor.extract %table[%at] : tensor<3xf64>",
        ]
    readable = [*elements, *(["%number"] if scalar else []), *(["%looked"] if gathers else [])]
    fresh = [0]
    new = [_combined(rng, how, _term(rng, readable, lines, fresh), lines)]
    if two:
        lines.append(f"    %second = arith.addf {rng.choice([*readable, '%acc', '%acc2', new[0]])}, {rng.choice(readable)} : f64")
        new.append("%second")
    arguments = ", ".join([*(f"{n}: {t}" for n, t in zip([*names, *initial], types)), *more])
    accumulators = ["%acc", "%acc2"][: len(outputs)]
    results = types[len(inputs) :]
    found = ", ".join(f"%r{k}" for k in range(len(outputs)))
    body, before = "\n".join(lines), "\n".join(outside)
    text = f"""
func.func @f({arguments}) -> ({", ".join(results)}) {{
{before}
  {found} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
    ins({", ".join(names)} : {", ".join(types[: len(inputs)])}) outs({", ".join(initial)} : {", ".join(results)}) {{
  ^bb0({", ".join(f"{e}: f64" for e in (*elements, *accumulators))}):
{body}
    linalg.yield {", ".join(new)} : {", ".join("f64" for _ in new)}
  }} -> ({", ".join(results)})
  return {found} : {", ".join(results)}
}}
"""
    return Program(text, tuple(shapes))
