#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Real programs under the filter that systemd's SystemCallFilter=@system-service is: they do with the library what they
# do without it. What is not installed, or does not live under the filter without the library, is named and left out.
# usage: service_programs_test.sh FILTER    (the program of service_filter.c; environment: HAKMEM_LIB)
set -u
filter=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
count=0

# A call that is not in the list ends the process; the shell says so on standard error.
sh -c '"$1"' sh "$filter" 2>/dev/null
[ $? -eq 159 ] || {
    echo "skip: this kernel has no seccomp filters"
    exit 77
}

# run LIBRARY PROGRAM ARGUMENTS...: under the filter, in a fresh folder
run() {
    rm -rf "$work/here"
    mkdir "$work/here" && cd "$work/here" || exit 1
    "$filter" "$list" "$@" </dev/null 2>"$work/err"
}

# check PROGRAM ARGUMENTS...: under the filter `list`
list=service
check() {
    command -v "$1" >/dev/null || {
        echo "absent: $1"
        return
    }
    run "" "$@" >"$work/plain" || {
        echo "left out: $1 $2 fails under the filter without the library"
        return
    }
    run "$HAKMEM_LIB" "$@" >"$work/ours"
    result=$?
    count=$((count + 1))
    if [ $result -ne 0 ] || ! cmp -s "$work/plain" "$work/ours"; then
        echo "FAILED: $*, status $result (159: killed for a call)"
        cat "$work/err"
        failed=1
    else
        echo "ok      $1 ${2##*/}" | cut -c 1-40 | head -n 1
    fi
}

# check_script PROGRAM: what the script of that name does with it
check_script() {
    if command -v "$1" >/dev/null; then
        check sh "$work/$1"
    else
        echo "absent: $1"
    fi
}

cat >"$work/git" <<'END'
set -e
git init -q .
i=0
while [ $i -lt 200 ]; do
    seq $i $((i + 500)) >file$i
    i=$((i + 1))
done
git add .
git -c user.name=a -c user.email=a@b commit -q -m one
git gc -q
git log --stat --format=%s | tail -n 3
END
cat >"$work/redis-server" <<'END'
redis-server --port 0 --unixsocket "$PWD/socket" --save '' --dir "$PWD" >log &
server=$!
until redis-cli -s "$PWD/socket" ping >/dev/null 2>&1; do
    kill -0 $server 2>/dev/null || exit 1
done
redis-cli -s "$PWD/socket" eval 'for i = 1, 50000 do redis.call("set", "k" .. i, string.rep("x", i % 900)) end
    for i = 1, 50000, 2 do redis.call("del", "k" .. i) end return redis.call("dbsize")' 0
redis-cli -s "$PWD/socket" save
redis-cli -s "$PWD/socket" memory purge
redis-cli -s "$PWD/socket" flushall
redis-cli -s "$PWD/socket" shutdown nosave
wait $server
END
python3 - >"$work/source.c" <<'END' 2>/dev/null || echo 'int f(int i) { return i; }' >"$work/source.c"
for i in range(800):
    print("int f%d(int *p, int n) { int s = %d; for (int i = 0; i < n; i++) s += p[i] * %d; return s; }" % (i, i, i + 1))
END

check python3 -c '
import threading
def work(seed):
    kept = [{"key %d" % i: [i] * (i % 50)} for i in range(20000)]
    del kept[::2]
    return sum(len(one) for one in kept) + len(bytearray(30 << 20))
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print(work(1))'
# shellcheck disable=SC2016
check perl -e 'for my $r (1 .. 3) { my %h; $h{$_} = "v" x ($_ % 300) for 1 .. 100000;
    delete @h{grep { $_ % 3 } keys %h}; print scalar(keys %h), "\n" }'
check_script git
check sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
    select count(*), sum(length(t)) from (select i, hex(i * 7) || i as t from n order by t desc);'
check gcc -O2 -c -o object.o "$work/source.c"
list=pkey
check node -e 'let kept = []; for (let i = 0; i < 300000; i++) kept[i % 5000] = Buffer.alloc(i % 3000);
    console.log(kept.length)'
list=service
check ruby -e 'kept = {}; 200000.times { |i| kept[i % 7000] = "x" * (i % 900) }; GC.start; puts kept.size'
check lua -e 'local kept = {} for i = 1, 300000 do kept[i % 7000] = ("x"):rep(i % 900) end print(#kept)'
# shellcheck disable=SC2016
check php -n -r '$kept = []; for ($i = 0; $i < 300000; $i++) { $kept[$i % 7000] = str_repeat("x", $i % 9000); }
    echo count($kept), "\n";'
check_script redis-server

[ $count -gt 0 ] || {
    echo "skip: none of these programs is installed"
    exit 77
}
exit $failed
