"""Spark data sources on Kafka's formats; found by name through the packages pyspark_kwire_*."""
