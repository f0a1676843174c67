// SPDX-License-Identifier: MIT
//! Builds the C sources that were packed into this crate. The program's own malloc stays the C library's.
use std::{env, fs, path::PathBuf};

mod sources;
use sources::has;

/// The options of a preset, as src/conf/presets.def states them.
fn preset(name: &str) -> String {
    let text = fs::read_to_string("csrc/src/conf/presets.def").expect("csrc/src/conf/presets.def");
    let begin = format!("HAK_PRESET(\"{name}\", \"");
    let line = text.lines().find(|line| line.starts_with(&begin)).expect("a preset of that name");
    line[begin.len()..].split('"').next().unwrap().to_string()
}

/// What the crate calls of the observer, and what the core does.
const OBSERVER: [&str; 10] = ["hak_stats_print", "hak_stats_json", "hak_explain", "hak_explain_json", "hak_heap_map",
    "hak_profile_json", "hak_profile_heap", "hak_observer_begin", "hak_observer_end", "hak_observer_dump"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let options = match (has("THROUGHPUT"), has("LOW_MEMORY")) {
        (true, true) => panic!("features throughput and low-memory exclude each other"),
        (true, false) => preset("throughput"),
        (false, true) => preset("low-memory"),
        (false, false) => String::new(),
    };
    // The defaults of the program lie beside the code that reads them, so that the linker cannot leave them out.
    let mut first = String::new();
    if !options.is_empty() {
        first = format!("const char *hak_options = \"{options}\";\n");
    }
    // The observer is before what it reads: a linker looks forward. Also where nothing of it is called: the option report works.
    cc::Build::new().object(sources::observer(&out, &OBSERVER)).cargo_metadata(false).compile("hakmem-observe");
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static:+whole-archive=hakmem-observe");
    sources::core(&out, false, has("HARDENED"), &first).compile("hakmem");
    println!("cargo:include={}", PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("csrc/include").display());
}
