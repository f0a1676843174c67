#!/bin/sh
# SPDX-License-Identifier: MIT
# The program of docs/rust.md compiles without a warning, in edition 2024 as that page says, its allocator serves every kind of request, and a zeroed gigabyte is not
# touched (rust_zeroed_gigabyte_stays_untouched).
set -eu
if ! rustc --version >/dev/null 2>&1; then
    echo "skipped: rustc is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    # shellcheck disable=SC2016 # the backquotes are those of Markdown
    sed -n '/^```rust$/,/^```$/p' "$HAKMEM_SOURCE/docs/rust.md" | sed '/^```/d'
    cat <<'RUST'
#[repr(align(256))]
#[derive(Clone)]
struct Wide([u8; 300]);

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let zeroed = vec![0u8; 1 << 30];
    assert!(zeroed[1 << 29] == 0);
    assert!(resident_kib() < 64 << 10, "{} KiB resident", resident_kib());
    for size in 1..3000usize {
        let mut small = vec![0u8; size];
        assert!(small.iter().all(|byte| *byte == 0));
        small.resize(size * 3, 1);
        small.shrink_to_fit();
        small.fill(0xff);
    }
    let mut wide = vec![Wide([7; 300]); 10];
    wide.resize(1000, Wide([8; 300]));
    assert!(wide.as_ptr() as usize % 256 == 0 && wide[9].0[299] == 7 && wide[999].0[0] == 8);
    let layout = Layout::from_size_align(5000, 4096).unwrap();
    unsafe {
        let block = std::alloc::alloc_zeroed(layout);
        assert!(block as usize % 4096 == 0 && (0..5000).all(|i| *block.add(i) == 0));
        std::alloc::dealloc(block, layout);
    }
    let empty: Vec<u64> = Vec::with_capacity(0);
    drop((empty, zeroed, Box::new(())));
}
RUST
} >"$work/program.rs"
library=$(dirname "$HAKMEM_LIB")
build() { # EDITION FILE
    rustc --edition "$1" -D warnings -O -L "$library" -C "link-arg=-Wl,-rpath,$library" -o "$work/program" "$2"
}
build 2021 "$work/program.rs"
"$work/program"
if rustc --help -v | grep -q 'edition.*2024'; then # from 1.85 on
    sed -e 's/^extern "C"/unsafe &/' -e 's/^unsafe impl/#[allow(unsafe_op_in_unsafe_fn)] &/' \
        "$work/program.rs" >"$work/program_2024.rs"
    build 2024 "$work/program_2024.rs"
    "$work/program"
else
    echo "rustc has no edition 2024"
fi
