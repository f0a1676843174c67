# SPDX-License-Identifier: MIT
"""The everyday tools of a shell user."""

from rig import inputs
from rig.registry import program

MIB = 1 << 20


@program("sort")
def sort(run):
    run.write("lines", "\n".join(inputs.words(600_000)))
    for flags in (["--parallel=2"], ["--parallel=4", "-S", "4M", "-u"], ["-k1.2,1.4", "-s", "-r"]):
        run.cmd("sort", *flags, "lines", label=f"sort {' '.join(flags)}")


@program("grep sed awk find diff file")
def text_tools(run):
    run.write("text", inputs.text(4 * MIB))
    run.write("other", inputs.text(4 * MIB).replace(b"ba", b"ab"))
    run.cmd("grep", "-nE", "(ma|ne)+[kt]o", "text")
    run.cmd("grep", "-oP", r"\b(?=\w*k)(\w\w)\w*\1\b", "text")
    run.cmd("sed", "-E", "s/([a-z]+) ([a-z]+)/\\2 \\1/g; N; P; D", "text")
    run.cmd(
        "awk",
        '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w, n[w] | "sort" }',
        "text",
        loads=2,
    )
    run.cmd("diff", "-u", "--label=a", "--label=b", "text", "other", status=1)
    run.cmd(
        "sh",
        "-c",
        "tr -s ' ' '\\n' < text | sort -u | wc -lc; cut -d' ' -f2- text | fold -w 60 | md5sum",
        loads=7,
    )
    run.cmd(
        "sh",
        "-c",
        "find . -type f | sort | xargs file; join text text | paste - - | tac | sha256sum",
        loads=6,
    )


@program("vim")
def vim(run):
    run.write("text", inputs.text(MIB))
    run.guest("work.vim")
    run.cmd("vim", "-es", "-N", "-u", "NONE", "-i", "NONE", "-S", "work.vim", "text")
    run.file("edited")
    run.file("report")


@program("ed")
def ed(run):
    run.write("text", inputs.text(MIB))
    run.cmd(
        "ed", "-s", "text", stdin=b"g/ma/s//MA/g\n1,$s/ne/NE/\n1,5000m$\ng/ki/t.\n$=\nw edited\nq\n"
    )
    run.file("edited")
