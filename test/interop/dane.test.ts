/**
 * DANE row by row, with posttls-finger of Postfix as judge: both ask an unbound that serves signed, unsigned and bogus zones, and connect to the
 * same hosts, in a network namespace. Needs root.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { TlsFacts } from '../../src/mail/tls-facts.ts'
import { makeCertificate, type MadeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { reasonToSkip } from '../support/required.ts'

const PROGRAMS = [
  '/usr/sbin/unbound',
  '/usr/bin/ldns-signzone',
  '/usr/bin/ldns-keygen',
  '/usr/sbin/posttls-finger',
  '/usr/bin/unshare',
  '/usr/sbin/ip',
]
const missing = PROGRAMS.filter((path) => !existsSync(path))
const lacking = missing.length > 0 ? `${missing.join(', ')} are missing: install unbound, ldnsutils, postfix, util-linux, iproute2` : null
const reason = reasonToSkip('interop', lacking ?? (process.getuid?.() === 0 ? null : 'a network namespace needs root'))
const title = (text: string): string => (reason === null ? text : `${text} (not run: ${reason})`)

const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')
const authority = makeCertificate({ seed: 'domain CA', isAuthority: true })
const own = makeCertificate({ seed: 'own', names: ['other.test'], until: Date.UTC(2021, 0, 1) })

interface Row {
  readonly name: string
  readonly certificate: MadeCertificate
  readonly tlsa: readonly string[]
  /** Result at level dane, with posttls-finger's word for the connection; null where it makes none, or none that it accepts. */
  readonly state: TlsFacts['state']
  readonly judged: 'Verified' | 'Trusted' | null
}

const issuedTo = (host: string): MadeCertificate => {
  const made = makeCertificate({ seed: host, names: [host], issuer: authority })
  return { ...made, cert: made.cert + authority.cert }
}

/** Rows with their records at `_25._tcp.mx.NAME.dane.test`. */
const ROWS: readonly Row[] = [
  { name: 'ee', certificate: own, tlsa: [`3 1 1 ${sha256(own.spki)}`], state: 'verified', judged: 'Verified' },
  { name: 'ee-full', certificate: own, tlsa: [`3 0 1 ${sha256(own.der)}`], state: 'verified', judged: 'Verified' },
  { name: 'ee-wrong', certificate: own, tlsa: [`3 1 1 ${sha256(authority.spki)}`], state: 'refused', judged: null },
  {
    name: 'ta',
    certificate: issuedTo('mx.ta.dane.test'),
    tlsa: [`2 1 1 ${sha256(authority.spki)}`],
    state: 'verified',
    judged: 'Verified',
  },
  { name: 'ta-name', certificate: issuedTo('mx.other.test'), tlsa: [`2 0 1 ${sha256(authority.der)}`], state: 'refused', judged: null },
  { name: 'ta-leaf', certificate: own, tlsa: [`2 1 1 ${sha256(own.spki)}`], state: 'refused', judged: null },
  { name: 'unusable', certificate: own, tlsa: [`1 1 1 ${sha256(own.spki)}`], state: 'encrypted', judged: null },
  { name: 'none', certificate: own, tlsa: [], state: 'encrypted', judged: null },
]

const addressOf = (n: number): string => `127.0.1.${n + 1}`

const soa = (zone: string): string => `$ORIGIN ${zone}.\n$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 127.0.0.1\n`

const signedZone = [
  soa('dane.test'),
  ...ROWS.flatMap(({ name, tlsa }, n) => [
    `${name} MX 10 mx.${name}`,
    `mx.${name} A ${addressOf(n)}`,
    ...tlsa.map((one) => `_25._tcp.mx.${name} TLSA ${one}`),
  ]),
  'forged MX 10 mx.forged',
  `mx.forged A ${addressOf(0)}`,
  `_25._tcp.mx.forged TLSA 3 1 1 ${'ab'.repeat(32)}`,
  '',
].join('\n')

/** An unsigned domain with a host of the signed zone, and one of its own whose TLSA records do not count. */
const plainZone = `${soa('plain.test')}@ MX 10 mx.ee.dane.test.\nown MX 10 mx.own\nmx.own A ${addressOf(0)}\n_25._tcp.mx.own TLSA 3 1 1 ${'cd'.repeat(32)}\n`
const bogusZone = `${soa('bogus.test')}@ MX 10 mx\nmx A ${addressOf(0)}\n`

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

function sign(folder: string, zone: string, text: string): void {
  writeFileSync(join(folder, `${zone}.zone`), text)
  const run = (program: string, ...argv: readonly string[]) => execFileSync(program, argv, { cwd: folder, encoding: 'utf8' }).trim()
  const key = run('/usr/bin/ldns-keygen', '-a', 'ECDSAP256SHA256', '-k', zone)
  run('/usr/bin/ldns-signzone', `${zone}.zone`, key)
  writeFileSync(join(folder, `${zone}.anchor`), readFileSync(join(folder, `${key}.key`)))
}

/** Replaces data that was signed. */
function forge(folder: string, zone: string, from: string, to: string): void {
  const path = join(folder, `${zone}.zone.signed`)
  const text = readFileSync(path, 'utf8')
  if (!text.toLowerCase().includes(from)) throw new Error(`${path} lacks ${from}`)
  writeFileSync(path, text.replaceAll(new RegExp(from, 'gi'), to))
}

function write(folder: string, domains: readonly string[]): void {
  sign(folder, 'dane.test', signedZone)
  sign(folder, 'bogus.test', bogusZone)
  forge(folder, 'dane.test', 'ab'.repeat(32), 'ac'.repeat(32))
  forge(folder, 'bogus.test', '10 mx.bogus.test.', '20 mx.bogus.test.')
  writeFileSync(join(folder, 'plain.test.zone'), plainZone)
  const zones = [
    ['dane.test', 'dane.test.zone.signed'],
    ['bogus.test', 'bogus.test.zone.signed'],
    ['plain.test', 'plain.test.zone'],
  ]
  const unbound = [
    'server:',
    '  interface: 127.0.0.1@53',
    '  do-daemonize: no\n  username: ""\n  chroot: ""\n  use-syslog: no\n  do-not-query-localhost: no',
    `  directory: "${folder}"\n  pidfile: "${folder}/unbound.pid"`,
    '  local-zone: "test." nodefault\n  module-config: "validator iterator"',
    ...['dane.test', 'bogus.test'].map((zone) => `  trust-anchor-file: "${zone}.anchor"`),
    ...zones.map(
      ([zone, path]) =>
        `auth-zone:\n  name: "${zone}."\n  zonefile: "${path}"\n  for-downstream: no\n  for-upstream: yes\n  fallback-enabled: no`,
    ),
  ]
  writeFileSync(join(folder, 'unbound.conf'), `${unbound.join('\n')}\n`)
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions trust-ad\n')
  const hosts = ROWS.map(({ name, certificate: { cert, key } }, n) => ({ name: `mx.${name}.dane.test`, address: addressOf(n), cert, key }))
  writeFileSync(join(folder, 'bench.json'), JSON.stringify({ hosts, domains }))
  writeFileSync(join(folder, 'run.sh'), script(folder, domains))
}

const script = (folder: string, domains: readonly string[]): string => `
set -e
cd ${folder}
ip link set lo up
mount --bind resolv.conf /etc/resolv.conf
unbound -c unbound.conf > unbound.log 2>&1 & NAMES=$!
until ${process.execPath} -e "require('node:dns').promises.resolve4('mx.ee.dane.test').then(() => 0, () => process.exit(1))"; do :; done
mkfifo stop answers
sleep 60 > stop & HOLD=$!
${process.execPath} ${file('../support/dane-bench.ts')} bench.json < stop > answers & HOSTS=$!
head -1 answers
for domain in ${domains.join(' ')}; do
  echo "== $domain"
  posttls-finger -c -t 5 -T 5 -l dane -L summary $domain 2>&1 || true
done
kill $NAMES $HOLD $HOSTS
`

const EXTRA: readonly (readonly [domain: string, outcome: string, status: string, state: TlsFacts['state'] | undefined])[] = [
  ['plain.test', 'delivered', '2.0.0', 'trusted'],
  ['own.plain.test', 'delivered', '2.0.0', 'encrypted'],
  ['bogus.test', 'deferred', '4.4.3', undefined],
  ['forged.dane.test', 'deferred', '4.7.5', 'refused'],
]

test.skipIf(reason !== null)(title('deferd and posttls-finger agree on each row'), () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-dane-'))
  const domains = [...ROWS.map(({ name }) => `${name}.dane.test`), ...EXTRA.map(([domain]) => domain)]
  write(folder, domains)
  const output = execFileSync('/usr/bin/unshare', ['-mn', 'bash', join(folder, 'run.sh')], { encoding: 'utf8', timeout: 120_000 })
  const [answers = '{}', ...judged] = output.split(/^== /m)
  const ours = JSON.parse(answers) as Record<string, { outcome: string; status: string; reason: string; tls?: TlsFacts }>
  const theirs = new Map(
    judged.map((text) => [text.split('\n')[0], /(Verified|Trusted) TLS connection established/.exec(text)?.[1] ?? null]),
  )

  for (const { name, state, judged: word } of ROWS) {
    const domain = `${name}.dane.test`
    const found = ours[`dane ${domain}`]
    expect({ domain, state: found?.tls?.state, judged: theirs.get(domain) }).toEqual({ domain, state, judged: word })
    expect({ domain, outcome: found?.outcome }).toEqual({ domain, outcome: state === 'refused' ? 'deferred' : 'delivered' })
    const strict = ours[`dane-only ${domain}`]
    expect({ domain, outcome: strict?.outcome }).toEqual({ domain, outcome: state === 'verified' ? 'delivered' : 'deferred' })
  }
  for (const [domain, outcome, status, state] of EXTRA) {
    const found = ours[`dane ${domain}`]
    expect({ domain, outcome: found?.outcome, status: found?.status, state: found?.tls?.state }).toEqual({ domain, outcome, status, state })
    expect(ours[`dane-only ${domain}`]?.outcome).toBe('deferred')
  }
  expect(theirs.get('plain.test')).toBe('Trusted')
  expect(ours['dane forged.dane.test']?.reason).toBe('TLSA lookup error for mx.forged.dane.test:25')
})
