// SPDX-License-Identifier: MIT
//! Declarations of [hakmem](https://docs.rs/hakmem-alloc)'s functions. The C sources are in this crate; `hak_` names only, so the
//! program's `malloc` stays that of the C library. The header `include/hakmem/hakmem.h` has the contract of each function.
#![no_std]
#![deny(missing_docs)]

use core::ffi::{c_char, c_int, c_void};

extern "C" {
    /// As `malloc`.
    pub fn hak_malloc(size: usize) -> *mut c_void;
    /// As `calloc`.
    pub fn hak_calloc(count: usize, size: usize) -> *mut c_void;
    /// As `realloc`.
    pub fn hak_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    /// As `free`.
    pub fn hak_free(block: *mut c_void);
    /// As `aligned_alloc`; any power of two is a valid alignment.
    pub fn hak_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    /// As `free_sized` of C23; the size must be the requested one.
    pub fn hak_free_sized(block: *mut c_void, size: usize);
    /// As `free_aligned_sized` of C23.
    pub fn hak_free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
    /// Usable bytes of a block.
    pub fn hak_malloc_usable_size(block: *const c_void) -> usize;
    /// The usable size of a request of `size` bytes.
    pub fn hak_good_size(size: usize) -> usize;
    /// Returns unused memory to the kernel; 1 if there was any.
    pub fn hak_malloc_trim(keep: usize) -> c_int;
    /// Flushes the calling thread's cache.
    pub fn hak_collect_thread();
    /// "major.minor.patch"
    pub fn hak_version() -> *const c_char;
    /// Writes the statistics to a file descriptor, as text.
    pub fn hak_stats_print(fd: c_int);
    /// Writes the statistics to a file descriptor, as JSON.
    pub fn hak_stats_json(fd: c_int);
    /// Writes the causes of resident memory to a file descriptor, as text.
    pub fn hak_explain(fd: c_int);
    /// Writes the causes of resident memory to a file descriptor, as JSON.
    pub fn hak_explain_json(fd: c_int);
    /// Writes the use of every part of the heap to a file descriptor, as JSON.
    pub fn hak_heap_map(fd: c_int);
    /// Writes the heap profile to a file descriptor, as JSON.
    pub fn hak_profile_json(fd: c_int);
    /// Copies the value of an option; 0 or an error number.
    pub fn hak_option_get(name: *const c_char, value: *mut c_char, bytes: usize) -> c_int;
    /// Changes an option; 0 or an error number.
    pub fn hak_option_set(name: *const c_char, value: *const c_char) -> c_int;
}
