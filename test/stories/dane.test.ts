/** DANE (RFC 7672) in a world: TLSA records of mail exchangers decide about TLS. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { TlsFacts } from '../../src/mail/tls-facts.ts'
import type { TlsaRecord } from '../../src/system/net.ts'
import type { WorldConfig } from '../../src/testkit/index.ts'
import type { Zone } from '../../src/testkit/remote/rule.ts'
import { makeCertificate, type MadeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { TEST_AUTHORITY, TlsWorld } from '../support/tls-world.ts'

const ANN = 'ann@far.example'
const MX = 'mx.far.example'
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest()
const record = (usage: number, selector: number, matchingType: number, data: Uint8Array): TlsaRecord => ({
  usage,
  selector,
  matchingType,
  data,
})
const NO_RECORDS: Zone = { mx: [], a: [], aaaa: [] }

const authority = makeCertificate({ seed: 'domain CA', isAuthority: true })
/** Self-signed, expired, and of another name. */
const own = makeCertificate({ seed: 'own', names: ['other.example'], until: Date.UTC(2021, 0, 1) })
const issued = makeCertificate({ seed: 'issued', names: [MX], issuer: authority })
const misnamed = makeCertificate({ seed: 'misnamed', names: ['other.example'], issuer: authority })

class DaneWorld {
  readonly far: TlsWorld
  readonly facts: TlsFacts[] = []

  constructor(far: TlsWorld) {
    this.far = far
    far.world.relayEvents.listen((event) => {
      if (event.kind === 'attempted') this.facts.push(...event.attempts.flatMap(({ status }) => status.tls ?? []))
    })
  }

  static async open(config: WorldConfig = {}): Promise<DaneWorld> {
    const dane: WorldConfig = { smtp_tls_security_level: 'dane', smtp_dns_support_level: 'dnssec' }
    const made = new DaneWorld(await TlsWorld.open({ ...dane, ...config }))
    return made.zone('far.example', { secure: true, mx: [{ preference: 10, exchange: MX }] }).zone(MX, { a: ['192.0.2.77'] })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.far[Symbol.asyncDispose]()
  }

  zone(name: string, zone: Partial<Zone>): this {
    this.far.world.remote.setZone(name, { ...NO_RECORDS, ...zone })
    return this
  }

  tlsa(...tlsa: readonly TlsaRecord[]): this {
    return this.zone(`_25._tcp.${MX}`, { tlsa })
  }

  host(certificate: MadeCertificate, ...chain: readonly MadeCertificate[]): this {
    const cert = [certificate, ...chain].map((one) => one.cert).join('')
    this.far.world.remote.setIdentity(MX, { cert, key: certificate.key })
    return this
  }

  async deliver(): Promise<{
    readonly tls: TlsFacts | undefined
    readonly mails: readonly boolean[]
    readonly reason: string | undefined
  }> {
    await this.far.send(ANN)
    await this.far.world.advance('20s')
    const reason = this.far.world.attempts(ANN).at(-1)?.reason
    return {
      tls: this.facts.at(-1),
      mails: this.far.world
        .mailbox(ANN)
        .mails()
        .map(({ tls }) => tls),
      reason,
    }
  }
}

type Prepare = (world: DaneWorld) => DaneWorld

describe('certificates that fit', () => {
  test.each<[string, Prepare]>([
    [
      '3 1 1, of a certificate that is self-signed, expired and of another name',
      (world) => world.host(own).tlsa(record(3, 1, 1, sha256(own.spki))),
    ],
    ['3 0 0', (world) => world.host(own).tlsa(record(3, 0, 0, own.der))],
    ['2 1 1 of the issuer', (world) => world.host(issued, authority).tlsa(record(2, 1, 1, sha256(authority.spki)))],
    ['2 0 0, an issuer that the host does not send', (world) => world.host(issued).tlsa(record(2, 0, 0, authority.der))],
    ['one of two', (world) => world.host(own).tlsa(record(2, 1, 1, sha256(authority.spki)), record(3, 1, 1, sha256(own.spki)))],
  ])('%s', async (_, prepare) => {
    await using world = prepare(await DaneWorld.open())
    for (let n = 1; n <= 2; n++) {
      const { tls, mails } = await world.deliver()
      expect(tls).toMatchObject({ level: 'dane', policy: 'dane', state: 'verified' })
      expect(mails).toEqual(Array.from({ length: n }, () => true))
    }
    expect(world.far.failures).toEqual([])
  })
})

describe('hosts that get no mail', () => {
  test.each<[string, Prepare, RegExp, string?]>([
    ['3 1 1 of another key', (world) => world.host(own).tlsa(record(3, 1, 1, sha256(issued.spki))), /Server certificate not verified/],
    ['2 1 1 of the host itself', (world) => world.host(own).tlsa(record(2, 1, 1, sha256(own.spki))), /Server certificate not verified/],
    [
      '2 0 1, and the name differs',
      (world) => world.host(misnamed, authority).tlsa(record(2, 0, 1, sha256(authority.der))),
      /does not name mx\.far\.example/,
    ],
    ['records, and no STARTTLS', (world) => world.tlsa(record(3, 1, 1, sha256(own.spki))), /TLS is required, but was not offered/, '4.7.4'],
    [
      'a failed look-up',
      (world) => {
        world.far.world.rule({ domain: `_25._tcp.${MX}`, dns: 'servfail' })
        return world.host(own)
      },
      /TLSA lookup error for mx\.far\.example:25/,
    ],
    [
      'a failed look-up, with an MTA-STS policy that the host meets',
      (world) => {
        world.far.world.rule({ domain: `_25._tcp.${MX}`, dns: 'timeout' })
        world.far.secure(MX).publish('far.example', { id: 'one' })
        return world
      },
      /TLSA lookup error/,
    ],
    [
      'records that do not match, with an MTA-STS policy that the host meets',
      (world) => {
        world.far.secure(MX).publish('far.example', { id: 'one' })
        return world.tlsa(record(3, 1, 1, sha256(own.spki)))
      },
      /Server certificate not verified/,
    ],
  ])('%s', async (_, prepare, pattern, status = '4.7.5') => {
    await using world = prepare(await DaneWorld.open())
    await world.far.send(ANN)
    await world.far.world.advance('2h')
    const attempts = world.far.world.attempts(ANN)
    expect(attempts.length).toBeGreaterThan(2)
    for (const attempt of attempts)
      expect(attempt).toMatchObject({ outcome: 'deferred', status, reason: expect.stringMatching(pattern) as string })
    expect(world.far.world.mailbox(ANN).mails()).toEqual([])
    expect(world.far.failures[0]).toMatchObject({ policy: 'dane', enforced: true, domain: MX })
  })
})

describe('weaker levels', () => {
  test.each<[string, Prepare, Partial<TlsFacts>, WorldConfig?]>([
    [
      'unusable records only: encrypted',
      (world) => world.host(own).tlsa(record(1, 1, 1, sha256(own.spki))),
      { level: 'dane', state: 'encrypted' },
    ],
    ['no records: may', (world) => world.host(own), { level: 'may', policy: 'none', state: 'encrypted' }],
    ['no records, and no STARTTLS: in clear', (world) => world, { level: 'may', state: 'clear' }],
    [
      'no records, with an MTA-STS policy: secure',
      (world) => {
        world.far.secure(MX).publish('far.example', { id: 'one' })
        return world
      },
      { level: 'secure', policy: 'sts', state: 'verified' },
    ],
    [
      'an insecure zone is not asked for TLSA records, whose look-up would fail',
      (world) => {
        world.far.world.rule({ domain: `_25._tcp.${MX}`, dns: 'servfail' })
        return world.zone('far.example', { secure: false, mx: [{ preference: 10, exchange: MX }] }).host(own)
      },
      { level: 'may', state: 'encrypted' },
    ],
    [
      'insecure MX records and secure TLSA records: trusted only',
      (world) =>
        world
          .zone('far.example', { secure: false, mx: [{ preference: 10, exchange: MX }] })
          .zone(MX, { secure: true, a: ['192.0.2.77'] })
          .host(own)
          .tlsa(record(3, 1, 1, sha256(own.spki))),
      { level: 'dane', state: 'trusted' },
    ],
    [
      'without smtp_dns_support_level = dnssec: may',
      (world) => world.host(own).tlsa(record(3, 1, 1, sha256(issued.spki))),
      { level: 'may', state: 'encrypted' },
      { smtp_dns_support_level: '' },
    ],
  ])('%s', async (_, prepare, expected, config = {}) => {
    await using world = prepare(await DaneWorld.open(config))
    const { tls, mails } = await world.deliver()
    expect(tls).toMatchObject(expected)
    expect(mails).toHaveLength(1)
  })
})

describe('dane-only', () => {
  const daneOnly: WorldConfig = { smtp_tls_security_level: 'dane-only' }
  test.each<[string, Prepare, RegExp, WorldConfig?]>([
    ['no records', (world) => world.host(own), /no TLSA records found/],
    ['unusable records', (world) => world.host(own).tlsa(record(1, 1, 1, sha256(own.spki))), /TLSA records unusable/],
    [
      'insecure MX records',
      (world) => world.zone('far.example', { secure: false, mx: [{ preference: 10, exchange: MX }] }),
      /non DNSSEC destination/,
    ],
    [
      'without dnssec',
      (world) => world.host(own),
      /dane-only is configured, but dnssec lookups are disabled/,
      { smtp_dns_support_level: '' },
    ],
  ])('%s: no mail is sent', async (_, prepare, pattern, config = {}) => {
    await using world = prepare(await DaneWorld.open({ ...daneOnly, ...config }))
    const { mails, reason } = await world.deliver()
    expect(mails).toEqual([])
    expect(reason).toMatch(pattern)
  })

  test('records that fit: verified', async () => {
    await using world = (await DaneWorld.open(daneOnly)).host(own).tlsa(record(3, 1, 1, sha256(own.spki)))
    expect((await world.deliver()).tls).toMatchObject({ level: 'dane-only', state: 'verified' })
  })
})

test('new records are obeyed although a TLS session and a connection are kept', async () => {
  await using world = (await DaneWorld.open()).host(own).tlsa(record(3, 1, 1, sha256(own.spki)))
  for (let n = 0; n < 4; n++) await world.far.send(ANN)
  await world.far.world.advance('1s')
  expect(world.far.world.mailbox(ANN).mails()).toHaveLength(4)
  world.tlsa(record(3, 1, 1, sha256(issued.spki)))
  expect((await world.deliver()).reason).toMatch(/Server certificate not verified/)
  expect(world.far.world.mailbox(ANN).mails()).toHaveLength(4)
  // The domain had both records during the change of the key, and then the new certificate.
  world.host(issued)
  await world.far.world.settle()
  expect(world.far.world.mailbox(ANN).mails()).toHaveLength(5)
})

test('an alias has its TLSA records at the name of its target', async () => {
  await using world = await DaneWorld.open()
  world.zone(MX, { alias: 'real.far.example' }).zone('real.far.example', { a: ['192.0.2.78'] })
  world.zone('_25._tcp.real.far.example', { tlsa: [record(3, 1, 1, sha256(own.spki))] })
  world.far.world.remote.setIdentity('real.far.example', own)
  expect((await world.deliver()).tls).toMatchObject({ level: 'dane', state: 'verified' })
})

test('the certificate of a trusted CA is not asked for', async () => {
  await using world = (await DaneWorld.open()).host(own).tlsa(record(3, 1, 1, sha256(TEST_AUTHORITY.spki)))
  expect((await world.deliver()).mails).toEqual([])
})
