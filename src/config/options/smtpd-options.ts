/** Parameters of receiving mail. */
import { shareParts } from '../values/tables/share-options.ts'
import { option, perListener } from '../values/option.ts'
import * as is from '../values/values.ts'

export const SMTPD_OPTIONS = {
  mynetworks: perListener(is.list, '127.0.0.0/8, [::1]/128', 'Networks of clients that may relay to any domain.'),
  relay_domains: option(is.list, '', 'Domains, with their subdomains, that all clients may send to.'),
  message_size_limit: perListener(is.size, '10240000', 'Maximum size of a message, in bytes.'),
  smtpd_recipient_limit: perListener(is.count(1), '1000', 'Maximum number of recipients in one SMTP transaction.'),
  smtpd_recipient_overshoot_limit: perListener(
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
  smtpd_banner: perListener(is.text, '$myhostname ESMTP $mail_name', 'Text after 220 in the greeting.'),
  smtpd_timeout: perListener(
    is.duration,
    '300s',
    'Time limit for one command or message of a client; received bytes extend it (smtpd_min_data_rate).',
  ),
  smtpd_min_data_rate: perListener(
    is.count(1),
    '500',
    'Minimum data rate in bytes per second: received bytes extend smtpd_timeout at this rate.',
  ),
  smtpd_soft_error_limit: perListener(is.count(1), '10', 'Errors of a client after which each reply is delayed by smtpd_error_sleep_time.'),
  smtpd_hard_error_limit: perListener(is.count(1), '20', 'Errors of a client after which it is disconnected.'),
  smtpd_error_sleep_time: perListener(is.duration, '1s', 'Delay of replies above smtpd_soft_error_limit.'),
  smtpd_junk_command_limit: perListener(
    is.count(),
    '100',
    'Commands without mail (HELO, RSET, NOOP, VRFY, ETRN) above which each one counts as an error.',
  ),
  smtpd_helo_required: perListener(is.flag, 'no', 'Refuse MAIL with 503 before HELO or EHLO.'),
  disable_vrfy_command: perListener(is.flag, 'no', 'Refuse VRFY, and do not announce it.'),
  smtpd_discard_ehlo_keywords: perListener(
    is.words(...is.EHLO_KEYWORDS),
    '',
    'Extensions that EHLO does not announce, and that are refused where a client uses them all the same.',
  ),
  smtpd_future_release_limit: option(
    is.durationWithinYear,
    '0',
    'Longest time for which clients may hold a message back (HOLDFOR and HOLDUNTIL of RFC 4865, not_before of the API and of sendmail); 0 refuses such mail.',
  ),
  smtpd_future_release_message_limit: option(
    is.count(),
    '0',
    'Maximum number of messages of one share (share_key) that are held back at the same time; more are refused with 552 5.7.16; 0 for no limit.',
  ),
  smtpd_deliver_by_enable: perListener(
    is.flag,
    'no',
    'Offer DELIVERBY (RFC 2852): a client names the time by which its mail is to be delivered (BY), and whether it is then returned.',
  ),
  smtpd_deliver_by_minimum: perListener(
    is.durationWithinYear,
    '60s',
    'Shortest time of BY with the mode R, which EHLO announces; 0 for none.',
  ),
  fast_flush_domains: option(is.list, '$relay_domains', 'Domains, with their subdomains, whose mail clients may flush with ETRN.'),
  smtpd_etrn_restrictions: perListener(
    is.words('permit_mynetworks', 'permit_sasl_authenticated', 'permit', 'reject'),
    '',
    'Clients that may use ETRN; the first restriction that applies decides, and all clients may when none does.',
  ),
  smtpd_forbid_bare_newline: perListener(
    is.oneOf('normalize', 'reject'),
    'normalize',
    'Lines that end in LF without CR: normalize makes them CRLF, reject refuses the message. Only CRLF.CRLF ends a message.',
  ),
  smtpd_forbid_bare_newline_exclusions: perListener(is.list, '', 'Networks of clients whose LF.LF ends a message too.'),
  smtpd_forbid_unauth_pipelining: perListener(
    is.flag,
    'yes',
    'Refuse clients that send before the greeting, or pipeline where RFC 2920 does not allow it.',
  ),
  message_drop_headers: option(is.list, 'bcc, content-length, resent-bcc, return-path', 'Header fields that are removed from all mail.'),
  smtpd_tls_security_level: perListener(
    is.oneOf('none', 'may', 'encrypt'),
    'none',
    'STARTTLS on smtpd_listen: not offered (none), offered (may), or required before MAIL (encrypt).',
  ),
  smtpd_tls_chain_files: perListener(
    is.list,
    '',
    'Files of keys, each followed by its certificate and chain (PEM), such as an RSA and an ECDSA key; instead of smtpd_tls_cert_file.',
  ),
  smtpd_tls_cert_file: perListener(is.text, '', 'Server certificate with its chain (PEM).'),
  smtpd_tls_key_file: perListener(is.text, '$smtpd_tls_cert_file', 'Private key of the server certificate (PEM).'),
  smtpd_sasl_auth_enable: perListener(
    is.flag,
    'no',
    'Offer AUTH on smtpd_listen, over TLS only; authenticated clients may relay to any domain.',
  ),
  smtpd_sasl_users_file: option(is.text, '', 'File of SMTP users, as written by `deferd user`.'),
  smtpd_upstream_proxy_protocol: perListener(
    is.proxyProtocol,
    '',
    'haproxy: each connection to smtpd_listen begins with a header of the PROXY protocol (1 or 2), whose client address counts.',
  ),
  smtpd_upstream_proxy_timeout: perListener(is.duration, '5s', 'Time limit for the header of the PROXY protocol.'),
  smtpd_authorized_xclient_hosts: perListener(
    is.list,
    '',
    'Networks of clients that may name the client of their mail by XCLIENT; limits of clients do not apply to them.',
  ),
  smtpd_authorized_xforward_hosts: perListener(
    is.list,
    '',
    'Networks of clients that may describe the origin of their mail by XFORWARD, for the log.',
  ),
  smtpd: option(
    is.listeners,
    '',
    '[[smtpd]] tables: further listeners, each with address, tls, auth, upstream_proxy_protocol, and parameters that differ there.',
  ),
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
  smtpd_peername_lookup: perListener(
    is.flag,
    'no',
    'Look up the names of clients, in /etc/hosts and DNS, for the log and the Received line.',
  ),
  smtpd_client_connection_count_limit: option(is.count(), '50', 'Maximum concurrent connections of one client; 0 for no limit.'),
  smtpd_process_limit: option(
    is.count(),
    '1000',
    'Maximum concurrent connections of all clients; above it the one that is idle longest (10 s at least) is closed, otherwise the new one is refused; 0 for no limit.',
  ),
} as const

/** Limits of the queue, at which mail is refused. */
export const QUEUE_LIMIT_OPTIONS = {
  queue_message_limit: option(is.count(), '0', 'Messages in the queue above which new mail is refused with 452; 0 for no limit.'),
  queue_size_limit: option(
    is.size,
    '0',
    'Size of all messages in the queue, in bytes, above which new mail is refused with 452; 0 for no limit.',
  ),
  queue_share_message_limit: option(
    is.amount(is.count()),
    '0',
    'Messages of one share (share_key) in the queue above which its mail is refused with 452; or a part of queue_message_limit, such as "20%"; 0 for no limit.',
  ),
  queue_share_size_limit: option(
    is.amount(is.size),
    '0',
    'Size of all messages of one share in the queue, in bytes, above which its mail is refused with 452; or a part of queue_size_limit, such as "20%"; 0 for no limit.',
  ),
  queue_limit_resume: option(is.percentage, '95%', 'Part of a limit of the queue at which it is open again after it has refused mail.'),
  queue_index_headers: option(
    is.flag,
    'yes',
    'Keep Subject and From of new mail, at most 200 characters of each, for searches and for users with the right content.',
  ),
  queue_limit_exceptions: option(
    is.list,
    '',
    'Clients whose mail the limits of the queue do not refuse, although it counts: networks, users of AUTH, and token:NAME for a token of the API.',
  ),
  share_key: option(
    shareParts,
    'login, token, sender_domain, client',
    'Shares of the queue: a message belongs to that of the first that it has: the user of AUTH, the token of the API, the domain of the sender, the address of the client. header:NAME is the value of a header field of clients that a class allows, which is removed from all mail.',
  ),
} as const
