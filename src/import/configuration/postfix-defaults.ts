/** Defaults of Postfix 3.7 that an import needs (postconf -d). Pure. */

/** Defaults of parameters to which other parameters refer, and of parameters that deferd lacks or whose default in deferd differs. */
export const POSTFIX_DEFAULTS: Readonly<Record<string, string>> = {
  alias_maps: 'hash:/etc/aliases',
  append_dot_mydomain: '${{$compatibility_level} <level {1} ? {yes} : {no}}',
  compatibility_level: '0',
  config_directory: '/etc/postfix',
  data_directory: '/var/lib/postfix',
  default_database_type: 'hash',
  default_transport: 'smtp',
  disable_dns_lookups: 'no',
  fallback_relay: '',
  inet_interfaces: 'all',
  inet_protocols: 'all',
  local_transport: 'local:$myhostname',
  mail_name: 'Postfix',
  maximal_queue_lifetime: '5d',
  mydestination: '$myhostname, localhost.$mydomain, localhost',
  myorigin: '$myhostname',
  queue_directory: '/var/spool/postfix',
  relay_domains: '${{$compatibility_level} <level {2} ? {$mydestination} : {}}',
  relay_transport: 'relay',
  relayhost: '',
  smtp_fallback_relay: '$fallback_relay',
  smtp_sasl_auth_enable: 'no',
  smtp_tls_security_level: '',
  smtpd_peername_lookup: 'yes',
  smtpd_relay_restrictions:
    '${{$compatibility_level} <level {1} ? {} : {permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination}}',
  smtpd_sasl_auth_enable: 'no',
  smtpd_tls_key_file: '$smtpd_tls_cert_file',
  smtpd_tls_security_level: '',
  smtpd_tls_wrappermode: 'no',
  smtp_tls_key_file: '$smtp_tls_cert_file',
  virtual_alias_maps: '$virtual_maps',
}

/** Parameters that the import writes even when main.cf does not set them, because deferd's default differs from Postfix's. */
export const WRITTEN_DEFAULTS = [
  'mydomain',
  'mynetworks',
  'mydestination',
  'smtpd_relay_restrictions',
  'alias_maps',
  'append_dot_mydomain',
  'relay_domains',
  'smtp_tls_security_level',
  'smtpd_peername_lookup',
  'maximal_queue_lifetime',
] as const
