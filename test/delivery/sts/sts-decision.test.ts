import { describe, expect, test } from 'vitest'
import { decideSts, refreshOf } from '../../../src/delivery/sts/sts-decision.ts'
import type { StsAnnouncement } from '../../../src/delivery/sts/sts-record.ts'
import type { StsPolicy } from '../../../src/store/records/sts-policy.ts'
import { DAY, HOUR, MINUTE } from '../../../src/system/clock.ts'

const NOW = Date.UTC(2026, 10, 20)
const policy: StsPolicy = {
  domain: 'far.example',
  id: 'one',
  mode: 'enforce',
  mx: ['mx.far.example'],
  text: '',
  fetchedAt: NOW - DAY,
  expiresAt: NOW + DAY,
  usedAt: NOW - DAY,
  failedAt: null,
  failure: null,
}
const expired = { ...policy, expiresAt: NOW }
const none: StsAnnouncement = { kind: 'none' }
const invalid: StsAnnouncement = { kind: 'invalid', reason: 'there are 2 records' }
const failed: StsAnnouncement = { kind: 'failed', reason: 'SERVFAIL' }
const id = (text: string): StsAnnouncement => ({ kind: 'id', id: text })

describe('which policy applies, and what is fetched', () => {
  type Row = [
    string,
    StsPolicy | undefined,
    StsAnnouncement,
    { failedAt?: number; last?: boolean },
    StsPolicy | undefined,
    string | undefined,
  ]
  test.each<Row>([
    ['nothing is kept, nothing announced', undefined, none, {}, undefined, undefined],
    ['nothing is kept, and the look-up fails: the first use is trusted', undefined, failed, {}, undefined, undefined],
    ['nothing is kept, and an id is announced', undefined, id('one'), {}, undefined, 'one'],
    ['a fetch failed a minute ago', undefined, id('one'), { failedAt: NOW - MINUTE }, undefined, undefined],
    ['a fetch failed five minutes ago', undefined, id('one'), { failedAt: NOW - 5 * MINUTE }, undefined, 'one'],
    ['the kept policy is announced', policy, id('one'), {}, policy, undefined],
    ['another policy is announced', policy, id('two'), {}, policy, 'two'],
    ['another is announced, and its fetch failed', policy, id('two'), { failedAt: NOW - MINUTE }, policy, undefined],
    ['the record was taken away', policy, none, {}, policy, undefined],
    ['the record cannot be used', policy, invalid, {}, policy, undefined],
    ['the look-up fails', policy, failed, {}, policy, undefined],
    ['the kept policy has expired, and is announced', expired, id('one'), {}, undefined, 'one'],
    ['the kept policy has expired, and nothing is announced', expired, none, {}, undefined, undefined],
    ['the kept policy has expired, and the look-up fails', expired, failed, {}, undefined, undefined],
    ['at the last attempt the known policy is fetched', policy, id('one'), { last: true }, policy, 'one'],
    ['at the last attempt it is fetched without a record too', policy, none, { last: true }, policy, 'one'],
    ['at the last attempt it is fetched after a failure too', policy, id('two'), { failedAt: NOW - MINUTE, last: true }, policy, 'two'],
    ['at the last attempt nothing is fetched where nothing is known', undefined, none, { last: true }, undefined, undefined],
  ])('%s', (_, kept, announced, { failedAt = null, last = false }, applies, fetch) => {
    expect(decideSts({ kept, announced, now: NOW, failedAt, last })).toEqual({ applies, fetch })
  })
})

describe('in the background', () => {
  test.each<[string, Partial<StsPolicy>, number, string]>([
    ['a policy of an hour stays', { fetchedAt: NOW - HOUR, usedAt: NOW }, 0, 'keep'],
    ['one of 18 hours may be fetched', { fetchedAt: NOW - 18 * HOUR, usedAt: NOW }, 0, 'fetch'],
    ['one of 29 hours may stay', { fetchedAt: NOW - 29 * HOUR, usedAt: NOW }, 0.99, 'keep'],
    ['one of 30 hours is fetched', { fetchedAt: NOW - 30 * HOUR, usedAt: NOW }, 0.99, 'fetch'],
    ['a failed fetch is repeated a day later', { fetchedAt: NOW - 9 * DAY, failedAt: NOW - HOUR, usedAt: NOW }, 0, 'keep'],
    ['one unused for 31 days stays as it is', { fetchedAt: NOW - 9 * DAY, usedAt: NOW - 31 * DAY }, 0, 'keep'],
    ['one unused for 181 days is dropped', { fetchedAt: NOW - DAY, usedAt: NOW - 181 * DAY }, 0, 'drop'],
  ])('%s', (_, changed, draw, expected) => expect(refreshOf({ ...policy, ...changed }, NOW, draw)).toBe(expected))
})
