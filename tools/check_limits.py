#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the hard limits of CONTRIBUTING.md: sizes of files, functions, folders, and of the preprocessor.

Exceptions stand in tools/limits.allow: <file> <limit> <reason>.
"""
import argparse
import os
import re
import sys

FILE_LINES = {  # file or suffix -> lines
    "README.md": 160, "CHANGELOG.md": 200, "CONTRIBUTING.md": 200, "src/README.md": 120, "src/LAYERS": 60,
    "src/unity.c": 90, "include/hakmem/hakmem.h": 350, "include/hakmem/hakmem.hpp": 250,
}
SOURCE_LINES, HEADER_LINES, TEST_LINES, CORE_LINES, ALL_LINES = 450, 250, 300, 16133, 24580
BOXES = ("conf", "reclaim", "stat", "guard", "profile", "stack", "door", "compat")  # what allocates does without them,
BOX_FILES = ("src/base/options.def", "src/life/exit_report.c", "src/base/observer.h", "src/life/mailbox.c", "src/base/mailbox.h")  # and without these, each a part of one
FUNCTION_LINES, HIT_FUNCTION_LINES, PARAMETERS, NESTING = 60, 40, 6, 4
FOLDER_FILES, CONDITIONALS_PER_1000, OPTIONS, SWITCHES = 16, 15, 26, 10
HIT_FILES = ("src/front/fast.h", "src/slab/link.h", "src/span/pagemap.h")  # what tools/check_fastpath.py counts
PLAIN_FOLDERS = ("front", "slab", "span", "large")  # no #if inside their functions
VARIABLES = {"HAKMEM_PROFILE", "HAKMEM_OPTIONS"}

BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CONDITIONAL = re.compile(r"[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b")


def blank(text):
    """The text with comments and literals emptied; lines stay where they are."""
    def empty(match):
        piece = match.group()
        if piece.startswith(("/*", "//")):
            return " " + "\n" * piece.count("\n")
        return piece[0] + piece[-1]
    return BLANKED.sub(empty, text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def parameter_count(signature):
    """Of the last outermost parenthesis in `signature`."""
    depth, count, seen, best = 0, 0, False, 0
    for c in signature:
        if c == "(":
            depth += 1
            if depth == 1:
                count, seen = 0, False
                continue
        elif c == ")":
            depth -= 1
            if depth == 0:
                best = count + 1 if seen else 0
        elif depth == 1 and c == ",":
            count += 1
        if depth >= 1 and not c.isspace():
            seen = True
    return best


class Function:
    def __init__(self, name, signature, line):
        self.name, self.line, self.last, self.nesting = name, line, line, 0
        self.parameters = parameter_count(signature)
        self.conditionals = 0

    @property
    def lines(self):
        return self.last - self.line + 1


def functions(text):
    """All function definitions of blanked C text without preprocessor directives."""
    found, current, depth, head, head_line = [], None, 0, "", 1
    in_macro = False
    for number, line in enumerate(text.split("\n"), 1):
        directive = in_macro or line.lstrip().startswith("#")
        in_macro = directive and line.rstrip().endswith("\\")
        if directive:
            if current and CONDITIONAL.match(line):
                current.conditionals += 1
            continue
        for c in line:
            if current:
                if c == "{":
                    depth += 1
                    current.nesting = max(current.nesting, depth - 1)
                elif c == "}":
                    depth -= 1
                    if depth == 0:
                        current.last = number
                        found.append(current)
                        current, head = None, ""
            elif c == "{":
                signature = head.strip()
                if re.search(r"\)\s*(?:noexcept|const|override)?\s*$", signature) and "=" not in re.sub(
                        r"operator\s*=+|\([^()]*\)", "", signature):
                    name = re.search(r"([\w~]+|operator[^(]*)\s*\(", signature)
                    current = Function(name.group(1) if name else "?", signature, head_line)
                    depth = 1
                elif re.match(r'(?:extern\s*""|namespace\b)', signature):
                    pass  # its content counts as outermost
                else:
                    current = Function("", "", number)  # a type or an initializer
                    depth = 1
                head = ""
            elif c in ";}":
                head = ""
            elif not head.strip() and not c.isspace():
                head, head_line = c, number
            else:
                head += c
        head += "\n" if head else ""
    return [f for f in found if f.name]


class Checker:
    def __init__(self, root):
        self.root, self.errors, self.allowed = root, [], set()
        allow = os.path.join(root, "tools/limits.allow")
        for line in read(allow).splitlines() if os.path.exists(allow) else ():
            words = line.split("#", 1)[0].split(None, 2)
            if words and len(words) < 3:
                self.errors.append(f"tools/limits.allow: no reason given: {line}")
            elif words:
                self.allowed.add((words[0], words[1]))
                if not os.path.exists(os.path.join(root, words[0])):
                    self.errors.append(f"tools/limits.allow: {words[0]} does not exist")

    def limit(self, path, kind, what, value, hard):
        if value > hard and (path, kind) not in self.allowed:
            self.errors.append(f"{path}: {what}: {value}, at most {hard}")

    def files(self, *folders):
        for folder in folders:
            for place, _, names in os.walk(os.path.join(self.root, folder)):
                for name in sorted(names):
                    yield os.path.relpath(os.path.join(place, name), self.root)

    def check_file_lines(self):
        for path, hard in FILE_LINES.items():
            if os.path.exists(os.path.join(self.root, path)):
                lines = read(os.path.join(self.root, path)).count("\n")
                self.limit(path, "lines", "lines", lines, hard)
        for path in self.files("test"):
            if path.endswith((".c", ".h", ".cpp", ".hpp", ".py", ".sh")):
                lines = read(os.path.join(self.root, path)).count("\n")
                self.limit(path, "lines", "lines", lines, TEST_LINES)

    def check_core_file(self, path):
        text = read(os.path.join(self.root, path))
        lines = text.count("\n")
        if path not in FILE_LINES:
            hard = HEADER_LINES if path.endswith(".h") else SOURCE_LINES
            self.limit(path, "lines", "lines", lines, hard)
        hit = path in HIT_FILES
        blanked = blank(text)
        for f in functions(blanked):
            where = f"{f.name} (line {f.line})"
            hard = HIT_FUNCTION_LINES if hit else FUNCTION_LINES
            self.limit(path, "functions", f"lines of {where}", f.lines, hard)
            self.limit(path, "parameters", f"parameters of {where}", f.parameters, PARAMETERS)
            self.limit(path, "nesting", f"nesting of {where}", f.nesting, NESTING)
            if path.split("/")[1] in PLAIN_FOLDERS:
                self.limit(path, "conditionals", f"#if in {where}", f.conditionals, 0)
        code = sum(1 for line in blanked.split("\n") if line.strip())
        conditionals = sum(1 for line in blanked.split("\n") if CONDITIONAL.match(line))
        guarded = path.endswith(".h") and re.search(r"^#ifndef (\w+)\n#define \1$", blanked, re.M)
        return lines, code, conditionals - (1 if guarded else 0)

    def check_core(self):
        total = code = conditionals = boxes = 0
        counts = {}
        for path in self.files("src"):
            if path.endswith((".c", ".h", ".cpp", ".def")):
                counts.setdefault(os.path.dirname(path), []).append(path)
                more = self.check_core_file(path)
                total, code, conditionals = (a + b for a, b in zip((total, code, conditionals), more))
                boxes += more[0] if path.split("/")[1] in BOXES or path in BOX_FILES else 0
                for name in re.findall(r"\bHAKMEM_[A-Z_]+\b", blank_comments(self.root, path)):
                    if name not in VARIABLES and not name.startswith("HAKMEM_VERSION"):
                        self.errors.append(f"{path}: {name}: environment variables are {VARIABLES}")
        for folder, names in counts.items():
            modules = {re.sub(r"(_linux)?\.(c|h|cpp|def)$", "", name) for name in names}  # a .c file with its header
            self.limit(folder, "files", "files", len(modules), FOLDER_FILES)
        self.limit("src", "lines", "lines of the core without its boxes", total - boxes, CORE_LINES)
        self.limit("src", "lines", "lines of all of src", total, ALL_LINES)
        if code > 1000:
            self.limit("src", "conditionals", "#if per 1000 code lines",
                       round(1000 * conditionals / code, 1), CONDITIONALS_PER_1000)
        return total, code, conditionals

    def check_configuration(self):
        options = os.path.join(self.root, "src/base/options.def")
        if os.path.exists(options):
            rows = len(re.findall(r"^HAK_OPTION\w*\(", blank(read(options)), re.M))
            self.limit("src/base/options.def", "options", "runtime options", rows, OPTIONS)
        config = os.path.join(self.root, "src/base/config.h")
        if os.path.exists(config):
            rows = len(re.findall(r"^#ifndef HAK_(?!BASE_)", read(config), re.M))
            self.limit("src/base/config.h", "switches", "build switches", rows, SWITCHES)


def blank_comments(root, path):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", read(os.path.join(root, path)), flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    args = parser.parse_args()
    checker = Checker(os.path.normpath(args.root))
    checker.check_file_lines()
    total, code, conditionals = checker.check_core()
    checker.check_configuration()
    print(f"core: {total} lines, {code} of code, {conditionals} #if")
    if checker.errors:
        print("\n".join("check_limits: " + line for line in checker.errors), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
