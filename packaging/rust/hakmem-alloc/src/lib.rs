// SPDX-License-Identifier: MIT
//! A global allocator: hakmem, built from its C sources.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
//!
//! let zeroed = vec![0u8; 1 << 30]; // touches nothing
//! assert!(hakmem::stats::json().contains("\"bytes\""));
//! # drop(zeroed);
//! ```
//!
//! Memory of C libraries in the same program stays the C library's.
#![deny(missing_docs)]

use hakmem_sys as sys;
use std::alloc::{GlobalAlloc, Layout};

/// Blocks are aligned to this without asking.
const ALIGNMENT: usize = 16;

/// The allocator; it has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakmem;

// SAFETY: the functions keep to the contract of ISO C; every block goes back with the size and alignment it was asked with.
unsafe impl GlobalAlloc for Hakmem {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            sys::hak_malloc(layout.size()).cast()
        } else {
            sys::hak_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            return sys::hak_calloc(1, layout.size()).cast();
        }
        let block = self.alloc(layout);
        if !block.is_null() {
            std::ptr::write_bytes(block, 0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() <= ALIGNMENT {
            sys::hak_free_sized(block.cast(), layout.size());
        } else {
            sys::hak_free_aligned_sized(block.cast(), layout.align(), layout.size());
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            return sys::hak_realloc(block.cast(), size).cast();
        }
        let fresh = sys::hak_aligned_alloc(layout.align(), size).cast::<u8>();
        if !fresh.is_null() {
            std::ptr::copy_nonoverlapping(block, fresh, layout.size().min(size));
            self.dealloc(block, layout);
        }
        fresh
    }
}

/// "major.minor.patch" of the library.
pub fn version() -> &'static str {
    // SAFETY: a constant string.
    unsafe { std::ffi::CStr::from_ptr(sys::hak_version()) }.to_str().unwrap_or("")
}

/// What the allocator knows of this process.
pub mod stats {
    use hakmem_sys as sys;
    use std::ffi::c_int;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    /// What a function writes; read by a thread, as a pipe holds little.
    pub(crate) fn written(write: unsafe extern "C" fn(c_int)) -> String {
        let Ok((mut reader, writer)) = UnixStream::pair() else { return String::new() };
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = reader.read_to_string(&mut text);
            text
        });
        // SAFETY: the descriptor is open until `writer` is dropped.
        unsafe { write(writer.as_raw_fd()) };
        drop(writer);
        reading.join().unwrap_or_default()
    }

    /// The statistics, as text.
    pub fn text() -> String {
        written(sys::hak_stats_print)
    }

    /// The statistics, as JSON.
    pub fn json() -> String {
        written(sys::hak_stats_json)
    }

    /// Why the resident memory of the process is what it is, as text.
    pub fn explain() -> String {
        written(sys::hak_explain)
    }

    /// Why the resident memory of the process is what it is, as JSON.
    pub fn explain_json() -> String {
        written(sys::hak_explain_json)
    }

    /// The use of every part of the heap, as JSON.
    pub fn map_json() -> String {
        written(sys::hak_heap_map)
    }

    /// Returns unused memory to the kernel; whether there was any.
    pub fn trim() -> bool {
        // SAFETY: any thread may call it at any time.
        unsafe { sys::hak_malloc_trim(0) != 0 }
    }

    /// Flushes the cache of the calling thread, which should do so before it waits for long.
    pub fn collect_thread() {
        // SAFETY: any thread may call it at any time.
        unsafe { sys::hak_collect_thread() }
    }
}

/// The sampling heap profiler.
pub mod profile {
    /// Samples one block in `rate` bytes on average; 0 ends it.
    pub fn start(rate: usize) -> Result<(), std::io::Error> {
        crate::option::set("profile_rate", &rate.to_string())
    }

    /// What was sampled, as JSON: the bytes held and allocated by each stack.
    pub fn json() -> String {
        crate::stats::written(hakmem_sys::hak_profile_json)
    }
}

/// Options at run time.
pub mod option {
    use hakmem_sys as sys;
    use std::ffi::{CStr, CString};
    use std::io::{Error, ErrorKind};

    fn text(word: &str) -> Result<CString, Error> {
        CString::new(word).map_err(|_| Error::from(ErrorKind::InvalidInput))
    }

    fn result(number: i32) -> Result<(), Error> {
        if number == 0 { Ok(()) } else { Err(Error::from_raw_os_error(number)) }
    }

    /// The value in force.
    pub fn get(name: &str) -> Result<String, Error> {
        let (name, mut value) = (text(name)?, [0 as std::ffi::c_char; 256]);
        // SAFETY: 256 bytes always suffice, and the value is terminated.
        unsafe {
            result(sys::hak_option_get(name.as_ptr(), value.as_mut_ptr(), value.len()))?;
            Ok(CStr::from_ptr(value.as_ptr()).to_string_lossy().into_owned())
        }
    }

    /// Changes a value, as in `HAKMEM_OPTIONS`.
    pub fn set(name: &str, value: &str) -> Result<(), Error> {
        let (name, value) = (text(name)?, text(value)?);
        // SAFETY: two terminated strings.
        result(unsafe { sys::hak_option_set(name.as_ptr(), value.as_ptr()) })
    }
}
