#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The packages of Debian that need libjemalloc2, those that are installed: does our library have each name of jemalloc's and tcmalloc's that
their files take, and do their programs do the same on it? Their servers: programs_test.py, redis_test.py.

Usage: packages_test.py LIBTCMALLOC
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "observe"), str(HERE.parent.parent / "tools")]
from reporting import LIBRARY, SkipTest, run_tests  # noqa: E402
from hakmem_command.foreign import FAMILIES  # noqa: E402
from hakmem_view.elf import Elf  # noqa: E402

TCMALLOC = sys.argv.pop(1) if len(sys.argv) > 1 else ""
OF_JEMALLOC, OF_TCMALLOC = ("libjemalloc2",), ("libtcmalloc-minimal4", "libgoogle-perftools4")
# What of Debian's libraries is no package of a program: nothing is started. The others have a row below, or a test of a server.
LIBRARIES_ALONE = {"389-ds-base-libs", "bind9-libs", "gridengine-drmaa1.0", "libjemalloc-dev"}
ENDLESS = {"konclude"}  # waits for its own threads at its end, on any allocator
IN_OTHER_TESTS = {"bind9": "named", "bind9-dnsutils": "dig", "bind9-host": "host", "clickhouse-client": "clickhouse-client",
                  "clickhouse-common": "clickhouse-server", "clickhouse-server": "clickhouse-server", "knot-resolver": "kresd",
                  "nghttp2-client": "h2load", "nghttp2-server": "nghttpd", "varnish": "varnishd"}

ZONE = "$TTL 60\n@ SOA ns.a.test. root.a.test. 1 60 60 60 60\n@ NS ns\nns A 127.0.0.1\n" + "".join(f"h{i} A 192.0.2.{i % 250}\n" for i in range(2000))
QUEENS = "queens 6 6 15 1000000\n" + "6 6 6 6 6 6\n"
for _i in range(6):
    for _j in range(_i + 1, 6):
        _bad = [(a, b) for a in range(6) for b in range(6) if a == b or abs(a - b) == _j - _i]
        QUEENS += f"2 {_i} {_j} 0 {len(_bad)}\n" + "".join(f"{a} {b} 1000000\n" for a, b in _bad)
GENES = "".join(f">g{n}\n" + "".join("ACGT"[(n * 7919 + i * i * 31 + i // 3) % 4] for i in range(600)) + "\n" for n in range(40))
READS = "".join(f"@r{n}\n{''.join(GENES.splitlines()[2 * (n % 40) + 1])[n % 90:n % 90 + 100]}\n+\n{'I' * 100}\n" for n in range(400))
# Package: program, words, files beside it, and what is in its output.
RUNS = {
    "bind9-utils": ("named-checkzone", ["-D", "a.test", "zone"], {"zone": ZONE}, "h1999.a.test."),
    "blender": ("blender", ["-b", "--factory-startup", "--python-expr",
                            "import bpy; bpy.ops.mesh.primitive_uv_sphere_add(segments=64, ring_count=64); "
                            "print('vertices', sum(len(m.vertices) for m in bpy.data.meshes))"], {}, "vertices "),
    "clickhouse-tools": ("clickhouse-format", [], {"stdin": "select a,b from t where c in (select 1) order by a"}, "ORDER BY a ASC"),
    "gridengine-client": ("/usr/lib/gridengine/qstat", ["-help"], {}, "cell directory"),
    "gridengine-exec": ("/usr/lib/gridengine/sge_execd", ["-help"], {}, "cell directory"),
    "gridengine-master": ("/usr/lib/gridengine/sge_qmaster", ["-help"], {}, "cell directory"),
    "gridengine-qmon": ("/usr/lib/gridengine/qmon", ["-help"], {}, "cell directory"),
    "igor": ("igor", ["-v"], {}, "version"),
    "nghttp2-proxy": ("nghttpx", ["--version"], {}, "nghttpx nghttp2/"),
    "rapmap": ("rapmap", ["quasiindex", "-t", "genes", "-i", "index"], {"genes": GENES}, "Building suffix array"),
    "redis-tools": ("redis-check-aof", ["log"], {"log": "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n" * 1000}, "AOF analyzed"),
    "salmon": ("salmon", ["index", "-t", "genes", "-i", "index", "-k", "31", "-p", "1"], {"genes": GENES}, "indexing"),
    "toulbar2": ("toulbar2", ["queens.wcsp", "-s"], {"queens.wcsp": QUEENS}, "Optimum: 0"),
}
VARIES = re.compile(r"0x[0-9a-f]+|\d+([.:]\d+)*|\S*/tmp/\S*")  # figures of time and memory, addresses, folders


def installed():
    """Packages: the files of each."""
    if shutil.which("dpkg-query") is None:
        raise SkipTest("no Debian")
    text = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}\t${Package}\t${Depends}\n"], capture_output=True, text=True,
                          check=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    return {name: set(re.findall(r"[a-z0-9][a-z0-9+.-]+", depends)) for status, name, depends in rows if status == "installed"}


def files_of(package):
    listed = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in listed if os.path.isfile(path) and not os.path.islink(path)]


def names_taken(path, family):
    file = Elf.open(path)
    return file.names(FAMILIES[family])[0] if file is not None else set()


def expect_names(family, needed, *ours):
    """Those of the command that shows what passes by hakmem (`hakmem check`)."""
    have = set().union(*(Elf.open(path).names(FAMILIES[family])[1] for path in ours))
    packages = sorted(name for name, depends in installed().items() if depends & set(needed) and name not in needed)
    if not packages:
        raise SkipTest(f"no package that needs {needed[0]}")
    files = taken = 0
    for package in packages:
        for path in files_of(package):
            names = names_taken(path, family)
            files, taken = files + bool(names), taken + len(names)
            assert names <= have, (path, names - have)
    print(f"{len(packages)} packages, {files} files take {taken} names: all are there: {' '.join(packages)}")


def test_names_of_jemalloc_are_all_there(_):
    expect_names("jemalloc", OF_JEMALLOC, LIBRARY)


def test_names_of_the_symbols_file_are_all_exported(_):
    """Debian's, by which packages depend on jemalloc; it has two hooks of jemalloc's own tests."""
    lists = list(Path("/var/lib/dpkg/info").glob("libjemalloc2*.symbols"))
    if not lists:
        raise SkipTest("libjemalloc2 is not installed")
    wanted = set(re.findall(r"^ (\w+)@", lists[0].read_text(encoding="utf-8"), re.MULTILINE))
    missing = wanted - Elf.open(LIBRARY).names(re.compile(rb"\w+"))[1]
    assert len(wanted) > 30 and missing <= {"je_test_hooks_arena_new_hook", "je_test_hooks_libc_hook"}, missing
    print(f"{len(wanted - missing)} of {len(wanted)} names are exported")


def test_names_of_tcmalloc_are_all_there(_):
    if not TCMALLOC:
        raise SkipTest("no library of tcmalloc's names was built")
    expect_names("tcmalloc", OF_TCMALLOC, TCMALLOC, LIBRARY)


def output(row, folder, preload):
    program, words, files, _ = row
    os.mkdir(folder)
    for name, text in files.items():
        Path(folder, name).write_text(text, encoding="ascii", newline="")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HAKMEM_")}
    environment.update(HOME=folder, LC_ALL="C", SGE_ROOT=folder, **({"LD_PRELOAD": LIBRARY} if preload else {}))
    return subprocess.run([program, *words], cwd=folder, env=environment, input=files.get("stdin", ""), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def test_programs_do_the_same(folder):
    here = installed()
    started = []
    for package, row in RUNS.items():
        if package not in here or shutil.which(row[0]) is None:
            continue
        plain, ours = (output(row, f"{folder}/{package}-{way}", way == "hakmem") for way in ("plain", "hakmem"))
        assert ours.returncode == plain.returncode and row[3] in ours.stdout, (package, plain, ours)
        lines = [sorted({VARIES.sub("", line) for line in done.stdout.splitlines()}) for done in (plain, ours)]
        assert lines[0] == lines[1], (package, set(lines[0]) ^ set(lines[1]))
        started.append(package)
    if not started:
        raise SkipTest("none of them is installed")
    print("the same:", *started)


def test_no_package_is_forgotten(_):
    """A package that needs jemalloc and is not among these: add a row."""
    known = LIBRARIES_ALONE | ENDLESS | set(IN_OTHER_TESTS) | set(RUNS) | {"redis-server"}
    missing = {name for name, depends in installed().items() if depends & set(OF_JEMALLOC)} - known
    assert not missing, missing


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
