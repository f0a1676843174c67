// SPDX-License-Identifier: MIT
// Threads that build, pass on and destroy objects of each other: queues of unique_ptr, shared maps,
// futures, exceptions, thread_local destructors, over-aligned new, detached lifetimes. Prints sums
// that do not depend on the schedule.
//
//     threads [threads] [rounds]
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

struct alignas(64) Line {
    std::uint64_t words[8];
};

struct Message {
    std::string text;
    std::vector<int> numbers;
    std::unique_ptr<Line> line;
    std::shared_ptr<const std::string> shared;
};

class Rng {
public:
    explicit Rng(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {
    }
    std::uint64_t below(std::uint64_t limit) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ % limit;
    }

private:
    std::uint64_t state_;
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

struct Keeper { // destroyed when its thread ends
    std::map<int, std::string> kept;
};
thread_local Keeper keeper;

std::unique_ptr<Message> make_message(Rng &rng, const std::shared_ptr<const std::string> &shared) {
    auto message = std::make_unique<Message>();
    message->text.assign(rng.below(300), 'm');
    message->numbers.resize(rng.below(100));
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
            Rng rng(id);
            std::uint64_t sum = 0;
            for (unsigned round = 0; round < rounds * 100; ++round) {
                queues[(id + 1) % threads].push(make_message(rng, shared));
                if (rng.below(4) == 0) {
                    keeper.kept[static_cast<int>(round % 50)].append(rng.below(40), 'k');
                }
                sum += weigh(*queues[id].pop());
            }
            return sum;
        }));
    }
    return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0},
                           [](std::uint64_t a, auto &b) { return a + b.get(); });
}

std::uint64_t containers(unsigned seed, unsigned rounds) {
    Rng rng(seed);
    std::map<std::string, std::list<int>> tree;
    std::unordered_map<std::uint64_t, std::string> table;
    std::set<std::variant<int, std::string>> mixed;
    for (unsigned round = 0; round < rounds * 500; ++round) {
        tree["key " + std::to_string(rng.below(500))].push_back(static_cast<int>(round));
        table[rng.below(300)] += 't';
        mixed.insert(rng.below(2) ? std::variant<int, std::string>(static_cast<int>(round % 1000))
                                  : std::variant<int, std::string>(std::to_string(round % 1000)));
    }
    std::ostringstream text;
    for (const auto &[key, list] : tree) {
        text << key << ' ' << list.size() << '\n';
    }
    std::string copy = text.str();
    copy = std::regex_replace(copy.substr(0, 2000), std::regex("key ([0-9]+)"), "<$1>");
    return copy.size() + std::hash<std::string>{}(copy) % 1000 + table.size() + mixed.size();
}

std::uint64_t exceptions(unsigned rounds) {
    std::uint64_t caught = 0;
    for (unsigned round = 0; round < rounds * 50; ++round) {
        try {
            const std::vector<std::string> unwound(round % 20, std::string(50, 'u'));
            if (round % 3 == 0) {
                throw std::runtime_error("round " + std::to_string(round));
            }
            (void)unwound.at(round % 40);
        } catch (const std::exception &error) {
            caught += std::string(error.what()).size() > 0;
        }
    }
    return caught;
}

} // namespace

int main(int argc, char **argv) {
    const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 4;
    const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 2;
    std::printf("ring %llu\n", static_cast<unsigned long long>(ring(threads, rounds)));
    std::uint64_t sum = 0;
    std::vector<std::thread> workers;
    std::mutex mutex;
    for (unsigned id = 0; id < threads; ++id) {
        workers.emplace_back([&, id] {
            const std::uint64_t mine = containers(id, rounds) + exceptions(rounds);
            const std::lock_guard<std::mutex> held(mutex);
            sum += mine;
        });
    }
    for (auto &worker : workers) {
        worker.join();
    }
    for (unsigned generation = 0; generation < rounds * 10; ++generation) { // short threads
        std::thread([&] { keeper.kept[1] = std::string(1000, 'g'); }).join();
    }
    std::printf("containers %llu\n", static_cast<unsigned long long>(sum));
    return 0;
}
