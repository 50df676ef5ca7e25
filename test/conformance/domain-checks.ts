/** Contract of the store: checks of domains, which all nodes share. */
import { expect, test } from 'vitest'
import { CHECK_LEASE, type DomainCheck } from '../../src/store/records/domain-check.ts'
import { MIN, T0, type Subject } from './mail.ts'

export const domainCheck = (beganAt: number, more: Partial<DomainCheck> = {}): DomainCheck => ({
  domain: 'far.example',
  sender: 'us.example',
  orderedBy: 'ann',
  node: 'mx1',
  beganAt,
  endedAt: null,
  failure: null,
  report: null,
  ...more,
})

const REPORT = { verdict: 'ok', findings: [{ text: '"quoted" \u{1f600}' }] }

export function domainChecks(subject: () => Subject): void {
  test('a check is begun once, ended once, and leaves the report of the one before until it has its own', async () => {
    const { store, reader } = subject()
    const { domainChecks: checks } = store.records
    const key = { domain: 'far.example', sender: 'us.example' }
    expect(await checks.begin(domainCheck(T0))).toBe(true)
    expect(await checks.begin(domainCheck(T0 + 1, { node: 'mx2' }))).toBe(false)
    expect(await checks.keep(domainCheck(T0 + 1, { endedAt: T0 + 2 }))).toBe(false)
    expect(await checks.begin(domainCheck(T0, { sender: 'other.example' }))).toBe(true)
    expect(await checks.end({ ...key, beganAt: T0 - 1, endedAt: T0, failure: 'another check' })).toBe(false)
    expect(await checks.end({ ...key, beganAt: T0, endedAt: T0 + 5, failure: null, report: REPORT })).toBe(true)
    expect(await checks.end({ ...key, beganAt: T0, endedAt: T0 + 6, failure: 'again' })).toBe(false)
    expect(await reader.records.domainChecks.of('far.example', 'us.example')).toEqual(domainCheck(T0, { endedAt: T0 + 5, report: REPORT }))
    expect(await checks.begin(domainCheck(T0 + MIN, { orderedBy: 'bob', node: 'mx2' }))).toBe(true)
    expect(await reader.records.domainChecks.of('far.example', 'us.example')).toEqual(
      domainCheck(T0 + MIN, { orderedBy: 'bob', node: 'mx2', report: REPORT }),
    )
    expect(await checks.end({ ...key, beganAt: T0 + MIN, endedAt: T0 + 2 * MIN, failure: 'too slow' })).toBe(true)
    expect(await reader.records.domainChecks.of('far.example', 'us.example')).toMatchObject({ failure: 'too slow', report: REPORT })
    expect(await checks.keep(domainCheck(T0 + 3 * MIN, { endedAt: T0 + 4 * MIN, report: { verdict: 'wrong' } }))).toBe(true)
    expect((await reader.records.domainChecks.all()).map(({ sender, report }) => [sender, report])).toEqual([
      ['other.example', null],
      ['us.example', { verdict: 'wrong' }],
    ])
  })

  test('a check whose node is gone can be begun again, and its end is late', async () => {
    const { domainChecks: checks } = subject().store.records
    await checks.begin(domainCheck(T0))
    expect(await checks.begin(domainCheck(T0 + CHECK_LEASE - 1))).toBe(false)
    expect(await checks.begin(domainCheck(T0 + CHECK_LEASE, { node: 'mx2' }))).toBe(true)
    const late = { domain: 'far.example', sender: 'us.example', beganAt: T0, endedAt: T0 + CHECK_LEASE + 1 }
    expect(await checks.end({ ...late, failure: null, report: REPORT })).toBe(false)
  })

  test('old checks are deleted, and all but the newest 500', async () => {
    const { store, reader } = subject()
    const { domainChecks: checks } = store.records
    const names = async () => (await reader.records.domainChecks.all()).map(({ domain }) => domain)
    for (const [n, domain] of ['a.example', 'b.example', 'c.example'].entries()) await checks.begin(domainCheck(T0 + n, { domain }))
    await checks.prune(T0 + 1)
    expect(await names()).toEqual(['b.example', 'c.example'])
    await Promise.all(Array.from({ length: 500 }, (_, n) => checks.begin(domainCheck(T0 + 2 + n, { domain: `d${n}.example` }))))
    await checks.prune(T0)
    const kept = await names()
    expect(kept).not.toContain('b.example')
    expect(kept.length).toBeLessThanOrEqual(501)
  })
}
