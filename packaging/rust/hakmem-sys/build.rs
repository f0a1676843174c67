// SPDX-License-Identifier: MIT
//! Builds the C sources that were packed into this crate. The program's own malloc stays the C library's.
use std::{env, fs, os::unix::fs::symlink, path::Path, path::PathBuf, process::Command};

/// The options of a preset, as src/conf/presets.def states them.
fn preset(name: &str) -> String {
    let text = fs::read_to_string("csrc/src/conf/presets.def").expect("csrc/src/conf/presets.def");
    let begin = format!("HAK_PRESET(\"{name}\", \"");
    let line = text.lines().find(|line| line.starts_with(&begin)).expect("a preset of that name");
    line[begin.len()..].split('"').next().unwrap().to_string()
}

/// The wrapper musl-gcc knows no headers but musl's; those of the kernel serve any C library. A folder that has them alone.
fn kernel_headers(out: &Path) -> Option<PathBuf> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap();
    let cross = PathBuf::from(format!("/usr/{arch}-linux-gnu/include"));
    let is_native = env::var("HOST").unwrap().starts_with(&arch);
    let from = if is_native { PathBuf::from("/usr/include") } else { cross };
    let asm = [from.join(format!("{arch}-linux-gnu/asm")), from.join("asm")].into_iter().find(|asm| asm.exists())?;
    let folder = out.join("kernel-headers");
    fs::create_dir_all(&folder).ok()?;
    for (name, target) in [("linux", from.join("linux")), ("asm-generic", from.join("asm-generic")), ("asm", asm)] {
        let _ = fs::remove_file(folder.join(name));
        symlink(target, folder.join(name)).ok()?;
    }
    Some(folder)
}

/// What the crate calls of the observer, and what its report at exit needs.
const OBSERVER: [&str; 10] = ["hak_stats_print", "hak_stats_json", "hak_explain", "hak_explain_json", "hak_heap_map",
    "hak_profile_json", "hak_profile_heap", "hak_observer_begin", "hak_observer_end",
    "hak_observer_dump"];

/// The observer has functions of the core with names of the core: all but its own become local.
fn observer(out: &Path, flags: impl Fn(&mut cc::Build)) {
    let list = fs::read_to_string("csrc/observe/library.list").expect("csrc/observe/library.list");
    let mut build = cc::Build::new();
    flags(&mut build);
    build.include("csrc/observe").files(list.lines().map(|name| format!("csrc/{name}.c")));
    let objects = build.compile_intermediates();
    let (whole, object) = (out.join("observer_whole.o"), out.join("observer.o"));
    run(build.get_compiler().to_command().args(["-r", "-nostdlib", "-o"]).arg(&whole).args(objects));
    let archiver = build.get_archiver().get_program().to_string_lossy().into_owned();
    let prefix = archiver.strip_suffix("gcc-ar").or(archiver.strip_suffix("ar")).unwrap_or_default();
    let mut copy = Command::new(env::var("OBJCOPY").unwrap_or(format!("{prefix}objcopy")));
    run(copy.args(OBSERVER.map(|name| format!("--keep-global-symbol={name}"))).arg(whole).arg(&object));
    cc::Build::new().object(object).cargo_metadata(false).compile("hakmem-observe");
    // Also where nothing of it is called: the option report works.
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static:+whole-archive=hakmem-observe");
}

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?} failed");
}

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let options = match (has("THROUGHPUT"), has("LOW_MEMORY")) {
        (true, true) => panic!("features throughput and low-memory exclude each other"),
        (true, false) => preset("throughput"),
        (false, true) => preset("low-memory"),
        (false, false) => String::new(),
    };
    // The defaults of the program lie beside the code that reads them, so that the linker cannot leave them out.
    let mut unity = String::from("#include \"unity.c\"\n");
    if !options.is_empty() {
        unity.push_str(&format!("const char *hak_options = \"{options}\";\n"));
    }
    let first = out.join("hakmem_unity.c");
    fs::write(&first, unity).expect("OUT_DIR can be written");
    let kernel = if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "musl") { kernel_headers(&out) } else { None };
    let flags = |build: &mut cc::Build| {
        build.include("csrc/src").include("csrc/include").std("gnu17").opt_level(2).define("_GNU_SOURCE", "1");
        build.flag("-fvisibility=hidden").flag("-ffunction-sections");
        if let Some(folder) = &kernel {
            build.flag("-idirafter").flag(folder); // the compiler's own come first
        }
    };
    observer(&out, flags); // before what it reads: a linker looks forward
    let mut build = cc::Build::new();
    flags(&mut build);
    build
        .file(&first)
        .file("csrc/src/cold.c")
        .define("HAK_AUDIT", "0")
        .define("HAK_FAULT", "0")
        .define("HAK_OVERRIDE", "0")
        .define("HAK_REPORT", "1")
        .define("HAK_HARDEN", if has("HARDENED") { "1" } else { "0" });
    for flag in [
        "-fno-builtin-malloc", "-fno-builtin-calloc", "-fno-builtin-realloc", "-fno-builtin-free", "-fno-plt",
        "-ftls-model=initial-exec",
    ] {
        build.flag(flag);
    }
    build.flag_if_supported("-mno-outline-atomics");
    build.compile("hakmem");
    println!("cargo:rerun-if-changed=csrc");
    println!("cargo:include={}", PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("csrc/include").display());
}
