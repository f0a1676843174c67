#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""MALLOC_CONF and its kin, where the library stands for jemalloc's: do they set what `hakmem translate` says, and nothing elsewhere?

Usage: jemalloc_conf_test.py PROGRAM, which has a string malloc_conf
"""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "observe"), str(Path(__file__).resolve().parent.parent.parent / "tools")]
from reporting import LIBRARY, SkipTest, run_tests  # noqa: E402
from hakmem_command import table, translate  # noqa: E402

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else ""
VALUES = {"WORD": ("never", "default"), "BYTES": ("0", "8192", "32768", "131072"), "POWER": ("0", "13", "40"), "RATE": ("13", "40"),
          "DECAY": ("-1", "0", "100", "499", "500", "60000"), "PREFIX": ("/tmp/p",), "NONE": ("1",)}
SEVERAL = ["prof:true,prof_active:false,lg_prof_sample:20", "prof:true,lg_prof_sample:17", "lg_prof_sample:17,prof:true",
           "dirty_decay_ms:-1,dirty_decay_ms:0", "dirty_decay_ms:0,dirty_decay_ms:5000", "prof:true,prof:false",
           "background_thread:true,background_thread:false", "tcache_max:8192,lg_tcache_max:14", "lg_tcache_max:14,tcache_max:8192",
           "background_thread:true,narenas:4,lg_tcache_max:13,thp:never"]
LINE = re.compile(r"^hakmem: (?:hakmem: )?(\w+):(.*?)  from (.*)$", re.M)


def environment(**more):
    """Without what the test itself runs with."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAKMEM_") and "MALLOC_CONF" not in name}
    return {**kept, **more}


def library(folder):
    """hakmem, by the name of jemalloc's."""
    path = Path(folder) / "libjemalloc.so.2"
    if not path.is_symlink():
        path.symlink_to(Path(LIBRARY).resolve())
    return str(path)


def shown(folder, text, preload=None, **more):
    """The options in force, each with its source; and what else was said."""
    done = subprocess.run(["true"], env=environment(LD_PRELOAD=preload or library(folder), MALLOC_CONF=text, **more),
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done
    found = {name: (value, source) for name, value, source in LINE.findall(done.stderr)}
    return found, [line for line in done.stderr.splitlines() if not LINE.match(line)]


def test_each_option_sets_what_the_command_says(folder):
    first = shown(folder, "confirm_conf:true")[0]
    assert first["show"] == ("1", "MALLOC_CONF") and len(first) > 20, first
    texts = [f"{row.name}:{value}" for row in table.of_jemalloc()[0] if row.name != "abort_conf"
             for value in VALUES.get(row.rule, ("true", "false"))]
    texts += SEVERAL
    for text in texts:
        ours = {name: value for name, value in translate.translate([("MALLOC_CONF", text)])[0].items()
                if name not in ("show", "report", "report_file")}
        found, _ = shown(folder, text + ",confirm_conf:true")
        have = {name: value for name, (value, _) in found.items()
                if value != first[name][0] and name not in ("report", "report_file")}
        wanted = {name: value for name, value in ours.items() if value != first[name][0]}
        assert have == wanted, (text, have, wanted)
        assert all(found[name][1] == "MALLOC_CONF" for name in wanted), (text, found)


def test_final_profile_is_written_to_the_prefix(folder):
    for name in ("prof_final", "prof_leak"):
        conf = f"prof:true,{name}:true,lg_prof_sample:12,prof_prefix:{folder}/{name}"
        known = environment(LD_PRELOAD=library(folder), LD_LIBRARY_PATH=str(Path(LIBRARY).resolve().parent), MALLOC_CONF=conf)
        child = subprocess.Popen(["true"], env=known, stderr=subprocess.PIPE, text=True)
        said = child.communicate()[1]
        assert child.returncode == 0 and not said, said
        assert Path(f"{folder}/{name}.{child.pid}").stat().st_size > 0, name


def test_options_of_hakmem_win(folder):
    found, said = shown(folder, "confirm_conf:true,dirty_decay_ms:0,background_thread:true", HAKMEM_OPTIONS="retain_min:8m")
    assert found["retain_min"] == ("8m", "HAKMEM_OPTIONS") and found["retain_idle"] == ("0", "MALLOC_CONF"), found
    assert found["scavenger"] == ("1", "MALLOC_CONF") and not said, (found, said)


def test_what_has_no_effect_is_one_line(folder):
    _, said = shown(folder, "frob:1,zero:true,junk:false,narenas,dirty_decay_ms:soon,narenas:4,,lg_tcache_max:99,prof:maybe")
    assert said == ["hakmem: MALLOC_CONF: without effect here: prof:maybe lg_tcache_max:99 dirty_decay_ms:soon narenas zero:true frob:1"]
    assert shown(folder, "junk:false,zero:false,narenas:1,stats_print:false")[1] == []
    long = ",".join(f"unknown{i}:1" for i in range(1000))
    assert [len(line) < 400 for line in shown(folder, long)[1]] == [True]
    done = subprocess.run(["true"], env=environment(LD_PRELOAD=library(folder), MALLOC_CONF="abort_conf:true,frob:1"),
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode != 0


def test_by_its_own_name_the_library_reads_nothing_of_it(folder):
    found, said = shown(folder, "confirm_conf:true,frob:1", preload=LIBRARY)
    assert not found and not said, (found, said)


def values(folder, **more):
    done = subprocess.run([PROGRAM], env=environment(LD_PRELOAD=library(folder), **more), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_the_string_of_a_program_is_read_before_the_variable(folder):
    found = values(folder)
    assert found["opt.lg_prof_sample"] == found["prof.lg_sample"] == "20 0", found
    assert found["opt.dirty_decay_ms"] == found["arenas.dirty_decay_ms"] == "0 0" and found["opt.prof_prefix"] == "first", found
    assert found["prof.active"] == found["opt.prof_active"] == "0 0", found
    found, _ = shown(folder, "dirty_decay_ms:0,confirm_conf:true,dirty_decay_ms:soon")
    assert found["retain_min"] == ("0", "MALLOC_CONF"), found  # what is wrong replaces nothing
    found = values(folder, MALLOC_CONF="prof:true,dirty_decay_ms:5000,background_thread:true,prof_prefix:second")
    assert found["prof.active"] == found["opt.prof_active"] == found["background_thread"] == "1 0", found
    assert found["opt.lg_prof_sample"] == "20 0" and found["opt.dirty_decay_ms"] == "5000 0", found
    assert found["opt.prof_prefix"] == "second", found


def test_the_link_in_etc_is_read_between_them(folder):
    """In a view of the files of its own, in which /etc has the link alone."""
    script = "mount -t tmpfs none /etc && ln -s lg_prof_sample:15,prof_prefix:link /etc/malloc.conf && exec \"$0\" \"$@\""
    there = subprocess.run(["unshare", "-rm", "sh", "-c", script, "true"], stderr=subprocess.DEVNULL, check=False)
    if there.returncode != 0:
        raise SkipTest("no mount of its own is possible here")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "env", f"LD_PRELOAD={library(folder)}", "MALLOC_CONF=lg_prof_sample:16",
                           PROGRAM], env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    assert "opt.prof_prefix link\n" in done.stdout and "opt.lg_prof_sample 16 0\n" in done.stdout, done


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
