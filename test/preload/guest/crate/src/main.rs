// SPDX-License-Identifier: MIT
use std::thread;
use work::{churn, collections, exchange};

fn main() {
    println!("churn {}", churn(42, 30_000));
    println!("collections {}", collections(100_000));
    println!("exchange {}", exchange(4, 20_000));
    let threads: Vec<_> = (0..8)
        .map(|seed| thread::spawn(move || churn(seed, 5_000)))
        .collect();
    for handle in threads {
        println!("thread {}", handle.join().unwrap());
    }
    let mut text = String::new();
    for number in 0..200_000 {
        text.push_str(&number.to_string());
    }
    println!("text {}", work::sum(text.as_bytes()));
}
