/** Results of TLS stages for reports: the policy, the type of failure, and who gets the report. */
import { describe, expect, test } from 'vitest'
import type { TlsStage } from '../../src/delivery/tls/tls-stage.ts'
import type { SessionFailure } from '../../src/delivery/transcript.ts'
import type { TlsFacts } from '../../src/mail/tls-facts.ts'
import type { StsPolicy } from '../../src/store/records/sts-policy.ts'
import { certificateFailure, stageResults } from '../../src/tls-reports/stage-results.ts'
import { mailtoAddress } from '../../src/tls-reports/report-mail.ts'
import { ReportSender } from '../../src/tls-reports/report-sender.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { TlsReports } from '../../src/tls-reports/tls-reports.ts'
import type { CountedResult } from '../../src/store/records/tls-report.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { MemoryNet } from '../../src/testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const STS: StsPolicy = {
  domain: 'far.example',
  id: 'one',
  mode: 'enforce',
  mx: ['mx.far.example'],
  text: 'version: STSv1\nmode: enforce\n',
  fetchedAt: 0,
  expiresAt: 1,
  usedAt: 0,
  failedAt: null,
  failure: null,
}
const VERIFIED: TlsFacts = { level: 'secure', policy: 'sts', state: 'verified', protocol: 'TLSv1.3', cipher: 'x' }
const CONNECTION = { trust: 'Verified', reused: false, protocol: 'TLSv1.3', cipher: 'x', bits: 256 } as const
const RECORD = { usage: 3, selector: 1, matchingType: 1, data: Buffer.alloc(32, 1) }

const stage = (more: Partial<TlsStage>): TlsStage => ({
  domain: 'far.example',
  host: { name: 'mx.far.example', address: '192.0.2.1' },
  localAddress: '198.51.100.1',
  tls: VERIFIED,
  failure: undefined,
  connection: CONNECTION,
  sts: null,
  named: true,
  dane: null,
  unfetched: null,
  ...more,
})

/** A session that failed. */
const failed = (failure: SessionFailure, tls: Partial<TlsFacts>): Partial<TlsStage> => ({
  failure,
  connection: undefined,
  tls: { level: 'secure', policy: 'sts', state: 'refused', ...tls },
})

const summary = (more: Partial<TlsStage>, noPolicy = false): readonly string[] =>
  stageResults(stage(more), { noPolicy }).map(({ domain, policy, type }) => {
    const known = JSON.parse(policy) as { 'policy-type': string; 'policy-domain': string }
    return `${domain}: ${known['policy-type']} of ${known['policy-domain']}: ${type}`
  })

const STS_OF = 'far.example: sts of far.example:'

describe('MTA-STS', () => {
  test.each<[string, Partial<TlsStage>, readonly string[]]>([
    ['met', {}, [`${STS_OF} success`]],
    ['no STARTTLS', failed({ kind: 'tls-not-offered' }, { state: 'not-offered' }), [`${STS_OF} starttls-not-supported`]],
    ['expired', failed({ kind: 'certificate', why: 'certificate has expired' }, {}), [`${STS_OF} certificate-expired`]],
    [
      'handshake',
      failed({ kind: 'tls', why: 'wrong version' }, { state: 'undecided', reason: 'wrong version' }),
      [`${STS_OF} validation-failure`],
    ],
    [
      'not named',
      { named: false, ...failed({ kind: 'sts-mismatch', domain: 'far.example', id: 'one' }, {}) },
      [`${STS_OF} validation-failure`],
    ],
    [
      'tested, another name',
      { connection: { ...CONNECTION, problem: 'ERR_TLS_CERT_ALTNAME_INVALID' } },
      [`${STS_OF} certificate-host-mismatch`],
    ],
    [
      'tested, in clear',
      { connection: undefined, tls: { level: 'may', policy: 'none', state: 'clear' } },
      [`${STS_OF} starttls-not-supported`],
    ],
    ['no connection', failed({ kind: 'unreachable', why: 'x' }, { state: 'undecided' }), []],
    ['not named, no connection', { named: false, ...failed({ kind: 'unreachable', why: 'x' }, { state: 'undecided' }) }, []],
    ['lost after the handshake', { failure: { kind: 'lost', stage: 'ehlo' } }, [`${STS_OF} success`]],
  ])('%s', (_, more, expected) => {
    expect(summary({ sts: STS, ...more })).toEqual(expected)
  })

  test.each(['sts-policy-fetch-error', 'sts-policy-invalid', 'sts-webpki-invalid'] as const)('%s', (type) => {
    expect(summary({ unfetched: { type, reason: 'x' } })).toEqual([`${STS_OF} ${type}`])
    expect(summary({ unfetched: { type, reason: 'x' }, ...failed({ kind: 'unreachable', why: 'x' }, { state: 'undecided' }) })).toEqual([])
  })

  test('a policy is listed by lines, and a long one is cut', () => {
    const [result] = stageResults(stage({ sts: { ...STS, text: `version: STSv1\r\n\r\n${'x'.repeat(9_000)}` } }), { noPolicy: false })
    const policy = JSON.parse(result?.policy ?? '') as { 'policy-string': string[] }
    expect(policy['policy-string'][0]).toBe('version: STSv1')
    expect(result?.policy.length).toBeLessThan(5_000)
  })

  test('a policy with many hosts is cut', () => {
    const mx = Array.from({ length: 5_000 }, (_, i) => `mx${i}.far.example`)
    const [result] = stageResults(stage({ sts: { ...STS, mx } }), { noPolicy: false })
    expect((JSON.parse(result?.policy ?? '') as { 'mx-host': string[] })['mx-host']).toEqual(mx.slice(0, 100))
  })
})

describe('DANE', () => {
  const base = 'mx.far.example'
  const both = (type: string): readonly string[] => [`far.example: tlsa of ${base}: ${type}`, `${base}: tlsa of ${base}: ${type}`]
  test.each<[string, Partial<TlsStage>, readonly string[]]>([
    ['met', {}, both('success')],
    ['does not match', failed({ kind: 'certificate', why: 'no TLSA record matches its certificates' }, {}), both('validation-failure')],
    ['another issuer', failed({ kind: 'anchor', pem: '' }, {}), both('certificate-not-trusted')],
    ['no STARTTLS', failed({ kind: 'tls-not-offered' }, { state: 'not-offered' }), both('starttls-not-supported')],
    ['unusable', { dane: { base, records: [RECORD], usable: false } }, both('tlsa-invalid')],
    ['look-up', { dane: { base, refused: 'lookup' } }, both('dnssec-invalid')],
    ['required', { dane: { base, refused: 'required' } }, both('dane-required')],
    ['required and unusable', { dane: { base, refused: 'unusable' } }, both('tlsa-invalid')],
  ])('%s', (_, more, expected) => {
    expect(summary({ dane: { base, records: [RECORD], usable: true }, sts: STS, ...more })).toEqual(expected)
  })
})

test('TLSA records make one policy in whatever order they are found, and many are cut', () => {
  const records = Array.from({ length: 150 }, (_, i) => ({ ...RECORD, data: Buffer.alloc(32, i) }))
  const policies = [records, records.toReversed()].map(
    (found) => stageResults(stage({ dane: { base: 'mx.far.example', records: found, usable: true } }), { noPolicy: false })[0]?.policy,
  )
  expect(policies[0]).toBe(policies[1])
  expect((JSON.parse(policies[0] ?? '') as { 'policy-string': string[] })['policy-string']).toHaveLength(100)
})

test('domains without a policy are counted when asked', () => {
  const clear: Partial<TlsStage> = { connection: undefined, tls: { level: 'may', policy: 'none', state: 'clear' } }
  expect(summary({})).toEqual([])
  expect(summary({}, true)).toEqual(['far.example: no-policy-found of far.example: success'])
  expect(summary(clear, true)).toEqual(['far.example: no-policy-found of far.example: starttls-not-supported'])
})

test.each([
  ['certificate has expired', 'certificate-expired'],
  ['CERT_HAS_EXPIRED', 'certificate-expired'],
  ['the certificate does not name mx.far.example', 'certificate-host-mismatch'],
  ['self-signed certificate', 'certificate-not-trusted'],
  ['self signed certificate in certificate chain', 'certificate-not-trusted'],
  ['unable to verify the first certificate', 'certificate-not-trusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'certificate-not-trusted'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate-not-trusted'],
  ['certificate is not yet valid', 'validation-failure'],
])('%s: %s', (text, type) => expect(certificateFailure(text)).toBe(type))

test.each([
  ['mailto:tls@far.example', 'tls@far.example'],
  ['MAILTO:a%21b@far.example?subject=x', 'a!b@far.example'],
  ['mailto:a%0d%0ab@far.example', undefined],
  ['mailto:%', undefined],
  ['https://far.example', undefined],
])('%s is the address %s', (uri, address) => expect(mailtoAddress(uri)).toBe(address))

describe('counting', () => {
  function reports(clock: VirtualClock, more: { readonly skipsResumed?: boolean } = {}) {
    const { store } = openMemoryStore(emptyQueue())
    const notes: string[] = []
    const made = new TlsReports({
      store,
      clock,
      source: 'one',
      settings: () => ({ skipsResumed: more.skipsResumed ?? false, noPolicy: false }),
      note: (text) => notes.push(text),
    })
    return { store, made, notes }
  }
  const sessions = async (store: ReturnType<typeof reports>['store'], day: string) =>
    (await store.records.tlsResults.of(day, 'far.example')).map((result) => result.sessions)

  test('resumed handshakes are left out when asked', async () => {
    for (const [skipsResumed, expected] of [
      [false, [2]],
      [true, [1]],
    ] as const) {
      const { store, made } = reports(new VirtualClock(), { skipsResumed })
      made.count(stage({ sts: STS }))
      made.count(stage({ sts: STS, connection: { ...CONNECTION, reused: true } }))
      await made.close()
      expect(await sessions(store, '2026-01-01')).toEqual(expected)
    }
  })

  test('each UTC day has counts of its own', async () => {
    const clock = new VirtualClock({ startsAt: Date.UTC(2026, 0, 1, 23, 59, 59, 999) })
    const { store, made, notes } = reports(clock)
    made.count(stage({ sts: STS }))
    made.count(stage({ sts: STS }))
    clock.step(1)
    made.count(stage({ sts: STS, named: false }))
    await made.close()
    expect([await sessions(store, '2026-01-01'), await sessions(store, '2026-01-02')]).toEqual([[2], [1]])
    expect(notes).toEqual([
      'TLSRPT: status=failure, domain=far.example, receiving_mx=mx.far.example, failure_type=validation_failure, failure_reason=mtasts-policy-mx-mismatch',
    ])
  })

  test('counts that cannot be stored are stored later', async () => {
    const { store, made, notes } = reports(new VirtualClock())
    const keep = store.records.tlsResults.keep.bind(store)
    const kept: CountedResult[] = []
    store.records.tlsResults.keep = () => Promise.reject(new Error('full disk'))
    made.count(stage({ sts: STS }))
    await made.close()
    store.records.tlsResults.keep = (source, results) => {
      kept.push(...results)
      return keep(source, results)
    }
    await made.close()
    expect(kept.map((result) => result.sessions)).toEqual([1])
    expect(notes).toEqual(['TLSRPT: results cannot be stored: full disk'])
  })

  test('counts of a day that cannot be stored at its end are stored later, by themselves and once', async () => {
    const clock = new VirtualClock({ startsAt: Date.UTC(2026, 0, 1, 23, 59, 59, 999) })
    const { store, made } = reports(clock)
    const keep = store.records.tlsResults.keep.bind(store)
    const kept: string[] = []
    store.records.tlsResults.keep = async (source, results) => {
      if (clock.now() < Date.UTC(2026, 0, 2, 0, 3)) throw new Error('full disk')
      kept.push(...results.map((result) => `${result.day} ${result.sessions}`))
      return keep(source, results)
    }
    made.count(stage({ sts: STS }))
    made.count(stage({ sts: STS }))
    clock.step(1)
    made.count(stage({ sts: STS }))
    await new TimeDriver(clock, {}).runUntil(clock.now() + HOUR)
    expect(kept).toEqual(['2026-01-01 2', '2026-01-02 1'])
    made.count(stage({ sts: STS }))
    await made.close()
    expect(kept.slice(2)).toEqual(['2026-01-02 2'])
    expect([await sessions(store, '2026-01-01'), await sessions(store, '2026-01-02')]).toEqual([[2], [2]])
  })

  test('different results are limited, while those of the day before wait for the store', async () => {
    const clock = new VirtualClock({ startsAt: Date.UTC(2026, 0, 1, 23, 59, 59, 999) })
    const { store, made, notes } = reports(clock)
    const keep = store.records.tlsResults.keep.bind(store)
    store.records.tlsResults.keep = () => Promise.reject(new Error('full disk'))
    const from = (host: number) => stage({ sts: STS, named: false, host: { name: 'mx.far.example', address: `host ${host}` } })
    for (let host = 0; host < 10_001; host++) made.count(from(host))
    clock.step(1)
    made.count(from(0))
    store.records.tlsResults.keep = keep
    await made.close()
    made.count(from(0))
    await made.close()
    expect((await sessions(store, '2026-01-01')).length).toBe(10_000)
    expect(await sessions(store, '2026-01-02')).toEqual([1])
    expect(notes.filter((note) => note.includes('more than 10000'))).toHaveLength(2)
  })
})

describe('sending', () => {
  interface Sent {
    readonly at: number
    readonly node: string
    readonly to: string
    readonly sessions: number | undefined
  }

  /** Domains with one session on the day before, by what their records ask for, at a quarter past midnight. */
  async function morning(domains: Readonly<Record<string, string>>) {
    const clock = new VirtualClock({ startsAt: Date.UTC(2026, 0, 2, 0, 0, 0) })
    const from = clock.now()
    const { store } = openMemoryStore(emptyQueue())
    const result = { day: '2026-01-01', policy: '{"policy-type":"sts","policy-domain":"far.example"}', key: 'k', type: 'success' }
    const counts = Object.keys(domains).map((domain) => ({
      ...result,
      domain,
      mx: '',
      receivingIp: '',
      sendingIp: '',
      reason: '',
      sessions: 4,
    }))
    await store.records.tlsResults.keep('p', counts)
    const net = new MemoryNet(clock, {
      lookupMx: () => ({ kind: 'none', nxdomain: true }),
      lookupAddresses: () => ({ kind: 'found', records: ['192.0.2.1'] }),
      lookupTxt: (name) => ({ kind: 'found', records: [`v=TLSRPTv1; rua=${domains[name.replace('_smtp._tls.', '')]}`] }),
      dial: () => ({ kind: 'silent' }),
    })
    const sent: Sent[] = []
    const notes: string[] = []
    const settings = { enabled: true, sender: 'tlsrpt@us.example', organization: 'us.example', allowPrivate: true }
    const node = (hostname: string, mail: () => Promise<string | undefined> = async () => undefined) =>
      new ReportSender({
        store,
        clock,
        net,
        settings: () => ({ ...settings, hostname }),
        owns: () => true,
        draw: () => 0,
        mail: (report, to) => {
          sent.push({ at: (clock.now() - from) / MINUTE, node: hostname, to, sessions: report.results[0]?.sessions })
          return mail()
        },
        note: (text) => notes.push(text),
      })
    const driver = new TimeDriver(clock, { net })
    return { store, settings, sent, notes, node, wait: (time: number) => driver.runUntil(clock.now() + time) }
  }

  test('of several nodes one sends a report, and another one when the first has ended before', async () => {
    const { node, sent, store, wait } = await morning({ 'far.example': 'mailto:a@far.example' })
    // The first node never ends with the report, as if it had been killed.
    for (const one of [node('n1', () => new Promise(() => undefined)), node('n2'), node('n3')]) one.start()
    await wait(50 * MINUTE)
    expect(sent).toMatchObject([{ node: 'n1', sessions: 4 }])
    await wait(5 * HOUR)
    expect(sent).toMatchObject([{ node: 'n1' }, { node: 'n2', sessions: 4 }])
    expect(await store.records.tlsReports.due('2026-01-01')).toEqual([])
  })

  test('servers that do not answer delay no other domain, and of many addresses five are used', async () => {
    const many = (kind: (n: number) => string) => Array.from({ length: 20 }, (_, n) => kind(n)).join(',')
    const slow = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`a${n}.example`, many((i) => `https://h${i}.example/`)]))
    const { node, sent, notes, wait } = await morning({ ...slow, 'b.example': many((n) => `mailto:a${n}@b.example`) })
    node('n1').start()
    await wait(7 * MINUTE)
    expect(sent).toMatchObject([0, 1, 2, 3, 4].map((n) => ({ at: 5, to: `a${n}@b.example` })))
    expect(notes.filter((note) => note.includes('cannot be sent'))).toHaveLength(9 * 5)
  })

  test('ends when a reload disables it, and begins again', async () => {
    const { node, sent, settings, wait } = await morning({ 'far.example': 'mailto:a@far.example' })
    const one = node('n1')
    one.start()
    await wait(MINUTE)
    settings.enabled = false
    one.start()
    await wait(HOUR)
    expect(sent).toEqual([])
    settings.enabled = true
    one.start()
    await wait(6 * MINUTE)
    expect(sent).toHaveLength(1)
  })
})
