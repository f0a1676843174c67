# SPDX-License-Identifier: MIT
"""CPython's own functions where none of Python is known: one of each stack is shown, the one that tells what was made."""
import pytest
from synthetic import BEGIN, OFFSET, Load, Truth, document

from hakmem_view import interpreter, profile_formats, profile_report
from hakmem_view.profile_model import profile
from hakmem_view.profile_names import Named, short
from hakmem_view.symbols import Frame

LIBC = 0x7f0000000000
RUN = ["_PyEval_EvalFrameDefault", "_PyFunction_Vectorcall", "PyObject_Call", "Py_RunMain", "Py_BytesMain"]


def named(*stacks: list[str], python: str = "") -> Named:
    """Stacks of names, innermost first; "" is a function without a name; those with an * are the C library's, others CPython's;
    "a in b": a is inlined there."""
    names = list(dict.fromkeys(name for stack in stacks for name in stack))
    places = {name: 0x1010 + 16 * at for at, name in enumerate(names)}
    load = Load([Truth([places[name] for name in stack], 1 << 20, 10) for stack in stacks], path="/usr/bin/python3.11")
    table = document(load)
    table["mappings"].append({"start": hex(LIBC), "end": hex(LIBC + 0x100000), "offset": "0x1000", "path": "/lib/libc.so.6", "build_id": ""})
    for site in table["sites"]:
        site["stack"] = [hex(int(one, 16) - BEGIN + LIBC) if name.startswith("*") else one for one, name in zip(site["stack"], stacks[
            table["sites"].index(site)])]
    found = Named(profile(table, "it"), has_symbols=False)
    for name, place in places.items():
        address = (LIBC if name.startswith("*") else BEGIN) + place - OFFSET
        inlined = name.lstrip("*").split(" in ")
        found.frames[address] = [Frame(one, "", 0, one != inlined[-1], name == python and bool(name)) for one in inlined]
    return found


@pytest.mark.parametrize("stack, shown", [
    (["PyMem_RawMalloc", "", "PyDict_SetDefault", "PyUnicode_InternInPlace", *RUN], "PyDict_SetDefault"),
    (["_PyObject_GC_New", "PyList_New", "", *RUN], "PyList_New"), (["list_resize", "list_append", *RUN], "list_resize"),
    (["", *RUN], "python3.11+0x1010"), (["*strdup", "PyUnicode_New", *RUN], "PyUnicode_New")])
def test_the_innermost_that_tells_what_was_made_is_shown_alone(stack, shown):
    found = named([*stack, "*__libc_start_main", "*_start"])
    site = found.profile.sites[0]
    assert (found.where(site), found.chain(site), found.folds) == (shown, [], 1)
    assert "Py_RunMain" not in profile_formats.collapsed(found, "inuse")


@pytest.mark.parametrize("stack, shown", [
    (["_PyObject_GC_New", "PyTuple_New in tuple_slice", *RUN], "PyTuple_New"), (["new_dict in PyDict_New", *RUN], "new_dict"),
    (["_PyObject_VectorcallTstate in type_call_helper", "call_function in _PyEval_EvalFrameDefault", *RUN], "type_call_helper"),
    (["gc_alloc in _PyObject_GC_NewVar in PyList_New in _PyEval_EvalFrameDefault.cold", *RUN], "PyList_New"),
    (["PyUnicode_New in PyUnicode_New.part.0", *RUN], "PyUnicode_New"),
    (["do_call_core in _PyEval_EvalFrameDefault", "_PyEval_Vector in _PyFunction_Vectorcall", *RUN], "_PyEval_EvalFrameDefault"),
    (["_PyObject_Malloc in _PyMem_Calloc", "*lone in module_work", "trace_call_function in call_function", *RUN], "lone")])
def test_of_functions_that_are_inlined_one_is_shown(stack, shown):
    """As with LTO and PGO, where a frame of the loop has several: none but the one that tells what was made."""
    found = named([*stack, "*__libc_start_main", "*_start"])
    site = found.profile.sites[0]
    assert (found.where(site), found.chain(site)) == (shown, ["module_work"] if shown == "lone" else [])
    functions = profile_formats.collapsed(found, "alloc").rpartition(" ")[0].split(";")
    assert len([name for name in functions if name not in ("_start", "__libc_start_main", "module_work", "lone")]) == 1, functions


def test_what_is_not_the_interpreters_stays():
    """Of a module that is called by one, and calls one."""
    found = named(["PyList_New", "PyObject_Call", "*module_work", "_PyEval_EvalFrameDefault", "*embeds", "*main"])
    site = found.profile.sites[0]
    assert (found.where(site), found.chain(site)) == ("PyList_New", ["module_work", "embeds", "main"])
    found = named(["*module_work", "_PyEval_EvalFrameDefault", "Py_RunMain"], ["*module_work", "", "PyList_Sort"])
    assert [found.chain(site) for site in found.profile.sites] == [[], ["PyList_Sort"]]


def test_where_functions_of_python_are_known_none_of_the_interpreters_is_shown():
    found = named(["list_resize", "*remember", *RUN], python="*remember")
    assert (found.where(found.profile.sites[0]), found.folds) == ("remember", 0)


def test_page_says_that_functions_are_left_out():
    said = "\n".join(profile_report.lines(profile_report.make(named(["PyList_New", *RUN]), "it"), 80))
    assert "Stacks without a function of Python (1) show one of CPython's" in said and "_PyEval" not in said
    assert "of Python" not in "\n".join(profile_report.lines(profile_report.make(named(["PyList_New"]), "it"), 80))


@pytest.mark.parametrize("name, tells", [
    ("", False), ("PyBytes_FromStringAndSize", True), ("_PyUnicode_FromId", True), ("dict_resize.constprop.0", True),
    ("_PyEval_EvalFrameDefault", False), ("PyType_GenericAlloc", False), ("method_vectorcall_FASTCALL", False), ("PyImport_ImportModule", False),
    ("_PyObject_GC_NewVar", False), ("set_table_resize", True), ("PyMem_Calloc", False), ("_PyObject_GC_Resize@@LIB", False),
    *((name, False) for name in ("_Py_INCREF", "Py_XDECREF", "_Py_NewRef", "initialize_locals", "slot_nb_add", "_PyEvalFramePushAndInit",
                                 "_PyThreadState_PushFrame", "do_call_core", "_PyType_NewManagedObject", "_PyObject_Init", "gc_alloc")),
    *((name, True) for name in ("PyFloat_FromDouble", "_PyLong_FromMedium", "PyCode_New", "list_extend", "type_new_impl", "PySet_New",
                                "PyFunction_NewWithQualName", "PyCFunction_NewEx"))])
def test_names_that_tell(name, tells):
    assert interpreter.tells(name) is tells


@pytest.mark.parametrize("suffix", [
    ".cold", ".isra.0", ".part.0.cold", ".constprop.0.isra.0", ".lto_priv.1", ".lto_priv.0.cold", ".llvm.123", ".localalias",
    ".lto_priv.0/2", "/1", ".warm", ".cold.0/3", ".__uniq.12", "@plt", "@@LIB"])
def test_what_a_compiler_adds_to_a_name_does_not_count(suffix):
    assert [interpreter.tells(name + suffix) for name in ("_PyEval_EvalFrameDefault", "call_function", "new_dict")] == [False, False, True]
    assert "@" in suffix or short(f"new_dict{suffix}") == "new_dict"
