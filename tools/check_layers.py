#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the core obeys src/LAYERS: part of every build.

(a) includes: downward or into the own folder only, foreign folders through their shown headers only,
    system headers where they belong, no include cycle;
(b) headers: all functions that a header declares are defined in one .c file, unless src/LAYERS lists it;
(c) symbols: the objects of each folder are linked (ld -r) with those of all lower ranks; an undefined
    hak_ symbol that is not a listed up-call is an error. Siblings are linked separately, so a call
    sideways fails too.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

FREESTANDING = {
    "float.h", "iso646.h", "limits.h", "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h",
    "stdint.h", "stdnoreturn.h",
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
FUNCTION = re.compile(r"\b(hak_\w+)\s*\(")
NO_FUNCTION = re.compile(r"\b(?:static|HAK_INLINE|typedef)\b|=")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


class Layers:
    def __init__(self, path):
        self.rank, self.shown, self.wires = {}, {}, {}
        self.upcalls, self.public, self.system = set(), set(), {}
        self.several, self.opens = set(), set()
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                words = line.split("#", 1)[0].split()
                if words:
                    try:
                        self.read(*words)
                    except (TypeError, ValueError, AttributeError):
                        sys.exit(f"{path}:{number}: cannot read: {line.strip()}")

    def read(self, keyword, name, *rest):
        if keyword == "folder":
            self.rank[name], self.shown[name] = int(rest[0]), set(rest[1:])
        elif keyword == "wires":
            self.wires[name] = set(rest)
        elif keyword == "upcall":
            self.upcalls.add(name)
        elif keyword == "public":
            self.public.add(name)
        elif keyword == "opens":
            self.opens.add(name)
        elif keyword == "several":
            self.several.update((name, *rest))
        elif keyword == "system":
            self.system.setdefault(name, set()).update(rest)
        else:
            raise ValueError(keyword)

    def sees(self, user, used):
        """May folder `user` include and call folder `used`?"""
        return (user == used or self.rank[used] < self.rank[user]
                or used in self.wires.get(user, ()))

    def system_ok(self, folder, path, header):
        for key in ("*", folder, path):
            allowed = self.system.get(key, ())
            if "*" in allowed or header in allowed:
                return True
        return header in FREESTANDING

UNITS = ("unity.c", "cold.c")


def sources(src):
    for folder, _, names in os.walk(src):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".cpp", ".def")):
                yield os.path.relpath(os.path.join(folder, name), src)


def check_quoted(src, layers, path, folder, target, errors):
    if target.startswith("hakmem/"):
        if folder not in layers.public:
            errors.append(f"src/{path}: includes the public header {target}; {folder} is not listed")
        return
    if "/" not in target or not os.path.exists(os.path.join(src, target)):
        errors.append(f'src/{path}: "{target}" is not a path below src/')
        return
    other, name = target.split("/", 1)
    if other not in layers.rank:
        errors.append(f"src/{path}: {other}/ is not a folder of src/LAYERS")
    elif not layers.sees(folder, other):
        errors.append(f"src/{path}: {folder} (rank {layers.rank[folder]}) may not include {target} "
                      f"(rank {layers.rank[other]})")
    elif (folder != other and folder not in layers.opens and "*" not in layers.shown[other]
          and name not in layers.shown[other]):
        errors.append(f"src/{path}: {target} is private to {other}/")


def check_includes(src, layers, errors):
    graph = {}
    for path in sources(src):
        with open(os.path.join(src, path), encoding="utf-8") as file:
            text = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), file.read())
        if "/" not in path:
            if path not in UNITS:
                errors.append(f"src/{path}: only {' and '.join(UNITS)} lie outside the folders")
            continue
        folder = path.split("/", 1)[0]
        if folder not in layers.rank:
            errors.append(f"src/{path}: {folder}/ is not a folder of src/LAYERS")
            continue
        graph[path] = []
        for quoted, system in INCLUDE.findall(text):
            if system and system.startswith("hakmem/"):
                quoted, system = system, ""
            if system and not layers.system_ok(folder, path, system):
                errors.append(f"src/{path}: <{system}> is not for {folder}/")
            if quoted:
                check_quoted(src, layers, path, folder, quoted, errors)
                graph[path].append(quoted)
    for folder, shown in layers.shown.items():
        for name in sorted(shown - {"*"}):
            if os.listdir(os.path.join(src, folder)) if os.path.isdir(
                    os.path.join(src, folder)) else False:
                if not os.path.exists(os.path.join(src, folder, name)):
                    errors.append(f"src/LAYERS: {folder}/{name} is shown but does not exist")
    return graph


def check_units(src, layers, errors):
    """The translation units of the products include every .c file of the folders once, none before one of a lower rank."""
    included = []
    for unit in UNITS:
        path = os.path.join(src, unit)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            names = [quoted for quoted, _ in INCLUDE.findall(COMMENT.sub(" ", file.read())) if quoted]
        ranks = [layers.rank.get(name.split("/", 1)[0], -1) for name in names]
        if ranks != sorted(ranks):
            errors.append(f"src/{unit}: files are not in rank order")
        included += names
    if not included:
        return
    for name in sorted({p for p in sources(src) if p.endswith(".c") and "/" in p} ^ set(included)):
        errors.append(f"src: {name} is " + (
            "included, but does not exist" if name in included else "not included in a translation unit"))
    errors += [f"src: {name} is included twice" for name in sorted(set(included)) if included.count(name) > 1]


def outermost(text):
    """The text without comments, directives and what stands in braces, cut behind each declaration."""
    text = DIRECTIVE.sub(" ", STRING.sub('""', COMMENT.sub(" ", text)))
    depth, kept = 0, []
    for character in text:
        depth -= character == "}"
        if depth == 0 or (depth == 1 and character == "{"):
            kept.append(character)
        depth += character == "{"
    return re.split(r"[;}]", "".join(kept).replace('extern ""{', ""))


def check_headers(src, layers, errors):
    declared, defined = {}, {}
    for path in sources(src):
        with open(os.path.join(src, path), encoding="utf-8") as file:
            pieces = outermost(file.read())
        for piece in pieces:
            head, brace, _ = piece.partition("{")
            name = FUNCTION.search(head)
            if not name or NO_FUNCTION.search(head):
                continue
            if path.endswith(".h") and not brace:
                declared.setdefault(path, set()).add(name[1])
            elif path.endswith((".c", ".cpp")) and brace:
                defined[name[1]] = path
    for header in sorted(declared):
        files = sorted({defined[name] for name in declared[header] if name in defined})
        if len(files) > 1 and header not in layers.several:
            errors.append(f"src/{header}: declares functions of {len(files)} files: {', '.join(files)}")
        elif len(files) < 2 and header in layers.several:
            errors.append(f"src/LAYERS: {header} need not be listed: it declares functions of one file")
    for header in sorted(layers.several - set(declared)):
        errors.append(f"src/LAYERS: {header} need not be listed: it does not exist, or declares none")


def check_cycles(graph, errors):
    state = {}

    def visit(path, trail):
        state[path] = "open"
        for target in graph.get(path, ()):
            if state.get(target) == "open":
                cycle = trail[trail.index(target):] if target in trail else [target]
                errors.append("include cycle: " + " -> ".join(cycle + [target]))
            elif target not in state:
                visit(target, trail + [target])
        state[path] = "done"

    for path in sorted(graph):
        if path not in state:
            visit(path, [path])


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"check_layers: {command[0]} failed:\n{result.stderr.strip()}")
    return result.stdout


def check_symbols(layers, objects, nm, ld, errors):
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sorted(objects, key=lambda name: layers.rank[name]):
            visible = [o for other in objects if layers.sees(folder, other) for o in objects[other]]
            linked = os.path.join(scratch, folder + ".o")
            run([ld, "-r", "-o", linked] + visible)
            undefined = set(re.findall(r"\bU (\S+)$", run([nm, "-u", linked]), re.M))  # not weak ones
            for symbol in sorted(undefined - layers.upcalls):
                if symbol.startswith("hak_"):
                    users = sorted({os.path.basename(o).split(".")[0] for o in visible
                                    if re.search(rf"\bU {symbol}$", run([nm, o]), re.M)})
                    errors.append(f"src/{folder}: {symbol} (used by {', '.join(users)}) is defined "
                                  f"neither here nor below and is not a listed up-call")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--src", required=True)
    parser.add_argument("--layers", help="default: <src>/LAYERS")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--ld", default="ld")
    parser.add_argument("--stamp", help="file to touch on success")
    parser.add_argument("--folder", nargs="+", action="append", default=[], metavar="NAME OBJECT")
    args = parser.parse_args()

    layers = Layers(args.layers or os.path.join(args.src, "LAYERS"))
    errors = []
    check_units(args.src, layers, errors)
    check_cycles(check_includes(args.src, layers, errors), errors)
    check_headers(args.src, layers, errors)
    objects = {words[0]: words[1:] for words in args.folder}
    if not errors:
        check_symbols(layers, objects, args.nm, args.ld, errors)
    if errors:
        print("\n".join("check_layers: " + line for line in sorted(set(errors))), file=sys.stderr)
        sys.exit(1)
    if args.stamp:
        with open(args.stamp, "w", encoding="utf-8"):
            pass


if __name__ == "__main__":
    main()
