import { describe, expect, test } from 'vitest'
import { FAILURE_CLASSES, failureClass, type FailureClass } from '../../src/mail/failure-class.ts'
import { parseReply, statusOf, type Stage } from '../../src/mail/smtp-reply.ts'

/** Replies as servers send them. */
const REPLIES: readonly (readonly [stage: Stage, reply: string, expected: FailureClass])[] = [
  ['rcpt', '550 5.1.1 The email account that you tried to reach does not exist.', 'recipient'],
  ['rcpt', '550 5.1.3 bad address', 'recipient'],
  ['rcpt', '551 5.1.6 mailbox has moved', 'recipient'],
  ['rcpt', '450 4.2.1 The user is receiving mail at a rate that prevents delivery', 'recipient'],
  ['rcpt', '550 5.7.13 user account disabled', 'recipient'],
  ['rcpt', '550 5.7.17 mailbox owner has changed', 'recipient'],
  ['end-of-data', '550 5.1.1 <ann@example.net> unknown', 'recipient'],
  ['mail', '550 5.1.1 sender unknown', 'unknown'],
  ['rcpt', '450 4.7.13 later', 'policy'],
  ['rcpt', '550 5.1.2 no such domain', 'domain'],
  ['rcpt', '556 5.1.10 null MX', 'domain'],
  ['rcpt', '550 5.7.18 domain owner has changed', 'domain'],
  ['rcpt', '452 4.2.2 The recipient’s inbox is out of storage space', 'full'],
  ['rcpt', '552 5.2.2 mailbox full', 'full'],
  ['mail', '452 4.3.1 insufficient system storage', 'full'],
  ['end-of-data', '552 5.2.3 message exceeds the limit of the mailbox', 'size'],
  ['mail', '552 5.3.4 message too big for system', 'size'],
  ['greeting', '421 too busy', 'rate'],
  ['rcpt', '421 4.7.0 [TSS04] messages temporarily deferred', 'rate'],
  ['end-of-data', '450 4.3.2 please try again later', 'rate'],
  ['rcpt', '451 4.4.5 system congestion', 'rate'],
  ['mail', '451 4.7.0 temporary server error', 'rate'],
  ['end-of-data', '421 4.7.28 unusual rate of mail', 'rate'],
  ['rcpt', '550 5.7.28 mail flood detected', 'rate'],
  ['rcpt', '452 4.5.3 too many recipients', 'rate'],
  ['rcpt', '451 4.7.0 greylisted', 'policy'],
  ['end-of-data', '550 5.7.20 no passing DKIM signature', 'authentication'],
  ['end-of-data', '550 5.7.23 SPF validation failed', 'authentication'],
  ['mail', '550 5.7.25 the IP address has no PTR record', 'authentication'],
  ['end-of-data', '550 5.7.26 unauthenticated mail is blocked', 'authentication'],
  ['mail', '550 5.7.27 the sender has a null MX', 'authentication'],
  ['end-of-data', '550 5.7.29 ARC validation failure', 'authentication'],
  ['rcpt', '554 5.7.1 Service unavailable; client host is on a list', 'policy'],
  ['greeting', '554 no SMTP service here', 'policy'],
  ['greeting', '554 5.7.1 refused', 'policy'],
  ['end-of-data', '550 5.7.0 message content rejected', 'content'],
  ['end-of-data', '554 5.6.0 malformed message', 'content'],
  ['starttls', '454 4.7.0 TLS not available', 'policy'],
  ['mail', '530 5.7.10 encryption needed', 'tls'],
  ['mail', '550 5.7.4 must issue STARTTLS first', 'tls'],
  ['ehlo', '502 5.5.1 not implemented', 'protocol'],
  ['data', '503 5.5.1 no valid recipients', 'protocol'],
  ['rcpt', '451 4.4.3 DNS failure', 'route'],
  ['rcpt', '550 5.4.6 mail loop', 'route'],
  ['auth', '535 5.7.8 authentication credentials invalid', 'ours'],
  // Without an enhanced code nothing is told: "552 mailbox not found" is a known reply.
  ['rcpt', '550 no such user here', 'unknown'],
  ['rcpt', '552 mailbox not found', 'unknown'],
  ['end-of-data', '554 transaction failed', 'unknown'],
  ['rcpt', '550 4.1.1 class that does not match the code', 'unknown'],
  ['rcpt', '450 4.0.0 something', 'unknown'],
]

test.each(REPLIES)('at %s, %s: %s', (stage, reply, expected) => {
  const parsed = parseReply(reply)
  if (parsed === undefined) throw new Error('not a reply')
  expect(failureClass({ stage, reply, status: statusOf(parsed) }).class).toBe(expected)
})

test.each<readonly [stage: Stage, status: string, expected: FailureClass]>([
  ['route', '5.1.3', 'recipient'],
  ['route', '5.1.2', 'domain'],
  ['dns', '5.1.0', 'domain'],
  ['dns', '5.4.4', 'domain'],
  ['dns', '4.4.3', 'route'],
  ['dns', '4.3.5', 'ours'],
  ['connect', '4.4.1', 'route'],
  ['mail', '4.4.2', 'route'],
  ['ehlo', '5.4.6', 'route'],
  ['starttls', '4.7.4', 'tls'],
  ['starttls', '4.7.5', 'tls'],
  ['mail', '5.3.4', 'size'],
  ['rcpt', '4.5.0', 'protocol'],
  ['ehlo', '5.6.7', 'content'],
  ['body', '4.3.0', 'ours'],
  ['greeting', '4.3.2', 'ours'],
  ['queue', '4.4.7', 'expired'],
])('without a reply, at %s, %s: %s', (stage, status, expected) => {
  expect(failureClass({ stage, status, reply: undefined }).class).toBe(expected)
})

describe('the rule', () => {
  test.each([
    [{ stage: 'rcpt', status: '5.1.1', reply: '550 5.1.1 no' } as const, 'x.1.1 in reply to RCPT'],
    [{ stage: 'rcpt', status: '5.7.1', reply: '550 5.7.1 no' } as const, 'x.7.x'],
    [{ stage: 'mail', status: '4.7.0', reply: '451 4.7.0 no' } as const, '4.7.0 before RCPT'],
    [{ stage: 'rcpt', status: '5.0.0', reply: '550 no' } as const, 'no rule for this code'],
  ])('%j: %s', (facts, rule) => {
    expect(failureClass(facts).rule).toBe(rule)
  })
})

test('the table of replies has every class that replies can have', () => {
  const found = new Set(REPLIES.map(([, , name]) => name))
  expect(FAILURE_CLASSES.filter((name) => !found.has(name))).toEqual(['expired'])
})
