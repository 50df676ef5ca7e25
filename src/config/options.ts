/**
 * Every parameter in one table: its kind, its default as one would write it, whether a `[destination."…"]` table may
 * override it, and one sentence of documentation. The Config type, the check, `deferd config` and docs/configuration.md
 * all come from here. Names and defaults are Postfix's wherever Postfix has the parameter (postconf(5)).
 */
import * as is from './values.ts'

interface Option<T, Local extends boolean = boolean> {
  readonly kind: is.Kind<T>
  /** As written in a configuration file. */
  readonly default: string
  readonly about: string
  /** May stand in a `[destination."…"]` table, there without a leading `default_`. */
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
  // who we are and where things are
  myhostname: option(is.text, '', 'Our name in greetings, trace headers and notices; the name of this machine when empty.'),
  myorigin: option(is.text, '$myhostname', 'The domain of MAILER-DAEMON and of local senders without one.'),
  mail_name: option(is.text, 'Deferd', 'The name of the mail system in the greeting, in Received lines and in X-…-Queue-ID fields.'),
  queue_directory: option(is.text, './deferd-queue', 'The folder of the queue: one SQLite file and what belongs to it.'),
  smtpd_listen: option(is.list, '127.0.0.1:2525', 'Addresses and ports on which mail is taken.'),
  http_listen: option(is.text, '', 'Address and port of /metrics and /healthz; off when empty.'),
  log_format: option(is.oneOf('postfix', 'json'), 'postfix', 'The shape of log lines on standard error.'),
  syslog_name: option(is.text, 'deferd', 'The program name in Postfix-shaped log lines.'),

  // who may send what
  mynetworks: option(is.list, '127.0.0.0/8, [::1]/128', 'Clients that may relay anywhere.'),
  relay_domains: option(is.list, '', 'Domains (and their subdomains) that everybody may send to.'),
  message_size_limit: option(is.size, '10240000', 'The largest message, in bytes.'),
  smtpd_recipient_limit: option(is.count(1), '1000', 'The most recipients in one SMTP transaction.'),
  smtpd_recipient_overshoot_limit: option(is.count(), '1000', 'Recipients beyond the limit that are not counted as errors.'),
  hopcount_limit: option(is.count(1), '50', 'The most Received lines, ours included; at this count a message is taken for a loop.'),
  header_size_limit: option(is.size, '102400', 'The largest header of a message, in bytes.'),
  queue_minfree: option(is.size, '0', 'Free bytes below which mail is refused, beside 1.5 × message_size_limit.'),
  smtpd_banner: option(is.text, '$myhostname ESMTP $mail_name', 'The greeting after 220.'),
  smtpd_timeout: option(is.duration, '300s', 'How long a client may keep silent.'),
  smtpd_min_data_rate: option(is.count(1), '500', 'Bytes a second that extend the time a client has for one command or message.'),
  smtpd_soft_error_limit: option(is.count(1), '10', 'Errors after which every reply is delayed.'),
  smtpd_hard_error_limit: option(is.count(1), '20', 'Errors after which the client is shown out.'),
  smtpd_error_sleep_time: option(is.duration, '1s', 'The delay of replies after too many errors.'),
  smtpd_junk_command_limit: option(
    is.count(),
    '100',
    'Commands that lead to no mail (HELO, RSET, NOOP, VRFY) before each one is an error.',
  ),
  smtpd_forbid_bare_newline: option(
    is.oneOf('normalize', 'reject'),
    'normalize',
    'What becomes of lines that end in LF alone: they are mended, or the client is refused. Only CRLF.CRLF ends a message.',
  ),
  smtpd_forbid_bare_newline_exclusions: option(is.list, '', 'Clients whose LF.LF ends a message too.'),
  smtpd_forbid_unauth_pipelining: option(is.flag, 'yes', 'Refuse clients that talk when it is not their turn.'),
  message_drop_headers: option(is.list, 'bcc, content-length, resent-bcc, return-path', 'Fields that are removed from every header.'),
  smtpd_tls_security_level: option(
    is.oneOf('none', 'may', 'encrypt'),
    'none',
    'Whether the listeners of smtpd_listen offer STARTTLS, or insist on it before mail.',
  ),
  smtpd_tls_cert_file: option(is.text, '', 'Our certificate and its chain (PEM).'),
  smtpd_tls_key_file: option(is.text, '$smtpd_tls_cert_file', 'The key of our certificate (PEM).'),
  smtpd_sasl_auth_enable: option(is.flag, 'no', 'Let clients of smtpd_listen log in, over TLS only; who has logged in may relay anywhere.'),
  smtpd_sasl_users_file: option(is.text, '', 'Who may log in, as written by `deferd user`.'),
  smtpd: option(is.listeners, '', '[[smtpd]] tables: further listeners, each with its address, tls and auth.'),
  anvil_rate_time_unit: option(is.duration, '60s', 'The time over which the rates of clients are measured.'),
  smtpd_client_connection_rate_limit: option(is.count(), '0', 'The most connections of one client in that time; 0 for no limit.'),
  smtpd_client_message_rate_limit: option(is.count(), '0', 'The most messages of one client in that time; 0 for no limit.'),
  smtpd_client_recipient_rate_limit: option(is.count(), '0', 'The most recipients of one client in that time; 0 for no limit.'),
  smtpd_client_new_tls_session_rate_limit: option(is.count(), '0', 'The most TLS handshakes of one client in that time; 0 for no limit.'),
  smtpd_client_auth_rate_limit: option(is.count(), '0', 'The most AUTH commands of one client in that time; 0 for no limit.'),
  smtpd_client_event_limit_exceptions: option(is.list, '$mynetworks', 'Clients that these limits do not hold for.'),
  smtpd_peername_lookup: option(is.flag, 'no', 'Look up the names of clients for the log and the Received line.'),
  smtpd_client_connection_count_limit: option(
    is.count(),
    '50',
    'The most connections at once of one client outside mynetworks; 0 for no limit.',
  ),
  smtpd_process_limit: option(
    is.count(),
    '1000',
    'The most connections of all clients at once; the one that was silent longest, for 10 s at least, makes room; 0 for no limit.',
  ),

  // where mail goes
  relayhost: option(
    is.list,
    '',
    'Where all mail goes: [host] or [host]:port for no MX lookup, domain for one; several are tried in order.',
  ),
  smtp_fallback_relay: option(is.list, '', 'Next hops for mail whose own cannot be found or reached.'),
  smtp_tcp_port: option(is.count(1, 65535), '25', 'The port of mail exchangers.'),
  smtp_line_length_limit: perDestination(
    is.count(),
    '998',
    'Octets of a line that is sent; the rest goes on in a new line after a blank; 0 for no limit.',
  ),
  smtp_mx_address_limit: perDestination(is.count(), '5', 'The most addresses tried in one attempt; 0 for no limit.'),
  smtp_mx_session_limit: perDestination(is.count(), '2', 'The most sessions in one attempt that got past the greeting; 0 for no limit.'),
  smtp_randomize_addresses: option(is.flag, 'yes', 'Try exchangers of equal preference in random order.'),
  smtp_address_preference: option(is.oneOf('any', 'ipv4', 'ipv6'), 'any', 'The address family to try first among equal preferences.'),
  smtp_balance_inet_protocols: option(is.flag, 'yes', 'Let neither address family crowd the other out of smtp_mx_address_limit.'),
  smtp_defer_if_no_mx_address_found: option(is.flag, 'no', 'Defer mail instead of returning it when no exchanger has an address.'),
  ignore_mx_lookup_error: option(is.flag, 'no', 'When the look-up of MX records fails, try the addresses of the domain itself.'),
  smtp_allow_private_addresses: option(
    is.flag,
    'no',
    'Follow DNS to loopback, private and link-local addresses too; next hops that are configured may always be there.',
  ),
  smtp_bind_address: perDestination(is.text, '', 'The IPv4 address that connections are made from; the system chooses when empty.'),
  smtp_bind_address6: perDestination(is.text, '', 'The same for IPv6.'),
  smtp_attempt_time_limit: perDestination(
    is.duration,
    '30m',
    'How long one attempt may take in all, before the time its content needs at 500 bytes a second.',
  ),
  smtp_skip_5xx_greeting: perDestination(is.flag, 'yes', 'Take a 5xx greeting for a passing trouble and try the next host.'),
  soft_bounce: option(
    is.flag,
    'no',
    'Keep mail in the queue that the far side refuses for good, and refuse nothing for good: for trying things out.',
  ),
  smtp_helo_name: option(is.text, '$myhostname', 'Our name in EHLO.'),
  smtp_connect_timeout: perDestination(is.duration, '30s', 'How long a connection may take to open.'),
  smtp_helo_timeout: perDestination(is.duration, '300s', 'How long the greeting and the reply to EHLO may take.'),
  smtp_starttls_timeout: perDestination(is.duration, '300s', 'How long STARTTLS and the handshake may take.'),
  smtp_mail_timeout: perDestination(is.duration, '300s', 'How long the reply to MAIL may take.'),
  smtp_rcpt_timeout: perDestination(is.duration, '300s', 'How long the reply to RCPT may take.'),
  smtp_data_init_timeout: perDestination(is.duration, '120s', 'How long the reply to DATA may take.'),
  smtp_data_xfer_timeout: perDestination(is.duration, '180s', 'How long the sending of content may stand still.'),
  smtp_data_done_timeout: perDestination(is.duration, '600s', 'How long the reply to the final dot may take.'),
  smtp_rset_timeout: perDestination(is.duration, '20s', 'How long the reply to RSET may take.'),
  smtp_quit_timeout: perDestination(is.duration, '300s', 'How long a connection lives after QUIT.'),
  smtp_tls_security_level: perDestination(
    is.oneOf('none', 'may', 'encrypt', 'verify', 'secure'),
    'may',
    'How much TLS mail must have: none, may (when it can be had), encrypt (always), verify and secure (with the right certificate).',
  ),
  smtp_tls_policy_maps: option(is.lines, '', 'Exceptions, one "NEXTHOP LEVEL [match=NAME:NAME]" each; as a list of texts.'),
  smtp_tls_CAfile: option(is.text, '', 'Certificates of the authorities to trust, in PEM; those of Node when empty.'),
  smtp_tls_cert_file: option(is.text, '', 'Our own certificate for hosts that ask for one, in PEM, with its chain.'),
  smtp_tls_key_file: option(is.text, '$smtp_tls_cert_file', 'The key of that certificate, in PEM.'),
  smtp_sasl_password_maps: option(is.text, '', 'A file of lines "NEXTHOP-OR-SENDER USER:PASSWORD" to log in with.'),
  smtp_sender_dependent_authentication: option(is.flag, 'no', 'Look for a password by sender address first.'),
  smtp_sasl_mechanism_filter: option(
    is.list,
    '',
    'The only mechanisms to log in with; any of PLAIN, LOGIN and CRAM-MD5 when empty. With XOAUTH2 the password is an access token.',
  ),
  smtp_sasl_security_options: option(is.list, 'noplaintext', 'noplaintext: no PLAIN, LOGIN or XOAUTH2 on a connection without TLS.'),
  smtp_sasl_auth_soft_bounce: perDestination(is.flag, 'yes', 'A refused login is a passing trouble.'),
  smtp_connection_cache_on_demand: perDestination(
    is.flag,
    'yes',
    'Keep a connection for the next delivery while deliveries follow each other closely.',
  ),
  smtp_connection_cache_time_limit: perDestination(is.duration, '2s', 'How long an idle connection is kept.'),
  smtp_connection_reuse_time_limit: perDestination(is.duration, '300s', 'How long a connection may be reused, from its opening.'),

  // when mail is tried
  minimal_backoff_time: perDestination(is.duration, '300s', 'The first wait, and the wait before a dead destination is probed.'),
  maximal_backoff_time: perDestination(is.duration, '4000s', 'The longest wait.'),
  maximal_queue_lifetime: perDestination(is.duration, '2d', 'How long mail is tried before it is returned.'),
  bounce_queue_lifetime: perDestination(is.duration, '$maximal_queue_lifetime', 'The same for mail from <>; never longer.'),
  retry_backoff: perDestination(is.text, 'doubling', 'The policy that spaces the attempts.'),
  retry_jitter: perDestination(is.fraction, '0', 'Spreads each wait w over [w, w·(1+j)].'),
  queue_run_delay: option(is.duration, '300s', 'How often the safety scan looks for due mail that was overlooked.'),

  // how much at once
  default_process_limit: option(is.count(1), '100', 'The most deliveries at once.'),
  default_delivery_slot_cost: option(
    is.count(),
    '5',
    'Deliveries of a big message that earn one for a small one that overtakes it; below 2: none does.',
  ),
  default_delivery_slot_loan: option(is.count(), '3', 'Slots a small message may use before they are earned.'),
  default_delivery_slot_discount: option(is.count(0, 100), '50', 'Percent of its need that a small message gets in advance.'),
  default_minimum_delivery_slots: option(is.count(), '3', 'The smallest message that can be overtaken, in slots.'),
  qmgr_message_active_limit: option(is.count(1), '20000', 'The most messages in the active queue.'),
  qmgr_message_recipient_limit: option(is.count(1), '20000', 'The most recipients in the active queue.'),
  initial_destination_concurrency: perDestination(is.count(1), '5', 'Deliveries at once to a destination nothing is known of.'),
  default_destination_concurrency_limit: perDestination(
    is.count(),
    '20',
    'The most deliveries at once to one destination; 0 for no limit.',
  ),
  default_destination_recipient_limit: perDestination(is.count(), '50', 'The most recipients in one delivery; 0 for no limit.'),
  default_destination_rate_delay: perDestination(
    is.duration,
    '0',
    'A pause after each delivery to a destination, one at a time; 0 for none.',
  ),
  default_transport_rate_delay: option(
    is.duration,
    '0',
    'A pause after each delivery of a transport, wherever it goes, one at a time; 0 for none.',
  ),
  default_destination_message_rate_limit: perDestination(
    is.count(),
    '0',
    'Deliveries begun per minute to one destination, evenly spaced; 0 for no limit.',
  ),
  default_destination_concurrency_control: perDestination(
    is.oneOf('postfix', 'reno', 'tahoe'),
    'postfix',
    'How the window of a destination moves: Postfix’s feedback, or TCP’s congestion control.',
  ),
  default_destination_concurrency_positive_feedback: perDestination(
    is.feedback,
    '1/concurrency',
    'How much the window grows with each answered delivery.',
  ),
  default_destination_concurrency_negative_feedback: perDestination(
    is.feedback,
    '1/concurrency',
    'How much the window shrinks with each failed delivery.',
  ),
  default_destination_concurrency_failed_cohort_limit: perDestination(
    is.count(),
    '1',
    'Windows full of failures after which a destination is dead; 0 for never.',
  ),

  // notices and history
  delay_warning_time: option(is.durations, '0', 'Ages at which the sender is told that mail is still waiting; 0 for never.'),
  bounce_size_limit: option(is.size, '50000', 'The largest message that a notice returns whole; above it only its header is returned.'),
  bounce_template_file: option(is.text, '', 'A file with texts for notices, in the form of bounce(5); built-in texts when empty.'),
  confirm_delay_cleared: option(is.flag, 'no', 'Tell the sender when mail arrives after a delay warning.'),
  enable_threaded_bounces: option(
    is.flag,
    'no',
    'Let notices refer to the Message-ID of the original, so that mail readers show them together.',
  ),
  notify_classes: option(
    is.words('bounce', '2bounce', 'delay', 'data', 'policy', 'protocol', 'resource', 'software'),
    'resource, software',
    'What the postmaster is told: bounce and delay for copies of notices, 2bounce for notices that cannot be delivered themselves.',
  ),
  double_bounce_sender: option(
    is.text,
    'double-bounce',
    'The local part of the sender of mail to the postmaster; nobody is told when that fails.',
  ),
  bounce_notice_recipient: option(is.text, 'postmaster', 'Who gets copies of failure notices.'),
  '2bounce_notice_recipient': option(is.text, 'postmaster', 'Who gets notices that cannot be delivered.'),
  delay_notice_recipient: option(is.text, 'postmaster', 'Who gets copies of delay warnings.'),
  history_retention: option(is.duration, '3d', 'How long a message is remembered after it has left.'),
  history_limit: option(is.count(), '1000000', 'The most messages that are remembered after they have left.'),
  trash_lifetime: option(is.duration, '1d', 'How long deleted mail can be restored.'),
} as const satisfies Record<string, Option<unknown>>

type Options = typeof OPTIONS
export type OptionName = keyof Options
type ValueOf<O> = O extends Option<infer T> ? T : never
type PerDestinationName = { [K in OptionName]: Options[K]['perDestination'] extends true ? K : never }[OptionName]
type WithoutDefault<K extends string> = K extends `default_${infer Rest}` ? Rest : K

/** What a `[destination."…"]` table may set. */
export type DestinationSettings = { readonly [K in PerDestinationName as WithoutDefault<K>]?: ValueOf<Options[K]> | undefined }

/** The configuration, read and checked once; all names as in the file. Times in ms, sizes in bytes. */
export type Config = { readonly [K in OptionName]: ValueOf<Options[K]> } & {
  /** Recipient domain, `.parent` or `*` → `transport:nexthop`. */
  readonly transport_maps: ReadonlyMap<string, string>
  /** Domain, `.parent` or next hop → what differs there. */
  readonly destination: ReadonlyMap<string, DestinationSettings>
}
