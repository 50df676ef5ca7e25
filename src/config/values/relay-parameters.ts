/** Parameters of a configuration in code. Written by scripts/docs.ts from src/config/options.ts; do not edit. */

/** Value of a parameter, as in a configuration file. */
export type ParameterValue = string | number | boolean | readonly string[] | Readonly<Record<string, string>>

/** Parameters by their names; a text may refer to others, as `'$myhostname'`. */
export type RelayParameters = {
  /** Host name in greetings, Received lines and notices; the name of the machine when empty. */
  readonly myhostname?: ParameterValue
  /** Domain of MAILER-DAEMON and of local senders without a domain. Default: `$myhostname`. */
  readonly myorigin?: ParameterValue
  /** Parent of host names without a dot; myhostname without its first part when empty. */
  readonly mydomain?: ParameterValue
  /** Complete header addresses without a domain with @$myorigin, in local mail. Default: `yes`. */
  readonly append_at_myorigin?: ParameterValue
  /** Complete host names without a dot in header addresses with .$mydomain, in local mail. Default: `no`. */
  readonly append_dot_mydomain?: ParameterValue
  /** Clients whose mail is local: missing Date, From and Message-Id fields are added, and header addresses are completed. Default: `permit_mynetworks, permit_sasl_authenticated`. */
  readonly local_header_rewrite_clients?: ParameterValue
  /** Name of the mail system in the greeting, in Received lines and in X-…-Queue-ID fields. Default: `Deferd`. */
  readonly mail_name?: ParameterValue
  /** Folder of the queue: the SQLite file, the sockets, the maildrop and the lock. Default: `./deferd-queue`. */
  readonly queue_directory?: ParameterValue
  /** Addresses and ports of the SMTP server. Default: `127.0.0.1:2525`. */
  readonly smtpd_listen?: ParameterValue
  /** Addresses of DNS servers, as address or address:port; those of the system when empty; they change at a restart. */
  readonly dns_servers?: ParameterValue
  /** Internet protocols of listeners and of deliveries: ipv4, ipv6, or all for both; open listeners change at a restart. Default: `all`. */
  readonly inet_protocols?: ParameterValue
  /** Address and port of /metrics, /healthz, /livez and /readyz; off when empty. */
  readonly http_listen?: ParameterValue
  /** Format of the log: Postfix’s lines, or one JSON object per line. Default: `postfix`. */
  readonly log_format?: ParameterValue
  /** File of the log, instead of standard error; SIGHUP opens it again. */
  readonly log_file?: ParameterValue
  /** Addresses in the log and in events: as they are, as texts that stand for them (`erased-1f0c9a3b`), or their domains (`***@example.com`). Default: `full`. */
  readonly log_addresses?: ParameterValue
  /** Program name in log lines of the format postfix, before the slash. Default: `deferd`. */
  readonly syslog_name?: ParameterValue
  /** Address and port of the admin API and the page; off when empty. Beyond loopback it needs the others. */
  readonly admin_listen?: ParameterValue
  /** Names and addresses under which browsers and programs reach admin_listen, besides those of loopback. */
  readonly admin_hosts?: ParameterValue
  /** Networks of the proxies whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-User fields are believed. */
  readonly admin_proxies?: ParameterValue
  /** Certificate of admin_listen with its chain (PEM); without one the port has no TLS. */
  readonly admin_tls_cert_file?: ParameterValue
  /** Private key of the certificate of admin_listen (PEM). Default: `$admin_tls_cert_file`. */
  readonly admin_tls_key_file?: ParameterValue
  /** URL of the PostgreSQL database of the queue, `postgresql://user:password@host:port,host:port/name?sslmode=verify-full`: the first host that accepts writes is used; when empty, the queue is an SQLite file in queue_directory. */
  readonly queue_database?: ParameterValue
  /** Promise of a 250: the mail is on a synchronous standby too (replicated), or on the storage of the primary server (primary). Default: `replicated`. */
  readonly queue_database_durability?: ParameterValue
  /** Name of this node, for listings and logs; the name of the machine when empty. */
  readonly node_name?: ParameterValue
  /** Time without a sign of life after which other nodes take the mail of a node over; at least 2s. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `5s`. */
  readonly node_lease?: string | number
  /** Networks of clients that may relay to any domain. Default: `127.0.0.0/8, [::1]/128`. */
  readonly mynetworks?: ParameterValue
  /** Domains, with their subdomains, that all clients may send to. */
  readonly relay_domains?: ParameterValue
  /** Maximum size of a message, in bytes. A size such as `'10M'`, or a number of bytes. Default: `10240000`. */
  readonly message_size_limit?: string | number
  /** Maximum number of recipients in one SMTP transaction. Default: `1000`. */
  readonly smtpd_recipient_limit?: ParameterValue
  /** Recipients above smtpd_recipient_limit that are refused without counting as errors. Default: `1000`. */
  readonly smtpd_recipient_overshoot_limit?: ParameterValue
  /** Number of Received lines, the own one included, at which a message is rejected as a loop. Default: `50`. */
  readonly hopcount_limit?: ParameterValue
  /** Maximum size of a header field, in bytes; the rest of a longer one is removed. Notices return at most so much of a header. A size such as `'10M'`, or a number of bytes. Default: `102400`. */
  readonly header_size_limit?: string | number
  /** Free disk space in bytes below which mail is refused; at least 1.5 × message_size_limit. A size such as `'10M'`, or a number of bytes. Default: `0`. */
  readonly queue_minfree?: string | number
  /** Text after 220 in the greeting. Default: `$myhostname ESMTP $mail_name`. */
  readonly smtpd_banner?: ParameterValue
  /** Time limit for one command or message of a client; received bytes extend it (smtpd_min_data_rate). A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly smtpd_timeout?: string | number
  /** Minimum data rate in bytes per second: received bytes extend smtpd_timeout at this rate. Default: `500`. */
  readonly smtpd_min_data_rate?: ParameterValue
  /** Errors of a client after which each reply is delayed by smtpd_error_sleep_time. Default: `10`. */
  readonly smtpd_soft_error_limit?: ParameterValue
  /** Errors of a client after which it is disconnected. Default: `20`. */
  readonly smtpd_hard_error_limit?: ParameterValue
  /** Delay of replies above smtpd_soft_error_limit. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `1s`. */
  readonly smtpd_error_sleep_time?: string | number
  /** Commands without mail (HELO, RSET, NOOP, VRFY, ETRN) above which each one counts as an error. Default: `100`. */
  readonly smtpd_junk_command_limit?: ParameterValue
  /** Refuse MAIL with 503 before HELO or EHLO. Default: `no`. */
  readonly smtpd_helo_required?: ParameterValue
  /** Refuse VRFY, and do not announce it. Default: `no`. */
  readonly disable_vrfy_command?: ParameterValue
  /** Extensions that EHLO does not announce, and that are refused where a client uses them all the same. */
  readonly smtpd_discard_ehlo_keywords?: ParameterValue
  /** Longest time for which clients may hold a message back (HOLDFOR and HOLDUNTIL of RFC 4865, not_before of the API and of sendmail); 0 refuses such mail. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `0`. */
  readonly smtpd_future_release_limit?: string | number | readonly string[]
  /** Maximum number of messages of one share (share_key) that are held back at the same time; more are refused with 552 5.7.16; 0 for no limit. Default: `0`. */
  readonly smtpd_future_release_message_limit?: ParameterValue
  /** Offer DELIVERBY (RFC 2852): a client names the time by which its mail is to be delivered (BY), and whether it is then returned. Default: `no`. */
  readonly smtpd_deliver_by_enable?: ParameterValue
  /** Shortest time of BY with the mode R, which EHLO announces; 0 for none. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `60s`. */
  readonly smtpd_deliver_by_minimum?: string | number | readonly string[]
  /** Domains, with their subdomains, whose mail clients may flush with ETRN. Default: `$relay_domains`. */
  readonly fast_flush_domains?: ParameterValue
  /** Clients that may use ETRN; the first restriction that applies decides, and all clients may when none does. */
  readonly smtpd_etrn_restrictions?: ParameterValue
  /** Lines that end in LF without CR: normalize makes them CRLF, reject refuses the message. Only CRLF.CRLF ends a message. Default: `normalize`. */
  readonly smtpd_forbid_bare_newline?: ParameterValue
  /** Networks of clients whose LF.LF ends a message too. */
  readonly smtpd_forbid_bare_newline_exclusions?: ParameterValue
  /** Refuse clients that send before the greeting, or pipeline where RFC 2920 does not allow it. Default: `yes`. */
  readonly smtpd_forbid_unauth_pipelining?: ParameterValue
  /** Header fields that are removed from all mail. Default: `bcc, content-length, resent-bcc, return-path`. */
  readonly message_drop_headers?: ParameterValue
  /** STARTTLS on smtpd_listen: not offered (none), offered (may), or required before MAIL (encrypt). Default: `none`. */
  readonly smtpd_tls_security_level?: ParameterValue
  /** Files of keys, each followed by its certificate and chain (PEM), such as an RSA and an ECDSA key; instead of smtpd_tls_cert_file. */
  readonly smtpd_tls_chain_files?: ParameterValue
  /** Server certificate with its chain (PEM). */
  readonly smtpd_tls_cert_file?: ParameterValue
  /** Private key of the server certificate (PEM). Default: `$smtpd_tls_cert_file`. */
  readonly smtpd_tls_key_file?: ParameterValue
  /** Offer AUTH on smtpd_listen, over TLS only; authenticated clients may relay to any domain. Default: `no`. */
  readonly smtpd_sasl_auth_enable?: ParameterValue
  /** File of SMTP users, as written by `deferd user`. */
  readonly smtpd_sasl_users_file?: ParameterValue
  /** haproxy: each connection to smtpd_listen begins with a header of the PROXY protocol (1 or 2), whose client address counts. */
  readonly smtpd_upstream_proxy_protocol?: ParameterValue
  /** Time limit for the header of the PROXY protocol. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `5s`. */
  readonly smtpd_upstream_proxy_timeout?: string | number
  /** Networks of clients that may name the client of their mail by XCLIENT; limits of clients do not apply to them. */
  readonly smtpd_authorized_xclient_hosts?: ParameterValue
  /** Networks of clients that may describe the origin of their mail by XFORWARD, for the log. */
  readonly smtpd_authorized_xforward_hosts?: ParameterValue
  /** [[smtpd]] tables: further listeners, each with address, tls, auth, upstream_proxy_protocol, and parameters that differ there. */
  readonly smtpd?: ParameterValue
  /** Period of the rate limits of clients. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `60s`. */
  readonly anvil_rate_time_unit?: string | number
  /** Maximum connections of one client in anvil_rate_time_unit; 0 for no limit. Default: `0`. */
  readonly smtpd_client_connection_rate_limit?: ParameterValue
  /** Maximum messages of one client in anvil_rate_time_unit; 0 for no limit. Default: `0`. */
  readonly smtpd_client_message_rate_limit?: ParameterValue
  /** Maximum recipients of one client in anvil_rate_time_unit; 0 for no limit. Default: `0`. */
  readonly smtpd_client_recipient_rate_limit?: ParameterValue
  /** Maximum TLS handshakes of one client in anvil_rate_time_unit; 0 for no limit. Default: `0`. */
  readonly smtpd_client_new_tls_session_rate_limit?: ParameterValue
  /** Maximum AUTH commands of one client in anvil_rate_time_unit; 0 for no limit. Default: `0`. */
  readonly smtpd_client_auth_rate_limit?: ParameterValue
  /** Networks of clients without rate limits and without smtpd_client_connection_count_limit. Default: `$mynetworks`. */
  readonly smtpd_client_event_limit_exceptions?: ParameterValue
  /** Look up the names of clients, in /etc/hosts and DNS, for the log and the Received line. Default: `no`. */
  readonly smtpd_peername_lookup?: ParameterValue
  /** Maximum concurrent connections of one client; 0 for no limit. Default: `50`. */
  readonly smtpd_client_connection_count_limit?: ParameterValue
  /** Maximum concurrent connections of all clients; above it the one that is idle longest (10 s at least) is closed, otherwise the new one is refused; 0 for no limit. Default: `1000`. */
  readonly smtpd_process_limit?: ParameterValue
  /** Messages in the queue above which new mail is refused with 452; 0 for no limit. Default: `0`. */
  readonly queue_message_limit?: ParameterValue
  /** Size of all messages in the queue, in bytes, above which new mail is refused with 452; 0 for no limit. A size such as `'10M'`, or a number of bytes. Default: `0`. */
  readonly queue_size_limit?: string | number
  /** Messages of one share (share_key) in the queue above which its mail is refused with 452; or a part of queue_message_limit, such as "20%"; 0 for no limit. Default: `0`. */
  readonly queue_share_message_limit?: ParameterValue
  /** Size of all messages of one share in the queue, in bytes, above which its mail is refused with 452; or a part of queue_size_limit, such as "20%"; 0 for no limit. Default: `0`. */
  readonly queue_share_size_limit?: ParameterValue
  /** Part of a limit of the queue at which it is open again after it has refused mail. Default: `95%`. */
  readonly queue_limit_resume?: ParameterValue
  /** Keep Subject and From of new mail, at most 200 characters of each, for searches and for users with the right content. Default: `yes`. */
  readonly queue_index_headers?: ParameterValue
  /** Clients whose mail the limits of the queue do not refuse, although it counts: networks, users of AUTH, and token:NAME for a token of the API. */
  readonly queue_limit_exceptions?: ParameterValue
  /** Shares of the queue: a message belongs to that of the first that it has: the user of AUTH, the token of the API, the domain of the sender, the address of the client. header:NAME is the value of a header field of clients that a class allows, which is removed from all mail. Default: `login, token, sender_domain, client`. */
  readonly share_key?: ParameterValue
  /** Class of mail for which nothing else names one, and of mail whose class the configuration no longer has; without [class.NAME] tables there is none. Default: `normal`. */
  readonly default_class?: ParameterValue
  /** Lookup tables of classes by the user of AUTH, or token:NAME for a token of the API. */
  readonly sasl_class_maps?: ParameterValue
  /** Lookup tables of classes by the envelope sender: user@domain, @domain, or <> for the null sender; for mail without an entry in sasl_class_maps. */
  readonly sender_class_maps?: ParameterValue
  /** Lookup tables of classes by the address of the client (cidr: for networks), for mail without an entry in the two others. */
  readonly client_class_maps?: ParameterValue
  /** Header field that asks for a class and is removed from all mail; without [class.NAME] tables, and when empty, no field does. Default: `X-Deferd-Class`. */
  readonly class_header?: ParameterValue
  /** Share the deliveries of each class, and of all mail without classes, among the shares of the queue (share_key), so that none waits behind the backlog of another. Default: `no`. */
  readonly fair_share?: ParameterValue
  /** Lookup tables of weights of shares, from 1 to 1000, by the key of the share (share_key); a share without an entry has weight 1. */
  readonly share_weight_maps?: ParameterValue
  /** Restrictions by client, applied at each RCPT before the other lists, see docs/access.md. */
  readonly smtpd_client_restrictions?: ParameterValue
  /** Restrictions by sender, applied at each RCPT after smtpd_client_restrictions. */
  readonly smtpd_sender_restrictions?: ParameterValue
  /** Clients that may relay to any domain, applied at each RCPT after smtpd_sender_restrictions; it must refuse strangers. Default: `permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination`. */
  readonly smtpd_relay_restrictions?: ParameterValue
  /** Restrictions by recipient, applied at each RCPT to recipients that the client may send to. */
  readonly smtpd_recipient_restrictions?: ParameterValue
  /** Table of lists of restrictions by name, which lists and results of access tables may name: insiders_only = ["check_sender_access texthash:/PATH", "reject"]. */
  readonly smtpd_restriction_classes?: ParameterValue
  /** Lookup tables of all recipients in relay_domains, by address or @domain; others are refused with 550. Empty for no such list. */
  readonly relay_recipient_maps?: ParameterValue
  /** Lookup tables of the users that own a sender address, for reject_sender_login_mismatch and its variants. */
  readonly smtpd_sender_login_maps?: ParameterValue
  /** Time limit for a connection to a policy server, and for its answer. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `100s`. */
  readonly smtpd_policy_service_timeout?: string | number
  /** Action when a policy server does not answer twice. Default: `451 4.3.5 Server configuration problem`. */
  readonly smtpd_policy_service_default_action?: ParameterValue
  /** Maximum messages of one authenticated user in an hour, above which MAIL gets 450; 0 for no limit. Default: `0`. */
  readonly smtpd_user_hourly_message_limit?: ParameterValue
  /** Maximum messages of one envelope sender in an hour, above which MAIL gets 450; 0 for no limit. Default: `0`. */
  readonly smtpd_sender_hourly_message_limit?: ParameterValue
  /** The suppression list: refuse its addresses at RCPT (yes), log them and accept all the same (warn), or keep and use none (no). Default: `no`. */
  readonly suppression?: ParameterValue
  /** Refusals of an address as unknown, for one sender domain, that put it on the suppression list. Default: `2`. */
  readonly suppression_bounce_limit?: ParameterValue
  /** Least time between two of these refusals; earlier ones do not count. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `12h`. */
  readonly suppression_bounce_interval?: string | number
  /** Time within which these refusals are counted. A time such as `'5m'` or `'2d'`, or a number of days. Default: `14d`. */
  readonly suppression_bounce_window?: string | number
  /** Characters before the extension of a local part: + makes ann+news an address of ann. None when empty. */
  readonly recipient_delimiter?: ParameterValue
  /** Lookups that add an address extension without a key of its own to the result. Default: `canonical, virtual`. */
  readonly propagate_unmatched_extensions?: ParameterValue
  /** Lookup tables that map addresses of senders and recipients, see docs/rewriting.md. */
  readonly canonical_maps?: ParameterValue
  /** Addresses that canonical_maps apply to. Default: `envelope_sender, envelope_recipient, header_sender, header_recipient`. */
  readonly canonical_classes?: ParameterValue
  /** Lookup tables that map sender addresses, before canonical_maps. */
  readonly sender_canonical_maps?: ParameterValue
  /** Addresses that sender_canonical_maps apply to. Default: `envelope_sender, header_sender`. */
  readonly sender_canonical_classes?: ParameterValue
  /** Lookup tables that map recipient addresses, before canonical_maps. */
  readonly recipient_canonical_maps?: ParameterValue
  /** Addresses that recipient_canonical_maps apply to. Default: `envelope_recipient, header_recipient`. */
  readonly recipient_canonical_classes?: ParameterValue
  /** Domains whose subdomains are removed from addresses; !domain keeps those below it. */
  readonly masquerade_domains?: ParameterValue
  /** Addresses that masquerade_domains apply to. Default: `envelope_sender, header_sender, header_recipient`. */
  readonly masquerade_classes?: ParameterValue
  /** Local parts whose addresses masquerade_domains leave. */
  readonly masquerade_exceptions?: ParameterValue
  /** Lookup tables that replace recipients by one or more addresses, after the maps above. */
  readonly virtual_alias_maps?: ParameterValue
  /** Lookup tables that replace recipients at $myorigin, $myhostname and localhost, by local part; values are addresses or :include:/path. */
  readonly alias_maps?: ParameterValue
  /** Maximum addresses of one alias; above it mail is refused with 451. Default: `1000`. */
  readonly virtual_alias_expansion_limit?: ParameterValue
  /** Maximum lookups in succession for an alias; above it mail is refused with 451. Default: `1000`. */
  readonly virtual_alias_recursion_limit?: ParameterValue
  /** Maximum bytes of an address of an alias; above it mail is refused with 451. Default: `1000`. */
  readonly virtual_alias_address_length_limit?: ParameterValue
  /** Domains whose local parts alias_maps has (in Postfix, those of mydestination). Default: `$myorigin, $myhostname, localhost`. */
  readonly alias_domains?: ParameterValue
  /** Deliver a copy for each address of the sender that is rewritten to the same recipient; with no, one copy. Default: `yes`. */
  readonly enable_original_recipient?: ParameterValue
  /** Address that gets a copy of all mail; none when empty. */
  readonly always_bcc?: ParameterValue
  /** Lookup tables of addresses that get a copy of mail from a sender. */
  readonly sender_bcc_maps?: ParameterValue
  /** Lookup tables that map addresses of mail to next hops by SMTP, when it is sent. */
  readonly smtp_generic_maps?: ParameterValue
  /** Lookup tables of actions for header fields of mail that arrives, see docs/checks.md. */
  readonly header_checks?: ParameterValue
  /** The same for fields of body parts, and for MIME fields (Content-Type, Content-Disposition, …) of all headers. Default: `$header_checks`. */
  readonly mime_header_checks?: ParameterValue
  /** The same for the other fields of attached messages. Default: `$header_checks`. */
  readonly nested_header_checks?: ParameterValue
  /** Lookup tables of actions for body lines of mail that arrives, see docs/checks.md. */
  readonly body_checks?: ParameterValue
  /** Octets of each body part that body_checks examine; 0 for all. A size such as `'10M'`, or a number of bytes. Default: `51200`. */
  readonly body_checks_size_limit?: string | number
  /** Lookup tables of actions for header fields of mail to next hops by SMTP, when it is sent. */
  readonly smtp_header_checks?: ParameterValue
  /** Lookup tables of addresses that get a copy of mail to a recipient. */
  readonly recipient_bcc_maps?: ParameterValue
  /** Next hops of all mail, tried in order: [host] or [host]:port without MX lookup, or a domain; MX of the recipient domain when empty. */
  readonly relayhost?: ParameterValue
  /** Lookup tables of relayhosts by sender: user@domain, @domain, or <> for the null sender; DUNNO for relayhost. Overruled by transport_maps. */
  readonly sender_dependent_relayhost_maps?: ParameterValue
  /** Lookup tables of transport:nexthop by sender, with the same keys, for mail without an entry in transport_maps that is not to relay_domains. */
  readonly sender_dependent_default_transport_maps?: ParameterValue
  /** Addresses of proxies, NAT boxes or redirected ports that forward mail to this relay: an MX record with one of them names this relay, at any port. */
  readonly proxy_interfaces?: ParameterValue
  /** Next hops of mail whose own next hop cannot be found or reached. */
  readonly smtp_fallback_relay?: ParameterValue
  /** Port of mail exchangers. Default: `25`. */
  readonly smtp_tcp_port?: ParameterValue
  /** Maximum bytes of a line that is sent; longer lines are split, continued after a space; 0 for no limit. Default: `998`. */
  readonly smtp_line_length_limit?: ParameterValue
  /** Send the DKIM signatures of mail from a domain with a [dkim."…"] table (docs/dkim.md); no for next hops that sign. Default: `yes`. */
  readonly dkim_sign?: ParameterValue
  /** Header fields that signatures name once more than present, so that none can be added; those with ? only when present. Default: `From, Reply-To, To, Cc, Subject, Date, Message-ID, In-Reply-To?, References?, MIME-Version?, Content-Type?, Content-Transfer-Encoding?`. */
  readonly dkim_oversign_headers?: ParameterValue
  /** Further header fields that signatures cover; NAME-* stands for all that begin so. Default: `Sender, Auto-Submitted, List-*, Resent-*, TLS-Report-*`. */
  readonly dkim_sign_headers?: ParameterValue
  /** Extensions of next hops that are not used: chunking sends content with DATA instead of BDAT. */
  readonly smtp_discard_ehlo_keywords?: ParameterValue
  /** Return mail with BY and the mode R when a next hop does not offer DELIVERBY, or not for so short a time (RFC 2852); no delivers it while there is time. Default: `no`. */
  readonly smtp_deliver_by_required?: ParameterValue
  /** Maximum addresses tried in one attempt; 0 for no limit. Default: `5`. */
  readonly smtp_mx_address_limit?: ParameterValue
  /** Maximum sessions in one attempt that got past the greeting; 0 for no limit. Default: `2`. */
  readonly smtp_mx_session_limit?: ParameterValue
  /** Try mail exchangers of equal preference in random order. Default: `yes`. */
  readonly smtp_randomize_addresses?: ParameterValue
  /** Address family that is tried first among equal preferences. Default: `any`. */
  readonly smtp_address_preference?: ParameterValue
  /** Share smtp_mx_address_limit between IPv4 and IPv6. Default: `yes`. */
  readonly smtp_balance_inet_protocols?: ParameterValue
  /** DNS look-ups of next hops: enabled (also when empty); dnssec, which trusts the AD bit of the name servers, for the TLS levels dane and dane-only. */
  readonly smtp_dns_support_level?: ParameterValue
  /** Ways to find the addresses of hosts: dns; native, the resolver of the machine with /etc/hosts; or both, dns first. MX records are always looked up in DNS. Default: `dns`. */
  readonly smtp_host_lookup?: ParameterValue
  /** Defer mail instead of bouncing it when no mail exchanger has an address. Default: `no`. */
  readonly smtp_defer_if_no_mx_address_found?: ParameterValue
  /** Try the addresses of the domain when the MX lookup fails. Default: `no`. */
  readonly ignore_mx_lookup_error?: ParameterValue
  /** Deliver to loopback, private and link-local addresses that DNS gives for a recipient domain; configured next hops may always have them. Default: `no`. */
  readonly smtp_allow_private_addresses?: ParameterValue
  /** Local IPv4 address of connections; chosen by the system when empty. */
  readonly smtp_bind_address?: ParameterValue
  /** Local IPv6 address of connections; chosen by the system when empty. */
  readonly smtp_bind_address6?: ParameterValue
  /** Time limit of one attempt, plus the time that the content needs at 500 bytes per second. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `30m`. */
  readonly smtp_attempt_time_limit?: string | number
  /** Treat a 5xx greeting as temporary and try the next host. Default: `yes`. */
  readonly smtp_skip_5xx_greeting?: ParameterValue
  /** Defer instead of bounce, and refuse with 4xx instead of 5xx: for tests of a new configuration. Default: `no`. */
  readonly soft_bounce?: ParameterValue
  /** Host name in EHLO. Default: `$myhostname`. */
  readonly smtp_helo_name?: ParameterValue
  /** Time limit for opening a connection. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `30s`. */
  readonly smtp_connect_timeout?: string | number
  /** Time limit for the greeting and for the reply to EHLO. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly smtp_helo_timeout?: string | number
  /** Time limit for STARTTLS and the TLS handshake. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly smtp_starttls_timeout?: string | number
  /** Time limit for the reply to MAIL. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly smtp_mail_timeout?: string | number
  /** Time limit for the reply to RCPT. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly smtp_rcpt_timeout?: string | number
  /** Time limit for the reply to DATA. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `120s`. */
  readonly smtp_data_init_timeout?: string | number
  /** Time limit without progress while content is sent. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `180s`. */
  readonly smtp_data_xfer_timeout?: string | number
  /** Time limit for the reply to the final dot. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `600s`. */
  readonly smtp_data_done_timeout?: string | number
  /** Time limit for the reply to RSET. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `20s`. */
  readonly smtp_rset_timeout?: string | number
  /** Time limit of a connection after QUIT. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly smtp_quit_timeout?: string | number
  /** TLS to next hops: none, may (when offered), encrypt (required), dane (by TLSA records, otherwise may), dane-only (by TLSA records), verify and secure (required, with a matching certificate); docs/tls.md. Default: `may`. */
  readonly smtp_tls_security_level?: ParameterValue
  /** Start TLS with the connection instead of by STARTTLS (SMTPS, port 465); needs a level of encrypt or above; not for LMTP. Default: `no`. */
  readonly smtp_tls_wrappermode?: ParameterValue
  /** With 1, a log line for each TLS connection to a next hop, with trust, protocol and cipher. Default: `0`. */
  readonly smtp_tls_loglevel?: ParameterValue
  /** Log tls= with each delivery attempt: the level that applied and what became of it (docs/monitoring.md). Default: `yes`. */
  readonly smtp_log_tls_feature_status?: ParameterValue
  /** Send daily reports about TLS to the domains that ask for them (RFC 8460); docs/tls.md. Default: `no`. */
  readonly smtp_tlsrpt_enable?: ParameterValue
  /** Sender of reports about TLS, whose domain needs a [dkim."…"] table. Default: `tlsrpt@$myorigin`. */
  readonly smtp_tlsrpt_sender?: ParameterValue
  /** Count full TLS handshakes only in reports, not those that resume a session. Default: `no`. */
  readonly smtp_tlsrpt_skip_reused_handshakes?: ParameterValue
  /** Count sessions with domains that have neither an MTA-STS policy nor TLSA records in reports, too. Default: `no`. */
  readonly tlsrpt_no_policy?: ParameterValue
  /** Levels of single next hops, a list of "NEXTHOP LEVEL [match=NAME:NAME]". */
  readonly smtp_tls_policy_maps?: ParameterValue
  /** At level dane, TLS to hosts of MX records that are not authentic: dane (their TLSA records apply), encrypt, or may. Default: `dane`. */
  readonly smtp_tls_dane_insecure_mx_policy?: ParameterValue
  /** Digests of TLSA records that are used, the preferred first. Default: `sha512 sha256`. */
  readonly tls_dane_digests?: ParameterValue
  /** MTA-STS policies of recipient domains (docs/tls.md), where the level is may or dane: enforce them, report what they would defer (testing), or no. Default: `enforce`. */
  readonly smtp_tls_mta_sts?: ParameterValue
  /** Trusted CA certificates (PEM) of the hosts that serve MTA-STS policies. Default: `$smtp_tls_CAfile`. */
  readonly smtp_tls_mta_sts_CAfile?: ParameterValue
  /** Trusted CA certificates (PEM); those of Node when empty. */
  readonly smtp_tls_CAfile?: ParameterValue
  /** Client certificate with its chain (PEM), for servers that ask for one. */
  readonly smtp_tls_cert_file?: ParameterValue
  /** Private key of the client certificate (PEM). Default: `$smtp_tls_cert_file`. */
  readonly smtp_tls_key_file?: ParameterValue
  /** File of credentials for AUTH, lines of "NEXTHOP-OR-SENDER USER:PASSWORD". */
  readonly smtp_sasl_password_maps?: ParameterValue
  /** Name of the [oauth.NAME] table whose access token takes the place of an empty password in smtp_sasl_password_maps; empty for none. */
  readonly smtp_sasl_oauth?: ParameterValue
  /** Shell command that prints an access token; the user is its last argument. Stands for [oauth.command] with provider = "command", and for smtp_sasl_oauth = "command". */
  readonly smtp_sasl_oauth_token_command?: ParameterValue
  /** Look up credentials by the sender and its @domain first. Default: `no`. */
  readonly smtp_sender_dependent_authentication?: ParameterValue
  /** Allowed mechanisms for AUTH; when empty, XOAUTH2 and OAUTHBEARER for an access token, and PLAIN, LOGIN and CRAM-MD5 for a password. */
  readonly smtp_sasl_mechanism_filter?: ParameterValue
  /** noplaintext: no PLAIN, LOGIN, XOAUTH2 or OAUTHBEARER without TLS. Default: `noplaintext`. */
  readonly smtp_sasl_security_options?: ParameterValue
  /** Defer instead of bounce when a mail exchanger refuses AUTH; next hops of the configuration always defer. Default: `yes`. */
  readonly smtp_sasl_auth_soft_bounce?: ParameterValue
  /** Keep connections for the next delivery while deliveries to a destination follow each other closely. Default: `yes`. */
  readonly smtp_connection_cache_on_demand?: ParameterValue
  /** Time limit of an idle kept connection. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `2s`. */
  readonly smtp_connection_cache_time_limit?: string | number
  /** Maximum times that a kept connection is used again, so that it carries one delivery more; 0 for no limit. Default: `0`. */
  readonly smtp_connection_reuse_count_limit?: ParameterValue
  /** Time limit of reuse of a connection, from its opening. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly smtp_connection_reuse_time_limit?: string | number
  /** First wait of a deferred recipient, and wait before the first probe of a dead destination. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly minimal_backoff_time?: string | number
  /** Maximum wait between attempts and between probes. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `4000s`. */
  readonly maximal_backoff_time?: string | number
  /** Lifetime of mail: it expires after the last attempt at this age, and the sender gets a notice. A time such as `'5m'` or `'2d'`, or a number of days. Default: `2d`. */
  readonly maximal_queue_lifetime?: string | number
  /** Lifetime of mail from <>; at most maximal_queue_lifetime. A time such as `'5m'` or `'2d'`, or a number of days. Default: `$maximal_queue_lifetime`. */
  readonly bounce_queue_lifetime?: string | number
  /** Failed attempts after which mail expires before the end of its lifetime, without those after a flush or returned for congestion; 0 for no limit. Default: `0`. */
  readonly maximal_delivery_attempts?: ParameterValue
  /** Retry policy, see docs/backoff.md. Default: `doubling`. */
  readonly retry_backoff?: ParameterValue
  /** Fraction j that spreads each wait w over [w, w·(1+j)]. Default: `0`. */
  readonly retry_jitter?: ParameterValue
  /** Interval of the safety scan for overlooked due mail. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `300s`. */
  readonly queue_run_delay?: string | number
  /** Maximum concurrent deliveries. Default: `100`. */
  readonly default_process_limit?: ParameterValue
  /** Deliveries of a large message per slot that it earns for small messages to preempt it; below 2 for no preemption. Default: `5`. */
  readonly default_delivery_slot_cost?: ParameterValue
  /** Slots that a small message may use before they are earned. Default: `3`. */
  readonly default_delivery_slot_loan?: ParameterValue
  /** Percentage of the needed slots that a small message gets in advance. Default: `50`. */
  readonly default_delivery_slot_discount?: ParameterValue
  /** Minimum size of a message that can be preempted, in slots. Default: `3`. */
  readonly default_minimum_delivery_slots?: ParameterValue
  /** Maximum messages in the active queue. Default: `20000`. */
  readonly qmgr_message_active_limit?: ParameterValue
  /** Maximum recipients in the active queue. Default: `20000`. */
  readonly qmgr_message_recipient_limit?: ParameterValue
  /** Initial concurrency window of a destination. Default: `5`. */
  readonly initial_destination_concurrency?: ParameterValue
  /** Maximum concurrent deliveries to one destination; 0 for no limit. Default: `20`. */
  readonly default_destination_concurrency_limit?: ParameterValue
  /** Maximum outcomes of deliveries to one destination that are written and not yet synced to disk; a loss of power repeats at most these and the deliveries in flight. A number, or a multiple of its concurrency limit. Default: `5*concurrency`. */
  readonly default_destination_unsettled_limit?: ParameterValue
  /** Maximum recipients in one delivery; 0 for no limit. Default: `50`. */
  readonly default_destination_recipient_limit?: ParameterValue
  /** Delay after each delivery to a destination, which then has one at a time; 0 for none. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `0`. */
  readonly default_destination_rate_delay?: string | number
  /** Delay after each delivery of a transport to any destination, one at a time; 0 for none. A time such as `'5m'` or `'2d'`, or a number of seconds. Default: `0`. */
  readonly default_transport_rate_delay?: string | number
  /** Maximum deliveries per minute to one destination, evenly spaced; 0 for no limit. See default_destination_adaptive_rate. Default: `0`. */
  readonly default_destination_message_rate_limit?: ParameterValue
  /** Learn the message rate that a destination accepts from refusals that ask for less mail, and keep to it for a time. Destinations of a provider share one rate and the value of its table. Default: `yes`. */
  readonly default_destination_adaptive_rate?: ParameterValue
  /** Maximum concurrent deliveries to all destinations of a provider (docs/providers.md), for tables without own limit; 0 for no limit. Default: `0`. */
  readonly provider_concurrency_limit?: ParameterValue
  /** Maximum deliveries per minute to all destinations of a provider, evenly spaced, for tables without own limit; 0 for no limit. Default: `0`. */
  readonly provider_message_rate_limit?: ParameterValue
  /** Control of the concurrency window of a destination: Postfix’s feedback, or TCP Reno or Tahoe. Default: `postfix`. */
  readonly default_destination_concurrency_control?: ParameterValue
  /** Part of the deliveries in flight that the window of reno and tahoe falls back to after a failure; 0.9 suits a destination whose limit does not change. Default: `0.5`. */
  readonly default_destination_concurrency_decrease_factor?: ParameterValue
  /** Growth of the concurrency window with each answered delivery. Default: `1/concurrency`. */
  readonly default_destination_concurrency_positive_feedback?: ParameterValue
  /** Reduction of the concurrency window with each failed delivery. Default: `1/concurrency`. */
  readonly default_destination_concurrency_negative_feedback?: ParameterValue
  /** Failed pseudo-cohorts (windows full of failures) after which a destination is dead; 0 for never. Default: `1`. */
  readonly default_destination_concurrency_failed_cohort_limit?: ParameterValue
  /** Ages of mail at which the sender gets a delay warning; 0 for none. A time such as `'5m'` or `'2d'`, or a number of hours. Default: `0`. */
  readonly delay_warning_time?: string | number | readonly string[]
  /** Maximum size of a message that a notice returns in full; of larger ones the header is returned. A size such as `'10M'`, or a number of bytes. Default: `50000`. */
  readonly bounce_size_limit?: string | number
  /** File with templates of notices in the format of bounce(5); built-in templates when empty. */
  readonly bounce_template_file?: ParameterValue
  /** Send a success notice when mail is delivered after a delay warning. Default: `no`. */
  readonly confirm_delay_cleared?: ParameterValue
  /** Refer to the Message-ID of the original in notices, so that mail readers show them together. Default: `no`. */
  readonly enable_threaded_bounces?: ParameterValue
  /** Notices to the postmaster: copies of failure notices (bounce) and delay warnings (delay), and undeliverable notices (2bounce). Default: `resource, software`. */
  readonly notify_classes?: ParameterValue
  /** Local part of the sender of notices to the postmaster; no notice is sent for mail from it. Default: `double-bounce`. */
  readonly double_bounce_sender?: ParameterValue
  /** Recipient of copies of failure notices. Default: `postmaster`. */
  readonly bounce_notice_recipient?: ParameterValue
  /** Recipient of undeliverable notices. Default: `postmaster`. */
  readonly '2bounce_notice_recipient'?: ParameterValue
  /** Recipient of notices to the postmaster of the class resource: that too many recipients of a destination are refused as unknown. Default: `postmaster`. */
  readonly error_notice_recipient?: ParameterValue
  /** Recipient of copies of delay warnings. Default: `postmaster`. */
  readonly delay_notice_recipient?: ParameterValue
  /** Time that the history keeps a message that left the queue. A time such as `'5m'` or `'2d'`, or a number of days. Default: `3d`. */
  readonly history_retention?: string | number
  /** Maximum messages in the history. Default: `1000000`. */
  readonly history_limit?: ParameterValue
  /** Dialogues with hosts that are kept: those of failed attempts, none, or those of all attempts. Content and secrets are never in one. Default: `failed`. */
  readonly session_transcripts?: ParameterValue
  /** Maximum size of the kept dialogues, compressed; the oldest are deleted first. A size such as `'10M'`, or a number of bytes. Default: `64M`. */
  readonly session_transcript_limit?: string | number
  /** Time that dialogues are kept; at most history_retention. A time such as `'5m'` or `'2d'`, or a number of days. Default: `3d`. */
  readonly session_retention?: string | number
  /** Time that the content of a message stays that did not reach all its recipients, so that deferd history resend can send it again; 0 to delete it at once. A time such as `'5m'` or `'2d'`, or a number of days. Default: `0`. */
  readonly returned_content_retention?: string | number
  /** Maximum size of these contents; the oldest are deleted first. A size such as `'10M'`, or a number of bytes. Default: `1G`. */
  readonly returned_content_limit?: string | number
  /** Time that events are kept for subscriptions that have not had them. A time such as `'5m'` or `'2d'`, or a number of days. Default: `3d`. */
  readonly event_retention?: string | number
  /** Maximum events that are kept for subscriptions; the oldest are deleted first. Default: `1000000`. */
  readonly event_limit?: ParameterValue
  /** Time that deleted mail stays in the trash and can be restored. A time such as `'5m'` or `'2d'`, or a number of days. Default: `1d`. */
  readonly trash_lifetime?: string | number
}
