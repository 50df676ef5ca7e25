/** Contract of the store: results of TLS sessions, and the reports about them. */
import { expect, test } from 'vitest'
import type { CountedResult, TlsResult } from '../../src/store/records/tls-report.ts'
import { MIN, T0, type Subject } from './mail.ts'

const DAY = '2026-11-23'
const NEXT = '2026-11-24'

const result = (key: string, sessions: number, more: Partial<CountedResult> = {}): CountedResult => ({
  day: DAY,
  domain: 'b.example',
  key,
  policy: '{"policy-type":"sts","policy-string":["“ü”"]}',
  type: 'certificate-expired',
  mx: 'mx.b.example',
  receivingIp: '192.0.2.1',
  sendingIp: '2001:db8::1',
  reason: 'certificate has expired',
  sessions,
  ...more,
})

function summed(counted: CountedResult, sessions: number): TlsResult {
  const { key: _, ...rest } = counted
  return { ...rest, sessions }
}

export function tlsReporting(subject: () => Subject): void {
  test('counts of several processes are summed, and repeated or older ones of one process change nothing', async () => {
    const { store } = subject()
    const [one, two] = [result('k1', 3), result('k2', 1, { type: 'success', mx: '', receivingIp: '', sendingIp: '', reason: '' })]
    await store.records.tlsResults.keep('p1', [two, one])
    await store.records.tlsResults.keep('p1', [one])
    await store.records.tlsResults.keep('p1', [result('k1', 2)])
    await store.records.tlsResults.keep('p2', [result('k1', 5)])
    await store.records.tlsResults.keep('p2', [])
    expect(await store.records.tlsResults.of(DAY, 'b.example')).toEqual([summed(one, 8), summed(two, 1)])
    await store.records.tlsResults.keep('p1', [result('k1', 4)])
    expect((await store.records.tlsResults.of(DAY, 'b.example')).map(({ sessions }) => sessions)).toEqual([9, 1])
    expect(await store.records.tlsResults.of(DAY, 'a.example')).toEqual([])
    expect(await store.records.tlsResults.of(NEXT, 'b.example')).toEqual([])
  })

  test('a report is due until it ends, and one caller has it at a time', async () => {
    const { store } = subject()
    await store.records.tlsResults.keep('p1', [
      result('k1', 1),
      result('k1', 1, { domain: 'a.example' }),
      result('k1', 1, { day: NEXT, domain: 'c.example' }),
    ])
    expect(await store.records.tlsReports.due(DAY)).toEqual(['a.example', 'b.example'])
    const claim = { day: DAY, domain: 'a.example', at: T0, until: T0 + MIN }
    expect(await store.records.tlsReports.claim(claim)).toBe(true)
    expect(await store.records.tlsReports.claim({ ...claim, at: T0 + MIN - 1, until: T0 + 2 * MIN })).toBe(false)
    expect(await store.records.tlsReports.claim({ ...claim, day: NEXT })).toBe(true)
    expect(await store.records.tlsReports.due(DAY)).toEqual(['a.example', 'b.example'])
    expect(await store.records.tlsReports.claim({ ...claim, at: T0 + MIN, until: T0 + 2 * MIN })).toBe(true)
    await store.records.tlsReports.end({ day: DAY, domain: 'a.example', end: 'sent' })
    await store.records.tlsReports.end({ day: DAY, domain: 'a.example', end: 'unwanted' })
    await store.records.tlsReports.end({ day: DAY, domain: 'b.example', end: 'unwanted' })
    expect(await store.records.tlsReports.due(DAY)).toEqual([])
    expect(await store.records.tlsReports.due(NEXT)).toEqual(['c.example'])
    expect(await store.records.tlsReports.claim({ ...claim, at: T0 + 9 * MIN, until: T0 + 10 * MIN })).toBe(false)
  })

  test('old days are deleted', async () => {
    const { store } = subject()
    await store.records.tlsResults.keep('p1', [result('k1', 1), result('k1', 1, { day: NEXT })])
    await store.records.tlsReports.end({ day: DAY, domain: 'b.example', end: 'sent' })
    await store.records.tlsReports.prune(NEXT)
    expect(await store.records.tlsResults.of(DAY, 'b.example')).toEqual([])
    expect(await store.records.tlsReports.due(NEXT)).toEqual(['b.example'])
    // Nothing of the former report is left.
    await store.records.tlsResults.keep('p1', [result('k1', 1)])
    expect(await store.records.tlsReports.due(DAY)).toEqual(['b.example'])
  })
}
