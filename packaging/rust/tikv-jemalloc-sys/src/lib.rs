// SPDX-License-Identifier: MIT
//! The declarations that tikv-jemallocator and tikv-jemalloc-ctl use, for [hakmem](https://docs.rs/hakmem-alloc): the C sources are in
//! this crate. `include/hakmem/jemalloc.h` has the contract of each function.
#![no_std]
#![allow(non_snake_case, non_camel_case_types)]
#![deny(missing_docs)]

use libc::{c_char, c_int, c_uint, c_void, size_t};

/// Alignment to 2 to the power of `log2`.
#[inline]
pub const fn MALLOCX_LG_ALIGN(log2: usize) -> c_int {
    log2 as c_int
}

/// Alignment to a power of two.
#[inline]
pub const fn MALLOCX_ALIGN(align: usize) -> c_int {
    align.trailing_zeros() as c_int
}

/// All usable bytes are zero.
pub const MALLOCX_ZERO: c_int = 1 << 6;

/// A cache of `tcache.create`.
#[inline]
pub const fn MALLOCX_TCACHE(tcache: usize) -> c_int {
    (tcache.wrapping_add(2) << 8) as c_int
}

/// Past the thread's cache.
pub const MALLOCX_TCACHE_NONE: c_int = MALLOCX_TCACHE(usize::MAX);

/// An arena of `arenas.create`.
#[inline]
pub const fn MALLOCX_ARENA(arena: usize) -> c_int {
    (arena as c_int).wrapping_add(1) << 20
}

extern "C" {
    /// As `malloc`.
    #[cfg_attr(prefixed, link_name = "_rjem_malloc")]
    pub fn malloc(size: size_t) -> *mut c_void;
    /// As `calloc`.
    #[cfg_attr(prefixed, link_name = "_rjem_calloc")]
    pub fn calloc(count: size_t, size: size_t) -> *mut c_void;
    /// As `posix_memalign`.
    #[cfg_attr(prefixed, link_name = "_rjem_posix_memalign")]
    pub fn posix_memalign(block: *mut *mut c_void, alignment: size_t, size: size_t) -> c_int;
    /// As `aligned_alloc`.
    #[cfg_attr(prefixed, link_name = "_rjem_aligned_alloc")]
    pub fn aligned_alloc(alignment: size_t, size: size_t) -> *mut c_void;
    /// As `realloc`.
    #[cfg_attr(prefixed, link_name = "_rjem_realloc")]
    pub fn realloc(block: *mut c_void, size: size_t) -> *mut c_void;
    /// As `free`.
    #[cfg_attr(prefixed, link_name = "_rjem_free")]
    pub fn free(block: *mut c_void);
    /// As `free_sized` of C23.
    #[cfg_attr(prefixed, link_name = "_rjem_free_sized")]
    pub fn free_sized(block: *mut c_void, size: size_t);
    /// As `free_aligned_sized` of C23.
    #[cfg_attr(prefixed, link_name = "_rjem_free_aligned_sized")]
    pub fn free_aligned_sized(block: *mut c_void, alignment: size_t, size: size_t);
    /// `malloc` with flags.
    #[cfg_attr(prefixed, link_name = "_rjem_mallocx")]
    pub fn mallocx(size: size_t, flags: c_int) -> *mut c_void;
    /// `realloc` with flags.
    #[cfg_attr(prefixed, link_name = "_rjem_rallocx")]
    pub fn rallocx(block: *mut c_void, size: size_t, flags: c_int) -> *mut c_void;
    /// The usable size, as no block grows or shrinks in place by it.
    #[cfg_attr(prefixed, link_name = "_rjem_xallocx")]
    pub fn xallocx(block: *mut c_void, size: size_t, extra: size_t, flags: c_int) -> size_t;
    /// The usable size.
    #[cfg_attr(prefixed, link_name = "_rjem_sallocx")]
    pub fn sallocx(block: *const c_void, flags: c_int) -> size_t;
    /// `free` with flags.
    #[cfg_attr(prefixed, link_name = "_rjem_dallocx")]
    pub fn dallocx(block: *mut c_void, flags: c_int);
    /// `free_sized` with flags.
    #[cfg_attr(prefixed, link_name = "_rjem_sdallocx")]
    pub fn sdallocx(block: *mut c_void, size: size_t, flags: c_int);
    /// The usable size of a request.
    #[cfg_attr(prefixed, link_name = "_rjem_nallocx")]
    pub fn nallocx(size: size_t, flags: c_int) -> size_t;
    /// The usable size; 0 for null.
    #[cfg_attr(prefixed, link_name = "_rjem_malloc_usable_size")]
    pub fn malloc_usable_size(block: *const c_void) -> size_t;
    /// Reads, writes or does what a name says; 0 or an error number.
    #[cfg_attr(prefixed, link_name = "_rjem_mallctl")]
    pub fn mallctl(name: *const c_char, oldp: *mut c_void, oldlenp: *mut size_t, newp: *mut c_void, newlen: size_t) -> c_int;
    /// The numbers that stand for a name.
    #[cfg_attr(prefixed, link_name = "_rjem_mallctlnametomib")]
    pub fn mallctlnametomib(name: *const c_char, mibp: *mut size_t, miblenp: *mut size_t) -> c_int;
    /// `mallctl` by these numbers.
    #[cfg_attr(prefixed, link_name = "_rjem_mallctlbymib")]
    pub fn mallctlbymib(mib: *const size_t, miblen: size_t, oldp: *mut c_void, oldlenp: *mut size_t, newp: *mut c_void,
        newlen: size_t) -> c_int;
    /// Writes the statistics by the function, or to standard error.
    #[cfg_attr(prefixed, link_name = "_rjem_malloc_stats_print")]
    pub fn malloc_stats_print(write: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>, context: *mut c_void,
        options: *const c_char);
    /// Receives the statistics where no function is given.
    #[cfg_attr(prefixed, link_name = "_rjem_malloc_message")]
    pub static mut malloc_message: Option<unsafe extern "C" fn(context: *mut c_void, text: *const c_char)>;
    /// The options of a program that defines it.
    #[cfg_attr(prefixed, link_name = "_rjem_malloc_conf")]
    pub static malloc_conf: Option<&'static c_char>;
}

/// Takes an extent.
pub type extent_alloc_t = unsafe extern "C" fn(hooks: *mut extent_hooks_t, address: *mut c_void, size: size_t, alignment: size_t,
    zero: *mut bool, commit: *mut bool, arena: c_uint) -> *mut c_void;
/// Gives an extent back; whether it refused to.
pub type extent_dalloc_t =
    unsafe extern "C" fn(hooks: *mut extent_hooks_t, address: *mut c_void, size: size_t, committed: bool, arena: c_uint) -> bool;
/// Gives an extent back, surely.
pub type extent_destroy_t =
    unsafe extern "C" fn(hooks: *mut extent_hooks_t, address: *mut c_void, size: size_t, committed: bool, arena: c_uint);
/// Gives memory to a part; whether it refused to.
pub type extent_commit_t = unsafe extern "C" fn(hooks: *mut extent_hooks_t, address: *mut c_void, size: size_t, offset: size_t,
    length: size_t, arena: c_uint) -> bool;
/// Takes memory from a part; whether it refused to.
pub type extent_decommit_t = extent_commit_t;
/// Forgets what a part holds; whether it refused to.
pub type extent_purge_t = extent_commit_t;
/// Splits an extent; whether it refused to.
pub type extent_split_t = unsafe extern "C" fn(hooks: *mut extent_hooks_t, address: *mut c_void, size: size_t, size_a: size_t,
    size_b: size_t, committed: bool, arena: c_uint) -> bool;
/// Merges two; whether it refused to.
pub type extent_merge_t = unsafe extern "C" fn(hooks: *mut extent_hooks_t, address_a: *mut c_void, size_a: size_t,
    address_b: *mut c_void, size_b: size_t, committed: bool, arena: c_uint) -> bool;
/// The C name of the structure.
pub type extent_hooks_t = extent_hooks_s;

/// Hooks of an arena, which `arena.I.extent_hooks` and `arenas.create` refuse here.
#[repr(C)]
#[derive(Copy, Clone, Default)]
pub struct extent_hooks_s {
    /// See [`extent_alloc_t`].
    pub alloc: Option<extent_alloc_t>,
    /// See [`extent_dalloc_t`].
    pub dalloc: Option<extent_dalloc_t>,
    /// See [`extent_destroy_t`].
    pub destroy: Option<extent_destroy_t>,
    /// See [`extent_commit_t`].
    pub commit: Option<extent_commit_t>,
    /// See [`extent_decommit_t`].
    pub decommit: Option<extent_decommit_t>,
    /// See [`extent_purge_t`].
    pub purge_lazy: Option<extent_purge_t>,
    /// See [`extent_purge_t`].
    pub purge_forced: Option<extent_purge_t>,
    /// See [`extent_split_t`].
    pub split: Option<extent_split_t>,
    /// See [`extent_merge_t`].
    pub merge: Option<extent_merge_t>,
}

/// Rust's own archive member has to be asked for these, for the program to have all of the family from here.
#[cfg(feature = "override_allocator_on_supported_platforms")]
mod kept {
    use super::*;
    #[used]
    static MALLOC: unsafe extern "C" fn(size_t) -> *mut c_void = malloc;
    #[used]
    static FREE: unsafe extern "C" fn(*mut c_void) = free;
}
