"""Values written with the serializers of schema registries, as Arrow columns."""
