/**
 * Parameters of Postfix that deferd does not have, with their replacements (postconf(5)). The table has those that the main.cf of a relay
 * commonly contains, so that a moved configuration gets the remedy and not the most similar name. Pure.
 */

const NO_LOCAL = 'deferd has no mailboxes and no local delivery; remove it, and route mail for own domains by [transport_maps]'
const NO_FILTER =
  'deferd has no content filter and no Milter; remove it, or filter in a relay before deferd; mail is signed by [dkim."example.com"] tables (docs/dkim.md)'
const AT_RCPT = 'write smtpd_client_restrictions, smtpd_sender_restrictions or smtpd_recipient_restrictions, which apply at RCPT'
const TLS_VERSIONS = 'remove it: TLS 1.2 or newer with the ciphers of Node (node --tls-min-v1.3 for more)'
const IN_MEMORY = 'remove it: deferd keeps TLS sessions in memory'
const BUILT_IN = 'remove it: deferd always does so'
const FOLDERS = 'remove it: deferd needs no folder but queue_directory'
const ROUTES = 'write [transport_maps] with "*" = "smtp:[host]:port", or relayhost'
const NO_LOG_LEVEL = 'remove it: queue show and log_format = "json" have the details of each attempt'
const SASL_SERVER = 'remove it: deferd checks logins itself; set smtpd_sasl_users_file and add users by deferd user'

/** Remedies, each with the parameters that it concerns, separated by blanks. */
const REMEDIES: readonly (readonly [names: string, remedy: string])[] = [
  ['smtp_sasl_auth_enable', 'not needed: deferd logs in at next hops that smtp_sasl_password_maps names; remove it, set that'],
  ['smtp_sasl_tls_security_options', 'remove it: over TLS every mechanism of smtp_sasl_mechanism_filter is allowed'],
  ['smtp_sasl_type smtp_sasl_path', 'remove it: deferd has its own client for PLAIN, LOGIN, CRAM-MD5 and XOAUTH2'],
  ['smtp_use_tls', 'write smtp_tls_security_level = "may"'],
  ['smtp_enforce_tls', 'write smtp_tls_security_level = "encrypt"'],
  ['smtp_tls_per_site', 'write smtp_tls_policy_maps'],
  ['smtp_tls_CApath smtpd_tls_CApath smtpd_tls_CAfile', 'write smtp_tls_CAfile, one file; certificates of clients are not checked'],
  ['smtpd_tls_loglevel smtp_tls_note_starttls_offer debug_peer_level debug_peer_list debugger_command', NO_LOG_LEVEL],
  [
    'smtp_tls_protocols smtp_tls_mandatory_protocols smtp_tls_ciphers smtp_tls_mandatory_ciphers smtpd_tls_protocols smtpd_tls_mandatory_protocols smtpd_tls_ciphers smtpd_tls_mandatory_ciphers smtpd_tls_eecdh_grade smtpd_tls_dh1024_param_file',
    TLS_VERSIONS,
  ],
  ['smtp_tls_session_cache_database smtpd_tls_session_cache_database smtp_tls_session_cache_timeout', IN_MEMORY],
  ['smtpd_use_tls', 'write smtpd_tls_security_level = "may"'],
  ['smtpd_enforce_tls', 'write smtpd_tls_security_level = "encrypt"'],
  ['smtpd_tls_wrappermode', 'write a [[smtpd]] table with tls = "wrapper"'],
  ['smtp_tls_chain_files', 'write smtp_tls_cert_file and smtp_tls_key_file'],
  ['smtpd_tls_auth_only smtpd_tls_received_header smtputf8_enable smtp_always_send_ehlo', BUILT_IN],
  ['enable_long_queue_ids', 'remove it: queue ids are always long'],
  [
    'smtpd_tls_ask_ccert smtpd_tls_req_ccert relay_clientcerts smtpd_tls_fingerprint_digest',
    'remove it: deferd does not ask clients for certificates; give them logins, or name their networks in mynetworks',
  ],
  ['smtp_tls_fingerprint_digest', 'remove it: write the level secure with match=NAME, and the CA of the server into smtp_tls_CAfile'],
  [
    'smtpd_command_filter smtp_reply_filter smtp_delivery_status_filter default_delivery_status_filter',
    'remove it: commands, replies and outcomes are taken as they are',
  ],
  ['empty_address_recipient', 'remove it: notices that cannot be returned go to double_bounce_sender, which discards them'],
  ['smtpd_sasl_type smtpd_sasl_path smtpd_sasl_local_domain smtpd_sasl_security_options smtpd_sasl_authenticated_header', SASL_SERVER],
  ['inet_interfaces', 'write smtpd_listen = ["127.0.0.1:25"], addresses with ports'],
  ['mynetworks_style', 'write the networks into mynetworks'],
  ['mydestination', NO_LOCAL],
  ['local_recipient_maps local_transport mailbox_transport mailbox_command mailbox_size_limit home_mailbox mail_spool_directory', NO_LOCAL],
  ['alias_database', 'remove it, and write alias_maps = "texthash:/etc/aliases"'],
  ['luser_relay virtual_mailbox_domains virtual_mailbox_maps virtual_mailbox_base virtual_transport', NO_LOCAL],
  ['unknown_local_recipient_reject_code forward_path biff allow_percent_hack swap_bangpath', NO_LOCAL],
  ['virtual_maps', 'write virtual_alias_maps'],
  ['remote_header_rewrite_domain', 'remove it: header addresses of clients that are not local stay as they are'],
  ['relocated_maps', 'write [transport_maps] with "user@example.com" = "error:5.1.6 User has moved to new@example.net"'],
  ['content_filter smtpd_proxy_filter smtpd_milters non_smtpd_milters milter_default_action milter_protocol', NO_FILTER],
  ['receive_override_options', NO_FILTER],
  ['smtp_mime_header_checks smtp_nested_header_checks', 'remove it: smtp_header_checks apply to the header of the message only'],
  ['smtp_body_checks', 'write body_checks, which apply when mail is accepted'],
  ['lmtp_header_checks', 'write header_checks, which apply when mail is accepted'],
  [
    'virtual_alias_domains',
    'remove it: virtual_alias_maps apply to all recipients; clients may send to mynetworks and relay_domains as before',
  ],
  ['smtpd_reject_unlisted_recipient', 'remove it: recipients that relay_recipient_maps lacks are always refused'],
  ['smtpd_helo_restrictions smtpd_data_restrictions smtpd_end_of_data_restrictions', AT_RCPT],
  ['smtpd_delay_reject', 'remove it: all restrictions are applied at RCPT'],
  ['strict_rfc821_envelopes', 'remove it: addresses without <> are accepted'],
  ['relay_transport default_transport', ROUTES],
  ['smtp_destination_concurrency_limit relay_destination_concurrency_limit', 'write default_destination_concurrency_limit'],
  ['smtp_destination_recipient_limit relay_destination_recipient_limit', 'write default_destination_recipient_limit'],
  ['smtp_destination_rate_delay relay_destination_rate_delay', 'write default_destination_rate_delay'],
  ['smtp_connection_cache_destinations', 'remove it: smtp_connection_cache_on_demand keeps connections where mail follows'],
  ['fallback_relay', 'write smtp_fallback_relay'],
  ['maillog_file', 'write log_file'],
  ['syslog_facility maillog_file_rotate_suffix', 'remove it: the log is written to standard error, or to log_file'],
  [
    'compatibility_level mail_owner default_privs setgid_group',
    'remove it: the user of the service, or deferd start --user, owns the queue',
  ],
  ['readme_directory html_directory manpage_directory sample_directory data_directory command_directory daemon_directory', FOLDERS],
  ['meta_directory shlib_directory sendmail_path newaliases_path mailq_path', FOLDERS],
  ['parent_domain_matches_subdomains', 'remove it: deferd finds the mail of a destination by an index'],
]

const BY_NAME: ReadonlyMap<string, string> = new Map(
  REMEDIES.flatMap(([names, remedy]) => names.split(' ').map((name) => [name, remedy] as const)),
)

export const POSTFIX_ONLY: ReadonlySet<string> = new Set(BY_NAME.keys())

/** The problem of a parameter that only Postfix has; undefined for other names. */
export function postfixOnly(name: string): string | undefined {
  const remedy = BY_NAME.get(name) ?? (name.startsWith('postscreen_') ? 'deferd has no postscreen; remove it' : undefined)
  return remedy === undefined ? undefined : `deferd does not have Postfix’s parameter ${name}: ${remedy}`
}

const TABLE_TYPE =
  /^(?:proxy:|unionmap:|pipemap:)?(hash|btree|lmdb|cdb|dbm|sdbm|cidr|mysql|pgsql|sqlite|ldap|memcache|nis|static|tcp|socketmap|randmap|environ|fail|internal):/

/** Type of a lookup table of Postfix that deferd cannot read (DATABASE_README), such as `hash`; undefined for other text. */
export const foreignTableType = (text: string): string | undefined => TABLE_TYPE.exec(text.trim())?.[1]

/** Types that postmap makes from text files. */
const INDEXED: ReadonlySet<string> = new Set(['hash', 'btree', 'lmdb', 'cdb', 'dbm', 'sdbm'])

/** The problem of a table of a type that deferd does not read. */
export const foreignTable = (type: string): string =>
  `deferd does not read ${type}: tables; ${INDEXED.has(type) ? 'name the text file itself, without postmap: texthash:/PATH' : 'write its entries into a text file, and name that: texthash:/PATH'}`
