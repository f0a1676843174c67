# SPDX-License-Identifier: MIT
"""The heap profile's document against its schema."""
import copy
import json
import os
import pathlib
import subprocess

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def schema():
    return json.loads((ROOT / "docs/schema/profile.schema.json").read_text())


@pytest.fixture(scope="module", params=["sites", "large", "lifetimes", "idle"])
def document(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("profile") / "document"
    environment = dict(os.environ, LD_PRELOAD=os.environ["HAKMEM_LIB"],
                       HAKMEM_OPTIONS=f"report:profile,profile_rate:16k,report_file:{path}")
    subprocess.run([os.environ["HAK_PROFILE_LOAD"], request.param], env=environment, check=True, timeout=60,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())


def test_schema_is_one(schema):
    jsonschema.Draft202012Validator.check_schema(schema)


def test_document_has_the_form_of_the_schema(document, schema):
    jsonschema.Draft202012Validator(schema).validate(document)


def test_schema_refuses_what_has_another_form(document, schema):
    validator = jsonschema.Draft202012Validator(schema)
    for change in (lambda d: d.update(profile=2), lambda d: d.update(extra=1), lambda d: d.pop("rate"),
                   lambda d: d["samples"].update(live=-1), lambda d: d["mappings"][0].update(start="12"),
                   lambda d: d["sites"].append({}), lambda d: d["peak"].update(time_ns=0.5)):
        other = copy.deepcopy(document)
        change(other)
        assert not validator.is_valid(other)
