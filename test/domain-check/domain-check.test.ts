/**
 * `deferd check domain` in a world of domains, good and broken: golden screens and JSON, and a delivery to each domain, which has the
 * outcome of the last line.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { domainScreen } from '../../src/cli/check/domain-screen.ts'
import { openRoutingTables } from '../../src/delivery/routing/routing-tables.ts'
import { readTlsFiles } from '../../src/daemon/delivery-secrets.ts'
import { loadDkimKeys } from '../../src/dkim/keys.ts'
import { gatherFacts, type DomainFacts } from '../../src/domain-check/domain-facts.ts'
import { domainJson, domainReport, type DomainReport } from '../../src/domain-check/domain-report.ts'
import { domainReportShape } from '../../src/resources/domains/domain-check-json.ts'
import { savedProviders } from '../../src/store/records/saved-providers.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { seededRandom } from '../../src/system/random.ts'
import type { TlsaRecord } from '../../src/system/net.ts'
import type { Zone } from '../../src/testkit/remote/rule.ts'
import { makeCertificate, type MadeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { TlsWorld } from '../support/tls-world.ts'

const OURS = '198.51.100.25'
const SENDER = 'app@us.example'

const tlsa = (certificate: MadeCertificate): TlsaRecord => ({
  usage: 3,
  selector: 1,
  matchingType: 1,
  data: createHash('sha256').update(certificate.spki).digest(),
})

/** Prepares a domain of its own name. */
type Prepare = (far: TlsWorld, domain: string) => void

const zone = (far: TlsWorld, name: string, records: Partial<Zone>): void =>
  far.world.remote.setZone(name, { mx: [], a: [], aaaa: [], ...records })

/** A signed zone whose exchanger has an address and the TLSA record of a certificate. */
function signed(far: TlsWorld, domain: string, published: MadeCertificate, presented: MadeCertificate): void {
  const mx = `mx.${domain}`
  zone(far, domain, { secure: true, mx: [{ preference: 10, exchange: mx }] })
  zone(far, mx, { a: [addressOf(domain)] })
  zone(far, `_25._tcp.${mx}`, { tlsa: [tlsa(published)] })
  far.world.remote.setIdentity(mx, presented)
}

/** An address of its own for a domain, outside of those that the world assigns. */
const addressOf = (domain: string): string => `203.0.113.${createHash('sha256').update(domain).digest()[0] ?? 0}`

const OWN = makeCertificate({ seed: 'own', names: ['other.example'] })
const OTHER = makeCertificate({ seed: 'other' })

/** Domains with what happens to their mail: the beginning of the last line after `mail to DOMAIN now: `. */
const DOMAINS: readonly (readonly [domain: string, last: RegExp, verdict: DomainReport['verdict'], prepare: Prepare])[] = [
  [
    'good.example',
    /^sent to mx\.good\.example\[.*\]:25 with TLSv1\.3, certificate verified \(level secure, policy sts\)$/,
    'ok',
    (far, domain) => {
      far.secure(`mx.${domain}`).publish(domain, { id: 'one' })
      zone(far, `_smtp._tls.${domain}`, { txt: [`v=TLSRPTv1; rua=mailto:tls@${domain},https://${domain}/tls`] })
    },
  ],
  [
    'expired-policy.example',
    /^sent to .* without TLS \(level may\)$/,
    'wrong',
    (far, domain) => {
      far.unsecure(`mx.${domain}`).unserve(domain)
    },
  ],
  [
    'wrong-certificate.example',
    /^deferred \(4\.7\.5\): Server certificate not verified: .* does not name mx\.wrong-certificate\.example/,
    'wrong',
    (far, domain) => far.secure(`mx.${domain}`, { names: ['www.example'] }).publish(domain, { id: 'one' }),
  ],
  [
    'other-exchanger.example',
    /^deferred \(4\.7\.5\): MX host mx\.elsewhere\.example does not match the MTA-STS policy/,
    'wrong',
    (far, domain) => {
      far.secure('mx.elsewhere.example').publish(domain, { id: 'one', mx: [`mx.${domain}`] })
      far.world.destination(domain).hasExchangers('10 mx.elsewhere.example')
    },
  ],
  [
    'bogus.example',
    /^deferred \(4\.4\.3\): .*type=MX: Host not found, try again \(SERVFAIL\)$/,
    'unknown',
    (far, domain) => {
      signed(far, domain, OWN, OWN)
      for (const name of [domain, `_mta-sts.${domain}`, `_smtp._tls.${domain}`]) far.world.rule({ domain: name, dns: 'servfail' })
    },
  ],
  [
    'no-mx.example',
    /^sent to no-mx\.example\[.*\]:25 without TLS \(level may\)$/,
    'ok',
    (far, domain) => zone(far, domain, { a: [addressOf(domain)] }),
  ],
  [
    'null-mx.example',
    /^returned to its sender \(5\.1\.0\): Domain null-mx\.example does not accept mail \(nullMX\)$/,
    'wrong',
    (far, domain) => far.world.destination(domain).hasExchangers('0 .'),
  ],
  [
    'nowhere.example',
    /^returned to its sender \(5\.4\.4\): Host or domain name not found/,
    'wrong',
    (far, domain) => far.world.rule({ domain, dns: 'nxdomain' }),
  ],
  [
    'provider.example',
    /^sent to mx1\.mail\.provider\.example\[.*\]:25 with TLSv1\.3, certificate not verified \(level may\)$/,
    'ok',
    (far, domain) => {
      for (const mx of ['mx1', 'mx2']) far.world.remote.setIdentity(`${mx}.mail.provider.example`, OTHER)
      far.world.destination(domain).hasExchangers('1 mx1.mail.provider.example', '5 mx2.mail.provider.example')
    },
  ],
  [
    'dane.example',
    /^sent to mx\.dane\.example\[.*\]:25 with TLSv1\.3, certificate verified \(level dane, policy dane\)$/,
    'ok',
    (far, domain) => signed(far, domain, OWN, OWN),
  ],
  [
    'dane-wrong.example',
    /^deferred \(4\.7\.5\): Server certificate not verified: .*: no TLSA record matches its certificates$/,
    'wrong',
    (far, domain) => signed(far, domain, OWN, OTHER),
  ],
  [
    'tlsa-failing.example',
    /^deferred \(4\.7\.5\): TLSA lookup error for mx\.tlsa-failing\.example:25$/,
    'unknown',
    (far, domain) => {
      signed(far, domain, OWN, OWN)
      far.world.rule({ domain: `_25._tcp.mx.${domain}`, dns: 'timeout' })
    },
  ],
  ['dns-failing.example', /^deferred \(4\.4\.3\): .*\(timeout\)$/, 'unknown', (far, domain) => far.world.rule({ domain, dns: 'timeout' })],
  ['plain.example', /^sent to mx\.plain\.example\[.*\]:25 without TLS \(level may\)$/, 'ok', () => undefined],
  [
    'down.example',
    /^deferred \(4\.4\.1\): connect to mx\.down\.example\[.*\]:25: Connection refused$/,
    'wrong',
    (far, domain) => far.world.destination(domain).isDown(),
  ],
  [
    'one-of-two.example',
    /^sent to mx2\.one-of-two\.example\[.*\]:25 without TLS \(level may\)$/,
    'wrong',
    (far, domain) => {
      far.world.rule({ mx: `mx1.${domain}`, connect: 'refused' })
      far.world.destination(domain).hasExchangers(`10 mx1.${domain}`, `20 mx2.${domain}`)
    },
  ],
  [
    'refused.example',
    /^returned to its sender \(5\.7\.1\): /,
    'wrong',
    (far, domain) => far.world.rule({ domain, at: 'greeting', reply: '554 5.7.1 go away' }),
  ],
  [
    'doubled.example',
    /^sent to .* without TLS \(level may\)$/,
    'wrong',
    (far, domain) => {
      far.unsecure(`mx.${domain}`).unserve(domain)
      zone(far, `_mta-sts.${domain}`, { txt: ['v=STSv1; id=1;', 'v=STSv1; id=2;'] })
      zone(far, `_smtp._tls.${domain}`, { txt: [`v=TLSRPTv1; rua=mailto:a@${domain}`, `v=TLSRPTv1; rua=mailto:b@${domain}`] })
    },
  ],
]

interface Attempted {
  readonly destination: string
  readonly outcome: string
  readonly status: DeliveryStatus
  readonly relay: string | null
}

let far: TlsWorld
/** Attempts after the checks, oldest first. */
const attempts: Attempted[] = []
const checked = new Map<string, { readonly facts: DomainFacts; readonly report: DomainReport }>()

async function check(domain: string): Promise<DomainReport> {
  const { world } = far
  const { relay } = world
  const live = relay.scheduler.destinations.all()
  const progress = { done: false }
  const facts = gatherFacts(domain, SENDER, {
    config: relay.config,
    secrets: { tls: readTlsFiles(relay.config) },
    routingTables: openRoutingTables(relay.config).tables,
    dkimKeys: loadDkimKeys(relay.config),
    net: world.net,
    clock: world.clock,
    random: seededRandom(7),
    signal: new AbortController().signal,
    policyOf: (name) => world.reader.records.stsPolicies.of(name),
    providerOf: (name) => world.reader.records.providerMembers.providerOf(name),
    providerState: async (name) => (await savedProviders(world.reader.records))(name),
    destination: async (name) => ({ live: live.find(({ destination }) => destination === name), record: undefined }),
  }).finally(() => (progress.done = true))
  while (!progress.done) await world.advance(1)
  const found = await facts
  const report = domainReport(found, relay.config)
  checked.set(domain, { facts: found, report })
  return report
}

beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-check-'))
  const key = join(directory, 'us.pem')
  writeFileSync(key, makeCertificate({ seed: 'signer' }).key, { mode: 0o600 })
  far = await TlsWorld.open({
    smtp_tls_security_level: 'dane',
    smtp_dns_support_level: 'dnssec',
    smtp_bind_address: OURS,
    smtp_helo_name: 'relay.us.example',
    smtp_skip_5xx_greeting: false,
    provider: { big: { mx: ['.mail.provider.example'], provider_concurrency_limit: 5, provider_message_rate_limit: 600 } },
    destination: { 'provider.example': { destination_concurrency_limit: 5, destination_message_rate_limit: 100 } },
    dkim: { 'us.example': { keys: [`e1:${key}`] } },
    transport_maps: {
      'discarded.example': 'discard:gone',
      'error.example': 'error:5.7.0 closed',
      'inside.example': 'smtp:[mx.inside.example]:26',
    },
  })
  zone(far, OURS, { ptr: ['relay.us.example'] })
  zone(far, 'relay.us.example', { a: [OURS] })
  zone(far, 'us.example', { txt: ['v=spf1 a:relay.us.example -all'] })
  zone(far, '_dmarc.us.example', { txt: ['v=DMARC1; p=reject; adkim=s'] })
  const [published] = loadDkimKeys(far.world.relay.config).get('us.example')?.keys ?? []
  zone(far, 'e1._domainkey.us.example', { txt: [published?.record ?? ''] })
  // The policy of this domain is kept from a delivery, and has expired since.
  far.secure('mx.expired-policy.example').publish('expired-policy.example', { id: 'one', maxAge: 3_600 })
  await far.send('ann@expired-policy.example')
  await far.world.settle()
  await far.world.advance('2h')
  for (const [domain, , , prepare] of DOMAINS) prepare(far, domain)
  for (const [domain] of DOMAINS) await check(domain)
  far.world.relayEvents.listen((event) => {
    if (event.kind !== 'attempted') return
    const { request, result } = event
    for (const { outcome, status } of event.attempts)
      attempts.push({ destination: request.destination, outcome, status, relay: result.relay })
  })
})
afterAll(() => far[Symbol.asyncDispose]())

const reportOf = (domain: string) => checked.get(domain) as { readonly facts: DomainFacts; readonly report: DomainReport }

describe('the last line is the outcome of a delivery', () => {
  test.each(DOMAINS)('%s', async (domain, last, verdict) => {
    const { facts, report } = reportOf(domain)
    expect(report.mail.text).toMatch(new RegExp(`^mail to ${domain} now: ${last.source.slice(1)}`))
    expect(report.verdict).toBe(verdict)
    await far.send(`postmaster@${domain}`)
    await far.world.advance('1m')
    const { outcome, status, relay } = facts.delivery
    const attempt = attempts.find(({ destination }) => destination === domain)
    expect(attempt).toMatchObject({ outcome, relay })
    expect(attempt?.status.tls).toEqual(status.tls)
    // A delivery goes on where the rehearsal has ended: its status and reason are those of the reply to the content.
    if (outcome !== 'delivered') expect(attempt?.status).toMatchObject({ status: status.status, reason: status.reason })
  })
})

describe('what no delivery shows', () => {
  test('a suspended destination: mail waits, and would then be sent', async () => {
    await far.world.suspend('suspended.example')
    const { mail, verdict } = await check('suspended.example')
    expect(mail.text).toMatch(/now: waits, because the destination is suspended by operator; then sent to mx\.suspended\.example/)
    expect({ verdict, waits: mail.waits }).toEqual({ verdict: 'wrong', waits: true })
  })

  test('routes of transport_maps', async () => {
    expect((await check('discarded.example')).mail.text).toBe(
      'mail to discarded.example now: discarded: delivered via discard service: gone',
    )
    expect((await check('error.example')).mail.text).toBe('mail to error.example now: returned to its sender (5.7.0): closed')
    const { findings, mail } = await check('inside.example')
    expect(findings).toContainEqual({ what: 'route', verdict: 'note', text: 'mail goes to [mx.inside.example]:26 (transport_maps)' })
    expect(findings.map(({ what }) => what)).not.toContain('MX')
    expect(mail.text).toMatch(/sent to mx\.inside\.example\[.*\]:26 without TLS/)
  })

  test('TLSA records beside an enforced policy', async () => {
    const domain = 'both.example'
    signed(far, domain, OWN, OWN)
    far.publish(domain, { id: 'one' })
    expect((await check(domain)).mail.text).toMatch(/\(level dane, policy dane\); without TLSA records its MTA-STS policy would apply$/)
  })

  test('a policy of mode testing, and records that are unusable', async () => {
    far.secure('mx.tested.example', { names: ['www.example'] }).publish('tested.example', { id: 'one', mode: 'testing' })
    const { findings, mail, verdict } = await check('tested.example')
    expect(findings.find(({ what }) => what === 'host')).toMatchObject({
      verdict: 'wrong',
      text: expect.stringContaining('a tested policy refuses it') as string,
    })
    expect([mail.outcome, verdict]).toEqual(['sent', 'wrong'])
    signed(far, 'unusable.example', OWN, OWN)
    zone(far, '_25._tcp.mx.unusable.example', { tlsa: [{ ...tlsa(OWN), usage: 1 }] })
    const unusable = await check('unusable.example')
    expect(unusable.findings.find(({ what }) => what === 'TLSA')).toMatchObject({
      verdict: 'wrong',
      text: expect.stringMatching(/; none is usable$/) as string,
    })
    expect(unusable.mail.text).toMatch(/certificate not verified \(level dane, policy dane\)/)
  })
})

test('golden screens and JSON', async () => {
  const display = { width: 100, coloured: false }
  const reports = DOMAINS.map(([domain]) => reportOf(domain))
  const screens = reports.map(({ facts, report }) => domainScreen(domainJson(facts, report), { clock: far.world.clock, display }))
  await expect(screens.join(`\n${'-'.repeat(100)}\n\n`)).toMatchFileSnapshot('golden/screens.txt')
  const json = reports.map(({ facts, report }) => domainJson(facts, report))
  for (const one of json) expect(domainReportShape.parse(one)).toEqual(one)
  await expect(`${JSON.stringify(json, null, 2)}\n`).toMatchFileSnapshot('golden/reports.json')
})

test('records that are there twice are named', () => {
  const { findings } = reportOf('doubled.example').report
  const twice = findings.filter(({ text }) => text.includes('2 records')).map(({ what, verdict, text }) => [what, verdict, text])
  const text = 'the record cannot be used: there are 2 records, which count as none'
  expect(twice).toEqual([
    ['MTA-STS', 'wrong', text],
    ['TLS-RPT', 'wrong', text],
  ])
})
