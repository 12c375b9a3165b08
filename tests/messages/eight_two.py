"""The definition of docs/spec/messages.md 8.2, which was run with Kafka's own classes."""

from __future__ import annotations

from typing import Any

from kwire import schema

DEFINITION = """
{ "type": "data", "name": "Probe", "validVersions": "0-3", "flexibleVersions": "1+", "fields": [
  { "name": "A", "type": "int8", "versions": "0+" },
  { "name": "S", "type": "string", "versions": "0+", "nullableVersions": "2+", "ignorable": true },
  { "name": "Only2", "type": "int32", "versions": "2", "default": 7 },
  { "name": "T0", "type": "int16", "versions": "1+", "tag": 0, "taggedVersions": "1+" },
  { "name": "T1", "type": "string", "versions": "1+", "nullableVersions": "1+", "tag": 1, "taggedVersions": "1+" },
  { "name": "T2", "type": "Ns", "versions": "1+", "nullableVersions": "1+", "tag": 2, "taggedVersions": "1+",
    "default": "null", "fields": [ { "name": "P", "type": "string", "versions": "1+" } ] },
  { "name": "T3", "type": "int8", "versions": "3+", "tag": 3, "taggedVersions": "3+" },
  { "name": "Ls", "type": "[]El", "versions": "1+", "fields": [
    { "name": "K", "type": "int32", "versions": "1+", "mapKey": true },
    { "name": "V", "type": "float64", "versions": "1+" } ] },
  { "name": "By", "type": "bytes", "versions": "1+", "nullableVersions": "1+" },
  { "name": "R", "type": "records", "versions": "1+", "nullableVersions": "1+", "ignorable": true },
  { "name": "U", "type": "uuid", "versions": "1+", "ignorable": true },
  { "name": "L", "type": "int64", "versions": "1+", "ignorable": true },
  { "name": "ISR", "type": "[]int32", "versions": "1+", "nullableVersions": "1+", "ignorable": true } ] }
"""

Probe: Any = schema.compile(schema.parse(DEFINITION))
