"""Files that .proto files import without a reference: compilers and registries bring them along.

Facts of their public definitions: names, numbers and types of fields.
"""

from __future__ import annotations

__all__ = ["FILES"]

_HEAD = 'syntax = "proto3"; package google.protobuf; '
_TYPE = 'syntax = "proto3"; package google.type; '

FILES = {
    "google/protobuf/timestamp.proto": _HEAD + "message Timestamp { int64 seconds = 1; int32 nanos = 2; }",
    "google/protobuf/duration.proto": _HEAD + "message Duration { int64 seconds = 1; int32 nanos = 2; }",
    "google/protobuf/any.proto": _HEAD + "message Any { string type_url = 1; bytes value = 2; }",
    "google/protobuf/empty.proto": _HEAD + "message Empty { }",
    "google/protobuf/field_mask.proto": _HEAD + "message FieldMask { repeated string paths = 1; }",
    "google/protobuf/struct.proto": _HEAD
    + """
        message Struct { map<string, Value> fields = 1; }
        message Value { oneof kind { NullValue null_value = 1; double number_value = 2; string string_value = 3;
            bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6; } }
        enum NullValue { NULL_VALUE = 0; }
        message ListValue { repeated Value values = 1; }
    """,
    "google/protobuf/wrappers.proto": _HEAD
    + """
        message DoubleValue { double value = 1; } message FloatValue { float value = 1; }
        message Int64Value { int64 value = 1; } message UInt64Value { uint64 value = 1; }
        message Int32Value { int32 value = 1; } message UInt32Value { uint32 value = 1; }
        message BoolValue { bool value = 1; } message StringValue { string value = 1; }
        message BytesValue { bytes value = 1; }
    """,
    "google/protobuf/descriptor.proto": 'syntax = "proto2"; package google.protobuf;',  # of options, which are not read
    "google/type/date.proto": _TYPE + "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "google/type/decimal.proto": _TYPE + "message Decimal { string value = 1; }",
    "google/type/latlng.proto": _TYPE + "message LatLng { double latitude = 1; double longitude = 2; }",
    "google/type/money.proto": _TYPE + "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
    "google/type/timeofday.proto": _TYPE
    + "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
    "google/type/dayofweek.proto": _TYPE
    + """
        enum DayOfWeek { DAY_OF_WEEK_UNSPECIFIED = 0; MONDAY = 1; TUESDAY = 2; WEDNESDAY = 3; THURSDAY = 4; FRIDAY = 5;
            SATURDAY = 6; SUNDAY = 7; }
    """,
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',  # of options, which are not read
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type; '
    "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
}
