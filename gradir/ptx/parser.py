"""PTX text to `PtxModule`. The whole grammar that NVPTX, nvcc, Triton and numba emit; a text outside of it is a `GradirError` OP060."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gradir.ptx.declarations import Declarations
from gradir.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    PtxModule,
    Register,
    Source,
    Variable,
    Vector,
)
from gradir.ptx.tokens import Token, number_of, tokens_of
from gradir.ptx.types import WIDTHS

SPACES = (".shared", ".global", ".const", ".local", ".param")
SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyz]$|%(laneid|warpid|nwarpid|smid|nsmid|gridid|"
    r"lanemask_(eq|le|lt|ge|gt)|clock|clock64|clock_hi|globaltimer|globaltimer_lo|globaltimer_hi|cluster_ctarank|cluster_nctarank|"
    r"is_explicit_cluster|dynamic_smem_size|total_smem_size|aggr_smem_size|envreg\d+|pm\d+)$"
)
_LIMITS = (
    "reqntid",
    "maxntid",
    "maxnreg",
    "minnctapersm",
    "maxnctapersm",
    "reqnctapercluster",
    "maxclusterrank",
    "explicitcluster",
    "noreturn",
)


def parse(text: str) -> PtxModule:
    """The module that a PTX text spells. `GradirError` OP060 names the line of what is not PTX."""
    return _Parser(tokens_of(text)).module()


@dataclass
class _Body:
    """What is collected of a function while its statements are read. Names of inner blocks shadow those of outer ones."""

    registers: dict[str, str] = field(default_factory=dict[str, str])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    scopes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    blocks: int = 0

    def named(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name


class _Parser(Declarations):
    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.files = {  # nvcc writes them last
            int(tokens[at + 1].text): tokens[at + 2].text.strip('"') for at, token in enumerate(tokens[:-2]) if token.text == ".file"
        }
        self.place = ("", 0)
        self.body = _Body()
        self.linkage = ""

    # The module

    def module(self) -> PtxModule:
        version, target = (0, 0), ""
        functions: dict[str, Function] = {}
        variables: dict[str, Variable] = {}
        while self.now.kind != "end":
            word = self.now.text
            if word == ".version":
                self.take()
                major, _, minor = self.take().partition(".")
                version = (int(major), int(minor or 0))
            elif word == ".target":
                self.take()
                target = self.word()
                while self.accept(","):
                    self.word()
            elif word == ".address_size":
                self.take()
                if self.integer() != 64:
                    self.at -= 1
                    self.fail("64 (addresses of 32 bits have no place here)")
            elif word == ".file":
                self.file()
            elif word == ".section":
                self.section()
            elif word in (".visible", ".extern", ".weak", ".common"):
                self.take()
                self.linkage = word
            elif word in (".entry", ".func"):
                function = self.function()
                if function.body or function.name not in functions:
                    functions[function.name] = function
            elif word.startswith(SPACES):
                for variable in self.variable(extern=self.linkage == ".extern"):
                    variables[variable.name] = variable
                self.linkage = ""
            elif word in (".alias", ".pragma"):
                while not self.accept(";"):
                    self.take()
            else:
                self.fail("a directive, a variable or a function")
        return PtxModule(version, target, functions, variables)

    def file(self) -> None:
        self.take()
        self.integer()
        self.take()
        while self.accept(","):
            self.integer()

    def section(self) -> None:
        """Debugging data: skipped."""
        self.take()
        self.word()
        depth = 0
        while True:
            text = self.take()
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return

    # Functions

    def function(self) -> Function:
        entry = self.take() == ".entry"
        self.linkage = ""
        self.body = _Body()
        results = self.parameters() if not entry and self.now.text == "(" else []
        name = self.word()
        parameters = self.parameters() if self.now.text == "(" else []
        limits: dict[str, tuple[int, ...]] = {}
        while self.now.text.startswith("."):
            directive = self.word()[1:]
            if directive == "pragma":
                self.take()
                self.accept(";")
                continue
            if directive not in _LIMITS:
                self.fail("a directive of a function")
            values: list[int] = []
            while self.now.kind == "number":
                values.append(self.integer())
                self.accept(",")
            limits[directive] = tuple(values)
        if not self.accept(";"):
            self.block()
        body = self.body
        for variable in (*parameters, *results):
            if variable.space == "reg":
                body.registers[variable.name] = variable.type
        return Function(
            name,
            entry,
            tuple(parameters),
            tuple(results),
            body.variables,
            body.registers,
            tuple(body.instructions),
            body.labels,
            body.tables,
            limits,
        )

    def parameters(self) -> list[Variable]:
        self.expect("(")
        found: list[Variable] = []
        while not self.accept(")"):
            found.append(self.parameter())
            self.accept(",")
        return found

    def parameter(self) -> Variable:
        words = self.word().split(".")[1:]
        space, align, kind = words[0], 0, ""
        words, pointer = words[1:], False
        while True:
            for word in words:
                pointer = pointer or word == "ptr"
                if word == "align":
                    aligned = self.integer()
                    align = align if pointer else aligned  # after `.ptr`: of what it points to
                elif word in WIDTHS:
                    kind = word
                elif word not in ("ptr", "global", "shared", "const", "local"):
                    self.fail("a type")
            if not self.now.text.startswith("."):
                break
            words = self.word().split(".")[1:]
        name = self.word()
        count, unsized = self.extents(1)
        width = WIDTHS[kind] // 8 or 1
        return Variable(name, space, kind, 0 if unsized else width * count, align or width)

    def block(self) -> None:
        self.expect("{")
        body = self.body
        scope: dict[str, str] = {}
        body.scopes.append(scope)
        suffix = f"#{body.blocks}" if body.blocks else ""
        body.blocks += 1
        while not self.accept("}"):
            text = self.now.text
            if text == "{":
                self.block()
            elif text.startswith(".reg"):
                self.registers(scope, suffix)
            elif text.startswith(SPACES):
                for variable in self.variable():
                    scope[variable.name] = variable.name + suffix
                    body.variables[variable.name + suffix] = variable
            elif text == ".loc":
                self.location()
            elif text in (".pragma", ".callprototype"):
                while not self.accept(";"):
                    self.take()
            elif self.now.kind == "word" and self.tokens[self.at + 1].text == ":":
                self.label(scope, suffix)
            elif text == ";":
                self.take()
            else:
                self.instruction()
        body.scopes.pop()

    def registers(self, scope: dict[str, str], suffix: str) -> None:
        words = self.word().split(".")[2:]
        while not words or words[-1] in ("v2", "v4"):
            words += self.word().split(".")[1:]
        kind = words[-1]
        if kind not in WIDTHS:
            self.fail("the type of a register")
        while True:
            name = self.word()
            if self.accept("<"):
                count = self.integer()
                self.expect(">")
                names = [f"{name}{k}" for k in range(count)]
            else:
                names = [name]
            for each in names:
                if suffix:
                    scope[each] = each + suffix
                self.body.registers[each + suffix] = kind
            if not self.accept(","):
                break
        self.expect(";")

    def location(self) -> None:
        self.take()
        file, line, _ = self.integer(), self.integer(), self.integer()
        self.place = (self.files.get(file, f"file {file}"), line)
        while self.accept(","):
            while (
                self.now.kind in ("word", "number")
                and self.now.text not in (".loc",)
                and self.tokens[self.at].line == self.tokens[self.at - 1].line
            ):
                self.take()
            self.accept("+")

    def label(self, scope: dict[str, str], suffix: str) -> None:
        name = self.word()
        self.expect(":")
        scope[name] = name + suffix
        if self.now.text in (".branchtargets", ".calltargets"):
            self.take()
            targets: list[str] = []
            while not self.accept(";"):
                targets.append(self.word())
                self.accept(",")
            self.body.tables[name + suffix] = tuple(targets)
        elif self.now.text == ".callprototype":
            while not self.accept(";"):
                self.take()
        else:
            self.body.labels[name + suffix] = len(self.body.instructions)

    # Instructions

    def instruction(self) -> None:
        line = self.now.line
        predicate, negated = None, False
        if self.accept("@"):
            negated = self.accept("!")
            predicate = Register(self.body.named(self.word()))
        if self.now.kind != "word":
            self.fail("an instruction")
        opcode = tuple(part for part in self.take().split(".") if part)
        while self.now.text.startswith(".") and self.now.kind == "word":  # `.v4 .f32`
            opcode += tuple(part for part in self.take().split(".") if part)
        operands: list[Operand] = []
        if opcode[0] == "call":
            operands = self.call_operands()
        else:
            while not self.accept(";"):
                operands.append(self.operand())
                self.accept(",")
        self.body.instructions.append(Instruction(opcode, tuple(operands), Source(line, *self.place), predicate, negated))

    def call_operands(self) -> list[Operand]:
        """`(results), name, (arguments)[, prototype]` as a vector, a name, a vector."""
        parts: list[Operand] = []
        while not self.accept(";"):
            if self.accept("("):
                inner: list[Operand] = []
                while not self.accept(")"):
                    inner.append(self.operand())
                    self.accept(",")
                parts.append(Vector(tuple(inner)))
            else:
                parts.append(self.operand())
            self.accept(",")
        if isinstance(parts[0], Name | Register):
            parts.insert(0, Vector(()))
        return parts if len(parts) > 2 else [*parts, Vector(())]

    def operand(self) -> Operand:
        first = self.single()
        if self.accept("|"):
            return Pair(first, self.single())
        return first

    def single(self) -> Operand:
        if self.accept("["):
            return self.address()
        if self.accept("{"):
            elements: list[Operand] = []
            while not self.accept("}"):
                elements.append(self.operand())
                self.accept(",")
            return Vector(tuple(elements))
        if self.accept("!"):
            return Negated(Register(self.body.named(self.word())))
        if self.accept("-"):
            value = number_of(self.take())
            return Immediate(-value.value)
        if self.now.kind == "number":
            return number_of(self.take())
        name = self.word()
        if name == "_":
            return Name("_")
        if SPECIAL.match(name):
            return Register(name, special=True)
        full = self.body.named(name)
        if full in self.body.registers or name.startswith("%"):
            return Register(full)
        offset = self.integer() if self.accept("+") else 0
        return Name(full, offset)

    def address(self) -> Address:
        base = self.single()
        if not isinstance(base, Register | Name | Immediate):
            self.fail("a register, a name or a number")
        offset = 0
        while self.now.text in ("+", "-"):
            sign = self.take()
            offset += self.integer() * (1 if sign == "+" else -1)
        if isinstance(base, Name) and base.offset:
            base, offset = Name(base.name), offset + base.offset
        coordinates: tuple[Operand, ...] = ()
        if self.accept(","):
            inner = self.single()
            coordinates = inner.elements if isinstance(inner, Vector) else (inner,)
        self.expect("]")
        return Address(base, offset, coordinates)
