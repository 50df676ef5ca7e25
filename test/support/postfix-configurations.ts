/** Configurations of Postfix as outbound relays have them: Debian's default, and smarthosts with logins and tables. */

export interface PostfixConfiguration {
  readonly main: string
  readonly master: string
  /** Tables beside main.cf, by file name. */
  readonly tables: Readonly<Record<string, string>>
}

/** Debian's master.cf, without the delivery programs that no configuration here uses. */
const MASTER = `#
# Postfix master process configuration file.
smtp      inet  n       -       y       -       -       smtpd
pickup    unix  n       -       y       60      1       pickup
cleanup   unix  n       -       y       -       0       cleanup
qmgr      unix  n       -       n       300     1       qmgr
rewrite   unix  -       -       y       -       -       trivial-rewrite
smtp      unix  -       -       y       -       -       smtp
relay     unix  -       -       y       -       -       smtp
        -o syslog_name=postfix/$service_name
error     unix  -       -       y       -       -       error
retry     unix  -       -       y       -       -       error
discard   unix  -       -       y       -       -       discard
local     unix  -       n       n       -       -       local
lmtp      unix  -       -       y       -       -       lmtp
maildrop  unix  -       n       n       -       -       pipe
  flags=DRXhu user=vmail argv=/usr/bin/maildrop -d \${recipient}
`

const DEBIAN = `# See /usr/share/postfix/main.cf.dist for a commented, more complete version
smtpd_banner = $myhostname ESMTP $mail_name (Debian/GNU)
biff = no
append_dot_mydomain = no
readme_directory = no
compatibility_level = 3.6

# TLS parameters
smtpd_tls_cert_file=/etc/ssl/certs/ssl-cert-snakeoil.pem
smtpd_tls_key_file=/etc/ssl/private/ssl-cert-snakeoil.key
smtpd_tls_security_level=may
smtp_tls_CApath=/etc/ssl/certs
smtp_tls_security_level=may
smtp_tls_session_cache_database = btree:\${data_directory}/smtp_scache

smtpd_relay_restrictions = permit_mynetworks permit_sasl_authenticated defer_unauth_destination
myhostname = host.example
alias_maps = hash:CONFIG/aliases
alias_database = hash:CONFIG/aliases
mydestination = $myhostname, host.example, localhost.example, localhost
relayhost =
mynetworks = 127.0.0.0/8 [::ffff:127.0.0.0]/104 [::1]/128
mailbox_size_limit = 0
recipient_delimiter = +
inet_interfaces = all
inet_protocols = all
`

const ALIASES = `# See man 5 aliases for format
postmaster:    root
root: admin@example.com, "|/usr/bin/procmail"
ops: ann@example.com,
     bob@example.com
list: :include:CONFIG/members
"odd name": ann@example.com
`

const SMARTHOST = `${DEBIAN.replace('relayhost =', 'relayhost = [smtp.provider.test]:587')}
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = hash:CONFIG/sasl_passwd
smtp_sasl_security_options = noanonymous
smtp_tls_security_level = encrypt
smtp_generic_maps = hash:CONFIG/generic
canonical_maps = hash:CONFIG/canonical, regexp:CONFIG/canonical.regexp
sender_canonical_maps = texthash:CONFIG/sender_canonical
virtual_alias_maps = inline:{ { old@example.com = new@example.com, other@example.com } }
relay_domains = $mydestination, hash:CONFIG/relay_domains
header_checks = regexp:CONFIG/header_checks
smtp_destination_concurrency_limit = 7
slow_destination_concurrency_limit = 2
slow_destination_rate_delay = 3s
transport_maps = hash:CONFIG/transport
sender_dependent_relayhost_maps = hash:CONFIG/sender_relay
smtp_tls_policy_maps = hash:CONFIG/tls_policy
always_bcc = archive@example.com
delay_warning_time = 4
maximal_queue_lifetime = 3
minimal_backoff_time = \${stress?{60s}:{600s}}
maximal_backoff_time = 2h
message_size_limit = 52428800
unknown_thing = yes
`

const TABLES = {
  aliases: ALIASES,
  members: 'carl@example.com\n',
  sasl_passwd: '[smtp.provider.test]:587 user:secret$word\n[other.provider.test]:465\n  second:pass word\n',
  generic: 'root@host.example relay@example.com\n@host.example @example.com\n',
  canonical: 'ann ann.other@example.com\n',
  sender_canonical: 'bob@host.example bob@example.com\n',
  relay_domains: 'relayed.test OK\n.sub.test OK\n',
  transport: `local.test local:
direct.test :
via.test smtp:[10.0.0.1]:2525
.via.test relay:[10.0.0.2]
slow.test slow:[10.0.0.3]
gone.test error:5.1.6 moved away
drop.test discard:
box@via.test lmtp:unix:/var/run/lmtp
custom.test mailer:x
`,
  sender_relay: 'ann@example.com [other.provider.test]:465\n@news.example.com bulk.provider.test\nbob@example.com DUNNO\n',
  tls_policy: 'secure.test secure match=mx.secure.test\nold.test may protocols=!SSLv2\ndane.test dane-only\n',
}

export const CONFIGURATIONS: Readonly<Record<string, PostfixConfiguration>> = {
  'the default of Debian': { main: DEBIAN, master: MASTER, tables: { aliases: ALIASES, members: TABLES.members } },
  'a smarthost on 587 with a login and tables': {
    main: SMARTHOST,
    master: `${MASTER}slow unix - - y - 2 smtp
  -o smtp_connect_timeout=5s -o { smtp_helo_name = slow.example }
submission inet n       -       y       -       -       smtpd
  -o syslog_name=postfix/submission
  -o smtpd_tls_security_level=encrypt
  -o smtpd_sasl_auth_enable=yes
  -o smtpd_relay_restrictions=permit_sasl_authenticated,reject
`,
    tables: TABLES,
  },
  'a smarthost on 465 with senders of its own': {
    main: `compatibility_level = 2
myhostname = host.example
mydestination =
relayhost = [smtp.provider.test]:465
smtp_tls_wrappermode = yes
smtp_use_tls = yes
smtp_tls_security_level = encrypt
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = static:user:secret
smtp_sender_dependent_authentication = yes
sender_dependent_relayhost_maps = inline:{ { ann@example.com = [other.test]:465 } }
inet_interfaces = loopback-only
inet_protocols = ipv4
smtp_host_lookup = native
`,
    master: MASTER,
    tables: {},
  },
  'an old configuration without a relayhost': {
    main: `myhostname = host.example
mydomain = example
myorigin = $mydomain
mydestination = $myhostname, \${mydomain?localhost.$mydomain}, localhost
default_transport = smtp:[10.0.0.9]
relay_domains = relayed.test
relay_transport = smtp:[10.0.0.8]:26
smtp_enforce_tls = yes
local_recipient_maps =
`,
    master: MASTER,
    tables: {},
  },
  'a machine that sends nothing': {
    main: `compatibility_level = 3.6
myhostname = host.example
mydestination = $myhostname
alias_maps =
default_transport = error: no mail leaves this machine
relay_domains = relayed.test
`,
    master: MASTER,
    tables: {},
  },
}
