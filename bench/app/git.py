# SPDX-License-Identifier: MIT
"""Git: all objects of a repository compared with each other and packed anew."""
from pathlib import Path

from hakmem_lab.apps import App, Dice, Inputs, Stage, digest, plain

WHO = "Nobody <nobody@example.org>"
SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


class Tree:
    """Files that grow and change from commit to commit."""

    def __init__(self, files: int):
        self.dice = Dice(13)
        self.files = {f"{self.dice.word()}/{self.dice.word()}_{i}.txt": self.lines(40) for i in range(files)}
        self.names = list(self.files)

    def lines(self, count: int) -> list[str]:
        return [self.dice.text(self.dice.between(10, 70)) for _ in range(count)]

    def change(self) -> str:
        """Changes a few lines of one file; returns its name."""
        name = self.dice.pick(self.names)
        lines = self.files[name]
        at = self.dice.below(len(lines))
        lines[at:at + self.dice.below(3)] = self.lines(self.dice.between(1, 4))
        return name

    def file(self, name: str) -> str:
        text = "\n".join(self.files[name]) + "\n"
        return f"M 100644 inline {name}\ndata {len(text)}\n{text}\n"


def history(files: int, commits: int):
    """A repository as `git fast-import` reads it."""
    tree = Tree(files)
    for number in range(commits):
        message = tree.dice.text(60)
        yield f"commit refs/heads/main\ncommitter {WHO} {1700000000 + 60 * number} +0000\n"
        yield f"data {len(message)}\n{message}\n"
        changed = tree.names if number == 0 else sorted({tree.change() for _ in range(tree.dice.between(1, 8))})
        yield from map(tree.file, changed)
    yield "done\n"


class Git(App):
    name = "git"
    title = "git, repack a repository"
    text = ("What `git repack -adf` does, with two threads: reads all objects, looks for differences between similar "
            "ones, compresses and writes one pack.")
    programs = ("git",)
    packages = ("git",)
    metric = "wall"
    threads = 2

    def prepare(self, work: Path, scale: float) -> None:
        inputs = Inputs(self, work, scale)
        files, commits = self.count(300, scale), self.count(1500, scale)
        stream = inputs.file("history", lambda path: path.write_text("".join(history(files, commits))))
        inputs.product("repository.git", [stream], lambda path: self.make_repository(stream, path))

    def make_repository(self, stream: Path, path: Path) -> None:
        environment = {"PATH": "/usr/bin:/bin", **SETTINGS}
        plain(["git", "init", "-q", "--bare", path], stream.parent, env=environment)
        plain(["git", "fast-import", "--quiet", "--done"], path, stdin=stream, env=environment)

    def run(self, stage: Stage) -> str:
        # pack-objects directly, not by way of repack: Launch.prefix reaches only the program that is started.
        done = stage.run(["git", "pack-objects", "-q", "--all", "--no-reuse-delta", "--delta-base-offset",
                          "--window=20", "--threads=2", "--stdout"],
                         cwd=stage.input("repository.git"), stdin=b"", env=SETTINGS)
        pack = stage.scratch / "all.pack"
        pack.write_bytes(done.stdout)
        # Two threads don't always find the same differences; what has to be equal are the objects.
        stage.plain(["git", "index-pack", pack], env=SETTINGS)
        index = stage.plain(["git", "show-index"], stdin=pack.with_suffix(".idx"), env=SETTINGS)
        return digest("\n".join(sorted(line.split()[1] for line in index.stdout.decode().splitlines())))
