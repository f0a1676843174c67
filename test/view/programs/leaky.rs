// SPDX-License-Identifier: MIT
// A log that is never emptied, and sessions of which one in 64 stays.
#[inline(never)]
fn remember(log: &mut Vec<Vec<u8>>, size: usize) {
    log.push(vec![1u8; size]); // the line of the leak
}

#[inline(never)]
fn open_session() -> Option<Vec<u8>> {
    Some(vec![1u8; 512]) // the line of the pinned blocks
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(16, |text| text.parse().unwrap()) * 1000;
    let mut log = Vec::new();
    for _ in 0..count {
        remember(&mut log, 1048);
    }
    let sum: usize = log.iter().map(|line| line.len()).sum();
    let mut sessions: Vec<Option<Vec<u8>>> = (0..count).map(|_| open_session()).collect();
    for number in (0..count).filter(|number| number % 64 != 0) {
        sessions[number] = None;
    }
    std::mem::forget(sessions);
    std::mem::forget(log);
    std::process::exit((sum == 0) as i32);
}
