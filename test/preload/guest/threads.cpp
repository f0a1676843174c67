// SPDX-License-Identifier: MIT
// Threads that build, pass on and destroy objects of each other: queues of unique_ptr, shared maps,
// futures, exceptions, thread_local destructors, over-aligned new, short lives. Prints sums that do
// not depend on the schedule.
//
//     threads [threads] [rounds]
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Shared = std::shared_ptr<const std::string>;

struct alignas(64) Line {
    std::uint64_t words[8];
};

struct Message {
    std::string text;
    std::vector<int> numbers;
    std::unique_ptr<Line> line;
    Shared shared;
};

template <typename T> class Queue {
public:
    void push(T value) {
        const std::lock_guard<std::mutex> held(mutex_);
        items_.push_back(std::move(value));
        ready_.notify_one();
    }
    T pop() {
        std::unique_lock<std::mutex> held(mutex_);
        ready_.wait(held, [this] { return !items_.empty(); });
        T value = std::move(items_.front());
        items_.pop_front();
        return value;
    }

private:
    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<T> items_;
};

thread_local std::map<int, std::string> keeper; // destroyed when its thread ends

std::unique_ptr<Message> make_message(std::minstd_rand &rng, const Shared &shared) {
    auto message = std::make_unique<Message>();
    message->text.assign(rng() % 300, 'm');
    message->numbers.resize(rng() % 100);
    std::iota(message->numbers.begin(), message->numbers.end(), 0);
    message->line = std::make_unique<Line>();
    message->line->words[7] = reinterpret_cast<std::uintptr_t>(message->line.get()) % 64;
    message->shared = shared;
    return message;
}

std::uint64_t weigh(const Message &message) {
    return message.text.size() + message.line->words[7] + message.shared->size() +
           std::accumulate(message.numbers.begin(), message.numbers.end(), std::uint64_t{0});
}

// Every thread sends to its neighbour and receives from the other one.
std::uint64_t ring(unsigned threads, unsigned rounds) {
    std::vector<Queue<std::unique_ptr<Message>>> queues(threads);
    std::vector<std::future<std::uint64_t>> sums;
    const auto shared = std::make_shared<const std::string>(100, 's');
    for (unsigned id = 0; id < threads; ++id) {
        sums.push_back(std::async(std::launch::async, [&, id] {
            std::minstd_rand rng(id);
            std::uint64_t sum = 0;
            for (unsigned round = 0; round < rounds * 100; ++round) {
                queues[(id + 1) % threads].push(make_message(rng, shared));
                keeper[static_cast<int>(round % 50)].append(rng() % 40, 'k');
                sum += weigh(*queues[id].pop());
            }
            return sum;
        }));
    }
    return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0},
                           [](std::uint64_t a, auto &b) { return a + b.get(); });
}

std::uint64_t containers(unsigned seed, unsigned rounds) {
    std::minstd_rand rng(seed);
    std::map<std::string, std::list<unsigned>> tree;
    std::unordered_map<std::uint64_t, std::string> table;
    for (unsigned round = 0; round < rounds * 500; ++round) {
        tree["key " + std::to_string(rng() % 500)].push_back(round);
        table[rng() % 300] += 't';
    }
    std::ostringstream text;
    for (const auto &[key, list] : tree) {
        text << key << ' ' << list.size() << '\n';
    }
    return std::hash<std::string>{}(text.str()) % 1000 + table.size();
}

std::uint64_t exceptions(unsigned rounds) {
    std::uint64_t caught = 0;
    for (unsigned round = 0; round < rounds * 50; ++round) {
        try {
            const std::vector<std::string> unwound(round % 20, std::string(50, 'u'));
            (void)unwound.at(round % 40);
        } catch (const std::exception &error) {
            caught += std::string(error.what()).size();
        }
    }
    return caught;
}

} // namespace

int main(int argc, char **argv) {
    const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 4;
    const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 2;
    std::printf("ring %ju\n", static_cast<std::uintmax_t>(ring(threads, rounds)));
    std::vector<std::uint64_t> sums(threads);
    std::vector<std::thread> workers;
    for (unsigned id = 0; id < threads; ++id) {
        workers.emplace_back([&, id] { sums[id] = containers(id, rounds) + exceptions(rounds); });
    }
    for (auto &worker : workers) {
        worker.join();
    }
    for (unsigned generation = 0; generation < rounds * 10; ++generation) { // short threads
        std::thread([&] { keeper[1] = std::string(1000, 'g'); }).join();
    }
    for (std::uint64_t sum : sums) {
        std::printf("containers %ju\n", static_cast<std::uintmax_t>(sum));
    }
    return 0;
}
