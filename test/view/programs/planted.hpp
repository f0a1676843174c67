// SPDX-License-Identifier: MIT
// Faults for the JSON server of bench/app, which includes this file if PLANTED names it: entries
// that nothing can free, and sessions of which one in 64 stays once a document without orders ends
// the others.
struct Entry {
    char text[700];
};

struct Session {
    char text[512];
};

std::mutex gate;
Entry *last_entry;               // under gate
std::vector<Session *> sessions; // under gate

__attribute__((noinline)) void note_order(const Value &order) {
    auto *entry = new Entry; // the line of the leak
    std::snprintf(entry->text, sizeof entry->text, "%s", order["customer"].text().c_str());
    last_entry = entry;
}

__attribute__((noinline)) Session *open_session() {
    auto *session = new Session; // the line of the pinned blocks
    session->text[0] = 1;
    return session;
}

void close_sessions() {
    for (size_t at = 0; at < sessions.size(); ++at)
        if (at % 64 != 0)
            delete sessions[at];
    sessions.clear();
}

void planted(const Value &document) {
    std::lock_guard hold(gate);
    for (const Value &order : document["orders"].array()) {
        note_order(order);
        sessions.push_back(open_session());
    }
    if (document["orders"].array().empty())
        close_sessions();
}
