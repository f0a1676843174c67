// SPDX-License-Identifier: MIT
// A log that is never emptied.
#[inline(never)]
fn remember(log: &mut Vec<Vec<u8>>, size: usize) {
    log.push(vec![1u8; size]); // the line of the leak
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(16, |text| text.parse().unwrap()) * 1000;
    let mut log = Vec::new();
    for _ in 0..count {
        remember(&mut log, 1048);
    }
    let sum: usize = log.iter().map(|line| line.len()).sum();
    std::mem::forget(log);
    std::process::exit((sum == 0) as i32);
}
