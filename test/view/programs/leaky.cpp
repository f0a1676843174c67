// SPDX-License-Identifier: MIT
// A cache that only grows, of strings in a map; and sessions of which one in 64 stays.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

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

struct Session {
    char text[512];
};

__attribute__((noinline)) Session *open_session() {
    auto *made = new Session; // the line of the pinned blocks
    made->text[0] = 1;
    return made;
}

} // namespace shop

int main(int argc, char **argv) {
    auto *cache = new shop::Cache;
    int count = (argc > 1 ? std::atoi(argv[1]) : 16) * 1500;
    for (int key = 0; key < count; key++) {
        cache->remember(key);
    }
    auto *sessions = new std::vector<shop::Session *>;
    for (int number = 0; number < count; number++) {
        sessions->push_back(shop::open_session());
    }
    for (int number = 0; number < count; number++) {
        if (number % 64 != 0) {
            delete (*sessions)[static_cast<std::size_t>(number)];
        }
    }
    return cache->size() == 0;
}
