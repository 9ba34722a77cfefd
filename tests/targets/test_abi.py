"""The compiler and the runtime do not import each other: the numbers of the context must be the same on both sides."""

from gradir.dialects.target import abi as compiler
from gradir.runtime import abi as runtime


def test_both_sides_agree_on_the_context() -> None:
    ours = {name: value for name, value in vars(compiler).items() if name.isupper()}
    theirs = {name: value for name, value in vars(runtime).items() if name.isupper()}
    shared = ours.keys() & theirs.keys()
    assert len(shared) >= 12 and {"VERSION", "STATUS_OUT_OF_MEMORY"} <= shared, sorted(theirs)
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
