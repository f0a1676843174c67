// SPDX-License-Identifier: MIT
//! Collections, strings, threads that hand boxes to each other; every function returns a checksum.
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
    })
}

pub fn churn(seed: u64, rounds: usize) -> u64 {
    let mut rng = Rng::new(seed);
    let mut slots: Vec<Vec<u8>> = vec![Vec::new(); 500];
    let mut total = 0u64;
    for round in 0..rounds {
        let slot = rng.below(500) as usize;
        total = total.wrapping_add(sum(&slots[slot]));
        let size = rng.below(if round % 200 == 0 { 300_000 } else { 2_000 }) as usize;
        slots[slot] = vec![round as u8; size];
        let extra = rng.below(100) as usize;
        slots[slot].extend(std::iter::repeat(7).take(extra));
    }
    total
}

pub fn collections(count: u64) -> u64 {
    let mut tree: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut table: HashMap<u64, String> = HashMap::new();
    let mut queue: VecDeque<Box<[u8]>> = VecDeque::new();
    let mut rng = Rng::new(7);
    for number in 0..count {
        tree.entry(format!("key {}", rng.below(3000)))
            .or_default()
            .push(number);
        table.entry(number % 5000).or_default().push_str("x");
        queue.push_back(vec![1u8; rng.below(256) as usize].into_boxed_slice());
        if queue.len() > 1000 {
            queue.pop_front();
        }
    }
    let lengths: u64 = table.values().map(|s| s.len() as u64).sum();
    tree.values().map(|v| v.iter().sum::<u64>()).sum::<u64>() + lengths + queue.len() as u64
}

/// Boxes allocated by producers and freed by consumers.
pub fn exchange(producers: u64, each: u64) -> u64 {
    let (sender, receiver) = mpsc::channel::<Box<Vec<u64>>>();
    let receiver = Arc::new(Mutex::new(receiver));
    let makers: Vec<_> = (0..producers)
        .map(|id| {
            let sender = sender.clone();
            thread::spawn(move || {
                for number in 0..each {
                    sender
                        .send(Box::new((0..number % 50).map(|n| n + id).collect()))
                        .unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let takers: Vec<_> = (0..3)
        .map(|_| {
            let receiver = Arc::clone(&receiver);
            thread::spawn(move || {
                let mut total = 0u64;
                loop {
                    let next = receiver.lock().unwrap().recv();
                    match next {
                        Ok(list) => total += list.iter().sum::<u64>(),
                        Err(_) => return total,
                    }
                }
            })
        })
        .collect();
    makers.into_iter().for_each(|maker| maker.join().unwrap());
    takers.into_iter().map(|taker| taker.join().unwrap()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchange_counts_every_box() {
        assert_eq!(exchange(1, 3), 1);
    }

    #[test]
    fn churn_is_deterministic() {
        assert_eq!(churn(1, 3000), churn(1, 3000));
    }

    #[test]
    #[should_panic]
    fn panic_unwinds() {
        let kept = vec![String::from("dropped while unwinding"); 100];
        panic!("{}", kept.len());
    }
}
