# SPDX-License-Identifier: MIT
"""The OpenTelemetry file, read back by the ecosystem's own package, and held against pprof's."""
import leaky
import pytest
import synthetic
from opentelemetry.proto.profiles.v1development import profiles_pb2
from test_profile_formats import made, parsed

from hakmem_view import profile_otlp, profile_pprof
from hakmem_view.profile_model import profile
from hakmem_view.profile_names import Named


def read(data: bytes) -> profiles_pb2.ProfilesData:
    found = profiles_pb2.ProfilesData()
    found.ParseFromString(data)
    return found


def sums(found: profiles_pb2.ProfilesData) -> dict[str, int]:
    text = found.dictionary.string_table
    return {text[one.sample_type.type_strindex]: sum(value for sample in one.samples for value in sample.values)
            for one in found.resource_profiles[0].scope_profiles[0].profiles}


@pytest.mark.parametrize("kind, first", list(profile_pprof.DEFAULTS.items()))
def test_sums_are_those_of_pprof(kind, first):
    named = Named(made(synthetic.standard()), has_symbols=False)
    found, other = read(profile_otlp.encode(named, kind)), parsed(profile_pprof.encode(named, kind))
    expected = {other.string_table[one.type]: sum(sample.value[at] for sample in other.sample)
                for at, one in enumerate(other.sample_type)}
    assert sums(found) == expected and expected["inuse_space"] > 0
    assert list(sums(found))[0] == first


def test_every_table_begins_with_nothing_and_every_index_is_in_its_table():
    """As the signal's schema asks: index 0 is none, entries are unique, a sample has one value."""
    found = read(profile_otlp.encode(Named(made(synthetic.standard()), has_symbols=False)))
    tables = found.dictionary
    assert tables.string_table[0] == "" and len(set(tables.string_table)) == len(tables.string_table)
    for table in (tables.mapping_table, tables.location_table, tables.function_table, tables.link_table, tables.attribute_table,
                  tables.stack_table):
        assert table[0].ByteSize() == 0 and len({one.SerializeToString() for one in table}) == len(table)
    assert all(0 < at < len(tables.location_table) for stack in tables.stack_table for at in stack.location_indices)
    for place in tables.location_table[1:]:
        assert 0 < place.mapping_index < len(tables.mapping_table)
        assert all(0 < line.function_index < len(tables.function_table) for line in place.lines)
    profiles = found.resource_profiles[0].scope_profiles[0].profiles
    for one in profiles:
        keys = [(sample.stack_index, *sample.attribute_indices) for sample in one.samples]
        assert len(set(keys)) == len(keys) and all(0 < key[0] < len(tables.stack_table) for key in keys)
        assert all(len(sample.values) == 1 and sample.values[0] > 0 for sample in one.samples)
    labels = {tables.attribute_table[at].value.string_value for one in profiles for sample in one.samples
              for at in sample.attribute_indices}
    assert labels == {"cache"}
    resource = {one.key: one.value for one in found.resource_profiles[0].resource.attributes}
    assert resource["service.name"].string_value


@leaky.COMPILER
def test_leak_has_its_function_line_and_build_id(tmp_path):
    program = leaky.compiled(tmp_path)
    found = read(profile_otlp.encode(Named(profile(leaky.document(program), "it"))))
    tables = found.dictionary
    one = found.resource_profiles[0].scope_profiles[0].profiles[0]
    most = max(one.samples, key=lambda sample: sample.values[0])
    lines = tables.location_table[tables.stack_table[most.stack_index].location_indices[0]].lines
    function = tables.function_table[lines[0].function_index]
    assert tables.string_table[function.name_strindex] == "leak_record" and lines[0].line == leaky.line_of("the line of the leak")
    ids = {tables.attribute_table[at].value.string_value for mapping in tables.mapping_table for at in mapping.attribute_indices}
    assert leaky.Elf.open(str(program)).build_id in ids
