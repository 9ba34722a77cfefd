"""Whole programs, each written once for Gradir and JAX, as a user of JAX would port them: `PROGRAMS[name].loss(toolkit)(params, *data)`."""

from tests.autodiff.programs import dynamics, mixtures, networks, recurrent, statistics, vision
from tests.autodiff.programs.toolkit import GRADIR, Program, Toolkit, jax_toolkit

PROGRAMS: dict[str, Program] = {
    p.name: p for family in (mixtures, statistics, recurrent, networks, dynamics, vision) for p in family.PROGRAMS
}

__all__ = ["GRADIR", "PROGRAMS", "Program", "Toolkit", "jax_toolkit"]
