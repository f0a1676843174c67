# SPDX-License-Identifier: MIT
"""The C++ compiler on one large file of templates."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Dice, Inputs, Stage, digest

HEAD = """// Made for measurements. No include: the input must not depend on the machine's headers.
typedef unsigned long size;
template <size N> struct number { static constexpr size value = N; };
template <size... Ns> struct list { static constexpr size length = sizeof...(Ns); };
template <class List, size N> struct append;
template <size... Ns, size N> struct append<list<Ns...>, N> { using type = list<Ns..., N>; };
template <size N> struct count { using type = typename append<typename count<N - 1>::type, N>::type; };
template <> struct count<0> { using type = list<>; };
template <class List> struct sum;
template <> struct sum<list<>> : number<0> {};
template <size N, size... Ns> struct sum<list<N, Ns...>> : number<N + sum<list<Ns...>>::value> {};
template <class T, size N> struct array {
    T items[N];
    constexpr T &operator[](size i) { return items[i]; }
    constexpr const T &operator[](size i) const { return items[i]; }
    template <class F> void each(F f) { for (size i = 0; i < N; ++i) f(items[i]); }
};
template <class... Ts> struct tuple {};
template <class T, class... Ts> struct tuple<T, Ts...> : tuple<Ts...> {
    T value;
    tuple(T first, Ts... rest) : tuple<Ts...>(rest...), value(first) {}
};
"""

# One of these for each part, with other names and numbers, so that nothing is instantiated only once.
PART = """
namespace {name} {{
template <class T, size N> struct {a}_t {{
    array<T, N> data;
    size used = 0;
    virtual ~{a}_t() {{}}
    virtual long weight(long x) const {{ return x * {n1} + static_cast<long>(used); }}
    template <class U> auto mixed(U u) const {{ return tuple<T, U, size>(data[0], u, used); }}
    void push(T t) {{ if (used < N) data[used++] = t; }}
}};
template <class T> struct {b}_t : {a}_t<T, {n2}> {{
    long weight(long x) const override {{
        long total = {n3};
        for (size i = 0; i < this->used; ++i)
            switch ((x + static_cast<long>(i)) % 5) {{
            case 0: total += static_cast<long>(this->data[i]) * {n1}; break;
            case 1: total ^= x << ({n2} % 7); break;
            case 2: total -= this->{a}_t<T, {n2}>::weight(total); break;
            default: total += sum<typename count<{n4}>::type>::value;
            }}
        return total;
    }}
}};
enum class {c} {{ {words} }};
long {a}({b}_t<int> &one, {b}_t<long> &two, {c} what) {{
    one.data.each([&](int &x) {{ x += {n3}; two.push(x * 2L); }});
    auto both = two.mixed(static_cast<int>(what));
    auto again = [&](auto self, size depth) -> long {{
        return depth ? self(self, depth - 1) + two.weight(static_cast<long>(depth)) : both.value;
    }};
    return again(again, {n2}) + one.weight({n1});
}}
long {b}() {{
    {b}_t<int> one;
    {b}_t<long> two;
    for (int i = 0; i < {n3}; ++i) one.push(i * {n1});
    return {a}(one, two, {c}::{first});
}}
}} // namespace {name}
"""


def part(dice: Dice, number: int) -> str:
    words = sorted({dice.word() + "_" for _ in range(12)})
    names = {letter: f"{dice.word()}_{letter}" for letter in "abc"}
    return PART.format(name=f"{dice.word()}_{number}", words=", ".join(words), first=words[0], n1=dice.between(2, 99),
                       n2=dice.between(4, 40), n3=dice.between(3, 50), n4=dice.between(3, 60), **names)


class Compiler(App):
    name = "g++"
    title = "g++ -O1, one file of templates"
    text = ("The compiler proper of g++ (cc1plus) turns a generated file full of templates, lambdas and virtual "
            "functions into assembly code.")
    programs = ("g++",)
    packages = ("g++",)
    metric = "cpu"

    def prepare(self, work: Path, scale: float) -> None:
        parts = self.count(40, scale)
        dice = Dice(5)
        Inputs(self, work, scale).file(
            "parts.cpp", lambda path: path.write_text(HEAD + "".join(part(dice, number) for number in range(parts))))

    def run(self, stage: Stage) -> str:
        # cc1plus directly, not by way of g++: Launch.prefix reaches only the program that is started.
        compiler = stage.plain(["g++", "-print-prog-name=cc1plus"]).stdout.decode().strip()
        out = stage.scratch / "parts.s"
        stage.run([compiler, "-quiet", "-std=gnu++17", "-O1", stage.input("parts.cpp"), "-o", out])
        code = out.read_bytes()
        if b".globl" not in code:
            raise BadOutput("no function in the assembly code")
        return digest(code)
