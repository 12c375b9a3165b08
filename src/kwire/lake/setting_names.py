"""Names of options of object stores and of properties of catalogs: delta-rs and PyIceberg ignore unknown ones.

Neither list is complete: delta-rs' names change with its releases, and a catalog may define more properties. So an
unknown name is reported only if it is almost one of the names here.

Source: object_store 0.13's AmazonS3ConfigKey, AzureConfigKey, GoogleConfigKey and ClientConfigKey; delta-rs' constants;
PyIceberg 0.12's constants and configuration page.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from functools import cache

__all__ = ["warn_of_misspelt"]

logger = logging.getLogger("kwire.lake")

ALMOST = 0.85
"""Ratio of difflib from which two names differ by a misspelling: aws_regoin and aws_region have 0.9."""

AWS = """
    access_key_id secret_access_key session_token token region default_region bucket bucket_name endpoint endpoint_url
    endpoint_url_s3 endpoint_url_sts endpoint_url_dynamodb virtual_hosted_style_request imdsv1_fallback
    metadata_endpoint unsigned_payload checksum_algorithm container_credentials_relative_uri
    container_credentials_full_uri container_authorization_token_file web_identity_token_file role_arn role_session_name
    iam_role_arn iam_role_session_name copy_if_not_exists conditional_put skip_signature disable_tagging
    disable_bulk_delete s3_express request_payer allow_http server_side_encryption sse_kms_key_id sse_bucket_key_enabled
    sse_customer_key_base64 profile s3_allow_unsafe_rename s3_locking_provider s3_addressing_style
    s3_pool_idle_timeout_seconds sts_pool_idle_timeout_seconds s3_get_internal_server_error_retries
    ec2_metadata_disabled ec2_metadata_timeout force_credential_load region_dynamodb access_key_id_dynamodb
    secret_access_key_dynamodb session_token_dynamodb
"""
AZURE = """
    storage_account_name storage_account_key storage_access_key storage_master_key storage_client_id
    storage_client_secret storage_tenant_id storage_authority_id storage_authority_host storage_sas_key
    storage_sas_token storage_token storage_use_emulator storage_endpoint storage_connection_string account_name
    account_key access_key master_key client_id client_secret tenant_id authority_id authority_host sas_key sas_token
    bearer_token token use_emulator endpoint use_fabric_endpoint identity_endpoint msi_endpoint object_id
    msi_resource_id federated_token_file use_azure_cli skip_signature container_name disable_tagging
    fabric_token_service_url fabric_workload_host fabric_session_token fabric_cluster_identifier
"""
GOOGLE = """
    service_account service_account_path service_account_key bucket bucket_name base_url application_credentials
    skip_signature
"""
CLIENT = """
    allow_http allow_invalid_certificates connect_timeout default_content_type http1_only http2_only
    http2_keep_alive_interval http2_keep_alive_timeout http2_keep_alive_while_idle http2_max_frame_size
    pool_idle_timeout pool_max_idle_per_host proxy_url proxy_ca_certificate proxy_excludes randomize_addresses timeout
    user_agent max_retries retry_timeout backoff_config.init_backoff backoff_config.max_backoff backoff_config.base
    concurrency_limit delta_dynamo_table_name delta_dynamo_billing_mode delta_dynamo_max_elapsed_request_time
"""
CATALOG = """
    name type uri warehouse token credential scope audience resource oauth2-server-uri prefix ssl auth py-catalog-impl
    py-io-impl namespace-separator snapshot-loading-mode vended-credentials view-endpoints-supported echo pool_pre_ping
    init_catalog_tables rest-page-size rest.signing-name rest.signing-region rest.sigv4-enabled
    rest.sigv4.max-retries scan-planning-mode client.access-key-id client.profile-name client.region client.role-arn
    client.role-session-name client.secret-access-key client.session-token s3.access-key-id s3.anonymous
    s3.connect-timeout s3.endpoint s3.force-virtual-addressing s3.profile-name s3.proxy-uri s3.region s3.request-timeout
    s3.resolve-region s3.retry-strategy-impl s3.role-arn s3.role-session-name s3.secret-access-key
    s3.server-side-encryption s3.session-token s3.signer s3.signer.endpoint s3.signer.uri s3.sse-kms-key-id
    adls.account-host adls.account-key adls.account-name adls.anon adls.blob-storage-authority adls.blob-storage-scheme
    adls.client-id adls.client-secret adls.connection-string adls.credential adls.dfs-storage-authority
    adls.dfs-storage-scheme adls.sas-token adls.tenant-id adls.token gcs.access gcs.cache-timeout gcs.consistency
    gcs.default-bucket-location gcs.oauth2.token gcs.oauth2.token-expires-at gcs.project-id gcs.requester-pays
    gcs.service.host gcs.session-kwargs gcs.version-aware hdfs.host hdfs.kerberos_ticket hdfs.port hdfs.user hf.endpoint
    hf.token glue.access-key-id glue.endpoint glue.id glue.max-retries glue.profile-name glue.region glue.retry-mode
    glue.secret-access-key glue.session-token glue.skip-archive dynamodb.access-key-id dynamodb.profile-name
    dynamodb.region dynamodb.secret-access-key dynamodb.session-token table-name hive.hive2-compatible
    hive.kerberos-authentication hive.kerberos-service-name lock-check-max-wait-time lock-check-min-wait-time
    lock-check-retries gcp.bigquery.credential-file gcp.bigquery.credentials-info gcp.bigquery.location
    gcp.bigquery.project-id buffer-size
"""


@cache
def _known(library: str) -> frozenset[str]:
    if library == "PyIceberg":
        return frozenset(CATALOG.split())
    prefixed = (("aws_", AWS), ("azure_", AZURE), ("google_", GOOGLE))
    return frozenset(CLIENT.split()).union(
        *({name, f"{prefix}{name}"} for prefix, names in prefixed for name in names.split())
    )


def warn_of_misspelt(names: Iterable[str], library: str, table: str) -> None:
    """Warn of names that are almost those of other options, once each. library: delta-rs or PyIceberg."""
    for name in names:
        if name.lower() not in _known(library):
            _warn(name, library, table)


@cache  # a table is opened for each micro-batch
def _warn(name: str, library: str, table: str) -> None:
    close = difflib.get_close_matches(name.lower(), _known(library), n=1, cutoff=ALMOST)
    if close:
        what = "catalog property" if library == "PyIceberg" else "storage option"
        logger.warning(
            "table %s: %s '%s' is unknown, and %s ignores such names (did you mean '%s'?)",
            *(table, what, name, library, close[0]),
        )
