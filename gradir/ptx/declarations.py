"""Variables of a PTX text: `.global .align 4 .f32 table[4] = {...};`, their sizes and the bytes that they begin with."""

from __future__ import annotations

import struct

from gradir.ptx.syntax import Variable
from gradir.ptx.tokens import Cursor, number_of
from gradir.ptx.types import WIDTHS


class Declarations(Cursor):
    """The part of the parser that reads variables."""

    def variable(self, *, extern: bool = False) -> list[Variable]:
        """`.shared .align 16 .b8 name[1024] = {...};`, or several names."""
        head = self.now.text.split(".")[1:]
        self.take()
        space, words = head[0], head[1:]
        align, vector, kind = 0, 1, ""
        while not kind:
            for word in words:
                if word in ("v2", "v4", "v8"):
                    vector = int(word[1:])
                elif word == "align":
                    align = self.integer()
                elif word in WIDTHS:
                    kind = word
                else:
                    self.fail("the type of a variable")
            if not kind:
                words = self.word().split(".")[1:]
        found: list[Variable] = []
        while True:
            found.append(self._declared(space, kind, vector, align, extern))
            if not self.accept(","):
                break
        self.accept(";")
        return found

    def extents(self, count: int) -> tuple[int, bool]:
        """`[4][8]` behind a name: elements in all, `count` in each; whether a size is left open."""
        unsized = False
        while self.accept("["):
            if self.accept("]"):
                unsized = True
                continue
            count *= self.integer()
            self.expect("]")
        return count, unsized

    def _declared(self, space: str, kind: str, vector: int, align: int, extern: bool) -> Variable:
        name = self.word()
        count, unsized = self.extents(vector)
        width = WIDTHS[kind] // 8 or 1
        data: bytes | None = None
        pointees: list[tuple[int, str, int]] = []
        if self.accept("="):
            data = self._initial(kind, pointees)
            if unsized:
                count, unsized = max(1, len(data) // width), False
            data = data.ljust(count * width, b"\0")
        elif space in ("global", "const") and not extern:
            data = bytes(0 if unsized else count * width)
        size = 0 if unsized else count * width
        return Variable(name, space, kind, size, align or width * vector, data, extern or unsized, tuple(pointees))

    def _initial(self, kind: str, pointees: list[tuple[int, str, int]], at: int = 0) -> bytes:
        if self.accept("{"):
            data = b""
            while not self.accept("}"):
                data += self._initial(kind, pointees, at + len(data))
                self.accept(",")
            return data
        width = WIDTHS[kind] // 8
        if self.now.kind == "word":
            name = self.word()
            if self.accept("("):  # generic(name), or a byte of it: mask(name)
                name = self.word()
                self.expect(")")
            pointees.append((at, name, self.integer() if self.accept("+") else 0))
            return bytes(width)
        negative = self.accept("-")
        if self.now.kind != "number":
            self.fail("a number")
        value = number_of(self.take())
        if value.bits is not None and kind[0] in "bf":
            return value.bits.to_bytes(width, "little")
        if kind[0] == "f":
            return struct.pack({4: "<f", 8: "<d"}[width], -value.value if negative else value.value)
        whole = int(value.value) * (-1 if negative else 1)
        return (whole & ((1 << 8 * width) - 1)).to_bytes(width, "little")
