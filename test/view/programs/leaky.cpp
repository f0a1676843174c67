// SPDX-License-Identifier: MIT
// A cache that only grows, of strings in a map.
#include <cstdlib>
#include <map>
#include <string>

namespace shop {

class Cache {
public:
    __attribute__((noinline)) void remember(int key) {
        entries_[key] = std::string(700, 'x'); // the line of the leak
    }

    size_t size() const {
        return entries_.size();
    }

private:
    std::map<int, std::string> entries_;
};

} // namespace shop

int main(int argc, char **argv) {
    auto *cache = new shop::Cache;
    int count = (argc > 1 ? std::atoi(argv[1]) : 16) * 1500;
    for (int key = 0; key < count; key++) {
        cache->remember(key);
    }
    return cache->size() == 0;
}
