/** Refusals that concern the login at a configured next hop: outcome, class, advice, feedback, and the number of requests for a token. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { failureClass, type FailureClass } from '../../../src/mail/failure-class.ts'
import { loginRefusal } from '../../../src/mail/login-refusal.ts'
import type { Feedback, LoginFailure, RecipientOutcome } from '../../../src/delivery/delivery-agent.ts'
import type { ServerScript } from '../../support/scripted-server.ts'
import { challengeReply, TokenHop } from '../../support/token-hop.ts'

interface Expected {
  readonly outcome: RecipientOutcome['outcome']
  readonly status: string
  readonly class: FailureClass
  /** A part of the hint; null for none. */
  readonly hint: string | null
  /** Requests for a token, including the first. */
  readonly requests: number
  /** `negative` is a failure of the whole next hop. */
  readonly feedback: Feedback
  readonly login?: LoginFailure
  readonly congestion?: 'late'
}

const refused = { outcome: 'deferred', class: 'ours', feedback: 'negative', login: 'refused' } as const
const sender = { outcome: 'bounced', class: 'policy', hint: 'SendAs', requests: 1, feedback: 'positive' } as const
const ended = challengeReply({ status: '401', schemes: 'bearer', scope: 'https://mail.example/' })
const invalid = challengeReply({ status: 'invalid_token', 'openid-configuration': 'https://id.example/' })

const ROWS: readonly [string, ServerScript, Expected][] = [
  [
    '535 5.7.3: permission, service principal or user',
    { auth: '535 5.7.3 Authentication unsuccessful' },
    { ...refused, status: '4.7.3', hint: 'SMTP.SendAsApp', requests: 2 },
  ],
  [
    '535 5.7.139: SMTP AUTH is off',
    { auth: '535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Mailbox' },
    { ...refused, status: '4.7.139', hint: 'SMTP AUTH is off', requests: 1 },
  ],
  [
    '535 5.7.139 after a challenge about the token',
    { auth: [ended, '535 5.7.139 off'] },
    { ...refused, status: '4.7.139', hint: 'SMTP AUTH is off', requests: 1 },
  ],
  ['550 5.7.30 after AUTH', { auth: '550 5.7.30 no basic' }, { ...refused, status: '4.7.30', hint: '[oauth.NAME]', requests: 1 }],
  ['535 5.7.30 after AUTH', { auth: '535 5.7.30 no basic' }, { ...refused, status: '4.7.30', hint: '[oauth.NAME]', requests: 1 }],
  ['535 5.7.8: user or token', { auth: '535 5.7.8 no' }, { ...refused, status: '4.7.8', hint: '[oauth.NAME]', requests: 2 }],
  ['535 without a code', { auth: '535 no' }, { ...refused, status: '4.0.0', hint: '[oauth.NAME]', requests: 2 }],
  ['504: mechanism unknown', { auth: '504 5.5.4 what' }, { ...refused, status: '4.5.4', hint: null, requests: 2 }],
  [
    '454 4.7.0: temporary',
    { auth: '454 4.7.0 later' },
    { outcome: 'deferred', status: '4.7.0', class: 'ours', hint: 'could not check', requests: 2, feedback: 'negative' },
  ],
  [
    '451 4.3.0: the server has trouble of its own',
    { auth: '451 4.3.0 later' },
    { outcome: 'deferred', status: '4.3.0', class: 'ours', hint: null, requests: 1, feedback: 'negative' },
  ],
  [
    'a challenge with status 401, then a temporary refusal',
    { auth: [ended, '451 4.3.0 no', ended, '451 4.3.0 no'] },
    { outcome: 'deferred', status: '4.3.0', class: 'ours', hint: null, requests: 2, feedback: 'negative' },
  ],
  [
    'a challenge with invalid_token',
    { auth: [invalid, '535 5.7.8 no', invalid, '535 5.7.8 no'] },
    { ...refused, status: '4.7.8', hint: '[oauth.NAME]', requests: 2 },
  ],
  [
    '530 5.7.57 at MAIL: no login',
    { mail: '530 5.7.57 Client not authenticated to send mail' },
    { ...refused, status: '4.7.57', hint: 'wants a login', requests: 1, login: 'missing' },
  ],
  [
    '550 5.7.57 at MAIL: no login',
    { mail: '550 5.7.57 Client not authenticated to send mail' },
    { ...refused, status: '4.7.57', hint: 'wants a login', requests: 1, login: 'missing' },
  ],
  ['550 5.7.60 after the content', { dot: '550 5.7.60 not as this sender' }, { ...sender, status: '5.7.60' }],
  ['554 5.2.252 after the content', { dot: '554 5.2.252 SendAsDenied' }, { ...sender, status: '5.2.252' }],
  [
    '430 4.2.0 after the content: the mailbox',
    { dot: '430 4.2.0 STOREDRV; mailbox logon failure' },
    { outcome: 'deferred', status: '4.2.0', class: 'ours', hint: 'FullAccess', requests: 1, feedback: 'positive' },
  ],
  [
    '430 4.2.0 after AUTH',
    { auth: '430 4.2.0 STOREDRV; mailbox logon failure' },
    { outcome: 'deferred', status: '4.2.0', class: 'ours', hint: 'FullAccess', requests: 1, feedback: 'negative' },
  ],
  [
    '432 4.3.2 after the content: too much at once',
    { dot: '432 4.3.2 sender thread limit exceeded' },
    {
      outcome: 'deferred',
      status: '4.3.2',
      class: 'rate',
      hint: 'destination_concurrency_limit = 3',
      requests: 1,
      feedback: 'positive',
      congestion: 'late',
    },
  ],
  [
    '432 4.3.2 after AUTH',
    { auth: '432 4.3.2 too many logins' },
    {
      outcome: 'deferred',
      status: '4.3.2',
      class: 'rate',
      hint: 'destination_concurrency_limit = 3',
      requests: 1,
      feedback: 'negative',
      congestion: 'late',
    },
  ],
  [
    '5.7.30 at RCPT: REQUIRETLS',
    { rcpt: '550 5.7.30 REQUIRETLS support required' },
    { outcome: 'bounced', status: '5.7.30', class: 'tls', hint: null, requests: 1, feedback: 'positive' },
  ],
]

describe('at a configured next hop', () => {
  test.each(ROWS)('%s', async (_name, script, expected) => {
    const hop = new TokenHop({ script })
    const result = await hop.deliver()
    const status = result.of()
    expect({
      outcome: status.outcome,
      status: status.status,
      class: failureClass(status).class,
      requests: hop.requests,
      feedback: result.feedback,
      login: result.login,
      congestion: result.congestion,
    }).toEqual({ login: undefined, congestion: undefined, ...expected, hint: undefined })
    const hint = loginRefusal(status)?.hint ?? null
    if (expected.hint === null) expect(hint).toBeNull()
    else expect(hint).toContain(expected.hint)
  })

  test('a token that was replaced within 5 minutes is not replaced again', async () => {
    const hop = new TokenHop({ script: { auth: '535 5.7.3 no' } })
    for (let n = 0; n < 5; n++) await hop.deliver()
    expect(hop.requests).toBe(2)
    await hop.far.driver.runUntil(hop.far.clock.now() + 300_000)
    for (let n = 0; n < 5; n++) await hop.deliver()
    expect(hop.requests).toBe(3)
  })

  test('5.7.30 after a password: the advice is an access token', async () => {
    const hop = new TokenHop({ password: 'secret', script: { auth: '550 5.7.30 Basic authentication is not supported' } })
    const status = (await hop.deliver()).of()
    expect(status).toMatchObject({ outcome: 'deferred', status: '4.7.30', stage: 'auth' })
    expect(loginRefusal(status)?.hint).toContain('use [oauth.NAME]')
    expect(hop.requests).toBe(0)
  })

  test('a refused token without a new one: the mail waits with the reason', async () => {
    const answer = async (nth: number) => (nth === 1 ? 'first-token\n3600' : Promise.reject(new Error('the authority does not answer')))
    const hop = new TokenHop({ answer, script: { auth: '535 5.7.3 no' } })
    expect((await hop.deliver()).of()).toMatchObject({
      outcome: 'deferred',
      status: '4.7.0',
      reason: expect.stringContaining('the authority does not answer') as string,
    })
  })
})

const member = fc.oneof(fc.string(), fc.integer(), fc.constantFrom('400', '401', 'invalid_token', 'insufficient_scope'), fc.jsonValue())
const json = fc.oneof(
  fc.record({ status: member, scope: member, schemes: member, 'openid-configuration': member }, { requiredKeys: [] }),
  fc.jsonValue(),
)
const bytes = fc.oneof(
  json.map(challengeReply),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => `334 ${Buffer.from(text).toString('base64')}`),
  fc.constantFrom(
    '334',
    '334 ',
    `334 ${'eyJ9'.repeat(12_000)}`,
    '235 ok',
    '250',
    '354 go',
    '432 4.3.2 slow',
    '535-a\r\n535 5.7.139 b',
    '550 no',
  ),
  fc.tuple(fc.integer({ min: 100, max: 999 }), fc.string({ unit: 'binary', maxLength: 40 })).map(([code, text]) => `${code} ${text}`),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

test('no wild challenge or reply to AUTH throws, or bounces mail', async () => {
  const wild = fc.record({ replies: fc.array(bytes, { minLength: 1, maxLength: 5 }), bearer: fc.boolean(), drop: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(wild, async ({ replies, bearer, drop }) => {
      const acts = replies.map((say) => ({ packets: [Buffer.from(`${say}\r\n`)] }))
      const auth = [...acts, ...(drop ? [{ packets: [], drop: true }] : [])]
      const hop = new TokenHop({ mechanisms: bearer ? 'OAUTHBEARER' : 'XOAUTH2', script: { auth } })
      const { outcome, reason } = (await hop.deliver()).of()
      expect(outcome).not.toBe('bounced')
      expect(reason.length).toBeLessThan(6_000)
    }),
    { numRuns: 60 },
  )
})
