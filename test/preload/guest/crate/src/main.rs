// SPDX-License-Identifier: MIT
//! Collections, strings, threads that hand boxes to each other; every function returns a checksum.
use std::collections::{BTreeMap, HashMap};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

fn churn(seed: u64, rounds: usize) -> u64 {
    let mut rng = Rng(seed);
    let mut slots: Vec<Vec<u8>> = vec![Vec::new(); 500];
    let mut total = 0u64;
    for round in 0..rounds {
        let slot = rng.below(500) as usize;
        total = total.wrapping_add(sum(&slots[slot]));
        let size = rng.below(if round % 200 == 0 { 300_000 } else { 2_000 }) as usize;
        slots[slot] = vec![round as u8; size];
        slots[slot].extend(vec![7; rng.below(100) as usize]);
    }
    total
}

fn collections(count: u64) -> u64 {
    let mut tree: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut table: HashMap<u64, String> = HashMap::new();
    for number in 0..count {
        tree.entry(format!("key {}", number * 7919 % 3000)).or_default().push(number);
        table.entry(number % 5000).or_default().push_str("x");
    }
    let lengths: u64 = table.values().map(|s| s.len() as u64).sum();
    tree.values().flatten().sum::<u64>() + lengths
}

/// Boxes allocated by producers and freed by consumers.
fn exchange(producers: u64, each: u64) -> u64 {
    let (sender, receiver) = mpsc::channel::<Box<Vec<u64>>>();
    let receiver = Arc::new(Mutex::new(receiver));
    let makers = (0..producers).map(|id| {
        let sender = sender.clone();
        thread::spawn(move || {
            for number in 0..each {
                sender.send(Box::new((0..number % 50).map(|n| n + id).collect())).unwrap();
            }
            0
        })
    });
    let takers = (0..3).map(|_| {
        let receiver = Arc::clone(&receiver);
        thread::spawn(move || {
            let next = || receiver.lock().unwrap().recv().ok();
            std::iter::from_fn(next).map(|list| list.iter().sum::<u64>()).sum()
        })
    });
    let all: Vec<thread::JoinHandle<u64>> = makers.chain(takers).collect();
    drop(sender);
    all.into_iter().map(|one| one.join().unwrap()).sum()
}

fn main() {
    println!("churn {}", churn(42, 30_000));
    println!("collections {}", collections(100_000));
    println!("exchange {}", exchange(4, 20_000));
    let threads: Vec<_> = (0..8).map(|seed| thread::spawn(move || churn(seed, 5_000))).collect();
    for handle in threads {
        println!("thread {}", handle.join().unwrap());
    }
}

#[test]
fn exchange_counts_every_box() {
    assert_eq!(exchange(1, 3), 1);
}

#[test]
#[should_panic]
fn panic_unwinds() {
    let kept = vec![String::from("dropped while unwinding"); 100];
    panic!("{}", kept.len());
}
