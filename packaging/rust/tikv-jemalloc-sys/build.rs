// SPDX-License-Identifier: MIT
//! Builds the C sources that were packed into this crate, under the names that tikv-jemalloc-sys has: with the prefix `_rjem_`, or
//! without one as the program's malloc.
use std::{env, fs, path::Path, path::PathBuf};

mod sources;
use sources::has;

const PREFIX: &str = "_rjem_";
const FAMILY: [&str; 11] = ["malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "memalign", "valloc",
    "malloc_usable_size", "free_sized", "free_aligned_sized"];
const JEMALLOC: [&str; 13] = ["mallocx", "rallocx", "xallocx", "sallocx", "dallocx", "sdallocx", "nallocx", "mallctl",
    "mallctlnametomib", "mallctlbymib", "malloc_stats_print", "malloc_message", "malloc_conf"];

/// The names of a version script, without those of C++, which is not built here.
fn exported() -> Vec<String> {
    let text = fs::read_to_string("csrc/src/api/hak.map").expect("csrc/src/api/hak.map");
    let names = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    names.filter(|name| !name.is_empty() && !name.starts_with('_')).map(str::to_string).collect()
}

/// Where C code that depends on the crate looks for jemalloc: PATH/include, PATH/lib.
fn headers(out: &Path) {
    for (from, to) in [("include/jemalloc/jemalloc.h", "jemalloc/jemalloc.h"), ("csrc/include/hakmem/jemalloc.h", "hakmem/jemalloc.h")] {
        let target = out.join("include").join(to);
        fs::create_dir_all(target.parent().unwrap()).and_then(|()| fs::copy(from, &target)).expect("OUT_DIR can be written");
    }
}

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let is_prefixed = !has("UNPREFIXED_MALLOC_ON_SUPPORTED_PLATFORMS");
    let mut conf = env::var("JEMALLOC_SYS_WITH_MALLOC_CONF").unwrap_or_default();
    println!("cargo:rerun-if-env-changed=JEMALLOC_SYS_WITH_MALLOC_CONF");
    if has("BACKGROUND_THREADS") {
        conf = format!("background_thread:true,{conf}");
    }
    let mut build = sources::core(&out, !is_prefixed, false, "");
    let text = |words: &str| format!("{words:?}");
    build.define("HAK_JE_PREFIX", text(if is_prefixed { PREFIX } else { "" }).as_str()).define("HAK_JE_CONF", text(&conf).as_str());
    let mut objects = build.compile_intermediates();
    objects.push(sources::observer(&out, &["hak_observer_begin", "hak_observer_end", "hak_observer_dump"]));
    // All in one object, in which others see jemalloc's names alone: the program may have hakmem beside it.
    let object = out.join("jemalloc.o");
    if is_prefixed {
        println!("cargo:rustc-cfg=prefixed");
        let family = FAMILY.map(|name| (format!("hak_{name}"), format!("{PREFIX}{name}")));
        let names = JEMALLOC.map(|name| (format!("hak_je_{name}"), format!("{PREFIX}{name}")));
        let renamed = [&family[..], &names[..]].concat();
        let kept: Vec<String> = renamed.iter().map(|(_, name)| name.clone()).collect();
        sources::merged(&build, &objects, &object, &renamed, &kept);
    } else {
        sources::merged(&build, &objects, &object, &[], &exported());
    }
    headers(&out);
    fs::create_dir_all(out.join("lib")).expect("OUT_DIR can be written");
    cc::Build::new().object(&object).cargo_metadata(false).out_dir(out.join("lib")).compile("jemalloc");
    println!("cargo:root={}", out.display());
    println!("cargo:rustc-link-search=native={}", out.join("lib").display());
    println!("cargo:rustc-link-lib=static=jemalloc");
}
