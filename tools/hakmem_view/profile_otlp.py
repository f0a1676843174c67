# SPDX-License-Identifier: MIT
"""A profile as a message of OpenTelemetry's profiles signal (v1development), with names: made by the ecosystem's own
package, opentelemetry-proto. It is what an exporter's file, or a collector, holds: ProfilesData."""
from __future__ import annotations

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
from opentelemetry.proto.profiles.v1development import profiles_pb2 as otlp

from .process import plain
from .profile_model import Mapping, Site
from .profile_names import Frame, Named
from .profile_pprof import DEFAULTS, TYPES


class Dictionary:
    """Tables that all profiles share. The first entry of each is empty and means none."""

    def __init__(self, named: Named):
        self.named, self.made = named, otlp.ProfilesData()
        self.tables = self.made.dictionary
        for table in (self.tables.mapping_table, self.tables.location_table, self.tables.function_table, self.tables.link_table,
                      self.tables.attribute_table, self.tables.stack_table):
            table.add()
        self.strings: dict[str, int] = {"": 0}
        self.places: dict[object, int] = {}  # of all tables but that of strings: by a key that tells the table, too

    def text(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def _place(self, key: object, table, **fields) -> int:
        """Where the table has it; with the fields if it is new."""
        if key not in self.places:
            self.places[key] = len(table)
            table.add(**fields)
        return self.places[key]

    def attribute(self, name: str, value: str) -> int:
        return self._place((name, value), self.tables.attribute_table, key_strindex=self.text(name),
                           value={"string_value": value})

    def function(self, frame: Frame) -> int:
        return self._place(("function", frame.function, frame.file), self.tables.function_table,
                           name_strindex=self.text(frame.function), filename_strindex=self.text(frame.file))

    def mapping(self, one: Mapping) -> int:
        build = [self.attribute("process.executable.build_id.gnu", one.build_id)] if one.build_id else []
        return self._place(one, self.tables.mapping_table, memory_start=one.start, memory_limit=one.end,
                           file_offset=one.offset, filename_strindex=self.text(one.path), attribute_indices=build)

    def location(self, address: int) -> int:
        """The address is that of the call, not of the return."""
        where = self.named.profile.mapping(address)
        lines = [otlp.Line(function_index=self.function(frame), line=frame.line) for frame in self.named.of(address)]
        return self._place(("location", address), self.tables.location_table, address=max(0, address - 1), lines=lines,
                           mapping_index=self.mapping(where) if where else 0)

    def stack(self, site: Site) -> int:
        places = [self.location(address) for address in self.named.addresses(site)]
        return self._place(("stack", *places), self.tables.stack_table, location_indices=places)


def encode(named: Named, kind: str = "inuse") -> bytes:
    """A profile a kind of figure; `kind` is the first one, which readers show if they are not told another."""
    tables, found = Dictionary(named), named.profile
    made = tables.made.resource_profiles.add()
    made.resource.attributes.add(key="service.name", value={"string_value": found.program or "?"})
    if found.pid:
        made.resource.attributes.add(key="process.pid", value={"int_value": found.pid})
    scope = made.scope_profiles.add()
    scope.scope.name, scope.scope.version = "hakmem", found.version
    begin = max(0, round((found.time - found.seconds) * 1e9))
    for name, unit, of in sorted(TYPES, key=lambda one: one[0] != DEFAULTS[kind]):
        one = scope.profiles.add(time_unix_nano=begin, duration_nano=round(found.seconds * 1e9), period=found.rate)
        one.sample_type.type_strindex, one.sample_type.unit_strindex = tables.text(name), tables.text(unit)
        one.period_type.type_strindex, one.period_type.unit_strindex = tables.text("space"), tables.text("bytes")
        for site in named.sites:
            if round(of(site)) > 0:
                label = [tables.attribute("hakmem.label", site.label)] if site.label else []
                one.samples.add(stack_index=tables.stack(site), values=[round(of(site))], attribute_indices=label)
    tables.tables.string_table.extend(tables.strings)
    return tables.made.SerializeToString()


def refused(answer: bytes) -> str:
    """What a collector says that it did not take, of what it was sent (which has the form of the message above); "" if nothing."""
    try:
        said = service.ExportProfilesServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return ""
    return plain(said.error_message)[:200] or f"{said.rejected_profiles} profiles were not taken" if said.rejected_profiles else ""
