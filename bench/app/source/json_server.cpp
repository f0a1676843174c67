// SPDX-License-Identifier: MIT
// A small HTTP server for measurements: each request carries a JSON document of orders, each reply
// a JSON report about them. One thread reads requests, WORKERS threads answer them, so that what
// one thread allocates another frees. The last KEPT documents stay in memory. Usage: json_server
// PORT, until SIGTERM.
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <variant>
#include <vector>

namespace {

constexpr int WORKERS = 2;
constexpr size_t KEPT = 100;

[[noreturn]] void die(const char *what) {
    std::perror(what);
    std::exit(1);
}

// --- JSON ------------------------------------------------------------------------------------

struct Value;
using Array = std::vector<Value>;
using Object = std::map<std::string, Value>;

struct Value {
    std::variant<std::nullptr_t, bool, double, std::string, Array, Object> is = nullptr;

    const Array &array() const {
        return std::get<Array>(is);
    }
    const std::string &text() const {
        return std::get<std::string>(is);
    }
    double number() const {
        return std::get<double>(is);
    }
    const Value &operator[](const char *name) const {
        return std::get<Object>(is).at(name);
    }
};

class Parser {
public:
    explicit Parser(std::string_view source) : rest(source) {
    }

    Value document() {
        Value value = any();
        if (peek() != '\0')
            throw std::runtime_error("text after the document");
        return value;
    }

private:
    std::string_view rest;

    char peek() {
        while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest[0])))
            rest.remove_prefix(1);
        return rest.empty() ? '\0' : rest[0];
    }

    bool take(char wanted) {
        if (peek() != wanted)
            return false;
        rest.remove_prefix(1);
        return true;
    }

    void need(char wanted) {
        if (!take(wanted))
            throw std::runtime_error(std::string("expected ") + wanted);
    }

    Value any() {
        switch (peek()) {
        case '{':
            return {object()};
        case '[':
            return {array()};
        case '"':
            return {string()};
        case 't':
            return word("true", {true});
        case 'f':
            return word("false", {false});
        case 'n':
            return word("null", {nullptr});
        default:
            return {number()};
        }
    }

    Value word(std::string_view name, Value value) {
        if (rest.substr(0, name.size()) != name)
            throw std::runtime_error("unknown word");
        rest.remove_prefix(name.size());
        return value;
    }

    double number() {
        double value = 0;
        auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        if (error != std::errc())
            throw std::runtime_error("not a number");
        rest.remove_prefix(static_cast<size_t>(end - rest.data()));
        return value;
    }

    std::string string() {
        need('"');
        std::string text;
        while (!rest.empty() && rest[0] != '"') {
            if (rest[0] == '\\' &&
                rest.size() > 1) // of \x only x is kept: our client sends \" and \\ only
                rest.remove_prefix(1);
            text += rest[0];
            rest.remove_prefix(1);
        }
        need('"');
        return text;
    }

    Array array() {
        Array items;
        need('[');
        if (take(']'))
            return items;
        do
            items.push_back(any());
        while (take(','));
        need(']');
        return items;
    }

    Object object() {
        Object fields;
        need('{');
        if (take('}'))
            return fields;
        do {
            std::string name =
                peek() == '"' ? string() : throw std::runtime_error("expected a name");
            need(':');
            fields.emplace(std::move(name), any());
        } while (take(','));
        need('}');
        return fields;
    }
};

void write(const Value &value, std::string &out);

struct Writer {
    std::string &out;

    void operator()(std::nullptr_t) const {
        out += "null";
    }
    void operator()(bool yes) const {
        out += yes ? "true" : "false";
    }
    void operator()(double number) const {
        std::array<char, 32> digits;
        out.append(digits.data(), std::to_chars(digits.begin(), digits.end(), number).ptr);
    }
    void operator()(const std::string &text) const {
        out += '"';
        for (char c : text) {
            if (c == '"' || c == '\\')
                out += '\\';
            out += c;
        }
        out += '"';
    }
    void operator()(const Array &items) const {
        char before = '[';
        for (const Value &item : items) {
            out += before;
            write(item, out);
            before = ',';
        }
        out += items.empty() ? "[]" : "]";
    }
    void operator()(const Object &fields) const {
        char before = '{';
        for (const auto &[name, value] : fields) {
            out += before;
            (*this)(name);
            out += ':';
            write(value, out);
            before = ',';
        }
        out += fields.empty() ? "{}" : "}";
    }
};

void write(const Value &value, std::string &out) {
    std::visit(Writer{out}, value.is);
}

// --- the report ------------------------------------------------------------------------------

Object words_of(const std::string &note, Object counts) {
    size_t begin = 0;
    while (begin < note.size()) {
        size_t end = std::min(note.find(' ', begin), note.size());
        auto [entry, fresh] = counts.try_emplace(note.substr(begin, end - begin), Value{0.0});
        std::get<double>(entry->second.is) += 1;
        begin = end + 1;
    }
    return counts;
}

Value report(const Value &document) {
    Object words;
    std::map<std::string, Array> by_customer;
    double total = 0;
    for (const Value &order : document["orders"].array()) {
        double sum = 0;
        Array lines;
        for (const Value &line : order["lines"].array()) {
            sum += line["count"].number() * line["price"].number();
            words = words_of(line["note"].text(), std::move(words));
            lines.push_back({Object{{"item", line["item"]}, {"note", line["note"]}}});
        }
        total += sum;
        by_customer[order["customer"].text()].push_back(
            {Object{{"id", order["id"]}, {"sum", {sum}}, {"lines", {std::move(lines)}}}});
    }
    Object customers;
    for (auto &[name, orders] : by_customer)
        customers.emplace(name, Value{std::move(orders)});
    return {Object{
        {"customers", {std::move(customers)}}, {"total", {total}}, {"words", {std::move(words)}}}};
}

// --- workers ---------------------------------------------------------------------------------

struct Request {
    int socket;
    std::string body;
};

std::mutex lock;
std::condition_variable work_came;
std::deque<Request> waiting;                   // under lock
std::deque<std::shared_ptr<const Value>> kept; // under lock
bool ending = false;                           // under lock

std::string answer(const std::string &body) {
    std::string text;
    const char *status = "200 OK";
    try {
        auto document = std::make_shared<const Value>(Parser(body).document());
        write(report(*document), text);
        std::shared_ptr<const Value> oldest; // freed after the lock is released
        std::lock_guard hold(lock);
        kept.push_back(std::move(document));
        if (kept.size() > KEPT) {
            oldest = std::move(kept.front());
            kept.pop_front();
        }
    } catch (const std::exception &error) {
        status = "400 Bad Request";
        text = error.what();
    }
    return "HTTP/1.1 " + std::string(status) +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(text.size()) +
           "\r\n\r\n" + text;
}

void send_all(int socket, std::string_view text) {
    while (!text.empty()) {
        ssize_t sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent <= 0)
            return; // the client is gone; the reader will see it too
        text.remove_prefix(static_cast<size_t>(sent));
    }
}

void work() {
    for (;;) {
        std::unique_lock hold(lock);
        work_came.wait(hold, [] { return ending || !waiting.empty(); });
        if (waiting.empty())
            return;
        Request request = std::move(waiting.front());
        waiting.pop_front();
        hold.unlock();
        send_all(request.socket, answer(request.body));
    }
}

// --- the reader ------------------------------------------------------------------------------

// The length of the whole request at the start of `text`, 0 if its head is not complete; `head` is
// the head's.
size_t request_length(const std::string &text, size_t &head) {
    size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos)
        return 0;
    head = end + 4;
    size_t field = text.find("Content-Length: ");
    return head + (field < end ? std::strtoul(text.c_str() + field + 16, nullptr, 10) : 0);
}

// Returns false when the client has gone.
bool read_from(int socket, std::string &buffer) {
    std::array<char, 16384> piece;
    ssize_t got = recv(socket, piece.data(), piece.size(), 0);
    if (got <= 0)
        return false;
    buffer.append(piece.data(), static_cast<size_t>(got));
    size_t head = 0;
    size_t length = request_length(buffer, head);
    if (length && buffer.size() >= length) {
        Request request{socket, buffer.substr(head, length - head)};
        buffer.erase(0, length);
        std::lock_guard hold(lock);
        waiting.push_back(std::move(request));
        work_came.notify_one();
    }
    return true;
}

void watch(int poll, int file) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = file;
    if (epoll_ctl(poll, EPOLL_CTL_ADD, file, &event))
        die("epoll_ctl");
}

// Until there is something to read from `stop`.
void read_requests(int listener, int stop) {
    int poll = epoll_create1(0);
    watch(poll, listener);
    watch(poll, stop);
    std::map<int, std::string> buffers;
    for (;;) {
        std::array<epoll_event, 16> events;
        int count = epoll_wait(poll, events.data(), events.size(), -1);
        for (int i = 0; i < count; ++i) {
            int file = events[static_cast<size_t>(i)].data.fd;
            if (file == stop)
                return;
            if (file == listener) {
                int socket = accept(listener, nullptr, nullptr);
                if (socket >= 0)
                    watch(poll, socket);
            } else if (!read_from(file, buffers[file])) {
                buffers.erase(file);
                close(file);
            }
        }
    }
}

int listen_on(int port) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) ||
        listen(listener, 64))
        die("listen");
    return listener;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fputs("usage: json_server PORT\n", stderr);
        return 2;
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals,
                nullptr); // before the threads start, so that they block it too
    int listener = listen_on(std::atoi(argv[1]));
    std::vector<std::thread> workers;
    for (int i = 0; i < WORKERS; ++i)
        workers.emplace_back(work);
    read_requests(listener, signalfd(-1, &signals, 0));
    {
        std::lock_guard hold(lock);
        ending = true;
    }
    work_came.notify_all();
    for (std::thread &worker : workers)
        worker.join();
    return 0;
}
