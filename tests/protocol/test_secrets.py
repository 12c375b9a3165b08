"""hide_secrets removes the secrets of every message in the catalogue that may hold one."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.messages import registry
from kwire.protocol import HIDDEN, hide_secrets, is_secret_config
from kwire.protocol.secrets import CONFIGS, SECRETS


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_fields_with_secrets_are_hidden_and_the_message_is_left_alone(name: str) -> None:
    cls: Any = registry.get(name)
    for way in SECRETS[name]:
        message: Any = cls()
        struct = message
        for step in way[:-1]:
            element = next(each for each in vars(cls).values() if isinstance(each, type) and way[-1] in fields(each))()
            setattr(struct, step, [element])
            struct = element
        secret = "wonderland" if isinstance(getattr(struct, way[-1]), str) else b"wonderland"
        setattr(struct, way[-1], secret)
        hidden = hide_secrets(message)
        assert "wonderland" not in repr(hidden)
        assert HIDDEN in repr(hidden)
        assert "wonderland" in repr(message)


def fields(cls: type) -> tuple[str, ...]:
    return getattr(cls, "__struct_fields__", ())


def test_only_configs_that_speak_of_secrets_are_hidden() -> None:
    cls: Any = registry.get("IncrementalAlterConfigsRequest")
    configs = [
        cls.AlterableConfig(name="ssl.keystore.password", value="wonderland"),
        cls.AlterableConfig(name="retention.ms", value="1000"),
        cls.AlterableConfig(name="sasl.jaas.config", value=None),
    ]
    hidden: Any = hide_secrets(cls(resources=[cls.AlterConfigsResource(configs=configs)]))
    assert [config.value for config in hidden.resources[0].configs] == [HIDDEN, "1000", None]


def test_synonyms_of_a_secret_are_hidden_too() -> None:
    cls: Any = registry.get("DescribeConfigsResponse")
    synonym = cls.DescribeConfigsSynonym(name="ssl.key.password", value="wonderland")
    config = cls.DescribeConfigsResourceResult(name="ssl.key.password", value="wonderland", synonyms=[synonym])
    hidden = hide_secrets(cls(results=[cls.DescribeConfigsResult(configs=[config])]))
    assert "wonderland" not in repr(hidden)


def test_every_field_of_the_catalogue_that_is_named_like_a_secret_is_known() -> None:
    """A new field of a later release must be noticed."""
    words = ("password", "hmac", "salt", "stored_key", "server_key", "auth_bytes")
    known = {(name, way[-1]) for name, ways in SECRETS.items() for way in ways}
    for name in registry.names():
        cls: Any = registry.get(name)
        for each in (cls, *(value for value in vars(cls).values() if isinstance(value, type))):
            for field in fields(each):
                assert (name, field) in known or not any(field.endswith(word) for word in words), (name, field)


def test_messages_without_secrets_are_not_copied() -> None:
    message: Any = registry.get("MetadataRequest")()
    assert hide_secrets(message) is message
    assert hide_secrets(None) is None
    assert set(CONFIGS) <= set(registry.names())
    assert is_secret_config("listener.name.sasl_ssl.plain.sasl.jaas.config")
