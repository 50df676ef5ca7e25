import { expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { convertConfiguration, type ConvertedConfiguration } from '../../../src/import/configuration/conversion.ts'
import type { PostfixFiles } from '../../../src/import/configuration/lookup-sources.ts'
import { parse } from 'smol-toml'
import { CONFIGURATIONS } from '../../support/postfix-configurations.ts'

const FOLDER = '/etc/deferd'

function convert(main: string, master = '', tables: Readonly<Record<string, string>> = {}): ConvertedConfiguration {
  const texts = new Map(
    Object.entries({ 'main.cf': main, 'master.cf': master, ...tables }).map(([name, text]) => [
      `/etc/postfix/${name}`,
      text.replaceAll('CONFIG', '/etc/postfix'),
    ]),
  )
  const files: PostfixFiles = {
    read: (path) => texts.get(path) ?? null,
    changedAt: () => null,
    isPrivate: () => false,
    computed: () => null,
    dump: () => null,
  }
  return convertConfiguration(
    { configDirectory: '/etc/postfix', folder: FOLDER, hostname: 'machine', queueDirectory: '/var/lib/deferd' },
    files,
  )
}

const converted = (
  name: string,
): ConvertedConfiguration & { readonly values: Readonly<Record<string, unknown>>; readonly comments: string } => {
  const found = CONFIGURATIONS[name]
  if (found === undefined) throw new Error(`no configuration is called ${name}`)
  const result = convert(found.main, found.master, found.tables)
  const comments = result.toml
    .split('\n')
    .filter((line) => line.startsWith('#'))
    .join('\n')
  return { ...result, values: parse(result.toml), comments }
}

test.each(Object.keys(CONFIGURATIONS))('%s is accepted', (name) => {
  const { values } = converted(name)
  expect(() => configFrom(values, 'machine')).not.toThrow()
})

test('the default of Debian', () => {
  const { values, comments, files } = converted('the default of Debian')
  expect(values).toMatchObject({
    myhostname: 'host.example',
    mydomain: 'example',
    smtpd_banner: 'host.example ESMTP Postfix (Debian/GNU)',
    mynetworks: ['127.0.0.0/8', '[::ffff:127.0.0.0]/104', '[::1]/128'],
    smtp_tls_security_level: 'may',
    maximal_queue_lifetime: '5d',
    smtpd_listen: ['*:25'],
    alias_maps: ['texthash:/etc/deferd/aliases'],
  })
  expect(values).not.toHaveProperty('smtpd_tls_cert_file')
  expect(comments).toContain('ssl-cert-snakeoil.pem cannot be read, so that the server offers no TLS')
  expect(comments).toContain('the alias root has a command')
  expect(comments).toContain('# mailbox_size_limit = 0: deferd has no mailboxes')
  expect(comments).not.toContain('remove it')
  const aliases = files.find(({ path }) => path === '/etc/deferd/aliases')?.text
  expect(aliases).toContain('# root: admin@example.com, "|/usr/bin/procmail"\nops: ann@example.com,\n     bob@example.com')
})

test('a smarthost with logins and tables', () => {
  const { values, comments, files } = converted('a smarthost on 587 with a login and tables')
  expect(values).toMatchObject({
    relayhost: '[smtp.provider.test]:587',
    smtp_tls_security_level: 'encrypt',
    smtp_sasl_password_maps: '/etc/deferd/sasl_passwd',
    smtp_generic_maps: ['texthash:/etc/deferd/generic'],
    canonical_maps: ['texthash:/etc/deferd/canonical'],
    virtual_alias_maps: ['inline:{ { old@example.com = new@example.com, other@example.com } }'],
    default_destination_concurrency_limit: '7',
    relay_domains: ['host.example', 'localhost.example', 'localhost', 'relayed.test', '.sub.test'],
    smtp_tls_policy_maps: ['secure.test secure match=mx.secure.test', 'old.test may', 'dane.test dane-only'],
    minimal_backoff_time: '600s',
    maximal_backoff_time: '2h',
    delay_warning_time: '4',
    maximal_queue_lifetime: '3',
    always_bcc: 'archive@example.com',
    transport_maps: {
      'direct.test': ':',
      'via.test': 'smtp:[10.0.0.1]:2525',
      '.via.test': 'smtp:[10.0.0.2]',
      'slow.test': 'smtp:[10.0.0.3]',
      'gone.test': 'error:5.1.6 moved away',
      'drop.test': 'discard:',
      'box@via.test': 'lmtp:unix:/var/run/lmtp',
    },
    destination: { 'smtp:[10.0.0.3]:25': { destination_concurrency_limit: '2', destination_rate_delay: '3s', smtp_connect_timeout: '5s' } },
  })
  expect(values['transport_maps']).not.toHaveProperty('local.test')
  for (const text of [
    'canonical_maps: regexp:/etc/postfix/canonical.regexp is left out',
    'header_checks: regexp:',
    'unknown_thing = yes: deferd has no parameter unknown_thing',
    'local.test = local:: the transport local delivers with local',
    'custom.test = mailer:x: the transport mailer',
    'slow: smtp_helo_name = slow.example has no equivalent',
  ]) {
    expect(comments).toContain(text)
  }
  const logins = files.find(({ path }) => path === '/etc/deferd/sasl_passwd')
  expect(logins).toMatchObject({
    mode: 0o600,
    text: '[smtp.provider.test]:587 user:secret$word\n[other.provider.test]:465 second:pass word\n',
  })
})

test('a listener with TLS and AUTH needs a certificate, and gets a file of users', () => {
  const tables = { 'cert.pem': 'certificate', 'key.pem': 'key' }
  const main =
    `myhostname = host.example\nsmtpd_tls_cert_file = CONFIG/cert.pem\nsmtpd_tls_key_file = CONFIG/key.pem\nsmtpd_tls_security_level = may\nmynetworks = 10.0.0.0/8`.replaceAll(
      'CONFIG',
      '/etc/postfix',
    )
  const master = `smtp inet n - n - - smtpd
smtps inet n - n - - smtpd -o smtpd_tls_wrappermode=yes -o smtpd_sasl_auth_enable=yes
10.0.0.1:submission inet n - n - - smtpd -o smtpd_tls_security_level=encrypt -o smtpd_sasl_auth_enable=yes
  -o smtpd_client_restrictions=permit_sasl_authenticated,reject -o content_filter=x:y
smtp unix - - n - - smtp -o smtp_bind_address=10.0.0.7
`
  const { toml, files } = convert(main, master, tables)
  expect(parse(toml)).toMatchObject({
    smtpd_tls_cert_file: '/etc/deferd/cert.pem',
    smtpd_tls_security_level: 'may',
    smtpd_listen: ['*:25'],
    smtp_bind_address: '10.0.0.7',
    smtpd_sasl_users_file: '/etc/deferd/users',
    smtpd: [
      { address: '*:465', tls: 'wrapper', auth: 'may' },
      { address: '10.0.0.1:587', tls: 'encrypt', auth: 'may', smtpd_client_restrictions: ['permit_sasl_authenticated', 'reject'] },
    ],
  })
  expect(files).toContainEqual({ path: '/etc/deferd/users', text: '', mode: 0o600 })
  expect(toml).toContain('content_filter = x:y')
})

test('myorigin and lists may be files, and a database without its text is read by postmap', () => {
  const texts: Readonly<Record<string, string>> = {
    '/etc/mailname': 'mail.example\n',
    '/c/main.cf': 'myorigin = /etc/mailname\nrelay_domains = /c/domains\nsmtp_generic_maps = lmdb:/c/generic',
    '/c/domains': 'a.test # one\nb.test\n',
  }
  const files: PostfixFiles = {
    read: (path) => texts[path] ?? null,
    changedAt: () => null,
    isPrivate: () => false,
    computed: () => null,
    dump: (type, path) => (type === 'lmdb' && path === '/c/generic' ? 'a@b.test\tc@d.test\n' : null),
  }
  const { toml, files: written } = convertConfiguration({ configDirectory: '/c', folder: '/d', hostname: 'h', queueDirectory: '/q' }, files)
  expect(parse(toml)).toMatchObject({
    myorigin: 'mail.example',
    relay_domains: ['a.test', 'b.test'],
    smtp_generic_maps: ['texthash:/d/generic'],
  })
  expect(written).toContainEqual({ path: '/d/generic', text: 'a@b.test\tc@d.test\n', mode: 0o644 })
})

test('tables of patterns are copied, with the rules that deferd refuses as comments', () => {
  const checks = ['/^X-A/ IGNORE', '/^X-B/ FILTER smtp:x', 'if /^(?=Subject)/', '/spam/ REJECT', 'endif', '/^X-C/', '  WARN'].join('\n')
  const texts: Readonly<Record<string, string>> = {
    '/c/main.cf': 'header_checks = pcre:/c/checks\nbody_checks = regexp:/etc/body\ncanonical_maps = regexp:/c/absent, pcre:/c/canonical',
    '/c/checks': checks,
    '/etc/body': '/x/ WARN\n',
    '/c/canonical': '/^(.*)@a$/ $1@b.test\n',
  }
  const files: PostfixFiles = {
    read: (path) => texts[path] ?? null,
    changedAt: () => null,
    isPrivate: () => false,
    computed: () => null,
    dump: () => null,
  }
  const { toml, files: written } = convertConfiguration({ configDirectory: '/c', folder: '/d', hostname: 'h', queueDirectory: '/q' }, files)
  expect(parse(toml)).toMatchObject({
    header_checks: ['pcre:/d/checks'],
    body_checks: ['regexp:/etc/body'],
    canonical_maps: ['pcre:/d/canonical'],
  })
  const copied = checks.replace('/^X-B/', '# /^X-B/').replace('if ', '# if ').replace('/spam/', '# /spam/').replace('endif', '# endif')
  expect(written).toContainEqual({ path: '/d/checks', text: copied, mode: 0o644 })
  expect(toml).toContain('header_checks: /c/checks, line 2: FILTER is no action: deferd has no content filter: it is left out')
  expect(toml).toContain('header_checks: /c/checks, line 3: (?=Subject looks ahead or behind, which deferd does not match: it is left out')
  expect(toml).toContain('canonical_maps: regexp:/c/absent is left out')
})

test('values that deferd refuses become comments with its reason', () => {
  const { toml } = convert(
    'myhostname = host.example\nrelayhost = smtp://host\nqueue_minfree = lots\nmynetworks = host.example\nsmtp_helo_name = ${x\nnonsense\n',
  )
  for (const name of ['relayhost', 'queue_minfree']) expect(parse(toml)).not.toHaveProperty(name)
  expect(parse(toml)).toMatchObject({ mynetworks: [] })
  expect(toml).toContain('# relayhost = smtp://host: relayhost: "smtp://host" is not a next hop')
  expect(toml).toContain('# smtp_helo_name: { has no counterpart')
  expect(toml).toContain('# main.cf:6: nonsense: this is no parameter')
})

test('access restrictions are taken over in their order, and those that deferd does not have become comments', () => {
  const { toml } = convert(
    `smtpd_client_restrictions = check_client_access hash:CONFIG/clients, reject_rbl_client zen.example
smtpd_sender_restrictions = hash:CONFIG/senders, warn_if_reject reject_unknown_sender_domain, check_sender_access ldap:x
smtpd_recipient_restrictions = permit_mynetworks, reject_unlisted_recipient, defer_unauth_destination, check_policy_service unix:private/policy,
  check_policy_service inet:127.0.0.1:10031
smtpd_sender_login_maps = hash:CONFIG/logins
`,
    '',
    { clients: '192.0.2.1 REJECT\n', senders: 'a@b.example OK\n', logins: 'a@b.example a\n' },
  )
  const values = parse(toml)
  expect(values).toMatchObject({
    smtpd_client_restrictions: ['check_client_access texthash:/etc/deferd/clients'],
    smtpd_sender_restrictions: ['texthash:/etc/deferd/senders', 'warn_if_reject reject_unknown_sender_domain'],
    smtpd_recipient_restrictions: [
      'permit_mynetworks',
      'defer_unauth_destination',
      'check_policy_service unix:/var/spool/postfix/private/policy',
      'check_policy_service inet:127.0.0.1:10031',
    ],
    smtpd_sender_login_maps: ['texthash:/etc/deferd/logins'],
  })
  expect(() => configFrom(values, 'machine')).not.toThrow()
  expect(toml).toContain('reject_rbl_client zen.example is left out: deferd does not query block lists')
  expect(toml).toContain('reject_unlisted_recipient is left out: recipients that relay_recipient_maps lacks')
  expect(toml).toContain('unix:/var/spool/postfix/private/policy is a socket in the spool of Postfix')
  expect(toml).toContain('ldap:x is left out: deferd does not read ldap: tables')
})

test('restrictions at other commands than RCPT become comments, each with what to do', () => {
  const { toml } = convert(
    `smtpd_helo_restrictions = permit_mynetworks, reject_invalid_helo_hostname, warn_if_reject check_helo_access hash:CONFIG/helo,
  check_client_access hash:CONFIG/clients, reject_unknown_sender_domain
smtpd_data_restrictions = reject_unauth_pipelining, permit
smtpd_end_of_data_restrictions = check_policy_service inet:127.0.0.1:10031
`,
    'submission inet n - n - - smtpd\n  -o smtpd_data_restrictions=reject_unauth_pipelining\n',
  )
  const comments = toml.split('\n').filter((line) => /_restrictions/.test(line))
  const atRcpt = 'deferd restricts at RCPT only; write it into smtpd_recipient_restrictions if it may apply there'
  expect(comments).toEqual([
    '# smtpd_helo_restrictions: reject_invalid_helo_hostname is left out: use check_client_access, or a policy server',
    '# smtpd_helo_restrictions: warn_if_reject check_helo_access hash:/etc/postfix/helo is left out: use check_client_access, or a policy server',
    `# smtpd_helo_restrictions: check_client_access hash:/etc/postfix/clients is left out: ${atRcpt}`,
    `# smtpd_helo_restrictions: reject_unknown_sender_domain is left out: ${atRcpt}`,
    '# smtpd_data_restrictions: reject_unauth_pipelining is left out: smtpd_forbid_unauth_pipelining refuses such clients',
    `# smtpd_end_of_data_restrictions: check_policy_service inet:127.0.0.1:10031 is left out: ${atRcpt}`,
    '# master.cf: submission: smtpd_data_restrictions = reject_unauth_pipelining: deferd has it for all listeners only, or not at all',
  ])
})

test('services of transports by sender become transports, with their parameters at the destination', () => {
  const { toml, files } = convert(
    `relayhost = [relay.test]:587
smtps_destination_concurrency_limit = 3
sender_dependent_default_transport_maps = hash:CONFIG/by_sender, regexp:CONFIG/patterns
transport_maps = inline:{{direct.test = smtps:[other.test]:465}, {mx.test = slow:exchange.test}}
`,
    `smtps unix - - n - - smtp
  -o smtp_tls_wrappermode=yes -o smtp_tls_security_level=encrypt
slow unix - - n - - smtp
  -o smtp_connect_timeout=5s
custom unix - - n - - pipe argv=/bin/x
`,
    { by_sender: '@bulk.test smtps:[bulk.test]:465\nann@a.test DUNNO\n@b.test custom:\n', patterns: '/^x@/ smtp:[x.test]\n' },
  )
  const values = parse(toml)
  const secure = { smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'encrypt', destination_concurrency_limit: '3' }
  expect(values).toMatchObject({
    sender_dependent_default_transport_maps: ['texthash:/etc/deferd/by_sender', 'regexp:/etc/deferd/patterns'],
    destination: {
      'smtp:[bulk.test]:465': secure,
      'smtp:[other.test]:465': secure,
      'exchange.test': { smtp_connect_timeout: '5s' },
    },
  })
  expect(files.find(({ path }) => path === '/etc/deferd/by_sender')?.text).toBe('@bulk.test smtp:[bulk.test]:465\nann@a.test DUNNO\n')
  expect(toml).toContain('# sender_dependent_default_transport_maps: @b.test = custom:: the transport custom delivers with pipe')
})

/** The comments of a configuration. */
const commentsOf = ({ toml }: ConvertedConfiguration): string =>
  toml
    .split('\n')
    .filter((line) => line.startsWith('#'))
    .join('\n')

test('classes, and tables with restrictions as results', () => {
  const result = convert(
    `smtpd_restriction_classes = insiders_only, empty
insiders_only = check_sender_access hash:CONFIG/insiders, reject
empty = reject_rbl_client zen.example
smtpd_sender_restrictions = check_sender_access hash:CONFIG/senders
smtpd_recipient_restrictions = check_recipient_access inline:{all@corp.example=insiders_only}
smtpd_client_restrictions = check_client_access cidr:CONFIG/clients
`.replaceAll('CONFIG', '/etc/postfix'),
    '',
    {
      insiders: 'corp.example OK\n',
      senders: 'corp.example permit_mynetworks, reject\nbad.example FILTER smtp:x\n',
      clients: '10.0.0.0/24 REJECT no\n10.1.0.0/24 unknown\n',
    },
  )
  const values = parse(result.toml)
  expect(values).toMatchObject({
    smtpd_restriction_classes: { insiders_only: ['check_sender_access texthash:/etc/deferd/insiders', 'reject'] },
    smtpd_sender_restrictions: ['check_sender_access texthash:/etc/deferd/senders'],
    smtpd_recipient_restrictions: ['check_recipient_access inline:{all@corp.example=insiders_only}'],
    smtpd_client_restrictions: ['check_client_access cidr:/etc/deferd/clients'],
  })
  expect(() => configFrom(values, 'machine')).not.toThrow()
  const textOf = (name: string) => result.files.find(({ path }) => path.endsWith(name))?.text
  expect(textOf('senders')).toBe('corp.example permit_mynetworks, reject\n# bad.example FILTER smtp:x\n')
  expect(textOf('clients')).toBe('10.0.0.0/24 REJECT no\n# 10.1.0.0/24 unknown\n')
  expect(commentsOf(result)).toContain(
    'bad.example FILTER smtp:x: the entry is left out: "FILTER" is no action: deferd has no content filter',
  )
  expect(commentsOf(result)).toContain('smtpd_restriction_classes: empty has no restriction that deferd has')
})

test.each<readonly [main: string, relay: unknown]>([
  ['compatibility_level = 3.6', undefined],
  ['smtpd_relay_restrictions = permit_mynetworks permit_sasl_authenticated defer_unauth_destination', undefined],
  [
    'smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination',
    ['permit_sasl_authenticated', 'reject_unauth_destination'],
  ],
  [
    'smtpd_relay_restrictions = check_client_access inline:{10.0.0.50=REJECT}, permit_mynetworks, check_relay_domains',
    ['check_client_access inline:{10.0.0.50=REJECT}', 'permit_mynetworks', 'defer_unauth_destination'],
  ],
  [
    'smtpd_relay_restrictions =\nsmtpd_recipient_restrictions = permit_mynetworks, check_client_access inline:{10.0.0.50=OK}, reject_unauth_destination, reject_unknown_sender_domain',
    ['permit_mynetworks', 'check_client_access inline:{10.0.0.50=OK}', 'reject_unauth_destination'],
  ],
])('relay restrictions of %j', (main, relay) => {
  const { toml } = convert(main)
  const values = parse(toml)
  expect(values['smtpd_relay_restrictions']).toEqual(relay)
  expect(() => configFrom(values, 'machine')).not.toThrow()
})

test.each<readonly [mydestination: string, expected: unknown]>([
  ['', {}],
  ['host.example, corp.example, localhost', { alias_maps: ['texthash:/etc/aliases'] }],
  ['$myhostname, localhost', { alias_maps: ['texthash:/etc/aliases'], alias_domains: ['host.example', 'localhost'] }],
])('alias_maps apply to the domains of mydestination = %s', (mydestination, expected) => {
  const files: PostfixFiles = {
    read: (path) =>
      ({
        '/c/main.cf': `myhostname = host.example\nmyorigin = corp.example\nmydestination = ${mydestination}\n`,
        '/etc/aliases': 'abuse: root\n',
      })[path] ?? null,
    changedAt: () => null,
    isPrivate: () => false,
    computed: () => null,
    dump: () => null,
  }
  const { toml } = convertConfiguration({ configDirectory: '/c', folder: '/d', hostname: 'h', queueDirectory: '/q' }, files)
  const { alias_maps, alias_domains } = parse(toml)
  expect({ ...(alias_maps === undefined ? {} : { alias_maps }), ...(alias_domains === undefined ? {} : { alias_domains }) }).toEqual(
    expected,
  )
})

test('mynetworks keeps the words that are networks, and is that of the machine when it is not set', () => {
  const texts: Readonly<Record<string, string>> = {
    '/c/main.cf': 'mynetworks = 127.0.0.0/8, /c/networks',
    '/c/networks': '10.0.0.0/8\n172.16.5.0/24   # lab\n',
  }
  const files: PostfixFiles = {
    read: (path) => texts[path] ?? null,
    changedAt: () => null,
    isPrivate: () => false,
    computed: (_, name) => (name === 'mynetworks' ? '127.0.0.0/8 192.0.2.7/32' : null),
    dump: () => null,
  }
  const facts = { configDirectory: '/c', folder: '/d', hostname: 'h', queueDirectory: '/q' }
  const { toml } = convertConfiguration(facts, files)
  expect(parse(toml)).toMatchObject({ mynetworks: ['127.0.0.0/8', '10.0.0.0/8', '172.16.5.0/24'] })
  expect(toml).toContain('# mynetworks: lab is left out: expected a network')
  const unset = convertConfiguration(facts, { ...files, read: (path) => (path === '/c/main.cf' ? 'relayhost = x.test' : null) })
  expect(parse(unset.toml)).toMatchObject({ mynetworks: ['127.0.0.0/8', '192.0.2.7/32'] })
})

test('limits of services, of processes, and options of the service relay', () => {
  const result = convert(
    `relay_domains = inner.test
default_destination_concurrency_limit = 20
smtp_destination_concurrency_limit = 2
slow_destination_rate_delay = 1s
slow_destination_concurrency_limit = 9
transport_maps = inline:{{slow.test = slow:[10.0.0.3]}}
`,
    `smtp unix - - y - 7 smtp
relay unix - - y - - smtp
  -o syslog_name=postfix/relay -o smtp_tls_security_level=none -o smtp_connect_timeout=5s
slow unix - - y - 2 smtp
`,
  )
  expect(parse(result.toml)).toMatchObject({
    default_destination_concurrency_limit: '2',
    default_process_limit: '7',
    destination: {
      'inner.test': { smtp_tls_security_level: 'none', smtp_connect_timeout: '5s' },
      'smtp:[10.0.0.3]:25': { destination_rate_delay: '1s', destination_concurrency_limit: '2' },
    },
  })
  expect(commentsOf(result)).not.toContain('slow_destination')
})

test('policy servers in braces keep the settings that deferd has', () => {
  const result = convert(
    'smtpd_recipient_restrictions = check_policy_service { inet:127.0.0.1:10023, timeout=10s, default_action=DUNNO, max_idle=5s }, check_policy_service unix:private/spf',
    'spf unix - n n - 0 spawn user=nobody argv=/usr/bin/spf\n',
  )
  expect(parse(result.toml)).toMatchObject({
    smtpd_recipient_restrictions: ['check_policy_service { inet:127.0.0.1:10023, timeout=10s, default_action=DUNNO }'],
  })
  expect(commentsOf(result)).toContain('inet:127.0.0.1:10023: max_idle=5s is left out')
  expect(commentsOf(result)).toContain('check_policy_service unix:private/spf is left out: Postfix starts this server')
})

test('certificates, keys and templates are copied when they are in the folder of Postfix, or private', () => {
  const texts: Readonly<Record<string, string>> = {
    '/c/main.cf':
      'smtpd_tls_security_level = may\nsmtpd_tls_chain_files = /c/key.pem, /etc/ssl/cert.pem\nsmtp_tls_cert_file = /etc/ssl/private/own.pem\nbounce_template_file = /c/bounce.cf\n',
    '/c/master.cf': 'smtp inet n - y - - smtpd\n',
    '/c/key.pem': '-----BEGIN PRIVATE KEY-----',
    '/etc/ssl/cert.pem': 'cert',
    '/etc/ssl/private/own.pem': 'own',
    '/c/bounce.cf': 'template',
  }
  const files: PostfixFiles = {
    read: (path) => texts[path] ?? null,
    changedAt: () => null,
    isPrivate: (path) => path.includes('private'),
    computed: () => null,
    dump: () => null,
  }
  const { toml, files: written } = convertConfiguration({ configDirectory: '/c', folder: '/d', hostname: 'h', queueDirectory: '/q' }, files)
  expect(parse(toml)).toMatchObject({
    smtpd_tls_chain_files: ['/d/key.pem', '/etc/ssl/cert.pem'],
    smtpd_tls_security_level: 'may',
    smtp_tls_cert_file: '/d/own.pem',
    bounce_template_file: '/d/bounce.cf',
  })
  expect(written.map(({ path, mode }) => `${path} ${mode.toString(8)}`).toSorted()).toEqual([
    '/d/bounce.cf 644',
    '/d/key.pem 600',
    '/d/own.pem 600',
  ])
  expect(toml).toContain('# /etc/ssl/private/own.pem is copied to /d/own.pem')
})

test('parameters of a server in master.cf are those of its listener', () => {
  const result = convert(
    `smtpd_client_restrictions = check_client_access hash:CONFIG/clients
smtpd_sasl_auth_enable = yes
`,
    `smtp inet n - n - - smtpd
10.0.0.1:587 inet n - n - - smtpd -o smtpd_client_restrictions= -o smtpd_relay_restrictions=permit_mynetworks,reject
  -o smtpd_recipient_restrictions=reject_rbl_client,zen.example -o smtpd_recipient_limit=7 -o smtpd_milters=inet:x:1
  -o { smtpd_sender_restrictions = check_sender_access hash:/etc/postfix/senders, reject_sender_login_mismatch }
`,
    { clients: '192.0.2.1 REJECT\n', senders: 'corp.example permit_mynetworks, reject\n' },
  )
  const values = parse(result.toml)
  expect(values).toMatchObject({
    smtpd_listen: ['*:25'],
    smtpd: [
      {
        address: '10.0.0.1:587',
        tls: 'none',
        auth: 'may',
        smtpd_client_restrictions: [],
        smtpd_relay_restrictions: ['permit_mynetworks', 'reject'],
        smtpd_recipient_limit: '7',
        smtpd_sender_restrictions: ['check_sender_access texthash:/etc/deferd/senders', 'reject_sender_login_mismatch'],
      },
    ],
  })
  expect(commentsOf(result)).toContain('master.cf: 10.0.0.1:587: smtpd_recipient_restrictions: reject_rbl_client zen.example is left out')
  expect(commentsOf(result)).toContain('master.cf: 10.0.0.1:587: smtpd_milters = inet:x:1: deferd has it for all listeners only')
})
