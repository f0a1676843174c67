# SPDX-License-Identifier: MIT
"""Many objects of all sizes. Prints sums and hashes; equal on every machine with the same version of Python."""
import ast
import hashlib
import json
import re
import sys
from collections import defaultdict

SIZE = int(sys.argv[1])
SYLLABLES = "an be co du el fa gi ho in jo ka le mi no or pa".split()
state = 42


def random(limit):
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return (state >> 8) % limit


def word():
    return "".join(SYLLABLES[random(16)] for _ in range(1 + random(4)))


def short(data):
    return hashlib.sha256(data.encode()).hexdigest()[:12]


def document(number):
    return {"id": number, "name": word(), "tags": [word() for _ in range(random(6))], "price": random(10000) / 100,
            "size": {"w": random(100), "h": random(100)}, "note": " ".join(word() for _ in range(random(12)))}


def work_json():
    documents = [document(number) for number in range(SIZE * 40)]
    text = ""
    for _ in range(3):
        text = json.dumps(documents, sort_keys=True, indent=1)
        documents = json.loads(text)
        for each in documents:
            each["tags"].append(each["name"][:4])
    return short(text)


def work_groups():
    groups = defaultdict(list)
    for number in range(SIZE * 600):
        groups[word()[:4]].append((random(1000), str(number)))
    totals = {name: sum(value for value, _ in sorted(rows)) for name, rows in sorted(groups.items())}
    joined = {name: "".join(text for _, text in rows[:50]) for name, rows in groups.items()}
    return short(repr(totals) + repr(sorted(joined.items())))


def function(number):
    names = [f"{word()}_{number}_{i}" for i in range(5)]
    lines = [f"def {names[0]}({names[1]}, {names[2]}=None, *rest):", f"    '''{word()} {word()}'''"]
    for name in names[3:]:
        lines.append(f"    {name} = [{names[1]} + {random(100)} * x for x in range({random(20)}) if x % 3]")
        lines.append(f"    if {name} and {names[2]} is not None:")
        lines.append(f"        return {{'{word()}': {name}, '{word()}': ({names[1]}, {random(1000)})}}")
    return "\n".join(lines) + "\n    return None\n"


def work_source():
    source = "\n".join(function(number) for number in range(SIZE * 2))
    tree = ast.parse(source)
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    code = compile(tree, "made", "exec")
    again = ast.unparse(tree)
    return short(again + repr(names) + str(len(code.co_consts)))


def work_text():
    lines = [" ".join(word() for _ in range(10)) for _ in range(SIZE * 25)]
    text = "\n".join(lines)
    text = re.sub(r"\b(\w\w)(\w*)\b", lambda match: match[2].upper() + match[1], text)
    kept = [part.strip().split() for part in text.split("\n") if "AN" in part]
    return short("|".join("-".join(reversed(parts)) for parts in kept))


for title, work in (("json", work_json), ("groups", work_groups), ("source", work_source), ("text", work_text)):
    print(title, work())
