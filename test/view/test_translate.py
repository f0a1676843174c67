# SPDX-License-Identifier: MIT
"""`hakmem translate`: what it prints the library takes, with strict:1, and the rest is said."""
import os
import subprocess

import pytest
from test_real import LIBRARY

from hakmem_command import main
from hakmem_view.errors import ViewError

NONE = "# no option is needed"


@pytest.mark.parametrize("text, ours, said", [
    ("MALLOC_CONF=background_thread:true,dirty_decay_ms:0,narenas:4,lg_tcache_max:13",
     "HAKMEM_OPTIONS=scavenger:1,retain_min:0,retain_percent:0,retain_idle:0,huge_cache:0,bin_bytes:8k", "narenas 4: nothing to set"),
    ("MIMALLOC_SHOW_STATS=1", "HAKMEM_OPTIONS=report:exit", ""),
    ("MIMALLOC_PURGE_DELAY=-1", "HAKMEM_OPTIONS=retain_min:1t,retain_idle:1t,huge_cache:1t", ""),
    ("MIMALLOC_ALLOW_THP=0", "HAKMEM_OPTIONS=huge_pages:0", ""),
    ("TCMALLOC_RELEASE_RATE=10", "HAKMEM_OPTIONS=retain_min:4m,retain_percent:10", ""),
    ("GLIBC_TUNABLES=glibc.malloc.tcache_count=7:glibc.malloc.trim_threshold=131072:glibc.cpu.x=1",
     "HAKMEM_OPTIONS=bin_blocks:7,retain_percent:0,retain_min:128k", ""),
    ("MALLOC_CHECK_=3", "HAKMEM_PROFILE=debug", ""), ("MALLOC_ARENA_MAX=2", NONE, ""),
    ("MALLOC_CONF=frobnicate:1", NONE, "frobnicate 1: no counterpart known"),
    # Several in one word, as a shell has them.
    ('export MALLOC_CONF="background_thread:true" MIMALLOC_SHOW_STATS=1 TCMALLOC_RELEASE_RATE=10',
     "HAKMEM_OPTIONS=scavenger:1,report:exit,retain_min:4m,retain_percent:10", "release_rate 10: "),
    ("export 'MALLOC_CONF=background_thread:true, narenas:4'", "HAKMEM_OPTIONS=scavenger:1", "narenas 4: nothing to set"),
    # Sampling is on only where theirs would be.
    ("MALLOC_CONF=lg_prof_sample:17,prof:true", "HAKMEM_OPTIONS=profile_rate:128k", ""),
    ("MALLOC_CONF=prof:true,prof_active:false,lg_prof_sample:19", NONE, "lg_prof_sample 19: sampling stays off, as theirs"),
    ("MALLOC_CONF=lg_prof_sample:19", NONE, "sampling stays off"), ("MALLOC_CONF=prof:true", "HAKMEM_OPTIONS=profile_rate:512k", ""),
    # So is a report of what was sampled, and one is written.
    ("MALLOC_CONF=prof_final:true", NONE, "prof_final true: no report, as theirs: it does not sample"),
    ("MALLOC_CONF=prof_leak:true,prof:true,prof_active:false,prof_prefix:/tmp/p", NONE, "prof_leak true: no report, as theirs"),
    ("MALLOC_CONF=stats_print:true,prof_final:true,prof_prefix:/tmp/p", "HAKMEM_OPTIONS=report:stats",
     "prof_prefix /tmp/p: nothing to set: no file is written at exit"),
    ("MALLOC_CONF=prof_final:true,prof:true", "HAKMEM_OPTIONS=report:profile,report_file:jeprof.%p,profile_rate:512k", ""),
    ("MALLOC_CONF=prof:true,prof_leak:true,prof_prefix:/tmp/p,stats_print:true",
     "HAKMEM_OPTIONS=profile_rate:512k,report:leaks,report_file:/tmp/p.%p",
     "stats_print true: report:stats is left out: one report is written at exit, here report:leaks for prof_leak"),
    ("MALLOC_CONF=prof:true,prof_final:true,prof_leak:true,prof_prefix:/tmp/p",
     "HAKMEM_OPTIONS=profile_rate:512k,report:leaks,report_file:/tmp/p.%p", "prof_final true: report:profile is left out"),
    ("MALLOC_CONF=stats_print:true HEAPCHECK=normal", "HAKMEM_OPTIONS=report:leaks", "here report:leaks for HEAPCHECK"),
    ("HEAPPROFILE=/tmp/p HEAPCHECK=normal", "HAKMEM_OPTIONS=profile_rate:512k,report:leaks",
     "HEAPPROFILE /tmp/p: profile_rate:512k; report:profile is left out"),
    ("MIMALLOC_SHOW_STATS=1 MALLOC_CONF=stats_print:true", "HAKMEM_OPTIONS=report:stats", "show_stats 1: report:exit is left out"),
    ("HEAPPROFILE=/tmp/p", "HAKMEM_OPTIONS=profile_rate:512k,report:profile,report_file:/tmp/p.%p", "as JSON at exit"),
    ("HEAPPROFILESIGNAL=12", NONE, "./hakmem profile --json FILE PID"), ("HEAPCHECK=normal", "HAKMEM_OPTIONS=report:leaks", "")])
def test_options_of_others_are_ours(capsys, tmp_path, text, ours, said):
    main.run(["translate", text])
    out = capsys.readouterr().out
    assert out.splitlines()[0] == ours and said in " ".join(out.replace("#", "").split()), out
    if ours != NONE and LIBRARY.exists():
        name, value = ours.replace("/tmp/p.%p", f"{tmp_path}/p").split("=", 1)
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), name: value}
        environment["HAKMEM_OPTIONS"] = ",".join(filter(None, (value if name == "HAKMEM_OPTIONS" else "", "strict:1")))
        done = subprocess.run(["true"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and (done.stderr == "" or "report" in ours), done


def test_other_variables_are_refused():
    with pytest.raises(ViewError, match="FOO is no variable of an allocator known here"):
        main.run(["translate", "MALLOC_CONF=narenas:4 FOO=1"])
