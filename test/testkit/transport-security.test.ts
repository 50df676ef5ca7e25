/** MTA-STS and DANE in a world, by the methods of a domain and by a script. */
import { createTransport } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { createWorld, matchers, type RemoteDomain, type World, type WorldConfig } from '../../src/testkit/index.ts'

expect.extend(matchers)

const ANN = 'ann@far.example'
const DANE: WorldConfig = { smtp_tls_security_level: 'dane', smtp_dns_support_level: 'dnssec' }
const OTHER = 'ab'.repeat(32)

async function send(world: World): Promise<void> {
  await createTransport(world.transport()).sendMail({ from: 'app@us.example', to: ANN, text: 'hi' })
  await world.advance(0)
}

/** Outcome, status and TLS of the first attempt, and whether the mail arrived over TLS. */
async function attempt(config: WorldConfig, prepare: (far: RemoteDomain, world: World) => unknown, script?: string) {
  await using world = await createWorld({ config, script })
  prepare(world.destination('far.example'), world)
  await send(world)
  const [first] = world.attempts(ANN)
  const [mail] = world.mailbox(ANN).mails()
  return { outcome: first?.outcome, status: first?.status, tls: first?.tls, reason: first?.reason, encrypted: mail?.tls }
}

describe('MTA-STS', () => {
  test('a policy that names the exchanger requires a verified certificate', async () => {
    const tls = { policy: 'sts', state: 'verified' }
    const far = await attempt({}, (domain) => domain.offersTls().hasStsPolicy({ mode: 'enforce' }))
    expect(far).toMatchObject({ outcome: 'delivered', encrypted: true, tls })
  })

  test.each<[string, (domain: RemoteDomain) => unknown, RegExp]>([
    [
      'an exchanger that the policy does not name',
      (domain) => domain.offersTls().hasStsPolicy({ mode: 'enforce', mx: ['mx.other.example'] }),
      /mx\.far\.example/,
    ],
    ['no STARTTLS', (domain) => domain.hasStsPolicy({ mode: 'enforce' }), /TLS is required/],
    ['an expired certificate', (domain) => domain.offersTls('expired').hasStsPolicy({ mode: 'enforce' }), /certificate/i],
    ['a self-signed certificate', (domain) => domain.offersTls('self-signed').hasStsPolicy({ mode: 'enforce' }), /certificate/i],
    ['a certificate of another name', (domain) => domain.offersTls('other-name').hasStsPolicy({ mode: 'enforce' }), /mx\.far\.example/],
  ])('%s: deferred, not delivered in clear text', async (_, prepare, reason) => {
    const far = await attempt({}, prepare)
    expect(far).toMatchObject({ outcome: 'deferred', encrypted: undefined, tls: { policy: 'sts' } })
    expect(far.reason).toMatch(reason)
  })

  test.each<[string, WorldConfig, (domain: RemoteDomain) => unknown]>([
    ['in mode testing', {}, (domain) => domain.hasStsPolicy({ mode: 'testing' })],
    ['with smtp_tls_mta_sts = no', { smtp_tls_mta_sts: 'no' }, (domain) => domain.hasStsPolicy({ mode: 'enforce' })],
    ['while no policy was ever fetched', {}, (domain) => domain.hasStsPolicy({ mode: 'enforce', fails: 404 })],
    ['with a host of the policy that is down', {}, (domain) => domain.hasStsPolicy({ mode: 'enforce', fails: 'refused' })],
    ['with a host of another certificate', {}, (domain) => domain.hasStsPolicy({ mode: 'enforce', fails: 'certificate' })],
    ['without the record', {}, (domain) => domain.hasStsPolicy({ mode: 'enforce' })],
  ])('%s: mail goes out without TLS', async (name, config, prepare) => {
    const hidden = name === 'without the record'
    const far = await attempt(config, (domain, world) => {
      prepare(domain)
      if (hidden) world.rule({ domain: '_mta-sts.far.example', dns: 'nxdomain' })
    })
    expect(far).toMatchObject({ outcome: 'delivered', encrypted: false })
  })

  test('exchangers that are set after the policy are in it', async () => {
    const far = await attempt({}, (domain) => domain.hasStsPolicy({ mode: 'enforce' }).offersTls().hasExchangers('10 in.mail.example'))
    expect(far).toMatchObject({ outcome: 'delivered', encrypted: true, tls: { policy: 'sts', state: 'verified' } })
  })

  test('a cached policy is applied while its host is down, until it is too old', async () => {
    await using world = await createWorld()
    const far = world.destination('far.example').offersTls().hasStsPolicy({ mode: 'enforce', maxAge: '2d' })
    await send(world)
    far.hasStsPolicy({ mode: 'enforce', fails: 'refused' }).offersTls('expired')
    await world.advance('1h')
    await send(world)
    expect(world.attempts(ANN).map(({ outcome }) => outcome)).toEqual(['delivered', 'deferred'])
  })
})

describe('DANE', () => {
  test.each<[string, (domain: RemoteDomain) => unknown]>([
    ['a record of the key', (domain) => domain.offersTls().hasTlsa()],
    ['a record of the key, of an expired certificate', (domain) => domain.offersTls('expired').hasTlsa('3 1 1')],
    ['a record of the certificate', (domain) => domain.offersTls().hasTlsa('3 0 2')],
    ['a record of the authority', (domain) => domain.offersTls().hasTlsa('2 1 1')],
    ['one record of two', (domain) => domain.offersTls().hasTlsa(`3 1 1 ${OTHER}`, '3 1 1')],
    ['an exchanger in another domain', (domain) => domain.offersTls().hasTlsa().hasExchangers('10 in.mail.example')],
  ])('%s: verified', async (_, prepare) => {
    const far = await attempt(DANE, prepare)
    expect(far).toMatchObject({ outcome: 'delivered', encrypted: true, tls: { level: 'dane', policy: 'dane', state: 'verified' } })
  })

  test.each<[string, (domain: RemoteDomain, world: World) => unknown]>([
    ['a record of another key', (domain) => domain.offersTls().hasTlsa(`3 1 1 ${OTHER}`)],
    ['no STARTTLS', (domain) => domain.hasTlsa()],
    [
      'a failed look-up',
      (domain, world) => {
        domain.offersTls().hasTlsa()
        world.rule({ domain: '_25._tcp.mx.far.example', dns: 'servfail' })
      },
    ],
  ])('%s: deferred', async (_, prepare) => {
    expect(await attempt(DANE, prepare)).toMatchObject({ outcome: 'deferred', encrypted: undefined })
  })

  test('dane-only defers mail for a domain without records, and delivers to one that has them', async () => {
    const config: WorldConfig = { ...DANE, smtp_tls_security_level: 'dane-only' }
    expect(await attempt(config, (domain) => domain.offersTls())).toMatchObject({ outcome: 'deferred' })
    expect(await attempt(config, (domain) => domain.offersTls().hasTlsa())).toMatchObject({ outcome: 'delivered', encrypted: true })
  })

  test('records of a zone without signatures are ignored', async () => {
    const script = `[dns."_25._tcp.mx.far.example"]\ntlsa = ["3 1 1 ${OTHER}"]\n`
    expect(await attempt(DANE, () => undefined, script)).toMatchObject({ outcome: 'delivered', encrypted: false })
    expect(await attempt(DANE, () => undefined, `${script}[dns."far.example"]\nmx = ["10 mx.far.example"]\ndnssec = true`)).toMatchObject({
      outcome: 'deferred',
    })
  })
})

test('a script has certificates, TLSA records and policies', async () => {
  const script = `
[tls."mx.far.example"]
certificate = "valid"

[dns."far.example"]
mx = ["10 mx.far.example"]
dnssec = true

[dns."_25._tcp.mx.far.example"]
tlsa = ["3 1 1"]

[mta-sts."far.example"]
mode = "enforce"
max_age = "2d"`
  expect(await attempt(DANE, () => undefined, script)).toMatchObject({ tls: { policy: 'dane', state: 'verified' } })
  expect(await attempt({}, () => undefined, script)).toMatchObject({ tls: { policy: 'sts', state: 'verified' } })
})

test('mistakes in a script are reported at once, with lines', async () => {
  const script = `[tls."mx.far.example"]
certificate = "invalid"
[tls."mx2.far.example"]
[mta-sts."far.example"]
mod = "enforce"
fails = 99
[dns."far.example"]
tlsa = ["3 1 1"]
dnssec = "yes"
[dns."_25._tcp.mx.far.example"]
tlsa = ["3 1 9"]`
  const rejected = await createWorld({ script }).catch(String)
  for (const part of [
    'script:2: tls.mx.far.example: certificate: expected one of valid, expired, self-signed, other-name, got "invalid"',
    'script:3: tls.mx2.far.example: certificate is missing',
    'script:4: mta-sts.far.example: mode is missing',
    'script:5: mta-sts.far.example: unknown key mod; did you mean mode?',
    'script:6: mta-sts.far.example: fails: expected one of refused, silent, certificate, or a status such as 404, got 99',
    'script:8: tlsa: the records belong to the name of a host and port: [dns."_25._tcp.far.example"]',
    'script:9: dnssec: expected true or false, got "yes"',
    'script:11: tlsa: expected usage, selector, matching type and octets such as "3 1 1 d2ab…", or "3 1 1" alone, got "3 1 9"',
  ])
    expect(rejected).toContain(part)
})

test('mistakes in calls throw a TypeError with the valid form', async () => {
  await using world = await createWorld()
  const far = world.destination('far.example')
  const untyped = (value: unknown) => value as never
  const misuses: readonly [() => unknown, string][] = [
    [() => far.offersTls(untyped('old')), 'offersTls expects one of valid, expired, self-signed, other-name, got "old"'],
    [() => far.hasTlsa('3 1 1 xyz'), 'hasTlsa expects usage, selector, matching type and perhaps octets, such as "3 1 1", got "3 1 1 xyz"'],
    [() => far.hasStsPolicy(untyped({ mode: 'strict' })), 'mode: expected one of enforce, testing, none, got "strict"'],
    [() => far.hasStsPolicy(untyped({})), 'hasStsPolicy of far.example: mode is missing'],
    [() => far.hasStsPolicy({ mode: 'enforce', mx: [] }), 'expected names of exchangers'],
    [() => far.hasStsPolicy({ mode: 'enforce', maxAge: 'soon' }), 'maxAge: expected a time'],
    [() => far.hasStsPolicy(untyped({ mode: 'enforce', max_age: '1d' })), 'hasStsPolicy has no option "max_age"; did you mean maxAge?'],
    [
      () => world.destination('.far.example').offersTls(),
      'offersTls expects one domain such as "example.net", got the pattern ".far.example"',
    ],
    [() => world.destination('*').hasTlsa(), 'hasTlsa expects one domain'],
    [() => world.destination('*').hasExchangers('10 mx.far.example'), 'hasExchangers expects one domain'],
  ]
  for (const [misuse, message] of misuses) {
    expect(misuse).toThrow(TypeError)
    expect(misuse).toThrow(message)
  }
})
