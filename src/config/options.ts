/**
 * Table of all parameters: kind, default in the syntax of the file, whether a `[destination."…"]` table may override it, and one
 * sentence of documentation. The Config type, the validation, `deferd config` and docs/configuration.md are derived from this
 * table. Names and defaults are Postfix's where Postfix has the parameter (postconf(5)).
 */
import { tables } from './lookup-tables.ts'
import * as is from './values.ts'

const ADDRESS_CLASSES = ['envelope_sender', 'envelope_recipient', 'header_sender', 'header_recipient'] as const

interface Option<T, Local extends boolean = boolean> {
  readonly kind: is.Kind<T>
  /** Default in the syntax of the configuration file. */
  readonly default: string
  readonly about: string
  /** True when a `[destination."…"]` table may set the parameter; the name has no `default_` prefix there. */
  readonly perDestination: Local
}

const option = <T>(kind: is.Kind<T>, byDefault: string, about: string): Option<T, false> => ({
  kind,
  default: byDefault,
  about,
  perDestination: false,
})
const perDestination = <T>(kind: is.Kind<T>, byDefault: string, about: string): Option<T, true> => ({
  kind,
  default: byDefault,
  about,
  perDestination: true,
})

export const OPTIONS = {
  // names, files, ports
  myhostname: option(is.text, '', 'Host name in greetings, Received lines and notices; the name of the machine when empty.'),
  myorigin: option(is.text, '$myhostname', 'Domain of MAILER-DAEMON and of local senders without a domain.'),
  mydomain: option(is.text, '', 'Parent of host names without a dot; myhostname without its first part when empty.'),
  append_at_myorigin: option(is.flag, 'yes', 'Complete header addresses without a domain with @$myorigin, in local mail.'),
  append_dot_mydomain: option(is.flag, 'no', 'Complete host names without a dot in header addresses with .$mydomain, in local mail.'),
  local_header_rewrite_clients: option(
    is.words('permit_mynetworks', 'permit_sasl_authenticated'),
    'permit_mynetworks, permit_sasl_authenticated',
    'Clients whose mail is local: missing Date, From and Message-Id fields are added, and header addresses are completed.',
  ),
  mail_name: option(is.text, 'Deferd', 'Name of the mail system in the greeting, in Received lines and in X-…-Queue-ID fields.'),
  queue_directory: option(
    is.text,
    './deferd-queue',
    'Folder of the queue: the SQLite file, the control socket, the maildrop and the lock.',
  ),
  smtpd_listen: option(is.list, '127.0.0.1:2525', 'Addresses and ports of the SMTP server.'),
  inet_protocols: option(
    is.families,
    'all',
    'Internet protocols of listeners and of deliveries: ipv4, ipv6, or all for both; open listeners change at a restart.',
  ),
  http_listen: option(is.text, '', 'Address and port of /metrics and /healthz; off when empty.'),
  log_format: option(is.oneOf('postfix', 'json'), 'postfix', 'Format of the log: Postfix’s lines, or one JSON object per line.'),
  log_file: option(is.text, '', 'File of the log, instead of standard error; SIGHUP opens it again.'),
  syslog_name: option(is.text, 'deferd', 'Program name in log lines of the format postfix, before the slash.'),

  // receiving mail
  mynetworks: option(is.list, '127.0.0.0/8, [::1]/128', 'Networks of clients that may relay to any domain.'),
  relay_domains: option(is.list, '', 'Domains, with their subdomains, that all clients may send to.'),
  message_size_limit: option(is.size, '10240000', 'Maximum size of a message, in bytes.'),
  smtpd_recipient_limit: option(is.count(1), '1000', 'Maximum number of recipients in one SMTP transaction.'),
  smtpd_recipient_overshoot_limit: option(
    is.count(),
    '1000',
    'Recipients above smtpd_recipient_limit that are refused without counting as errors.',
  ),
  hopcount_limit: option(is.count(1), '50', 'Number of Received lines, the own one included, at which a message is rejected as a loop.'),
  header_size_limit: option(
    is.size,
    '102400',
    'Maximum size of a header field, in bytes; the rest of a longer one is removed. Notices return at most so much of a header.',
  ),
  queue_minfree: option(is.size, '0', 'Free disk space in bytes below which mail is refused; at least 1.5 × message_size_limit.'),
  smtpd_banner: option(is.text, '$myhostname ESMTP $mail_name', 'Text after 220 in the greeting.'),
  smtpd_timeout: option(
    is.duration,
    '300s',
    'Time limit for one command or message of a client; received bytes extend it (smtpd_min_data_rate).',
  ),
  smtpd_min_data_rate: option(
    is.count(1),
    '500',
    'Minimum data rate in bytes per second: received bytes extend smtpd_timeout at this rate.',
  ),
  smtpd_soft_error_limit: option(is.count(1), '10', 'Errors of a client after which each reply is delayed by smtpd_error_sleep_time.'),
  smtpd_hard_error_limit: option(is.count(1), '20', 'Errors of a client after which it is disconnected.'),
  smtpd_error_sleep_time: option(is.duration, '1s', 'Delay of replies above smtpd_soft_error_limit.'),
  smtpd_junk_command_limit: option(
    is.count(),
    '100',
    'Commands without mail (HELO, RSET, NOOP, VRFY, ETRN) above which each one counts as an error.',
  ),
  disable_vrfy_command: option(is.flag, 'no', 'Refuse VRFY, and do not announce it.'),
  smtpd_discard_ehlo_keywords: option(
    is.words(...is.EHLO_KEYWORDS),
    '',
    'Extensions that EHLO does not announce, and that are refused where a client uses them all the same.',
  ),
  fast_flush_domains: option(is.list, '$relay_domains', 'Domains, with their subdomains, whose mail clients may flush with ETRN.'),
  smtpd_etrn_restrictions: option(
    is.words('permit_mynetworks', 'permit_sasl_authenticated', 'permit', 'reject'),
    '',
    'Clients that may use ETRN; the first restriction that applies decides, and all clients may when none does.',
  ),
  smtpd_forbid_bare_newline: option(
    is.oneOf('normalize', 'reject'),
    'normalize',
    'Lines that end in LF without CR: normalize makes them CRLF, reject refuses the message. Only CRLF.CRLF ends a message.',
  ),
  smtpd_forbid_bare_newline_exclusions: option(is.list, '', 'Networks of clients whose LF.LF ends a message too.'),
  smtpd_forbid_unauth_pipelining: option(
    is.flag,
    'yes',
    'Refuse clients that send before the greeting, or pipeline where RFC 2920 does not allow it.',
  ),
  message_drop_headers: option(is.list, 'bcc, content-length, resent-bcc, return-path', 'Header fields that are removed from all mail.'),
  smtpd_tls_security_level: option(
    is.oneOf('none', 'may', 'encrypt'),
    'none',
    'STARTTLS on smtpd_listen: not offered (none), offered (may), or required before MAIL (encrypt).',
  ),
  smtpd_tls_cert_file: option(is.text, '', 'Server certificate with its chain (PEM).'),
  smtpd_tls_key_file: option(is.text, '$smtpd_tls_cert_file', 'Private key of the server certificate (PEM).'),
  smtpd_sasl_auth_enable: option(
    is.flag,
    'no',
    'Offer AUTH on smtpd_listen, over TLS only; authenticated clients may relay to any domain.',
  ),
  smtpd_sasl_users_file: option(is.text, '', 'File of SMTP users, as written by `deferd user`.'),
  smtpd_upstream_proxy_protocol: option(
    is.proxyProtocol,
    '',
    'haproxy: each connection to smtpd_listen begins with a header of the PROXY protocol (1 or 2), whose client address counts.',
  ),
  smtpd_upstream_proxy_timeout: option(is.duration, '5s', 'Time limit for the header of the PROXY protocol.'),
  smtpd_authorized_xclient_hosts: option(
    is.list,
    '',
    'Networks of clients that may name the client of their mail by XCLIENT; limits of clients do not apply to them.',
  ),
  smtpd_authorized_xforward_hosts: option(
    is.list,
    '',
    'Networks of clients that may describe the origin of their mail by XFORWARD, for the log.',
  ),
  smtpd: option(is.listeners, '', '[[smtpd]] tables: further listeners, each with address, tls, auth and upstream_proxy_protocol.'),
  anvil_rate_time_unit: option(is.duration, '60s', 'Period of the rate limits of clients.'),
  smtpd_client_connection_rate_limit: option(is.count(), '0', 'Maximum connections of one client in anvil_rate_time_unit; 0 for no limit.'),
  smtpd_client_message_rate_limit: option(is.count(), '0', 'Maximum messages of one client in anvil_rate_time_unit; 0 for no limit.'),
  smtpd_client_recipient_rate_limit: option(is.count(), '0', 'Maximum recipients of one client in anvil_rate_time_unit; 0 for no limit.'),
  smtpd_client_new_tls_session_rate_limit: option(
    is.count(),
    '0',
    'Maximum TLS handshakes of one client in anvil_rate_time_unit; 0 for no limit.',
  ),
  smtpd_client_auth_rate_limit: option(is.count(), '0', 'Maximum AUTH commands of one client in anvil_rate_time_unit; 0 for no limit.'),
  smtpd_client_event_limit_exceptions: option(
    is.list,
    '$mynetworks',
    'Networks of clients without rate limits and without smtpd_client_connection_count_limit.',
  ),
  smtpd_peername_lookup: option(is.flag, 'no', 'Look up the names of clients for the log and the Received line.'),
  smtpd_client_connection_count_limit: option(is.count(), '50', 'Maximum concurrent connections of one client; 0 for no limit.'),
  smtpd_process_limit: option(
    is.count(),
    '1000',
    'Maximum concurrent connections of all clients; above it the one that is idle longest (10 s at least) is closed, otherwise the new one is refused; 0 for no limit.',
  ),

  // address rewriting
  recipient_delimiter: option(
    is.text,
    '',
    'Characters before the extension of a local part: + makes ann+news an address of ann. None when empty.',
  ),
  propagate_unmatched_extensions: option(
    is.words('canonical', 'virtual', 'alias', 'forward', 'include', 'generic'),
    'canonical, virtual',
    'Lookups that add an address extension without a key of its own to the result.',
  ),
  canonical_maps: option(tables, '', 'Lookup tables that map addresses of senders and recipients, see docs/rewriting.md.'),
  canonical_classes: option(is.words(...ADDRESS_CLASSES), ADDRESS_CLASSES.join(', '), 'Addresses that canonical_maps apply to.'),
  sender_canonical_maps: option(tables, '', 'Lookup tables that map sender addresses, before canonical_maps.'),
  sender_canonical_classes: option(
    is.words('envelope_sender', 'header_sender'),
    'envelope_sender, header_sender',
    'Addresses that sender_canonical_maps apply to.',
  ),
  recipient_canonical_maps: option(tables, '', 'Lookup tables that map recipient addresses, before canonical_maps.'),
  recipient_canonical_classes: option(
    is.words('envelope_recipient', 'header_recipient'),
    'envelope_recipient, header_recipient',
    'Addresses that recipient_canonical_maps apply to.',
  ),
  masquerade_domains: option(is.list, '', 'Domains whose subdomains are removed from addresses; !domain keeps those below it.'),
  masquerade_classes: option(
    is.words(...ADDRESS_CLASSES),
    'envelope_sender, header_sender, header_recipient',
    'Addresses that masquerade_domains apply to.',
  ),
  masquerade_exceptions: option(is.list, '', 'Local parts whose addresses masquerade_domains leave.'),
  virtual_alias_maps: option(tables, '', 'Lookup tables that replace recipients by one or more addresses, after the maps above.'),
  alias_maps: option(
    tables,
    '',
    'Lookup tables that replace recipients at $myorigin, $myhostname and localhost, by local part; values are addresses or :include:/path.',
  ),
  virtual_alias_expansion_limit: option(is.count(1), '1000', 'Maximum addresses of one alias; above it mail is refused with 451.'),
  virtual_alias_recursion_limit: option(
    is.count(1),
    '1000',
    'Maximum lookups in succession for an alias; above it mail is refused with 451.',
  ),
  virtual_alias_address_length_limit: option(
    is.count(1),
    '1000',
    'Maximum bytes of an address of an alias; above it mail is refused with 451.',
  ),
  enable_original_recipient: option(
    is.flag,
    'yes',
    'Deliver a copy for each address of the sender that is rewritten to the same recipient; with no, one copy.',
  ),
  always_bcc: option(is.text, '', 'Address that gets a copy of all mail; none when empty.'),
  sender_bcc_maps: option(tables, '', 'Lookup tables of addresses that get a copy of mail from a sender.'),
  smtp_generic_maps: option(tables, '', 'Lookup tables that map addresses of mail to next hops by SMTP, when it is sent.'),
  recipient_bcc_maps: option(tables, '', 'Lookup tables of addresses that get a copy of mail to a recipient.'),

  // routing and delivery
  relayhost: option(
    is.list,
    '',
    'Next hops of all mail, tried in order: [host] or [host]:port without MX lookup, or a domain; MX of the recipient domain when empty.',
  ),
  sender_dependent_relayhost_maps: option(
    tables,
    '',
    'Lookup tables of relayhosts by sender: user@domain, @domain, or <> for the null sender; DUNNO for relayhost. Overruled by transport_maps.',
  ),
  sender_dependent_default_transport_maps: option(
    tables,
    '',
    'Lookup tables of transport:nexthop by sender, with the same keys, for mail without an entry in transport_maps that is not to relay_domains.',
  ),
  proxy_interfaces: option(
    is.list,
    '',
    'Addresses of proxies or NAT boxes that forward mail to this relay: an MX record that names one of them names this relay.',
  ),
  smtp_fallback_relay: option(is.list, '', 'Next hops of mail whose own next hop cannot be found or reached.'),
  smtp_tcp_port: option(is.count(1, 65535), '25', 'Port of mail exchangers.'),
  smtp_line_length_limit: perDestination(
    is.count(),
    '998',
    'Maximum bytes of a line that is sent; longer lines are split, continued after a space; 0 for no limit.',
  ),
  smtp_discard_ehlo_keywords: perDestination(
    is.words(...is.EHLO_KEYWORDS),
    '',
    'Extensions of next hops that are not used: chunking sends content with DATA instead of BDAT.',
  ),
  smtp_mx_address_limit: perDestination(is.count(), '5', 'Maximum addresses tried in one attempt; 0 for no limit.'),
  smtp_mx_session_limit: perDestination(is.count(), '2', 'Maximum sessions in one attempt that got past the greeting; 0 for no limit.'),
  smtp_randomize_addresses: option(is.flag, 'yes', 'Try mail exchangers of equal preference in random order.'),
  smtp_address_preference: option(is.oneOf('any', 'ipv4', 'ipv6'), 'any', 'Address family that is tried first among equal preferences.'),
  smtp_balance_inet_protocols: option(is.flag, 'yes', 'Share smtp_mx_address_limit between IPv4 and IPv6.'),
  smtp_host_lookup: option(
    is.someWords('dns', 'native'),
    'dns',
    'Ways to find the addresses of hosts: dns; native, the resolver of the machine with /etc/hosts; or both, dns first. MX records are always looked up in DNS.',
  ),
  smtp_defer_if_no_mx_address_found: option(is.flag, 'no', 'Defer mail instead of bouncing it when no mail exchanger has an address.'),
  ignore_mx_lookup_error: option(is.flag, 'no', 'Try the addresses of the domain when the MX lookup fails.'),
  smtp_allow_private_addresses: option(
    is.flag,
    'no',
    'Deliver to loopback, private and link-local addresses that DNS gives for a recipient domain; configured next hops may always have them.',
  ),
  smtp_bind_address: perDestination(is.text, '', 'Local IPv4 address of connections; chosen by the system when empty.'),
  smtp_bind_address6: perDestination(is.text, '', 'Local IPv6 address of connections; chosen by the system when empty.'),
  smtp_attempt_time_limit: perDestination(
    is.duration,
    '30m',
    'Time limit of one attempt, plus the time that the content needs at 500 bytes per second.',
  ),
  smtp_skip_5xx_greeting: perDestination(is.flag, 'yes', 'Treat a 5xx greeting as temporary and try the next host.'),
  soft_bounce: option(is.flag, 'no', 'Defer instead of bounce, and refuse with 4xx instead of 5xx: for tests of a new configuration.'),
  smtp_helo_name: option(is.text, '$myhostname', 'Host name in EHLO.'),
  smtp_connect_timeout: perDestination(is.duration, '30s', 'Time limit for opening a connection.'),
  smtp_helo_timeout: perDestination(is.duration, '300s', 'Time limit for the greeting and for the reply to EHLO.'),
  smtp_starttls_timeout: perDestination(is.duration, '300s', 'Time limit for STARTTLS and the TLS handshake.'),
  smtp_mail_timeout: perDestination(is.duration, '300s', 'Time limit for the reply to MAIL.'),
  smtp_rcpt_timeout: perDestination(is.duration, '300s', 'Time limit for the reply to RCPT.'),
  smtp_data_init_timeout: perDestination(is.duration, '120s', 'Time limit for the reply to DATA.'),
  smtp_data_xfer_timeout: perDestination(is.duration, '180s', 'Time limit without progress while content is sent.'),
  smtp_data_done_timeout: perDestination(is.duration, '600s', 'Time limit for the reply to the final dot.'),
  smtp_rset_timeout: perDestination(is.duration, '20s', 'Time limit for the reply to RSET.'),
  smtp_quit_timeout: perDestination(is.duration, '300s', 'Time limit of a connection after QUIT.'),
  smtp_tls_security_level: perDestination(
    is.oneOf('none', 'may', 'encrypt', 'verify', 'secure'),
    'may',
    'TLS to next hops: none, may (when offered), encrypt (required), verify and secure (required, with a matching certificate).',
  ),
  smtp_tls_wrappermode: perDestination(
    is.flag,
    'no',
    'Start TLS with the connection instead of by STARTTLS (SMTPS, port 465); needs a level of encrypt or above; not for LMTP.',
  ),
  smtp_tls_loglevel: option(
    is.count(0, 1),
    '0',
    'With 1, a log line for each TLS connection to a next hop, with trust, protocol and cipher.',
  ),
  smtp_tls_policy_maps: option(is.lines, '', 'Levels of single next hops, a list of "NEXTHOP LEVEL [match=NAME:NAME]".'),
  smtp_tls_CAfile: option(is.text, '', 'Trusted CA certificates (PEM); those of Node when empty.'),
  smtp_tls_cert_file: option(is.text, '', 'Client certificate with its chain (PEM), for servers that ask for one.'),
  smtp_tls_key_file: option(is.text, '$smtp_tls_cert_file', 'Private key of the client certificate (PEM).'),
  smtp_sasl_password_maps: option(is.text, '', 'File of credentials for AUTH, lines of "NEXTHOP-OR-SENDER USER:PASSWORD".'),
  smtp_sender_dependent_authentication: option(is.flag, 'no', 'Look up credentials by the sender and its @domain first.'),
  smtp_sasl_mechanism_filter: option(
    is.list,
    '',
    'Allowed mechanisms for AUTH; PLAIN, LOGIN and CRAM-MD5 when empty. With XOAUTH2 the password is an access token.',
  ),
  smtp_sasl_security_options: option(is.list, 'noplaintext', 'noplaintext: no PLAIN, LOGIN or XOAUTH2 without TLS.'),
  smtp_sasl_auth_soft_bounce: perDestination(
    is.flag,
    'yes',
    'Defer instead of bounce when a mail exchanger refuses AUTH; next hops of the configuration always defer.',
  ),
  smtp_connection_cache_on_demand: perDestination(
    is.flag,
    'yes',
    'Keep connections for the next delivery while deliveries to a destination follow each other closely.',
  ),
  smtp_connection_cache_time_limit: perDestination(is.duration, '2s', 'Time limit of an idle kept connection.'),
  smtp_connection_reuse_count_limit: perDestination(
    is.count(),
    '0',
    'Maximum times that a kept connection is used again, so that it carries one delivery more; 0 for no limit.',
  ),
  smtp_connection_reuse_time_limit: perDestination(is.duration, '300s', 'Time limit of reuse of a connection, from its opening.'),

  // retry schedule
  minimal_backoff_time: perDestination(
    is.duration,
    '300s',
    'First wait of a deferred recipient, and wait before the first probe of a dead destination.',
  ),
  maximal_backoff_time: perDestination(is.duration, '4000s', 'Maximum wait between attempts and between probes.'),
  maximal_queue_lifetime: perDestination(
    is.durationInDays,
    '2d',
    'Lifetime of mail: it expires after the last attempt at this age, and the sender gets a notice.',
  ),
  bounce_queue_lifetime: perDestination(
    is.durationInDays,
    '$maximal_queue_lifetime',
    'Lifetime of mail from <>; at most maximal_queue_lifetime.',
  ),
  retry_backoff: perDestination(is.text, 'doubling', 'Retry policy, see docs/backoff.md.'),
  retry_jitter: perDestination(is.fraction, '0', 'Fraction j that spreads each wait w over [w, w·(1+j)].'),
  queue_run_delay: option(is.duration, '300s', 'Interval of the safety scan for overlooked due mail.'),

  // concurrency and rates
  default_process_limit: option(is.count(1), '100', 'Maximum concurrent deliveries.'),
  default_delivery_slot_cost: option(
    is.count(),
    '5',
    'Deliveries of a large message per slot that it earns for small messages to preempt it; below 2 for no preemption.',
  ),
  default_delivery_slot_loan: option(is.count(), '3', 'Slots that a small message may use before they are earned.'),
  default_delivery_slot_discount: option(is.count(0, 100), '50', 'Percentage of the needed slots that a small message gets in advance.'),
  default_minimum_delivery_slots: option(is.count(), '3', 'Minimum size of a message that can be preempted, in slots.'),
  qmgr_message_active_limit: option(is.count(1), '20000', 'Maximum messages in the active queue.'),
  qmgr_message_recipient_limit: option(is.count(1), '20000', 'Maximum recipients in the active queue.'),
  initial_destination_concurrency: perDestination(is.count(1), '5', 'Initial concurrency window of a destination.'),
  default_destination_concurrency_limit: perDestination(
    is.count(),
    '20',
    'Maximum concurrent deliveries to one destination; 0 for no limit.',
  ),
  default_destination_recipient_limit: perDestination(is.count(), '50', 'Maximum recipients in one delivery; 0 for no limit.'),
  default_destination_rate_delay: perDestination(
    is.duration,
    '0',
    'Delay after each delivery to a destination, which then has one at a time; 0 for none.',
  ),
  default_transport_rate_delay: option(
    is.duration,
    '0',
    'Delay after each delivery of a transport to any destination, one at a time; 0 for none.',
  ),
  default_destination_message_rate_limit: perDestination(
    is.count(),
    '0',
    'Maximum deliveries per minute to one destination, evenly spaced; 0 for no limit.',
  ),
  default_destination_concurrency_control: perDestination(
    is.oneOf('postfix', 'reno', 'tahoe'),
    'postfix',
    'Control of the concurrency window of a destination: Postfix’s feedback, or TCP Reno or Tahoe.',
  ),
  default_destination_concurrency_positive_feedback: perDestination(
    is.feedback,
    '1/concurrency',
    'Growth of the concurrency window with each answered delivery.',
  ),
  default_destination_concurrency_negative_feedback: perDestination(
    is.feedback,
    '1/concurrency',
    'Reduction of the concurrency window with each failed delivery.',
  ),
  default_destination_concurrency_failed_cohort_limit: perDestination(
    is.count(),
    '1',
    'Failed pseudo-cohorts (windows full of failures) after which a destination is dead; 0 for never.',
  ),

  // notices and history
  delay_warning_time: option(is.durationsInHours, '0', 'Ages of mail at which the sender gets a delay warning; 0 for none.'),
  bounce_size_limit: option(
    is.size,
    '50000',
    'Maximum size of a message that a notice returns in full; of larger ones the header is returned.',
  ),
  bounce_template_file: option(is.text, '', 'File with templates of notices in the format of bounce(5); built-in templates when empty.'),
  confirm_delay_cleared: option(is.flag, 'no', 'Send a success notice when mail is delivered after a delay warning.'),
  enable_threaded_bounces: option(
    is.flag,
    'no',
    'Refer to the Message-ID of the original in notices, so that mail readers show them together.',
  ),
  notify_classes: option(
    is.words('bounce', '2bounce', 'delay', 'data', 'policy', 'protocol', 'resource', 'software'),
    'resource, software',
    'Notices to the postmaster: copies of failure notices (bounce) and delay warnings (delay), and undeliverable notices (2bounce).',
  ),
  double_bounce_sender: option(
    is.text,
    'double-bounce',
    'Local part of the sender of notices to the postmaster; no notice is sent for mail from it.',
  ),
  bounce_notice_recipient: option(is.text, 'postmaster', 'Recipient of copies of failure notices.'),
  '2bounce_notice_recipient': option(is.text, 'postmaster', 'Recipient of undeliverable notices.'),
  delay_notice_recipient: option(is.text, 'postmaster', 'Recipient of copies of delay warnings.'),
  history_retention: option(is.durationInDays, '3d', 'Time that the history keeps a message that left the queue.'),
  history_limit: option(is.count(), '1000000', 'Maximum messages in the history.'),
  trash_lifetime: option(is.durationInDays, '1d', 'Time that deleted mail stays in the trash and can be restored.'),
} as const satisfies Record<string, Option<unknown>>

type Options = typeof OPTIONS
/** Name of a parameter. */
export type OptionName = keyof Options
type ValueOf<O> = O extends Option<infer T> ? T : never
type PerDestinationName = { [K in OptionName]: Options[K]['perDestination'] extends true ? K : never }[OptionName]
type WithoutDefault<K extends string> = K extends `default_${infer Rest}` ? Rest : K

/** Parameters of a `[destination."…"]` table. */
export type DestinationSettings = { readonly [K in PerDestinationName as WithoutDefault<K>]?: ValueOf<Options[K]> | undefined }

/** The validated configuration, with the names of the file. Times are in ms, sizes in bytes. */
export type Config = { readonly [K in OptionName]: ValueOf<Options[K]> } & {
  /** Recipient domain, `.parent` or `*`, mapped to `transport:nexthop`. */
  readonly transport_maps: ReadonlyMap<string, string>
  /** Domain, `.parent` or next hop, mapped to the parameters of its table. */
  readonly destination: ReadonlyMap<string, DestinationSettings>
}
