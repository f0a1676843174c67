# SPDX-License-Identifier: MIT
"""Compressors and tar: the packed bytes are compared, and unpacked again."""

from rig import inputs
from rig.registry import program

MIB = 1 << 20


def there_and_back(run, pack, unpack, data):
    """Pack a file, compare the packed bytes, unpack it and see that nothing is lost."""
    run.write("data", data)
    packed = run.cmd(f"{pack} -c data")
    run.note("unpacked", run.cmd(f"{unpack} -dc", stdin=packed) == data)


@program("xz")
def xz(run):
    data = inputs.mixture(6 * MIB)
    there_and_back(run, "xz -T2 -3 --block-size=1MiB", "xz -T2", data)
    there_and_back(run, "xz -T1 -6", "xz", data[:2 * MIB])


@program("zstd")
def zstd(run):
    data = inputs.mixture(16 * MIB)
    for level in ("-1", "-3", "-7", "--long=27"):
        there_and_back(run, f"zstd -q -T2 {level}", "zstd -q --long=27", data)
    there_and_back(run, "zstd -q -T2 -19", "zstd -q", data[:MIB])
    samples = [run.write(f"samples/{index}", inputs.text(2000, index)) for index in range(200)]
    run.cmd("zstd", "-q", "--train", *samples, "-o", "dictionary", label="zstd --train")
    run.file("dictionary")


@program("gzip bzip2")
def gzip(run):
    for pack, unpack in (("gzip -n -9", "gzip"), ("bzip2", "bzip2")):
        there_and_back(run, pack, unpack, inputs.mixture(4 * MIB))


@program("tar xz gzip")
def tar(run):
    for index, word in enumerate(inputs.words(600)):
        run.write(f"tree/{index % 20}/{word}-{index}", inputs.text(index * 37 % 5000, index))
    fixed = "--sort=name --mtime=@1700000000 --owner=0 --group=0 --numeric-owner"
    run.cmd(f"tar -cf plain.tar {fixed} tree")
    run.cmd(f"tar -cJf packed.tar.xz {fixed} tree", loads=2, env={"XZ_OPT": "-1 -T2"})
    for name in ("plain.tar", "packed.tar.xz"):
        run.file(name)
        run.cmd(f"tar -tvf {name}")
    (run.place / "out").mkdir()
    run.cmd("tar -xf packed.tar.xz -C out", loads=2)
    run.cmd("diff -r tree out/tree")
