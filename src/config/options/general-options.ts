/** Parameters of names, files, ports and the log. */
import { option } from '../values/option.ts'
import * as is from '../values/values.ts'

export const GENERAL_OPTIONS = {
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
  queue_directory: option(is.text, './deferd-queue', 'Folder of the queue: the SQLite file, the sockets, the maildrop and the lock.'),
  smtpd_listen: option(is.list, '127.0.0.1:2525', 'Addresses and ports of the SMTP server.'),
  dns_servers: option(
    is.list,
    '',
    'Addresses of DNS servers, as address or address:port; those of the system when empty; they change at a restart.',
  ),
  inet_protocols: option(
    is.families,
    'all',
    'Internet protocols of listeners and of deliveries: ipv4, ipv6, or all for both; open listeners change at a restart.',
  ),
  http_listen: option(is.text, '', 'Address and port of /metrics, /healthz, /livez and /readyz; off when empty.'),
  log_format: option(is.oneOf('postfix', 'json'), 'postfix', 'Format of the log: Postfix’s lines, or one JSON object per line.'),
  log_file: option(is.text, '', 'File of the log, instead of standard error; SIGHUP opens it again.'),
  log_addresses: option(
    is.oneOf('full', 'hashed', 'domain'),
    'full',
    'Addresses in the log and in events: as they are, as texts that stand for them (`erased-1f0c9a3b`), or their domains (`***@example.com`).',
  ),
  syslog_name: option(is.text, 'deferd', 'Program name in log lines of the format postfix, before the slash.'),
} as const
