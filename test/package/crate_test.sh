#!/bin/sh
# SPDX-License-Identifier: MIT
# The crates: packaged by cargo, which builds each from what is in it, and used by a fresh project without features and with low-memory (HAKMEM_FULL=1: with each); a
# zeroed gigabyte is not touched; documented without a warning. And what stands for jemalloc's crate, by programs on it. Needs the registry of crates the first time, for cc.
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
cargo --version >/dev/null 2>&1 || skip "cargo is not installed"
kept=$(dirname "$HAKMEM_BUILD")/package
mkdir -p "$kept"
export HAKMEM_PACKAGE_DIR="$kept"
status=0
package crate >"$work/out" 2>"$work/err" || status=$?
if [ "$status" -ne 0 ] && grep -qE 'cc|registry|network|resolve' "$kept/failed.log" && ! cargo fetch --quiet \
    --manifest-path "$kept/stage/rust/Cargo.toml" 2>/dev/null; then
    skip "the registry of crates is not reached, which has cc"
fi
[ "$status" -eq 0 ] || fail "package crate: $(cat "$work/err")"
for name in hakmem-sys hakmem-alloc; do
    grep -q "/$name-[0-9.]*\.crate\$" "$work/out" || fail "no crate $name"
done
crates=$(sed -n '1s|/[^/]*$||p' "$work/out")
for file in "$crates"/hakmem-*.crate; do tar -xzf "$file" -C "$work"; done
for folder in "$work"/hakmem-*; do mv "$folder" "$(echo "$folder" | sed 's/-[0-9.]*$//')"; done
cp -r "$HAKMEM_SOURCE/test/consumer/cargo" "$work/user"
sed -i "s|@HAKMEM@|$work/hakmem-alloc|" "$work/user/Cargo.toml"
printf '[patch.crates-io]\nhakmem-sys = { path = "%s" }\n' "$work/hakmem-sys" >>"$work/user/Cargo.toml"
export CARGO_TARGET_DIR="$kept/user"
features="none low-memory"
[ -z "${HAKMEM_FULL-}" ] || features="none hardened throughput low-memory"
for feature in $features; do
    feature=${feature#none}
    expect 0 cargo run --quiet --manifest-path "$work/user/Cargo.toml" --features "$feature"
    says out "on hakmem"
    says out "features: $feature."
done
# For musl by Debian's wrapper: the C sources, which need headers of the kernel; all of it where Rust's library for musl is.
if command -v musl-gcc >/dev/null && [ "$(uname -m)" = x86_64 ]; then
    target=x86_64-unknown-linux-musl
    status=0
    cargo build --quiet --manifest-path "$work/user/Cargo.toml" --target $target >"$work/out" 2>"$work/err" || status=$?
    if [ "$status" -eq 0 ]; then
        expect 0 cargo run --quiet --manifest-path "$work/user/Cargo.toml" --target $target
        says out "on hakmem"
    else
        says err "can't find crate for" # Rust's own
        printf '#include <hakmem/hakmem.h>\nint main(void) { return hak_malloc_usable_size(hak_malloc(100)) < 100; }\n' >"$work/program.c"
        archive=$(find "$CARGO_TARGET_DIR/$target" -path '*/hakmem-sys-*' -name libhakmem.a -newer "$work/user/Cargo.toml" | head -n 1)
        expect 0 musl-gcc -static -I "$work/hakmem-sys/csrc/include" -o "$work/program" "$work/program.c" "$archive"
        expect 0 "$work/program"
    fi
fi
expect 0 env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --manifest-path "$work/user/Cargo.toml" -p hakmem-alloc -p hakmem-sys
# jemalloc's crates, unchanged, on what stands for tikv-jemalloc-sys: figures are those of the observer. With HAKMEM_FULL=1 in both forms
# of both series that have all of it, else one of each.
forms="0.6:none 0.7:unprefixed"
[ -z "${HAKMEM_FULL-}" ] || forms="0.6:none 0.6:unprefixed 0.7:none 0.7:unprefixed"
for form in $forms; do
    series=${form%:*} feature=${form#*:} name=tikv-jemalloc-sys-${form%:*}.999
    feature=${feature#none}
    rm -rf "$work/jemalloc" "${work:?}/$name"
    tar -xzf "$crates/$name.crate" -C "$work"
    cp -r "$HAKMEM_SOURCE/test/consumer/jemalloc" "$work/jemalloc"
    sed -i "s|@SERIES@|$series|; s|@STANDS_IN@|$work/$name|" "$work/jemalloc/Cargo.toml"
    if ! cargo fetch --quiet --manifest-path "$work/jemalloc/Cargo.toml" 2>"$work/err"; then
        grep -qE 'registry|network|resolve|offline' "$work/err" || fail "jemalloc's crates: $(cat "$work/err")"
        echo "no crates of jemalloc's are at hand: nothing is moved"
        break
    fi
    expect 0 cargo build --quiet --manifest-path "$work/jemalloc/Cargo.toml" --features "$feature"
    [ ! -s "$work/err" ] || fail "warnings: $(cat "$work/err")"
    expect 0 python3 -B "$HAKMEM_SOURCE/test/package/jemalloc_crate.py" "$CARGO_TARGET_DIR/debug/jemalloc-user" \
        "$HAKMEM_BUILD/observe/hakmem-observe"
    cat "$work/out"
done
# As they would be published: all of it but the upload (`package crate` has built them), in the order that their dependencies ask for.
if cargo publish --help | grep -q -e --workspace; then
    expect 0 cargo publish --dry-run --no-verify --workspace --allow-dirty --quiet --manifest-path "$kept/stage/rust/Cargo.toml"
fi
exit $failed
