#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what the hit paths of malloc, operator new and free execute, and compares with a golden file.

The hit path runs from the entry to a `ret` without leaving the function: a jump to another symbol, a
call and a trap are exits to cold code. If several paths end in a `ret`, the longest counts.
The counts must be those of the golden file when the library was built by the compiler it names; the
budget holds for every compiler. --update rewrites the golden file.

--source checks the text instead: of malloc, free and all that they inline, functions and macros, the lines with the
comments above them, and the files. Not counted are attributes and builtins under other names (base/compiler.h), and
what only hardened builds run (if (HAK_HARDEN) { ... }).
"""
import argparse
import json
import os
import re
import subprocess
import sys

# The promise, for the compiler of the release; clang 14 counts a bin's slots down in registers.
# Of these, checks are 6 of malloc and 9 of free (docs/experiments/0032-checks-of-the-hit-path.md).
BUDGET = {
    ("x86-64", "gcc"): {"malloc": 20, "hak_new": 20, "free": 28},
    ("x86-64", "clang"): {"malloc": 20, "hak_new": 20, "free": 31},
    ("aarch64", "gcc"): {"malloc": 31, "hak_new": 31, "free": 38},
    ("aarch64", "clang"): {"malloc": 37, "hak_new": 37, "free": 45},
}
MOST = {"branches": 5, "locked": 0}  # everywhere
SYMBOLS = ("malloc", "hak_new", "free")
# The forms of new and delete that programs call most leave at once for hak_new, free or free_sized, by one jump.
FORMS = ("_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm")
FORM_MOST = {"x86-64": 2, "aarch64": 5}  # gcc 1 and 4
COUNTS = ("instructions", "loads", "stores", "branches", "jumps", "locked")
SOURCE_LINES, SOURCE_FILES = 200, 5
SOURCE_ROOTS = ("hak_malloc", "hak_free")
SOURCE_ENTRY = "api/family.c"
SPELLINGS = ("base/compiler.h",)
CONDITIONAL = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif|else)\b")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"check_fastpath: {' '.join(command)}: {result.stderr.strip()}")
    return result.stdout


class X86:
    name = "x86-64"
    plain = re.compile(r"^(?:lea|nop|endbr|prefetch|ud2|ret|cs$|data16)")
    reads = re.compile(r"^(?:cmp|test|bt$|bt[lqw]$|mul|imul|div|idiv|ucomis|comis|push)")
    writes = re.compile(r"^(?:mov(?!s[bwl]|z)|set|vmov|pop)")

    @staticmethod
    def split(text):
        text = re.sub(r"\s*(?:#.*|<[^>]*>)", "", text).strip()
        words = text.split(None, 1)
        prefixes = []
        while len(words) == 2 and words[0] in ("lock", "notrack", "bnd", "rep", "repz", "cs", "data16"):
            prefixes.append(words[0])
            words = words[1].split(None, 1)
        return prefixes, words[0], words[1] if len(words) > 1 else ""

    def decode(self, text):
        """(kind, jump target or None, loads, stores, locked)"""
        prefixes, op, args = self.split(text)
        if op.startswith("ret"):
            return "ret", None, 0, 0, 0
        if op.startswith(("call", "ud2", "hlt", "int3")):
            return "cold", None, 0, 0, 0
        if op.startswith("j"):
            if args.startswith("*"):
                return "cold", None, 0, 0, 0
            return ("jump" if op == "jmp" else "branch"), int(args.split()[0], 16), 0, 0, 0
        loads, stores = self.memory(op, args)
        locked = "lock" in prefixes or (op.startswith("xchg") and loads) or op.endswith("fence")
        return "plain", None, loads, stores, int(bool(locked))

    def memory(self, op, args):
        if op.startswith("push"):
            return 0, 1
        if op.startswith("pop"):
            return 1, 0
        operands = re.findall(r"(?:\([^)]*\)|[^,(])+", args)
        in_memory = [not re.match(r"^[$%](?![a-z]s:)", o.strip()) for o in operands]
        if self.plain.match(op) or not any(in_memory):
            return 0, 0
        if not in_memory[-1] or self.reads.match(op):
            return 1, 0
        return (0, 1) if self.writes.match(op) else (1, 1)


class Arm64:
    name = "aarch64"
    atomic = re.compile(r"^(?:ldx|ldax|stx|stlx|cas|swp|(?:ld|st)(?:add|clr|eor|set|[su]max|[su]min)|dmb|dsb)")

    def decode(self, text):
        text = re.sub(r"\s*(?://.*|<[^>]*>)", "", text).strip()
        op, _, args = text.partition("\t") if "\t" in text else text.partition(" ")
        if op.startswith("ret"):
            return "ret", None, 0, 0, 0
        if op in ("bl", "blr", "br", "brk", "udf"):
            return "cold", None, 0, 0, 0
        if op == "b":
            return "jump", int(args.split()[-1], 16), 0, 0, 0
        if op.startswith("b.") or op in ("cbz", "cbnz", "tbz", "tbnz"):
            return "branch", int(args.split(",")[-1].split()[-1], 16), 0, 0, 0
        locked = int(bool(self.atomic.match(op)))
        loads = int(op.startswith(("ld", "cas", "swp")))
        stores = int(op.startswith(("st", "cas", "swp")))
        return "plain", None, loads, stores, locked


def function_range(library, readelf, symbol):
    for line in run(readelf, "-sW", library).splitlines():
        words = line.split()
        if len(words) >= 8 and words[3] == "FUNC" and words[7].split("@")[0] == symbol and words[6] != "UND":
            return int(words[1], 16), int(words[2], 0)
    return sys.exit(f"check_fastpath: {library} does not define {symbol}")


def disassemble(library, objdump, readelf, symbol):
    start, size = function_range(library, readelf, symbol)
    text = run(objdump, "-d", "--no-show-raw-insn", f"--start-address={start}",
               f"--stop-address={start + size}", library)
    code = {}
    for line in text.splitlines():
        match = re.match(r"^\s*([0-9a-f]+):\t(.*)$", line)
        if match:
            code[int(match.group(1), 16)] = match.group(2)
    return start, code


def hit_paths(machine, start, code):
    """All ways from the entry to a ret that neither leave the function nor loop: lists of addresses."""
    following = dict(zip(sorted(code), sorted(code)[1:]))
    found, open_ways = [], [(start, [])]
    while open_ways:
        at, way = open_ways.pop()
        if at not in code or at in way or len(found) > 1000:
            continue
        way = way + [at]
        kind, target, *_ = machine.decode(code[at])
        if kind == "ret":
            found.append(way)
        elif kind == "jump":
            open_ways.append((target, way))
        elif kind != "cold":
            open_ways.append((following.get(at), way))
            if kind == "branch":
                open_ways.append((target, way))
    return found


def count(machine, code, way):
    counts = dict.fromkeys(COUNTS, 0)
    for address in way:
        kind, _, loads, stores, locked = machine.decode(code[address])
        counts["instructions"] += 1
        counts["loads"] += loads
        counts["stores"] += stores
        counts["locked"] += locked
        counts["branches"] += kind == "branch"
        counts["jumps"] += kind == "jump"
    return counts


def compiler_of(library, readelf):
    text = run(readelf, "-p", ".comment", library)
    clang = re.search(r"clang version ([\d.]+)", text)
    gcc = re.search(r"GCC: \(.*\) ([\d.]+)", text)
    return f"clang {clang.group(1)}" if clang else f"gcc {gcc.group(1)}" if gcc else "gcc unknown"


def check_library(args):
    header = run(args.readelf, "-h", args.lib)
    machine = Arm64() if "AArch64" in header else X86()
    errors, result = [], {"compiler": compiler_of(args.lib, args.readelf)}
    budget = BUDGET[machine.name, result["compiler"].split()[0]]
    for symbol in SYMBOLS:
        start, code = disassemble(args.lib, args.objdump, args.readelf, symbol)
        ways = hit_paths(machine, start, code)
        if not ways:
            sys.exit(f"check_fastpath: {symbol} has no way to a ret without leaving the function")
        way = max(ways, key=len)
        result[symbol] = dict(count(machine, code, way), hit_paths=len(ways))
        print(f"{symbol} ({machine.name}, {result['compiler']}):",
              ", ".join(f"{result[symbol][key]} {key}" for key in COUNTS))
        if args.show:
            print("\n".join(f"  {address:x}: {code[address]}" for address in way))
        for key, most in dict(MOST, instructions=budget[symbol]).items():
            if result[symbol][key] > most:
                errors.append(f"{symbol}: {key}: {result[symbol][key]}, at most {most}")
    for symbol in FORMS:
        _, code = disassemble(args.lib, args.objdump, args.readelf, symbol)
        if len(code) > FORM_MOST[machine.name]:
            errors.append(f"{symbol}: {len(code)} instructions, at most {FORM_MOST[machine.name]}")
    if args.golden and args.update:
        with open(args.golden, "w", encoding="utf-8") as file:
            file.write(json.dumps(result, indent=2) + "\n")
    elif args.golden:
        if not os.path.exists(args.golden):
            return errors + [f"{args.golden} does not exist; --update makes it"]
        with open(args.golden, encoding="utf-8") as file:
            golden = json.load(file)
        if golden["compiler"] != result["compiler"]:
            print(f"golden file is of {golden['compiler']}: only the budget was checked")
        else:
            for symbol in SYMBOLS:
                for key, wanted in golden[symbol].items():
                    if result[symbol][key] != wanted:
                        errors.append(f"{symbol}: {key}: {result[symbol][key]}, golden {wanted}")
    return errors


class Piece:
    """A function that is inlined, or a macro, with the comment above it."""
    def __init__(self, path, lines, first, end, depth):
        self.path, self.first, self.is_conditional = path, first + 1, depth > 0
        self.text = "\n".join(lines[first:end])
        while first > 0 and lines[first - 1].strip() and not re.match(r"[#}]|.*\\$", lines[first - 1]):
            first -= 1
        self.conditionals = [line for line in lines[first:end] if CONDITIONAL.match(line)]
        self.lines = sum(1 for line in lines[first:end] if line.strip())

    def calls(self):
        """Names of what it calls in ordinary builds."""
        text = re.sub(r"/\*.*?\*/", "", self.text, flags=re.S)
        text = re.sub(r"if \(HAK_HARDEN\) \{.*?\n    \}", "", text, flags=re.S)
        return set(re.findall(r"\b(\w+)\(", text))


def pieces_of(path, text):
    """Name -> Piece of every inline function and every macro with parameters, and of malloc and free."""
    lines, found, depth = text.split("\n"), {}, 0
    guard = re.search(r"^#ifndef (\w+)\n#define \1$", text, re.M) is not None
    for at, line in enumerate(lines):
        if CONDITIONAL.match(line):
            depth += bool(re.match(r"\s*#\s*if", line))
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        macro = re.match(r"#define (\w+)\(", line)
        function = re.match(r"(?:HAK_INLINE|HAK_EXPORT HAK_HOT) .*?(\w+)\(", line)
        if not macro and not function:
            continue
        end = at
        while lines[end].endswith("\\") if macro else lines[end] != "}" and end + 1 < len(lines):
            end += 1
        name = (macro or function).group(1)
        found.setdefault(name, []).append(Piece(path, lines, at, end + 1, depth - guard))
    return found


def check_source(source):
    errors, known, used = [], {}, {}
    for place, _, names in os.walk(source):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(place, name), source)
            if not (path.endswith(".h") or path == SOURCE_ENTRY) or path in SPELLINGS:
                continue
            with open(os.path.join(source, path), encoding="utf-8") as file:
                for name, pieces in pieces_of(path, file.read()).items():
                    known.setdefault(name, []).extend(pieces)
    waiting = [root for root in SOURCE_ROOTS if root in known]
    if len(waiting) != len(SOURCE_ROOTS):
        errors.append(f"fast path: {', '.join(SOURCE_ROOTS)}: not all are defined")
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = known[name]
            waiting += sorted(call for piece in known[name] for call in piece.calls() if call in known)
    files = {}
    for piece in (piece for pieces in used.values() for piece in pieces):
        files[piece.path] = files.get(piece.path, 0) + piece.lines
        if piece.conditionals or piece.is_conditional:
            errors.append(f"{piece.path}:{piece.first}: conditional in the fast path")
    lines = sum(files.values())
    print(f"fast path: {lines} lines, {len(used)} functions and macros in {len(files)} files "
          f"({', '.join(f'{path} {count}' for path, count in sorted(files.items()))})")
    if lines > SOURCE_LINES:
        errors.append(f"fast path: {lines} lines, at most {SOURCE_LINES}")
    if len(files) > SOURCE_FILES:
        errors.append(f"fast path: {len(files)} files, at most {SOURCE_FILES}")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--lib", help="libhakmem.so")
    parser.add_argument("--golden", help="test/golden/fastpath.<machine>.json")
    parser.add_argument("--update", action="store_true", help="rewrite the golden file")
    parser.add_argument("--show", action="store_true", help="print the instructions")
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--readelf", default="readelf")
    parser.add_argument("--source", help="src/")
    args = parser.parse_args()
    errors = (check_library(args) if args.lib else []) + (check_source(args.source) if args.source else [])
    if errors:
        print("\n".join("check_fastpath: " + line for line in errors), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
