# SPDX-License-Identifier: MIT
"""Perl: log lines taken apart by patterns, counted in hashes, sorted and printed."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Dice, Inputs, Stage, digest

SCRIPT = Path(__file__).parent / "source" / "perl.pl"


def lines(count: int):
    dice = Dice(11)
    hosts = [f"{dice.word()}.{dice.word()}" for _ in range(300)]
    for number in range(count):
        path = "/".join(dice.word() for _ in range(dice.between(1, 5)))
        query = "&".join(f"{dice.word(1)}={dice.below(1000)}" for _ in range(dice.below(4)))
        status, size, agent = dice.pick((200, 200, 200, 304, 404, 500)), dice.below(100000), dice.text(40)
        yield (f'{dice.pick(hosts)} - - [{number // 3600:04}:{number % 3600:04}] "GET /{path}?{query} HTTP/1.1" '
               f'{status} {size} "{agent[dice.below(30):]}"\n')


class Perl(App):
    name = "perl"
    title = "Perl, log lines into hashes"
    text = "Takes log lines apart with regular expressions, keeps records in nested hashes, sorts and formats them."
    programs = ("perl",)
    packages = ("perl",)
    metric = "cpu"

    def prepare(self, work: Path, scale: float) -> None:
        count = self.count(30000, scale)
        Inputs(self, work, scale).file("access.log", lambda path: path.write_text("".join(lines(count))))

    def run(self, stage: Stage) -> str:
        done = stage.run(["perl", SCRIPT], stdin=stage.input("access.log"),
                         env={"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"})
        if not done.stdout.endswith(b"end\n"):
            raise BadOutput()
        return digest(done.stdout)
