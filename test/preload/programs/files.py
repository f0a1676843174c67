# SPDX-License-Identifier: MIT
"""The everyday tools of a shell user."""

from rig import inputs
from rig.registry import program

MIB = 1 << 20


@program("sort")
def sort(run):
    run.write("lines", "\n".join(inputs.words(600_000)))
    for flags in ("--parallel=2", "--parallel=4 -S 4M -u", "-k1.2,1.4 -s -r"):
        run.cmd(f"sort {flags} lines")


@program("grep sed awk find diff file")
def text_tools(run):
    run.write("text", inputs.text(4 * MIB))
    run.write("other", inputs.text(4 * MIB).replace(b"ba", b"ab"))
    run.cmd("grep -nE '(ma|ne)+[kt]o' text")
    run.cmd(r"grep -oP '\b(?=\w*k)(\w\w)\w*\1\b' text")
    run.cmd(r"sed -E 's/([a-z]+) ([a-z]+)/\2 \1/g; N; P; D' text")
    count = '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w, n[w] | "sort" }'
    run.cmd("awk", count, "text", loads=2)
    run.cmd("diff -u --label=a --label=b text other", status=1)
    for loads, pipes in ((4, r"tr -s ' ' '\n' < text | sort -u | wc -lc"),
                         (3, "cut -d' ' -f2- text | fold -w 60 | md5sum"),
                         (3, "find . -type f | sort | xargs file"),
                         (4, "join text text | paste - - | tac | sha256sum")):
        run.cmd("sh", "-c", pipes, loads=loads)


@program("vim")
def vim(run):
    run.write("text", inputs.text(MIB))
    run.cmd(f"vim -es -N -u NONE -i NONE -S {run.guest('work.vim')} text")
    run.file("edited")
    run.file("report")


@program("ed")
def ed(run):
    run.write("text", inputs.text(MIB))
    edits = b"g/ma/s//MA/g\n1,$s/ne/NE/\n1,5000m$\ng/ki/t.\n$=\nw edited\nq\n"
    run.cmd("ed -s text", stdin=edits)
    run.file("edited")
