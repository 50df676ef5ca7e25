/** Everyday configurations of Postfix, with what an import of each says is different. `CONFIG` is the folder of main.cf, `SINK` the next hop. */

/** A difference between Postfix and deferd that the import states. */
interface ToldDifference {
  /** Matches each line of the difference. */
  readonly difference: RegExp
  /** Text of a comment in deferd.toml. */
  readonly told: string
}

export interface ImportedConfiguration {
  /** Lines of main.cf after those of all configurations. */
  readonly main: string
  /** Lines of master.cf after those of all configurations. */
  readonly master?: string
  /** Options of the SMTP server in master.cf. */
  readonly server?: string
  readonly tables?: Readonly<Record<string, string>>
  /** Recipients beside those of all configurations. */
  readonly recipients?: readonly string[]
  readonly senders?: readonly string[]
  readonly clients?: readonly string[]
  /** Subjects, each of one more message from the machine itself, with further lines of the content. */
  readonly contents?: readonly string[]
  readonly told?: readonly ToldDifference[]
}

const SATELLITE = `mydestination = $myhostname, corp.example, localhost.corp.example, localhost
myorigin = corp.example
alias_maps = hash:CONFIG/aliases
mailbox_transport = smtp:SINK
recipient_delimiter = +
`
const ALIASES = { aliases: 'postmaster: root\nroot: admin@client.example\nabuse: root\nops: ann@far.test, bob@far.test\n' }

export const IMPORTED: Readonly<Record<string, ImportedConfiguration>> = {
  'a satellite with aliases': {
    main: SATELLITE,
    tables: ALIASES,
    recipients: ['ops@corp.example', 'root', 'ops+x@corp.example'],
    told: [
      {
        difference: /(?:10\.0\.0\.50|203\.0\.113\.7) /,
        told: 'clients outside mynetworks may send to these domains only when they are in relay_domains',
      },
    ],
  },
  'a null client': {
    main: 'mydestination =\nmyorigin = corp.example\nalias_maps = hash:CONFIG/aliases\n',
    tables: ALIASES,
    recipients: ['postmaster@host.example'],
    told: [{ difference: /postmaster@host\.example/, told: 'postmaster@host.example: all clients may send to it' }],
  },
  'a smarthost with a login': {
    main: `mydestination =
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = hash:CONFIG/sasl_passwd
smtp_sasl_security_options = noanonymous
smtp_generic_maps = hash:CONFIG/generic
`,
    tables: { sasl_passwd: 'SINK user:pass:word@#1\n', generic: 'root@host.example relay@corp.example\n@host.example @corp.example\n' },
    senders: ['root@host.example', 'cron@host.example'],
  },
  'tenants by sender': {
    main: `mydestination =
relayhost =
sender_dependent_relayhost_maps = hash:CONFIG/relayhosts
transport_maps = inline:{{* = smtp:SINK}}
smtpd_sender_restrictions = reject_unauthenticated_sender_login_mismatch
smtpd_sender_login_maps = hash:CONFIG/owners
`,
    tables: { relayhosts: '@tenant.example SINK\n', owners: 'boss@tenant.example boss\n' },
    senders: ['boss@tenant.example', 'other@tenant.example'],
  },
  'internal networks': {
    main: `mydestination =
mynetworks = 127.0.0.0/8, CONFIG/networks
smtpd_client_restrictions = check_client_access cidr:CONFIG/clients.cidr
smtpd_sender_restrictions = reject_non_fqdn_sender
smtpd_recipient_restrictions = reject_non_fqdn_recipient
transport_maps = hash:CONFIG/transport
`,
    tables: {
      networks: '10.0.0.0/24\n172.16.5.0/24   # lab\n',
      'clients.cidr': '10.0.0.66/32 REJECT infected\n203.0.113.0/24 DEFER later\n',
      transport: 'gone.test error:5.1.2 no such domain\nwait.test retry:come back\n',
    },
    clients: ['10.0.0.66', '172.16.5.9'],
    senders: ['root'],
    recipients: ['x@gone.test', 'x@wait.test', 'root'],
  },
  'a backup exchanger': {
    main: `mydestination =
relay_domains = relayed.test
relay_recipient_maps = hash:CONFIG/relay_recipients
transport_maps = inline:{{relayed.test = relay:SINK}}
smtpd_relay_restrictions = permit_mynetworks, reject_unauth_destination
`,
    tables: { relay_recipients: 'user@relayed.test x\n' },
  },
  'policy servers': {
    main: `mydestination =
relay_domains = relayed.test
transport_maps = inline:{{relayed.test = relay:SINK}}
smtpd_recipient_restrictions = permit_mynetworks, reject_unauth_destination,
  check_policy_service { inet:127.0.0.1:1, timeout=1s, default_action=DUNNO },
  check_policy_service unix:private/spf
`,
    master: 'spf unix - n n - 0 spawn user=nobody argv=/bin/false\n',
    told: [{ difference: /@relayed\.test/, told: 'check_policy_service unix:private/spf is left out: Postfix starts this server' }],
  },
  'checks of headers and bodies': {
    main: `mydestination =
header_checks = regexp:CONFIG/header_checks
mime_header_checks = regexp:CONFIG/mime_checks
nested_header_checks =
body_checks = regexp:CONFIG/body_checks
always_bcc = archive@corp.example
`,
    tables: {
      header_checks:
        '/^Subject: lottery/ REJECT we do not play\n/^Subject: copied/ BCC watch@far.test\n/^X-Tag/ PREPEND X-Seen: yes\n/^Subject: pending/ HOLD\n',
      mime_checks: '/name="?[^"]*\\.exe/ REJECT no programs\n',
      body_checks: '/viagra/ REJECT pills\n',
    },
    contents: [
      'lottery',
      'tagged\nX-Tag: 1',
      'pending',
      'exe\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: application/x; name="a.exe"\n\nx\n--b--',
      'nested\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nSubject: lottery\n\nx\n--b--',
      'body\n\nviagra',
      'copied',
    ],
    told: [{ difference: /watch@far\.test/, told: 'BCC is no action' }],
  },
  'a private domain': {
    main: `mydestination =
relay_domains = relayed.test
transport_maps = inline:{{relayed.test = relay:SINK}}
recipient_delimiter = +-
canonical_maps = hash:CONFIG/canonical
virtual_alias_maps = hash:CONFIG/virtual, regexp:CONFIG/virtual.regexp
masquerade_domains = corp.example
masquerade_exceptions = root
sender_bcc_maps = inline:{ann@corp.example=archive@far.test}
`,
    tables: {
      canonical: 'ann@host.example ann@corp.example\n',
      virtual: 'user@relayed.test ann@far.test\nlist@relayed.test ann@far.test, bob@far.test\n@alias.test @far.test\n',
      'virtual.regexp': '/^any-(.*)@corp\\.example$/ ${1}@far.test\n',
    },
    senders: ['ann@host.example', 'x@sub.corp.example', 'root@sub.corp.example'],
    recipients: ['user+ext@relayed.test', 'list@relayed.test', 'any-joe@corp.example', 'y@alias.test'],
  },
  'a chain of key and certificate, with submission': {
    main: `mydestination =
smtpd_tls_security_level = may
smtpd_tls_chain_files = CONFIG/key.pem, CONFIG/cert.pem
smtpd_tls_ask_ccert = yes
smtpd_client_restrictions = check_client_access inline:{203.0.113.7=REJECT}
`,
    server:
      '-o smtpd_client_restrictions= -o smtpd_relay_restrictions=permit_mynetworks,reject -o smtpd_helo_required=yes -o smtpd_recipient_limit=3',
  },
  'slow transports': {
    main: `mydestination =
transport_maps = hash:CONFIG/transport
slow_destination_concurrency_limit = 5
slow_destination_rate_delay = 1s
smtp_destination_concurrency_limit = 2
default_destination_concurrency_limit = 20
smtp_helo_name = mail.corp.example
`,
    master: 'slow unix - - n - 1 smtp\n  -o smtp_connect_timeout=5s\n',
    tables: { transport: 'slow.test slow:SINK\n' },
    recipients: ['a@slow.test', 'b@slow.test'],
  },
  'things that deferd has not': {
    main: `mydestination =
smtpd_helo_restrictions = reject_invalid_helo_hostname
smtpd_client_restrictions = check_client_access inline:{{203.0.113.7 = DEFER_IF_REJECT no}}, check_reverse_client_hostname_access inline:{x.example=REJECT}
smtpd_recipient_restrictions = reject_unauth_pipelining, check_recipient_access hash:CONFIG/recipients
smtpd_data_restrictions = reject_multi_recipient_bounce
smtpd_milters = inet:127.0.0.1:1
milter_default_action = accept
`,
    tables: { recipients: 'filtered@far.test FILTER smtp:SINK\nhushed@far.test DISCARD\n' },
    recipients: ['filtered@far.test', 'hushed@far.test'],
  },
  'own senders from own clients only': {
    main: `mydestination =
relay_domains = relayed.test
transport_maps = inline:{{relayed.test = relay:SINK}}
mynetworks = 127.0.0.0/8, 10.0.0.0/24
smtpd_restriction_classes = insiders_only, partners
insiders_only = check_sender_access hash:CONFIG/insiders, reject
partners = check_client_access cidr:CONFIG/partners, reject
smtpd_sender_restrictions = check_sender_access texthash:CONFIG/senders
smtpd_recipient_restrictions = check_recipient_access hash:CONFIG/protected
`,
    tables: {
      senders: 'corp.example permit_mynetworks, reject\n',
      insiders: 'corp.example OK\n',
      partners: '203.0.113.0/24 OK\n',
      protected: 'user@relayed.test insiders_only\nnosuch@relayed.test partners\n',
    },
  },
  'relaying after login only': {
    main: `mydestination =
mynetworks = 127.0.0.0/8, 10.0.0.0/8
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
`,
  },
  'relay rules among those of recipients': {
    main: `compatibility_level = 0
append_dot_mydomain = no
mydestination =
mynetworks = 127.0.0.0/8
smtpd_relay_restrictions =
smtpd_recipient_restrictions = permit_mynetworks, check_client_access inline:{10.0.0.50=OK}, reject_unauth_destination
`,
  },
  'networks of the machine itself': { main: 'mydestination =\nmynetworks_style = host\nMYNETWORKS_UNSET = yes\n' },
  'HELO and clients by network': {
    main: `mydestination =
smtpd_helo_required = yes
mynetworks = 127.0.0.0/8, 10.0.0.0/24, !203.0.113.7, 203.0.113.0/24
smtpd_client_restrictions = check_client_access cidr:{{10.0.0.50/32 REJECT}}
`,
    clients: ['203.0.113.8'],
  },
  'virtual domains with patterns': {
    main: `mydestination =
relay_domains = relayed.test, old.test
transport_maps = inline:{{relayed.test = relay:SINK}, {old.test = error:5.1.6 the domain has moved}}
virtual_alias_maps = regexp:CONFIG/virtual.regexp
sender_canonical_maps = regexp:CONFIG/sender.regexp
`,
    tables: {
      'virtual.regexp': '/^sales-(.*)@old\\.test$/i $1@far.test\n',
      'sender.regexp': '/^(.*)@old\\.test$/ $1@corp.example\n',
    },
    senders: ['ann@old.test'],
    recipients: ['sales-joe@old.test', 'x@old.test'],
  },
  'options of the service relay': {
    main: `mydestination =
relay_domains = relayed.test
relay_transport = relay:SINK
relay_destination_concurrency_limit = 3
`,
    master: 'other unix - - n - 4 smtp\n  -o smtp_connect_timeout=5s\n',
  },
  'actions for mail of senders and recipients': {
    main: `mydestination =
recipient_bcc_maps = inline:{bob@far.test=copies@corp.example}
smtpd_sender_restrictions = check_sender_access hash:CONFIG/senders
message_size_limit = 20000
`,
    tables: {
      senders:
        'head@client.example PREPEND X-From-Table: yes\nheld@client.example HOLD\ngone@client.example DISCARD\nother@client.example REDIRECT keeper@far.test\n<> REJECT no notices\n',
    },
    senders: ['head@client.example', 'held@client.example', 'gone@client.example', 'other@client.example'],
  },
}
