/** Reports about TLS (RFC 8460) in a world: a day of sessions, and the reports of the next morning. */
import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { Mail, WorldConfig } from '../../src/testkit/index.ts'
import { makeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { BOTH_KEYS } from '../support/dkim/dkim-keys.ts'
import { assertReport, type Report } from '../support/tls-report-schema.ts'
import { TlsWorld } from '../support/tls-world.ts'

const CONFIG: WorldConfig = {
  smtp_tlsrpt_enable: true,
  myorigin: 'us.example',
  dkim: { 'us.example': { keys: BOTH_KEYS } },
  smtp_tls_security_level: 'dane',
  smtp_dns_support_level: 'dnssec',
}

/** Asks for reports about a domain. */
const ask = ({ world }: TlsWorld, domain: string, rua = `mailto:tls@reports.example`): void =>
  world.remote.setZone(`_smtp._tls.${domain}`, { mx: [], a: [], aaaa: [], txt: [`v=TLSRPTv1; rua=${rua}`] })

/** The report in a mail. */
function reportIn(mail: Mail): Report {
  const [, body = ''] = /application\/tlsrpt\+gzip\r\n[^]*?\r\n\r\n([^]*?)\r\n--/.exec(mail.content) ?? []
  const report: unknown = JSON.parse(gunzipSync(Buffer.from(body, 'base64')).toString())
  return assertReport(report)
}

const reports = ({ world }: TlsWorld): readonly Report[] => world.mailbox('tls@reports.example').mails().map(reportIn)

/** Domains of the reports in mails. */
const domainsOf = (mails: readonly Mail[]): readonly string[] => mails.map((mail) => mail.header('TLS-Report-Domain') ?? '').toSorted()

/** A signed zone whose exchanger has the TLSA record of one certificate, and presents another one. The MX records are signed unless `mxSecure` is false. */
function signed({ world }: TlsWorld, domain: string, published: string, presented: string, mxSecure = true): void {
  const mx = `mx.${domain}`
  const none = { mx: [], a: [], aaaa: [] }
  const data = createHash('sha256')
    .update(makeCertificate({ seed: published }).spki)
    .digest()
  world.remote.setZone(domain, { ...none, secure: mxSecure, mx: [{ preference: 10, exchange: mx }] })
  world.remote.setZone(mx, { ...none, secure: true, a: ['203.0.113.77'] })
  world.remote.setZone(`_25._tcp.${mx}`, { ...none, tlsa: [{ usage: 3, selector: 1, matchingType: 1, data }] })
  world.remote.setIdentity(mx, makeCertificate({ seed: presented }))
}

test('a day of sessions is one signed report for each domain that asks for it, and none about the reports', async () => {
  await using far = await TlsWorld.open(CONFIG)
  const { world } = far
  far.secure('mx.good.example').publish('good.example', { id: 'one' })
  far.secure('mx.bad.example', { until: Date.UTC(2021, 0, 1) }).publish('bad.example', { id: 'two' })
  far.secure('mx.silent.example').publish('silent.example', { id: 'three' })
  signed(far, 'dane.example', 'one', 'other')
  for (const domain of ['good.example', 'bad.example', 'dane.example', 'plain.example']) ask(far, domain)
  // The domain of the reports has a policy that its host does not meet, and wants reports about it.
  far.unsecure('mx.reports.example').publish('reports.example', { id: 'four' })
  ask(far, 'reports.example')
  await far.send('ann@good.example')
  await far.send('bob@good.example')
  await world.advance('10m')
  for (const to of ['ann@bad.example', 'ann@silent.example', 'ann@dane.example', 'ann@plain.example']) await far.send(to)
  await world.advance('29h')
  const mails = world.mailbox('tls@reports.example').mails()
  expect(domainsOf(mails)).toEqual(['bad.example', 'dane.example', 'good.example'])
  for (const mail of mails) {
    expect(mail.tls).toBe(false)
    expect(mail.signatures.map(({ verified }) => verified)).toEqual([true, true])
    expect(mail.header('DKIM-Signature')).toMatch(/:TLS-Report-Domain: ?TLS-Report-Submitter/)
    expect(mail.header('From')).toBe('tlsrpt@us.example')
    expect(mail.header('TLS-Required')).toBe('No')
    expect(mail.header('TLS-Report-Submitter')).toBe('us.example')
    expect(mail.header('Content-Type')).toMatch(/^multipart\/report; report-type="tlsrpt";/)
  }
  const of = (domain: string): Report =>
    reports(far).find(({ policies }) => policies[0]?.policy['policy-domain'].endsWith(domain)) as Report
  expect(of('good.example')).toEqual({
    'organization-name': 'us.example',
    'date-range': { 'start-datetime': '2026-01-01T00:00:00Z', 'end-datetime': '2026-01-01T23:59:59Z' },
    'contact-info': 'tlsrpt@us.example',
    'report-id': '2026-01-01.good.example.tlsrpt@deferd.example',
    policies: [
      {
        policy: {
          'policy-type': 'sts',
          'policy-string': ['version: STSv1', 'mode: enforce', 'mx: mx.good.example', 'max_age: 604800'],
          'policy-domain': 'good.example',
          'mx-host': ['mx.good.example'],
        },
        summary: { 'total-successful-session-count': 2, 'total-failure-session-count': 0 },
      },
    ],
  })
  const attempts = world.attempts('ann@bad.example').filter(({ at }) => at < 86_400 - 600).length
  expect(attempts).toBeGreaterThan(5)
  expect(of('bad.example').policies[0]?.summary).toEqual({
    'total-successful-session-count': 0,
    'total-failure-session-count': attempts,
  })
  expect(of('bad.example').policies[0]?.['failure-details']).toMatchObject([
    {
      'result-type': 'certificate-expired',
      'receiving-mx-hostname': 'mx.bad.example',
      'sending-mta-ip': '127.0.0.1',
      'failed-session-count': attempts,
    },
  ])
  expect(of('dane.example').policies[0]).toMatchObject({
    policy: { 'policy-type': 'tlsa', 'policy-domain': 'mx.dane.example', 'policy-string': [expect.stringMatching(/^3 1 1 [0-9a-f]{64}$/)] },
    'failure-details': [{ 'result-type': 'validation-failure', 'failure-reason-code': 'no TLSA record matches its certificates' }],
  })
  // The next day has other reports, none of them about the host that took the reports without TLS.
  await world.advance('1d')
  const later = world.mailbox('tls@reports.example').mails().slice(3)
  expect(domainsOf(later)).toEqual(['bad.example', 'dane.example'])
  expect(
    new Set(
      world
        .mailbox('tls@reports.example')
        .mails()
        .map((mail) => mail.header('Message-ID')),
    ).size,
  ).toBe(5)
})

describe('reports over https', () => {
  const posted: { readonly path: string; readonly type: string; readonly report: Report }[] = []
  const serve = (far: TlsWorld, status = 200): void =>
    far.world.remote.setPolicyHost('tls.good.example', {
      // The certificate is of another name: it is not verified.
      identity: makeCertificate({ seed: 'collector', names: ['other.example'] }),
      answer: () => null,
      receive: (path, body, type) => {
        posted.push({ path, type, report: assertReport(JSON.parse(gunzipSync(body).toString())) })
        return { status, body: '' }
      },
    })

  test('are posted once, and tried again each hour while the server fails', async () => {
    await using far = await TlsWorld.open(CONFIG)
    far.secure('mx.good.example').publish('good.example', { id: 'one' })
    ask(far, 'good.example', 'https://tls.good.example/v1/report?x=1')
    serve(far, 503)
    await far.send('ann@good.example')
    await far.world.advance('1d')
    await far.world.advance('7h')
    expect(posted.length).toBeGreaterThan(2)
    expect(posted.length).toBeLessThan(9)
    expect(far.warnings.join('\n')).toMatch(/the report of 2026-01-01 for good\.example cannot be sent to https:.*: status 503/)
    posted.length = 0
    serve(far)
    await far.world.advance('12h')
    expect(posted).toMatchObject([{ path: '/v1/report?x=1', type: 'application/tlsrpt+gzip' }])
    expect(posted[0]?.report.policies[0]?.summary['total-successful-session-count']).toBe(1)
  })
})

test('counts survive a crash, and a record that cannot be looked up is asked for again', async () => {
  await using far = await TlsWorld.open(CONFIG)
  far.secure('mx.good.example').publish('good.example', { id: 'one' })
  far.world.rule({ domain: '_smtp._tls.good.example', dns: 'servfail' }, 'no DNS')
  ask(far, 'good.example')
  await far.send('ann@good.example')
  await far.world.advance('2m')
  await far.world.crash()
  await far.world.restart()
  await far.world.advance('10m')
  await far.send('ann@good.example')
  await far.world.advance('23h')
  await far.world.advance('7h')
  expect(reports(far)).toEqual([])
  far.world.remote.removeRules(({ name }) => name === 'no DNS')
  await far.world.advance('2h')
  expect(reports(far).map(({ policies }) => policies[0]?.summary['total-successful-session-count'])).toEqual([2])
})

test('nothing is sent unsigned, and a report that is given up owes no notice', async () => {
  await using far = await TlsWorld.open({ ...CONFIG, dkim: {} })
  far.secure('mx.good.example').publish('good.example', { id: 'one' })
  ask(far, 'good.example')
  await far.send('ann@good.example')
  await far.world.advance('30h')
  expect(reports(far)).toEqual([])
  expect(far.warnings.join('\n')).toMatch(/such mail must be signed, and no \[dkim\] table has keys for us\.example/)
  await using other = await TlsWorld.open(CONFIG)
  other.secure('mx.good.example').publish('good.example', { id: 'one' })
  ask(other, 'good.example')
  other.world.destination('reports.example').rejects('*', '550 5.1.1 no such user')
  await other.send('ann@good.example')
  await other.world.advance('30h')
  expect(other.world.attempts('tls@reports.example')).toMatchObject([{ outcome: 'bounced' }])
  expect(other.world.mailbox('tlsrpt@us.example').mails()).toEqual([])
})

test('sessions without a policy are counted as configured', async () => {
  const sessions = async (config: WorldConfig): Promise<readonly string[]> => {
    await using far = await TlsWorld.open({ ...CONFIG, ...config })
    far.secure('mx.good.example').publish('good.example', { id: 'one' })
    ask(far, 'good.example')
    ask(far, 'plain.example')
    for (let n = 0; n < 3; n++) {
      await far.send('ann@good.example', 'ann@plain.example')
      await far.world.advance('10m')
    }
    await far.world.advance('30h')
    return reports(far)
      .flatMap(({ policies }) => policies)
      .map(({ policy, summary }) => `${policy['policy-type']} ${Object.values(summary).join(' ')}`)
      .toSorted()
  }
  expect(await sessions({})).toEqual(['sts 3 0'])
  expect(await sessions({ tlsrpt_no_policy: true })).toEqual(['no-policy-found 0 3', 'sts 3 0'])
  expect(await sessions({ smtp_tlsrpt_enable: false })).toEqual([])
})

test('a report reaches a domain whose TLSA records its host does not meet', async () => {
  await using far = await TlsWorld.open(CONFIG)
  far.secure('mx.good.example').publish('good.example', { id: 'one' })
  ask(far, 'good.example')
  signed(far, 'reports.example', 'one', 'other')
  await far.send('ann@good.example')
  await far.send('ann@reports.example')
  await far.world.advance('30h')
  expect(reports(far)).toHaveLength(1)
  expect(far.world.mailbox('ann@reports.example').mails()).toEqual([])
})

test('a report reaches a domain whose policy its host does not meet, and is not counted', async () => {
  await using far = await TlsWorld.open({ ...CONFIG, smtp_tls_security_level: 'may', tlsrpt_no_policy: true })
  far.secure('mx.good.example').publish('good.example', { id: 'one' })
  far.unsecure('mx.reports.example').publish('reports.example', { id: 'two' })
  for (const domain of ['good.example', 'reports.example']) ask(far, domain)
  await far.send('ann@good.example')
  await far.world.advance('60h')
  expect(domainsOf(far.world.mailbox('tls@reports.example').mails())).toEqual(['good.example'])
})

test('a policy that cannot be fetched, is not valid, or has a host with a wrong certificate', async () => {
  await using far = await TlsWorld.open(CONFIG)
  const domains = ['down.example', 'invalid.example', 'misnamed.example']
  for (const domain of domains) {
    far.secure(`mx.${domain}`).publish(domain, { id: 'one' })
    ask(far, domain)
  }
  far.unserve('down.example').serve('invalid.example', () => ({ body: 'version: STSv2' }))
  far.serve('misnamed.example', () => ({ body: '' }), ['www.example'])
  await far.send(...domains.map((domain) => `ann@${domain}`))
  await far.world.advance('30h')
  const types = reports(far).flatMap(({ policies }) =>
    policies.flatMap(({ policy, 'failure-details': details = [] }) =>
      details.map((one) => `${policy['policy-domain']} ${one['result-type']}`),
    ),
  )
  expect(types.toSorted()).toEqual([
    'down.example sts-policy-fetch-error',
    'invalid.example sts-policy-invalid',
    'misnamed.example sts-webpki-invalid',
  ])
})

describe('the result of a session', () => {
  type Prepare = (far: TlsWorld) => void
  const testing = (far: TlsWorld): TlsWorld => far.secure('mx.far.example').publish('far.example', { id: 'one', mode: 'testing' })
  test.each<[string, Prepare, readonly string[], WorldConfig?]>([
    [
      'whose TLSA records are usable, and the MX records not authentic',
      (far) => signed(far, 'far.example', 'one', 'other', false),
      ['tlsa success 1'],
      { smtp_tls_dane_insecure_mx_policy: 'encrypt' },
    ],
    [
      'that ends after a good handshake',
      (far) => {
        signed(far, 'far.example', 'one', 'one', false)
        far.world.rule({ domain: 'far.example', at: 'ehlo', nth: 2, drop: 'fin' })
      },
      ['tlsa success 2'],
    ],
    [
      'whose handshake failed before another one in clear',
      (far) => {
        testing(far).unsecure('mx.far.example')
        far.world.rule({ domain: 'far.example', extensions: ['STARTTLS'] })
        far.world.rule({ domain: 'far.example', at: 'handshake', raw: 'HTTP/1.1 400 Bad Request\r\n\r\n' })
      },
      // Once deferred, then at 300 s with TLS and in clear.
      ['sts validation-failure wrong version number 2'],
    ],
    [
      'with a host that the policy, which is tested, does not name, and that cannot be connected to at first',
      (far) => {
        testing(far).world.destination('far.example').hasExchangers('10 mx.other.example')
        far.secure('mx.other.example').world.rule({ mx: 'mx.other.example', connect: 'refused', first: 2 })
      },
      ['sts validation-failure mtasts-policy-mx-mismatch 1'],
    ],
    [
      'without the policy that is announced, with a host that cannot be connected to at first',
      (far) => testing(far).unserve('far.example').world.rule({ mx: 'mx.far.example', connect: 'refused', first: 2 }),
      [expect.stringMatching(/^sts sts-policy-fetch-error .* 1$/) as string],
    ],
    [
      'without TLS, which the configuration turns off',
      (far) => testing(far),
      [],
      { smtp_tls_security_level: 'none', tlsrpt_no_policy: true },
    ],
  ])('%s', async (_, prepare, expected, config = {}) => {
    await using far = await TlsWorld.open({ ...CONFIG, ...config })
    prepare(far)
    ask(far, 'far.example')
    await far.send('ann@far.example')
    await far.world.advance('30h')
    expect(far.world.mailbox('ann@far.example').mails()).toHaveLength(1)
    const found = reports(far).flatMap(({ policies }) => policies)
    const results = found.flatMap(({ policy, summary, 'failure-details': details = [] }) =>
      [
        ...details.map((one) => [one['result-type'], one['failure-reason-code'], one['failed-session-count']]),
        ...(summary['total-successful-session-count'] > 0 ? [['success', summary['total-successful-session-count']]] : []),
      ].map((words) => [policy['policy-type'], ...words].join(' ')),
    )
    expect(results).toEqual(expected)
    expect(far.failures.filter(({ reason }) => /not verified|not offered/.test(reason))).toEqual([])
  })
})

test('a host that is refused without a connection has no address of ours', async () => {
  await using far = await TlsWorld.open(CONFIG)
  far
    .secure('mx1.far.example')
    .secure('mx2.far.example')
    .publish('far.example', { id: 'one', mx: ['mx1.far.example'] })
  far.world.destination('far.example').hasExchangers('10 mx1.far.example', '20 mx2.far.example')
  far.world.rule({ mx: 'mx1.far.example', at: 'mail', reply: '451 4.3.0 later', first: 1 })
  ask(far, 'far.example')
  await far.send('ann@far.example')
  await far.world.advance('30h')
  const details = reports(far).flatMap(({ policies }) => policies.flatMap((one) => one['failure-details'] ?? []))
  expect(details).toMatchObject([{ 'receiving-mx-hostname': 'mx2.far.example', 'failed-session-count': 1 }])
  expect(details[0]).not.toHaveProperty('sending-mta-ip')
})
