/** Postfix's configuration of the machine: an outbound relay behind smarthosts on the ports 587 and 465, with a table of each kind. */

/** Ports of the smarthosts. */
export interface Ports {
  /** Submission, the relayhost (port 587 elsewhere). */
  readonly submission: number
  /** Submission for one domain of senders. */
  readonly news: number
  /** TLS from the start (port 465 elsewhere). */
  readonly smtps: number
}

/** Users of the smarthosts with their passwords. */
export const USERS = { main: 'main-secret', news: 'news secret', wrapped: 'wrapped$ecret', carl: 'of-carl' }

export const mainCf = (etc: string, { submission }: Ports): Readonly<Record<string, string>> => ({
  myhostname: 'host.example',
  myorigin: 'origin.example',
  mydestination: '$myhostname, origin.example, localhost',
  recipient_delimiter: '+',
  append_dot_mydomain: 'no',
  smtpd_relay_restrictions: 'permit_mynetworks, reject_unauth_destination',
  relayhost: `[127.0.0.1]:${submission}`,
  smtp_tls_security_level: 'encrypt',
  smtp_sasl_auth_enable: 'yes',
  smtp_sasl_password_maps: `hash:${etc}/sasl_passwd`,
  smtp_sasl_security_options: 'noanonymous',
  smtp_sender_dependent_authentication: 'yes',
  sender_dependent_relayhost_maps: `hash:${etc}/sender_relay`,
  sender_dependent_default_transport_maps: `hash:${etc}/sender_transport`,
  transport_maps: `hash:${etc}/transport`,
  canonical_maps: `hash:${etc}/canonical`,
  sender_canonical_maps: `hash:${etc}/sender_canonical`,
  recipient_canonical_maps: `hash:${etc}/recipient_canonical`,
  masquerade_domains: 'c.test',
  virtual_alias_maps: `hash:${etc}/virtual`,
  alias_maps: `hash:${etc}/aliases`,
  smtp_generic_maps: `hash:${etc}/generic`,
  always_bcc: 'archive@bcc.test',
  sender_bcc_maps: `hash:${etc}/sender_bcc`,
  recipient_bcc_maps: `hash:${etc}/recipient_bcc`,
  header_checks: `regexp:${etc}/header_checks.regexp`,
  body_checks: `regexp:${etc}/body_checks.regexp`,
  smtpd_client_restrictions: `check_client_access hash:${etc}/client_access`,
  smtpd_sender_restrictions: `check_sender_access hash:${etc}/sender_access`,
  smtpd_recipient_restrictions: `check_recipient_access hash:${etc}/recipient_access, permit_mynetworks, reject_unauth_destination`,
  enable_long_queue_ids: 'yes',
  default_destination_concurrency_limit: '10',
})

/** A service for servers that expect TLS from the start (postconf(5), smtp_tls_wrappermode). */
export const MASTER_CF = `smtps unix - - n - - smtp
  -o smtp_tls_wrappermode=yes
  -o smtp_tls_security_level=encrypt
`

export const TABLES = (etc: string, { submission, news, smtps }: Ports): Readonly<Record<string, string>> => ({
  sasl_passwd: `[127.0.0.1]:${submission} main:${USERS.main}
[127.0.0.1]:${news} news:${USERS.news}
[127.0.0.1]:${smtps} wrapped:${USERS.wrapped}
carl@a.test carl:${USERS.carl}
`,
  sender_relay: `@news.test [127.0.0.1]:${news}\nbob@far.test [127.0.0.1]:${news}\n`,
  sender_transport: `@bulk.test smtps:[127.0.0.1]:${smtps}\n`,
  transport: `direct.test smtps:[127.0.0.1]:${smtps}\n`,
  canonical: 'ann@a.test ann.example@new.test\n@sub.a.test @moved.test\neve.x@b.test eve@canonical.test\n',
  sender_canonical: 'bob@a.test bob.sender@new.test\neve.x@far.test eve@news.test\n',
  recipient_canonical: 'bob@b.test bob.recipient@new.test\ninfo@far.test info@b.test\n',
  virtual: `ann@b.test ann@new.test, zoe@far.test
@x.b.test all@far.test
info@c.test bob@a.test info@new.test
info@b.test ann@b.test
`,
  aliases: `root: admin@b.test, ops\nops: zoe@c.test\npostmaster: root\nlist: :include:${etc}/members\nzoe: zoe@far.test\n`,
  members: 'carl@far.test\n# a comment\nann@b.test, ops\n',
  generic: 'root@origin.example relay@example.com\n@origin.example @example.com\nbob@far.test bob@public.test\n',
  sender_bcc: 'carl@a.test sent@bcc.test\n@b.test sent-b@bcc.test\n',
  recipient_bcc: '@c.test copy@bcc.test\nbob@far.test bob.copy@b.test\n',
  'header_checks.regexp': `/^Subject: .*lottery/ REJECT no lotteries
/^Subject: .*casino/ DISCARD
/^Subject: .*wait/ HOLD
/^Subject: .*boss/ REDIRECT boss@c.test
/^Subject: .*note/ WARN a note
/^X-Mailer: (.*)$/ REPLACE X-Tool: $1
/^X-Remove:/ IGNORE
/^X-Before: yes/ PREPEND X-Inserted: 1
`,
  'body_checks.regexp': '/^password: / REJECT no passwords\n/^line of text$/ DUNNO\n',
  client_access: '127.0.0.9 REJECT\n127.0.0 DUNNO\n',
  sender_access: 'blocked@a.test REJECT not you\nheld@b.test HOLD\ngone@b.test DISCARD\nother@b.test REDIRECT keeper@far.test\na.test OK\n',
  recipient_access: 'no@far.test REJECT\nlate@far.test 451 4.3.0 come back\naway@c.test 550 5.1.6 moved\n',
})
