# SPDX-License-Identifier: MIT
"""CPython's own functions in a stack where no function of Python is known: most of them run code or pass a wish for memory on,
and bury the program. Of those that follow each other, be they inlined or not, one is worth a look: the innermost that tells
what was made."""
from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from typing import Callable, Iterable

PASSES_ON = re.compile(
    # calls and runs code; from 3.10 on, or with LTO, most of it is inlined
    r"_?Py_?Eval\w*|_?PyFunction_(?!New)\w+|_?PyObject_(?:Call|Vectorcall|FastCall|MakeTpCall)\w*|_?PyVectorcall_\w+|\w*vectorcall\w*"
    r"|_?PyCFunction_(?!New)\w+|cfunction_\w+|_?PyMethodDef_\w+|method\w*_call\w*|object_vacall|partial_call|type_call|slot_\w+|tp_new_wrapper"
    r"|_?PyGen_\w+|gen_\w+|builtin_(?:exec|eval|compile|__import__|__build_class__)\w*|_?PyImport_\w+|import_\w+|imp_\w+|_imp_\w+"
    r"|(?:do_|trace_)?call_(?:core|function\w*|attribute|method\w*|unbound\w*|trace\w*|instrumentation\w*)|function_code_fastcall"
    r"|initialize_locals|make_coro|clear_\w*frame\w*|_?PyFrame_\w+|_PyThreadState_(?:Push|Pop)\w*|(?:push|allocate)_chunk"
    r"|_?Py_(?:Enter|Leave)RecursiveCall\w*|_?Py_X?(?:INCREF|DECREF|NewRef|SETREF)\w*|_?Py_(?:SET|CLEAR|Dealloc)\w*"
    r"|exec_\w*|_?PyRun_\w+|run_(?:mod|eval_code_obj)|Py_(?:Main|BytesMain|RunMain|Initialize\w*)|pymain_\w+|pyinit_\w+|init_\w+|main"
    # passes a wish for memory on
    r"|_?PyObject_(?:GC_)?New(?:Var)?|_?PyObject_(?:Init|INIT)(?:Var|_VAR)?|_?PyObject_GC_\w+|_?gc_\w+|_?PyGC\w*|type_new_alloc"
    r"|_?PyType_(?:GenericAlloc|GenericNew|AllocNoTrack|NewManagedObject)|_?PyMem_\w+|_?PyObject_(?:Malloc|Calloc|Realloc|VirtualAlloc)\w*"
    r"|_?PyArena_\w+|block_(?:new|alloc)|pymalloc_\w+|new_arena|_Py_NewReference\w*")


@lru_cache(maxsize=65536)
def tells(function: str) -> bool:
    """Whether the name of one of its functions says what was made; "" is none. What a compiler or linker adds to it does not
    count: .isra.0, .part.0.cold, .lto_priv.1, /2, @@VERSION."""
    name = re.match(r"\w*", function)[0]
    return bool(name) and PASSES_ON.fullmatch(name) is None


def folded(stack: Iterable[int], is_own: Callable[[int], bool], is_telling: Callable[[int], bool],
           is_aside: Callable[[int], bool]) -> list[int]:
    """A stack, innermost first, with at most one address of the interpreter's: of the innermost run of them. `is_own`: whether
    an address is the interpreter's, `is_aside`: whether it only serves its caller's wish."""
    found: list[int] = []
    has_one = False
    for own, run in groupby(stack, is_own):
        addresses = list(run)
        if not own:
            found += addresses
        elif not has_one:
            has_one = True
            telling = [one for one in addresses if is_telling(one)]
            is_innermost = all(map(is_aside, found))
            others = [one for one in addresses if not is_aside(one)] or addresses
            found += telling[:1] or (others[:1] if is_innermost else [])
    return found
