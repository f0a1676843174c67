// SPDX-License-Identifier: MIT
//! A program on the crate: its blocks are hakmem's, zeroed memory is not touched, the features set what they say.
#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

#[repr(align(256))]
#[derive(Clone)]
struct Wide([u8; 300]);

/// Of the process's own peak.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let before = resident_kib();
    let zeroed = vec![0u8; 1 << 30];
    assert!(zeroed[1 << 29] == 0);
    assert!(resident_kib() < before + (16 << 10), "{} KiB resident", resident_kib());
    let mut text = String::new();
    for at in 0..10_000 {
        text.push_str(&at.to_string());
    }
    let mut wide = vec![Wide([7; 300]); 10];
    wide.resize(1000, Wide([8; 300]));
    assert!(wide.as_ptr() as usize % 256 == 0 && wide[9].0[299] == 7);
    std::thread::spawn(move || drop(wide)).join().unwrap();
    let stats = hakmem::stats::json();
    assert!(stats.contains("\"hakmem\"") && hakmem::stats::explain().contains("RSS is"));
    let kept = if cfg!(feature = "throughput") {
        "256m"
    } else if cfg!(feature = "low-memory") {
        "1m"
    } else {
        "32m"
    };
    assert_eq!(hakmem::option::get("retain_min").unwrap(), kept);
    assert!(hakmem::option::get("nosuch").is_err());
    let cached = hakmem::option::set("retain_min", "8m");
    assert!(cached.is_ok() && hakmem::option::get("retain_min").unwrap() == "8m");
    assert!(hakmem::profile::start(1 << 19).is_ok() && hakmem::profile::json().contains("\"profile\""));
    hakmem::stats::collect_thread();
    hakmem::stats::trim();
    let names = [(cfg!(feature = "hardened"), "hardened"), (cfg!(feature = "throughput"), "throughput"),
                 (cfg!(feature = "low-memory"), "low-memory")];
    let on: Vec<&str> = names.iter().filter(|one| one.0).map(|one| one.1).collect();
    println!("on hakmem {} features: {}.", hakmem::version(), on.join(","));
    drop((zeroed, text));
}
