# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: MIT
# Sourced: fresh roots to install into. Each is made below build/package/roots, renewed after a week, and copied
# for a test.
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
kept=$(dirname "$HAKMEM_BUILD")/package
# What is mounted goes with the test, however it ends.
if [ "$(id -u)" = 0 ] && [ -z "${HAKMEM_OWN_MOUNTS-}" ] && unshare --mount --net true 2>/dev/null; then
    rm -rf "$work"
    HAKMEM_OWN_MOUNTS=1 exec unshare --mount sh "$0" "$@"
fi
root=$work/root

needs_root_and() { # TOOL...
    [ "$(id -u)" = 0 ] || skip "only root makes a root"
    needs "$@"
    unshare --mount --net true 2>/dev/null || skip "mounting, or a network of its own, is not allowed here"
}

# make_root SUITE FOLDER: false if it cannot be made
make_root() {
    rm -rf --one-file-system "$2"
    mirror=$(apt-cache policy 2>/dev/null | sed -n "s|.*[0-9] \(http[^ ]*\) $1/main.*|\1|p" | head -n 1)
    if debootstrap --variant=minbase --include=python3,python3-venv "$1" "$2" ${mirror:+"$mirror"} 7>&- \
        >"$kept/debootstrap-$1.log" 2>&1; then
        rm -rf "$2/var/cache/apt/archives" "$2/var/lib/apt/lists"
        mkdir -p "$2/var/cache/apt/archives/partial" "$2/var/lib/apt/lists/partial"
        : >"$2/.whole"
    else
        rm -rf --one-file-system "$2"
        return 1
    fi
}

# why_renew FOLDER: what is wrong with the root; nothing if it is good
why_renew() {
    if [ ! -e "$1/.whole" ]; then
        echo "is not whole"
    elif [ -n "$(find "$1/.whole" -mtime +6)" ]; then
        echo "is older than a week"
    elif ! chroot "$1" apt-get -qq -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= check >/dev/null 2>&1; then
        echo "has an apt that fails"
    fi
}

# kept_root SUITE: $base is one that is good, or as good as can be had; false if there is none
kept_root() {
    base=$kept/roots/$1
    mkdir -p "$kept/roots"
    (
        flock 7
        why=$(why_renew "$base")
        [ -n "$why" ] || exit 0
        if make_root "$1" "$base.new"; then
            rm -rf --one-file-system "$base"
            mv "$base.new" "$base"
        elif [ -e "$base/.whole" ]; then
            echo "the root of $1 $why, and stays: debootstrap says: $(tail -n 1 "$kept/debootstrap-$1.log")"
        else
            exit 1
        fi
    ) 7>"$kept/roots/.lock-$1"
}

# debian_root SUITE: $root becomes a fresh one, with Python and its venv
debian_root() {
    kept_root "$1" || skip "debootstrap cannot make a root of $1 here: $(tail -n 1 "$kept/debootstrap-$1.log")"
    cp -a "$base" "$root"
    enter
}

# enter: $root can be used by `inside`
enter() {
    mkdir -p "$root/proc" "$root/packages"
    trap 'umount "$root/proc" "$root/packages/closed" 2>/dev/null || :; rm -rf --one-file-system "$work"' EXIT
    mount -t proc proc "$root/proc"
    files_of_root >"$work/before"
}

inside() { # COMMAND...: without network
    unshare --net chroot "$root" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=xterm "$@"
}

# files_of_root: what is in it but for the books that the system keeps of packages
files_of_root() {
    (cd "$root" && find . -xdev ! -path './proc*' ! -path './packages*' ! -path '*/dpkg/*' ! -path './var/log/*' \
        ! -path './var/lib/apt/*' ! -path './var/cache/debconf*' ! -path './var/cache/apt/*' | LC_ALL=C sort)
}

# nothing_left: of what was installed since `enter`
nothing_left() {
    files_of_root | diff "$work/before" - >"$work/left" || fail "left or gone: $(cat "$work/left")"
}

# borrow_python: $root gets /opt/python, glibc and Python of Debian 12 that disturb nothing; false if there is no such root
borrow_python() {
    kept_root bookworm || return 1
    mkdir -p "$root/opt/python/lib"
    cp -a "$base/usr/lib/python3.11" "$root/opt/python/lib/"
    cp -L "$base/usr/bin/python3.11" "$base"/lib64/ld-linux-*.so.* "$root/opt/python/"
    for library in c m z expat; do
        cp -L "$base"/usr/lib/*-linux-gnu/lib$library.so.[0-9] "$root/opt/python/lib/"
    done
    cat >"$root/opt/python/python3" <<'SHELL'
#!/bin/sh
PYTHONHOME=/opt/python exec "$(echo /opt/python/ld-linux-*)" --library-path /opt/python/lib /opt/python/python3.11 "$@"
SHELL
    chmod +x "$root/opt/python/python3"
}

# looks_inside PROGRAM ARGS...: explain, check, stats and top of a process in $root that lives for a minute; top in a
# terminal, ended by Ctrl-C; pages that are named are there
looks_inside() {
    program=$*
    expect 0 inside hakmem docs learning
    says out "# What the learner does"
    # shellcheck disable=SC2016 # the inner shell expands it
    expect 0 inside sh -c 'hakmem run -- $0 &
        for i in $(seq 200); do hakmem explain $! >/dev/null 2>&1 && break; sleep 0.1; done
        hakmem check $! && hakmem explain $! && hakmem-observe explain $! --json && hakmem top --once --interval 0.2 $!; status=$?; kill $!; exit $status' "$program"
    says out "is on hakmem"
    says out "RSS is"
    says out '"causes":['
    says out "thread name"
    cat >"$root/packages/top.sh" <<'SHELL'
trap : INT
hakmem run -- $* &
for i in $(seq 200); do hakmem explain $! >/dev/null 2>&1 && break; sleep 0.1; done
hakmem top --interval 0.5 $!
status=$?
kill $!
exit $status
SHELL
    expect 0 python3 "$HAKMEM_SOURCE/test/package/terminal.py" "thread name" unshare --net chroot "$root" \
        env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=xterm sh /packages/top.sh "$program"
    says out "thread name"
    says out "RSS"
}
