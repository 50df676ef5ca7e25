import { expect, test } from 'vitest'
import type { NextHop } from '../../../src/config/values/next-hop.ts'
import { lookupFailed, lookupTimedOut, policyUnreadable, unsendable } from '../../../src/delivery/smtp/route-failures.ts'

const hop: NextHop = { host: 'far.example', port: 25, mx: true, origin: 'recipient' }
const relayhost: NextHop = { ...hop, origin: 'relayhost' }
const missing = { kind: 'failed', status: '5.4.4', reason: 'Host or domain name not found', final: true } as const
const hard = { softBounce: false }

test('a domain that does not exist bounces mail, without a site-level failure', () => {
  expect(lookupFailed(hop, missing, hard)).toMatchObject({
    verdict: { outcome: 'bounced', status: { status: '5.4.4' } },
    siteStatus: undefined,
  })
})

test('under soft_bounce, it is a site-level failure with a temporary outcome', () => {
  const { verdict, siteStatus } = lookupFailed(hop, missing, { softBounce: true })
  expect([verdict.outcome, verdict.status.status, siteStatus?.status]).toEqual(['deferred', '4.4.4', '5.4.4'])
})

test('a relayhost that does not exist is an error of the configuration', () => {
  expect(lookupFailed(relayhost, missing, hard)).toMatchObject({ verdict: { outcome: 'deferred' }, siteStatus: { status: '4.3.5' } })
})

test('a look-up without an answer is a failure of the site, unless the delivery was aborted', () => {
  expect(lookupTimedOut(hop, false)).toMatchObject({ siteStatus: { status: '4.4.3' }, withoutFeedback: false })
  expect(lookupTimedOut(hop, true)).toMatchObject({
    verdict: { status: { status: '4.3.2' } },
    siteStatus: undefined,
    withoutFeedback: true,
  })
})

test('a policy that cannot be read defers mail, and tells nothing about the destination', () => {
  expect(policyUnreadable('disk error')).toMatchObject({
    verdict: { outcome: 'deferred', status: { status: '4.3.0' } },
    withoutFeedback: true,
  })
})

test('an address that cannot be sent is final, also under soft_bounce', () => {
  expect(unsendable('address', hard)).toMatchObject({ outcome: 'bounced', status: { status: '5.1.3' } })
  expect(unsendable('domain', { softBounce: true })).toMatchObject({ outcome: 'deferred', status: { status: '4.1.2' }, elsewhere: false })
})
