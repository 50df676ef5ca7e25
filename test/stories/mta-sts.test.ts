/** MTA-STS (RFC 8461): policies of recipient domains in a world. */
import { describe, expect, test } from 'vitest'
import type { TlsFacts } from '../../src/mail/tls-facts.ts'
import { makeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { TlsWorld } from '../support/tls-world.ts'

const ANN = 'ann@far.example'

/** Facts of TLS of all attempts, oldest first. */
function watchTls({ world }: TlsWorld): (TlsFacts | undefined)[] {
  const facts: (TlsFacts | undefined)[] = []
  world.relayEvents.listen((event) => {
    if (event.kind === 'attempted') facts.push(...event.attempts.map(({ status }) => status.tls))
  })
  return facts
}

const mails = ({ world }: TlsWorld) => world.mailbox(ANN).mails()

describe('enforced', () => {
  test('mail goes to an exchanger of the policy with a verified certificate', async () => {
    await using far = await TlsWorld.open()
    const facts = watchTls(far)
    far.secure('mx.far.example').publish('far.example', { id: 'one' })
    await far.send(ANN)
    await far.world.settle()
    expect(mails(far)).toMatchObject([{ tls: true }])
    expect(facts).toMatchObject([{ level: 'secure', policy: 'sts', state: 'verified', protocol: 'TLSv1.3' }])
    expect(far.failures).toEqual([])
  })

  type Break = (far: TlsWorld) => void
  const OTHER_CA = makeCertificate({ seed: 'other CA', isAuthority: true })
  test.each<[string, Break, string, RegExp]>([
    ['no STARTTLS', (far) => far.unsecure('mx.far.example'), '4.7.4', /TLS is required, but was not offered/],
    [
      'a certificate with another name',
      (far) => far.secure('mx.far.example', { names: ['far.example'] }),
      '4.7.5',
      /does not name mx\.far\.example/,
    ],
    ['an expired certificate', (far) => far.secure('mx.far.example', { until: Date.UTC(2021, 0, 1) }), '4.7.5', /certificate has expired/],
    ['an unknown CA', (far) => far.secure('mx.far.example', { issuer: OTHER_CA }), '4.7.5', /unable to verify the first certificate/],
    [
      'an exchanger that the policy does not name',
      (far) => far.world.destination('far.example').hasExchangers('10 mx.evil.example'),
      '4.7.5',
      /^MX host mx\.evil\.example does not match the MTA-STS policy of far\.example \(mode enforce, id one\)$/,
    ],
  ])('%s: deferred, and no mail is sent', async (_, damage, status, reason) => {
    await using far = await TlsWorld.open()
    far.secure('mx.far.example').secure('mx.evil.example').publish('far.example', { id: 'one' })
    damage(far)
    await far.send(ANN)
    await far.world.advance('1h')
    const attempts = far.world.attempts(ANN)
    expect(attempts.length).toBeGreaterThan(2)
    for (const attempt of attempts)
      expect(attempt).toMatchObject({ outcome: 'deferred', status, reason: expect.stringMatching(reason) as string })
    expect(mails(far)).toEqual([])
    expect(far.failures[0]).toMatchObject({ domain: 'far.example', policy: 'sts', enforced: true })
    expect(far.failures.length).toBe(attempts.length)
    // No session got as far as MAIL.
    const events = far.world.history().events.map((entry) => JSON.stringify(entry))
    expect(events.filter((entry) => entry.includes('"MAIL FROM'))).toEqual([])
  })

  test('an exchanger that the policy does not name is not contacted; the next one gets the mail', async () => {
    await using far = await TlsWorld.open()
    far
      .secure('mx.evil.example')
      .secure('mx2.far.example')
      .publish('far.example', { id: 'one', mx: ['*.far.example'] })
    far.world.destination('far.example').hasExchangers('10 mx.evil.example', '20 mx2.far.example')
    await far.send(ANN)
    await far.world.settle()
    expect(mails(far)).toMatchObject([{ tls: true }])
    const contacted = far.world.history().events.filter((entry) => JSON.stringify(entry).includes('"event":"connected"'))
    expect(contacted.every((entry) => !JSON.stringify(entry).includes('mx.evil.example'))).toBe(true)
  })

  test('a kept policy applies without its record and its host, after a restart, and against other exchangers', async () => {
    await using far = await TlsWorld.open()
    far.secure('mx.far.example').publish('far.example', { id: 'one', maxAge: 86_400 })
    await far.send(ANN)
    await far.world.settle()
    far.record('far.example').unserve('far.example')
    far.world.destination('far.example').hasExchangers('10 mx.evil.example')
    await far.world.restart()
    await far.send(ANN)
    await far.world.advance('20h')
    expect(far.world.attempts(ANN).at(-1)).toMatchObject({ outcome: 'deferred', status: '4.7.5' })
    expect(mails(far)).toHaveLength(1)
    // The policy expires 24 h after it was fetched, and nothing announces another one.
    await far.world.advance('6h')
    expect(mails(far)).toMatchObject([{ tls: true }, { tls: false }])
  })

  test('a new id is noticed at the next use; until its policy can be fetched, the old one applies', async () => {
    await using far = await TlsWorld.open()
    far.secure('mx.far.example').secure('new.far.example').publish('far.example', { id: 'one' })
    await far.send(ANN)
    await far.world.settle()
    far.record('far.example', 'v=STSv1; id=two;').unserve('far.example')
    far.world.destination('far.example').hasExchangers('10 new.far.example')
    await far.world.advance('2m')
    await far.send(ANN)
    await far.world.advance('1m')
    expect(far.world.attempts(ANN).at(-1)).toMatchObject({ outcome: 'deferred', reason: expect.stringContaining('id one') as string })
    far.publish('far.example', { id: 'two', mx: ['new.far.example'] })
    await far.world.settle()
    expect(mails(far)).toMatchObject([{ tls: true }, { tls: true }])
  })

  test('before mail expires, the policy is fetched once more: the domain has changed its exchanger but not its record', async () => {
    await using far = await TlsWorld.open({ maximal_queue_lifetime: '2h' })
    far.secure('mx.far.example').secure('new.far.example').publish('far.example', { id: 'one' })
    await far.send(ANN)
    await far.world.settle()
    far.world.destination('far.example').hasExchangers('10 new.far.example')
    far.publish('far.example', { id: 'one', mx: ['new.far.example'] })
    await far.send(ANN)
    await far.world.settle()
    expect(far.world.attempts(ANN).at(-1)).toMatchObject({ outcome: 'delivered' })
    expect(mails(far)).toMatchObject([{ tls: true }, { tls: true }])
  })

  test('smtp_tls_policy_maps take precedence, as does a level above may', async () => {
    await using far = await TlsWorld.open({ smtp_tls_policy_maps: ['far.example may'] })
    far.publish('far.example', { id: 'one' })
    await far.send(ANN)
    await far.world.settle()
    expect(mails(far)).toMatchObject([{ tls: false }])
    expect(far.requests).toBe(0)
  })
})

describe('tested only', () => {
  test.each<[string, object, 'enforce' | 'testing']>([
    ['by the relay', { smtp_tls_mta_sts: 'testing' }, 'enforce'],
    ['by the domain', {}, 'testing'],
  ])('%s: mail is sent, and the failure is reported once', async (_, config, mode) => {
    await using far = await TlsWorld.open(config)
    far.secure('mx.far.example', { names: ['other.example'] }).publish('far.example', { id: 'one', mode })
    await far.send(ANN)
    await far.world.settle()
    expect(mails(far)).toMatchObject([{ tls: true }])
    const reason = expect.stringMatching(/does not name|ALTNAME/) as string
    expect(far.failures).toMatchObject([{ domain: 'far.example', enforced: false, relay: 'mx.far.example[192.0.2.2]:25', reason }])
  })

  test('a host that meets the policy is not reported, also on a second connection', async () => {
    await using far = await TlsWorld.open({ smtp_tls_mta_sts: 'testing' })
    const facts = watchTls(far)
    far.secure('mx.far.example').publish('far.example', { id: 'one' })
    for (let n = 0; n < 2; n++) {
      await far.send(ANN)
      await far.world.settle()
      await far.world.advance('1m')
    }
    expect(far.failures).toEqual([])
    expect(facts).toMatchObject([
      { level: 'may', state: 'verified' },
      { level: 'may', state: 'verified' },
    ])
  })

  test('no policy is asked for with smtp_tls_mta_sts = no', async () => {
    await using far = await TlsWorld.open({ smtp_tls_mta_sts: 'no' })
    far.publish('far.example', { id: 'one' })
    await far.send(ANN)
    await far.world.settle()
    expect(mails(far)).toMatchObject([{ tls: false }])
    expect(far.requests).toBe(0)
  })
})

describe('without a policy mail is sent at once or after 10 s at most', () => {
  const LARGE = `version: STSv1\nmode: enforce\nmx: mx.far.example\nmax_age: 60\n${'x: y\n'.repeat(15_000)}`
  const VALID = 'version: STSv1\nmode: enforce\nmx: mx.far.example\nmax_age: 60\n'
  test.each<[string, (far: TlsWorld) => void, RegExp]>([
    ['a redirect', (far) => far.serve('far.example', () => ({ status: 302, body: VALID })), /status 302/],
    ['a missing file', (far) => far.serve('far.example', () => ({ status: 404, body: '' })), /status 404/],
    ['70 kB', (far) => far.serve('far.example', () => ({ body: LARGE })), /larger than 64 kB/],
    ['HTML', (far) => far.serve('far.example', () => ({ type: 'text/html', body: VALID })), /not text\/plain/],
    ['no mx', (far) => far.serve('far.example', () => ({ body: VALID.replace('mx:', 'nmx:') })), /not valid: mx is missing/],
    ['no answer', (far) => far.serve('far.example', () => null), /no answer within 10 s/],
    [
      'a certificate of another name',
      (far) => far.serve('far.example', () => ({ body: VALID }), ['far.example']),
      /does not name mta-sts\.far\.example/,
    ],
    ['a wildcard of two labels', (far) => far.serve('far.example', () => ({ body: VALID }), ['*.example']), /does not name/],
    ['a closed port', (far) => far.unserve('far.example'), /cannot connect/],
    [
      'a private address',
      (far) => far.world.remote.setZone('mta-sts.far.example', { mx: [], a: ['127.0.0.1'], aaaa: ['::1'] }),
      /private address .*smtp_allow_private_addresses/,
    ],
  ])('%s', async (_, publish, reason) => {
    await using far = await TlsWorld.open()
    publish(far.record('far.example', 'v=STSv1; id=one;'))
    await far.send(ANN)
    await far.world.settle()
    await far.world.advance('1m')
    expect(mails(far)).toMatchObject([{ tls: false }])
    expect(mails(far)[0]?.at).toBeLessThanOrEqual(10)
    expect(far.warnings).toEqual([expect.stringMatching(reason)])
    expect(far.warnings[0]).toContain('MTA-STS policy of far.example (id one) cannot be fetched: ')
  })

  test.each(['servfail', 'timeout', 'nxdomain'] as const)('the look-up of the record fails (%s)', async (dns) => {
    await using far = await TlsWorld.open()
    far.publish('far.example', { id: 'one' })
    far.world.rule({ domain: '_mta-sts.far.example', dns })
    await far.send(ANN)
    await far.world.settle()
    expect(mails(far)).toMatchObject([{ tls: false }])
    expect(mails(far)[0]?.at).toBeLessThanOrEqual(10)
  })

  test('a policy that arrives later applies to the next mail; one fetch at a time, five minutes apart', async () => {
    await using far = await TlsWorld.open()
    far
      .secure('mx.far.example')
      .publish('far.example', { id: 'one' })
      .serve('far.example', () => null)
    for (let n = 0; n < 4; n++) await far.send(ANN)
    await far.world.settle()
    expect(far.requests).toBe(1)
    far.publish('far.example', { id: 'one' })
    await far.world.advance('2m')
    await far.send(ANN)
    await far.world.settle()
    expect(far.requests).toBe(1)
    await far.world.advance('5m')
    await far.send(ANN)
    await far.world.settle()
    expect(far.requests).toBe(2)
    expect(await far.world.reader.records.stsPolicies.all()).toMatchObject([{ domain: 'far.example', id: 'one' }])
  })
})

test('policies in use are refreshed in the background once a day, and unused ones are dropped', async () => {
  await using far = await TlsWorld.open()
  far.secure('mx.far.example').publish('far.example', { id: 'one', maxAge: 172_800 })
  await far.send(ANN)
  await far.world.settle()
  await far.world.advance('10d')
  const [kept] = await far.world.reader.records.stsPolicies.all()
  expect(far.requests).toBeGreaterThanOrEqual(8)
  expect(far.requests).toBeLessThanOrEqual(14)
  expect(far.world.now() - (kept?.fetchedAt ?? 0)).toBeLessThan(31 * 3_600_000)
  await far.world.advance('30d')
  const { requests } = far
  await far.world.advance('150d')
  expect(far.requests).toBe(requests)
  expect(await far.world.reader.records.stsPolicies.all()).toEqual([])
})

test('a policy is of a recipient domain, also where several have one exchanger', async () => {
  await using far = await TlsWorld.open()
  far.secure('mx.shared.example').publish('far.example', { id: 'one', mx: ['mx.other.example'] })
  far.publish('good.example', { id: 'two', mx: ['mx.shared.example'] })
  for (const domain of ['far.example', 'good.example', 'none.example']) far.world.destination(domain).hasExchangers('10 mx.shared.example')
  await far.send(ANN, 'bob@good.example', 'eve@none.example')
  await far.world.advance('10m')
  expect(far.world.mailbox('bob@good.example').mails()).toHaveLength(1)
  expect(far.world.mailbox('eve@none.example').mails()).toHaveLength(1)
  expect(mails(far)).toEqual([])
})
