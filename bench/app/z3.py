# SPDX-License-Identifier: MIT
"""Z3: generated problems of logic, one after the other in one process."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Dice, Inputs, Stage, digest


def clauses(dice: Dice, variables: int, count: int) -> str:
    """Boolean and linear constraints at random, near the point where they stop having an answer."""
    lines = [f"(declare-const b{i} Bool)" for i in range(variables)]
    lines += [f"(declare-const x{i} Int)" for i in range(variables // 4)]
    lines += [f"(assert (and (<= 0 x{i}) (< x{i} 50)))" for i in range(variables // 4)]
    for _ in range(count):
        terms = []
        for _ in range(3):
            name = f"b{dice.below(variables)}"
            terms.append(name if dice.below(2) else f"(not {name})")
        lines.append(f"(assert (or {' '.join(terms)}))")
    for _ in range(count // 4):
        a, b, c = (dice.below(variables // 4) for _ in range(3))
        lines.append(f"(assert (=> b{dice.below(variables)} (< (+ x{a} (* {dice.between(2, 5)} x{b})) "
                     f"(+ x{c} {dice.between(10, 120)}))))")
    return "\n".join(lines)


def words(dice: Dice, width: int, steps: int) -> str:
    """Two ways to compute the same from bit vectors; that they differ has no answer."""
    lines = [f"(declare-const v{i} (_ BitVec {width}))" for i in range(4)]
    left, right = "v0", "v0"
    for _ in range(steps):
        other, number = f"v{dice.between(1, 3)}", dice.between(1, 2 ** (width - 1))
        constant = f"(_ bv{number} {width})"
        if dice.below(2):
            left, right = f"(bvadd {left} (bvxor {other} {constant}))", f"(bvadd (bvxor {constant} {other}) {right})"
        else:
            left = f"(bvsub {left} (bvand {other} {constant}))"
            right = f"(bvadd {right} (bvadd (bvnot (bvand {constant} {other})) (_ bv1 {width})))"
    return "\n".join(lines + [f"(assert (not (= {left} {right})))"])


def problems(scale_count: int):
    dice = Dice(3)
    yield "(set-option :smt.random_seed 1)\n(set-option :sat.random_seed 1)"
    for _ in range(scale_count):
        for problem in (clauses(dice, 120, 400), words(dice, 12, 5)):
            yield f"(push)\n{problem}\n(check-sat)\n(pop)"


class Z3(App):
    name = "z3"
    title = "Z3, generated problems"
    text = "The solver Z3 decides problems of logic, integers and bit vectors one after the other."
    programs = ("z3",)
    packages = ("z3",)
    metric = "cpu"

    def prepare(self, work: Path, scale: float) -> None:
        count = self.count(25, scale)
        Inputs(self, work, scale).file("problems.smt2", lambda path: path.write_text("\n".join(problems(count))))

    def run(self, stage: Stage) -> str:
        done = stage.run(["z3", "-smt2", stage.input("problems.smt2")])
        answers = done.stdout.split()
        if len(answers) != 2 * self.count(25, stage.scale) or not set(answers) <= {b"sat", b"unsat"}:
            raise BadOutput(done.stdout[-200:].decode(errors="replace"))
        return digest(done.stdout)
