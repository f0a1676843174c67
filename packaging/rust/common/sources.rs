// SPDX-License-Identifier: MIT
//! How the C sources that are packed into a crate are built: for the build scripts of both.
use std::{env, fs, os::unix::fs::symlink, path::Path, path::PathBuf, process::Command};

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

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?} failed");
}

pub fn has(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
}

/// Flags of all sources.
fn plain(out: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.include("csrc/src").include("csrc/include").std("gnu17").opt_level(2).define("_GNU_SOURCE", "1");
    build.flag("-fvisibility=hidden").flag("-ffunction-sections");
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "musl") {
        if let Some(folder) = kernel_headers(out) {
            build.flag("-idirafter").flag(folder); // the compiler's own come first
        }
    }
    build
}

/// The allocator. `first` stands before its first source.
pub fn core(out: &Path, is_override: bool, is_hardened: bool, first: &str) -> cc::Build {
    let unity = out.join("hakmem_unity.c");
    fs::write(&unity, format!("#include \"unity.c\"\n{first}")).expect("OUT_DIR can be written");
    let mut build = plain(out);
    build.file(&unity).file("csrc/src/cold.c");
    let bit = |is: bool| if is { "1" } else { "0" };
    for (name, value) in [("HAK_AUDIT", "0"), ("HAK_FAULT", "0"), ("HAK_REPORT", "1"), ("HAK_OVERRIDE", bit(is_override)),
        ("HAK_HARDEN", bit(is_hardened))] {
        build.define(name, value);
    }
    for flag in [
        "-fno-builtin-malloc", "-fno-builtin-calloc", "-fno-builtin-realloc", "-fno-builtin-free", "-fno-plt",
        "-ftls-model=initial-exec",
    ] {
        build.flag(flag);
    }
    build.flag_if_supported("-mno-outline-atomics");
    println!("cargo:rerun-if-changed=csrc");
    build
}

/// One object of those, in which others see the names `kept` alone; `renamed`: old and new ones.
pub fn merged(build: &cc::Build, objects: &[PathBuf], object: &Path, renamed: &[(String, String)], kept: &[String]) {
    let whole = object.with_extension("whole.o");
    run(build.get_compiler().to_command().args(["-r", "-nostdlib", "-o"]).arg(&whole).args(objects));
    let archiver = build.get_archiver().get_program().to_string_lossy().into_owned();
    let prefix = archiver.strip_suffix("gcc-ar").or(archiver.strip_suffix("ar")).unwrap_or_default();
    let tool = env::var("OBJCOPY").unwrap_or(format!("{prefix}objcopy"));
    let mut copy = Command::new(&tool);
    copy.args(renamed.iter().map(|(old, new)| format!("--redefine-sym={old}={new}"))).arg(&whole).arg(object);
    run(&mut copy);
    run(Command::new(tool).args(kept.iter().map(|name| format!("--keep-global-symbol={name}"))).arg(object));
}

/// The observer as one object: it has functions of the core with names of the core.
pub fn observer(out: &Path, kept: &[&str]) -> PathBuf {
    let list = fs::read_to_string("csrc/observe/library.list").expect("csrc/observe/library.list");
    let mut build = plain(out);
    build.include("csrc/observe").files(list.lines().map(|name| format!("csrc/{name}.c")));
    let objects = build.compile_intermediates();
    let object = out.join("observer.o");
    merged(&build, &objects, &object, &[], &kept.iter().map(|name| name.to_string()).collect::<Vec<_>>());
    object
}
