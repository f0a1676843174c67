# SPDX-License-Identifier: MIT
"""A profile as pprof's protobuf, gzipped, with names: made by the protobuf library from pprof's published schema."""
from __future__ import annotations

import gzip
from functools import lru_cache

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from .profile_model import KINDS, Mapping, Profile, Site
from .profile_names import Frame, Named, is_aside

PACKAGE = "perftools.profiles"
SCHEMA = {  # message: (field, number, type; * is repeated), as of profile.proto
    "Profile": ("sample_type 1 *ValueType", "sample 2 *Sample", "mapping 3 *Mapping", "location 4 *Location",
                "function 5 *Function", "string_table 6 *string", "drop_frames 7 int64", "keep_frames 8 int64",
                "time_nanos 9 int64", "duration_nanos 10 int64", "period_type 11 ValueType", "period 12 int64",
                "comment 13 *int64", "default_sample_type 14 int64"),
    "ValueType": ("type 1 int64", "unit 2 int64"),
    "Sample": ("location_id 1 *uint64", "value 2 *int64", "label 3 *Label"),
    "Label": ("key 1 int64", "str 2 int64", "num 3 int64", "num_unit 4 int64"),
    "Mapping": ("id 1 uint64", "memory_start 2 uint64", "memory_limit 3 uint64", "file_offset 4 uint64", "filename 5 int64",
                "build_id 6 int64", "has_functions 7 bool", "has_filenames 8 bool", "has_line_numbers 9 bool",
                "has_inline_frames 10 bool"),
    "Location": ("id 1 uint64", "mapping_id 2 uint64", "address 3 uint64", "line 4 *Line", "is_folded 5 bool"),
    "Line": ("function_id 1 uint64", "line 2 int64"),
    "Function": ("id 1 uint64", "name 2 int64", "system_name 3 int64", "filename 4 int64", "start_line 5 int64"),
}
TYPES = (("alloc_objects", "count", lambda site: site.alloc.objects), ("alloc_space", "bytes", KINDS["alloc"].of),
         ("inuse_objects", "count", KINDS["objects"].of), ("inuse_space", "bytes", KINDS["inuse"].of),
         ("peak_space", "bytes", KINDS["peak"].of), ("pinned_space", "bytes", KINDS["pinned"].of),
         ("slack_space", "bytes", KINDS["slack"].of))
DEFAULTS = {"inuse": "inuse_space", "alloc": "alloc_space", "peak": "peak_space", "pinned": "pinned_space",
            "slack": "slack_space", "objects": "inuse_objects"}

# pprof takes away a function that matches the first, with all that it calls, but not if it matches the second; as in observe/pprof.c.
DROP_FRAMES = (r"alloc::.*|<alloc::.*|(std|core)::alloc::.*|hashbrown::raw::.*|__rust_.*|__rdl_.*|__rg_.*|"
               r"(hak_|__libc_|je_|mi_|tc_|x)?(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|"
               r"posix_memalign)|operator new.*|__gnu_cxx::.*|std::(__new_)?allocator(_traits)?<.*|"
               r"std::_Vector_base<.*|std::(__cxx11::)?basic_string<.*")
KEEP_FRAMES = (r".*::(call|call_once|call_mut|from_iter|extend|extend_desugared|extend_trusted|fold|for_each|"
               r"map|retain|sort|sort_by|sort_by_key|resize_with|or_insert_with|new_cyclic|drop|fmt|clone|eq|"
               r"cmp|hash|next|collect)(::<.*>)?")


@lru_cache(maxsize=1)
def message() -> type:
    """The class of the message Profile."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package=PACKAGE, syntax="proto3")
    for name, rows in SCHEMA.items():
        made = file.message_type.add(name=name)
        for row in rows:
            key, number, kind = row.split()
            one = made.field.add(name=key, number=int(number),
                                 label=kinds.LABEL_REPEATED if kind[0] == "*" else kinds.LABEL_OPTIONAL)
            kind = kind.lstrip("*")
            if kind in SCHEMA:
                one.type, one.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                one.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Profile"))


class Maker:
    """Fills a message; strings, functions, mappings and locations are numbered as they come."""

    def __init__(self, named: Named):
        self.named, self.made = named, message()()
        self.strings: dict[str, int] = {"": 0}
        self.functions: dict[tuple[str, str], int] = {}
        self.locations: dict[tuple[int, int], int] = {}
        self.mappings: dict[Mapping, int] = {}

    def text(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def function(self, frame: Frame) -> int:
        key = (frame.function, frame.file)
        if key not in self.functions:
            self.functions[key] = len(self.functions) + 1
            self.made.function.add(id=self.functions[key], name=self.text(frame.function),
                                   system_name=self.text(frame.function), filename=self.text(frame.file))
        return self.functions[key]

    def mapping(self, one: Mapping) -> int:
        if one not in self.mappings:
            self.mappings[one] = len(self.mappings) + 1
            self.made.mapping.add(id=self.mappings[one], memory_start=one.start, memory_limit=one.end, file_offset=one.offset,
                                  filename=self.text(one.path), build_id=self.text(one.build_id), has_functions=True,
                                  has_filenames=True, has_line_numbers=True, has_inline_frames=True)
        return self.mappings[one]

    def location(self, address: int, passed: int = 0) -> int:
        """pprof looks names up at the address itself: that of the call, not of the return. Without the innermost frames that
        are passed over."""
        key = (address, passed)
        if key not in self.locations:
            self.locations[key] = len(self.locations) + 1
            where = self.named.profile.mapping(address)
            made = self.made.location.add(id=self.locations[key], address=max(0, address - 1),
                                          mapping_id=self.mapping(where) if where else 0)
            for frame in self.named.of(address)[passed:]:
                made.line.add(function_id=self.function(frame), line=frame.line)
        return self.locations[key]

    def stack(self, site: Site) -> list[int]:
        """From the first function that does more than to pass a wish for memory on."""
        addresses = self.named.addresses(site)
        for at, address in enumerate(addresses):
            passed = next((number for number, frame in enumerate(self.named.of(address)) if not is_aside(frame)), None)
            if passed is not None:
                return [self.location(address, passed), *map(self.location, addresses[at + 1:])]
        return [self.location(address) for address in addresses]

    def sample(self, site: Site) -> None:
        one = self.made.sample.add(location_id=self.stack(site),
                                   value=[round(of(site)) for _, _, of in TYPES])
        mean = round(site.inuse.bytes / site.inuse.objects) if site.inuse.objects else 0
        if mean:
            one.label.add(key=self.text("bytes"), num=mean, num_unit=self.text("bytes"))
        if site.label:
            one.label.add(key=self.text("label"), str=self.text(site.label))


def encode(named: Named, kind: str = "inuse") -> bytes:
    """`kind`: what a reader shows if it is not told another."""
    maker, found = Maker(named), named.profile
    made = maker.made
    for name, unit, _ in TYPES:
        made.sample_type.add(type=maker.text(name), unit=maker.text(unit))
    made.default_sample_type = maker.text(DEFAULTS[kind])
    made.period_type.type, made.period_type.unit = maker.text("space"), maker.text("bytes")
    made.period, made.time_nanos = found.rate, round(found.time * 1e9)
    made.duration_nanos = round(found.seconds * 1e9)
    made.drop_frames, made.keep_frames = maker.text(DROP_FRAMES), maker.text(KEEP_FRAMES)
    _main_first(maker, found)
    for site in named.sites:
        maker.sample(site)
    made.string_table.extend(maker.strings)
    return gzip.compress(made.SerializeToString(), mtime=0)


def _main_first(maker: Maker, found: Profile) -> None:
    """Readers take the first mapping for the program."""
    for one in sorted(found.mappings, key=lambda mapping: mapping.name != found.program):
        maker.mapping(one)
