// SPDX-License-Identifier: MIT
//! A program on tikv-jemallocator and tikv-jemalloc-ctl, unchanged: prints its metrics, waits for a line and writes a heap profile.
use std::io::Read;
use tikv_jemalloc_ctl::{background_thread, config, epoch, opt, profiling, raw, stats, thread, version};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[allow(non_upper_case_globals)]
#[cfg_attr(not(feature = "unprefixed"), export_name = "_rjem_malloc_conf")]
#[cfg_attr(feature = "unprefixed", export_name = "malloc_conf")]
pub static malloc_conf: &[u8] = b"prof:true,prof_active:false,lg_prof_sample:14,dirty_decay_ms:7000\0";

#[repr(align(128))]
#[derive(Clone)]
struct Wide([u8; 200]);

fn main() {
    assert!(version::read().unwrap().contains("hakmem"), "{:?}", version::read());
    assert!(background_thread::read().unwrap() && opt::background_thread::read().unwrap());
    assert!(profiling::prof::read().unwrap() && profiling::lg_prof_sample::read().unwrap() == 14);
    assert_eq!(config::malloc_conf::read().unwrap().trim_end_matches('\0'), "");
    let decay: isize = unsafe { raw::read(b"arenas.dirty_decay_ms\0").unwrap() };
    assert_eq!(decay, 7000);
    let active: bool = unsafe { raw::read(b"prof.active\0").unwrap() };
    assert!(!active); // as prof_active:false says

    let (allocated, freed) = (thread::allocatedp::mib().unwrap(), thread::deallocatedp::mib().unwrap());
    let (before, freed) = (allocated.read().unwrap().get(), freed.read().unwrap().get());
    let held: Vec<Vec<u8>> = (0..20_000).map(|i| vec![1u8; 16 + i * 37 % 3000]).collect();
    assert!(thread::allocatedp::read().unwrap().get() - before >= 20_000 * 1000 && freed <= thread::deallocatedp::read().unwrap().get());
    let mut wide = vec![Wide([7; 200]); 100];
    wide.resize(1000, Wide([8; 200]));
    assert!(wide.as_ptr() as usize % 128 == 0 && wide[99].0[199] == 7);
    let zeroed = vec![0u8; 64 << 20];
    let handle = std::thread::spawn(move || zeroed.iter().all(|byte| *byte == 0));
    assert!(handle.join().unwrap());

    unsafe { raw::write(b"prof.active\0", true).unwrap() };
    let sampled: Vec<Vec<u8>> = (0..1000).map(|_| vec![2u8; 5000]).collect();
    let mut input = std::io::stdin(); // its buffer, and that of the output, are taken before the figures are read
    println!("on {}", version::read().unwrap());
    epoch::advance().unwrap();
    println!("{} {}", stats::allocated::read().unwrap(), stats::resident::read().unwrap());
    let mut rest = String::new();
    input.read_to_string(&mut rest).unwrap();
    let path = std::ffi::CString::new(rest.trim()).unwrap();
    unsafe { raw::write(b"prof.dump\0", path.as_ptr()).unwrap() };
    drop((held, wide, sampled));
}
