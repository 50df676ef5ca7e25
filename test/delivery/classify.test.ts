import { describe, expect, test } from 'vitest'
import { classify, isCongestion, type Policy } from '../../src/delivery/classify.ts'
import type { ServerReply } from '../../src/delivery/reply-reader.ts'
import type { Peer, SessionFailure, Transcript } from '../../src/delivery/transcript.ts'
import type { LeasedRecipient } from '../../src/mail/message.ts'
import { parseReply, type Stage } from '../../src/mail/smtp-reply.ts'

const PEER: Peer = { name: 'mx.far.example', address: '192.0.2.1', port: 25 }
const POLICY: Policy = {
  softBounce: false,
  skip5xxGreeting: true,
  softAuth: true,
  configured: false,
  tlsOptional: true,
  domain: 'far.example',
  best: true,
}
const OK = '250 2.0.0 Ok'

const replyOf = (raw: string): ServerReply => ({ ...(parseReply(raw) ?? { code: 0, text: '' }), raw })

interface Written {
  readonly mail?: string
  readonly rcpt?: readonly (string | undefined)[]
  readonly data?: string
  readonly end?: readonly string[]
  readonly failure?: SessionFailure
}

/** A session with replies given as text; everything is accepted unless given. */
function transcriptOf({ mail = OK, rcpt = [OK, OK], data = '354 go', end = [OK], failure }: Written): Transcript {
  const recipients = rcpt.map((_, n) => ({ id: n, address: `u${n}@far.example` }) as unknown as LeasedRecipient)
  return {
    recipients,
    mail: replyOf(mail),
    rcpt: rcpt.map((raw) => (raw === undefined ? undefined : replyOf(raw))),
    data: replyOf(data),
    end: end.map(replyOf),
    failure,
    possiblySent: false,
    stale: false,
    dsn: false,
    deliverByEnds: false,
    eightBit: false,
    chunking: false,
  }
}

const classified = (written: Written, differs: Partial<Policy> = {}) => {
  const { verdicts, ...rest } = classify(transcriptOf(written), PEER, { ...POLICY, ...differs })
  return { ...rest, of: [...verdicts.values()].map(({ outcome, status }) => `${outcome} ${status.status}`) }
}

describe('the outcome of each recipient', () => {
  test.each<[string, Written, readonly string[]]>([
    ['all accepted', {}, ['delivered 2.0.0', 'delivered 2.0.0']],
    ['MAIL rejected', { mail: '550 5.7.1 no' }, ['bounced 5.7.1', 'bounced 5.7.1']],
    ['one RCPT rejected', { rcpt: ['550 5.1.1 no such user', OK] }, ['bounced 5.1.1', 'delivered 2.0.0']],
    ['insufficient storage', { rcpt: ['452 4.2.2 mailbox full', OK] }, ['deferred 4.2.2', 'delivered 2.0.0']],
    ['DATA rejected', { data: '451 4.3.0 later' }, ['deferred 4.3.0', 'deferred 4.3.0']],
    ['the content rejected', { end: ['554 5.6.0 no'] }, ['bounced 5.6.0', 'bounced 5.6.0']],
    [
      'LMTP: a reply for each accepted recipient',
      { rcpt: ['550 no', OK, OK], end: ['450 4.2.1 busy', OK] },
      ['bounced 5.0.0', 'deferred 4.2.1', 'delivered 2.0.0'],
    ],
    ['a status of the wrong class', { end: ['450 5.1.1 odd'] }, ['deferred 4.0.0', 'deferred 4.0.0']],
  ])('%s', (_, written, outcomes) => expect(classified(written).of).toEqual(outcomes))

  test('soft_bounce defers what would bounce', () => {
    expect(classified({ rcpt: ['550 5.1.1 no such user'] }, { softBounce: true }).of).toEqual(['deferred 4.1.1'])
  })

  test('the reason names host, reply and command', () => {
    const verdict = classify(transcriptOf({ rcpt: ['550 5.1.1 no such user'] }), PEER, POLICY).verdicts.get(0)
    expect(verdict?.status.reason).toBe('host mx.far.example[192.0.2.1] said: 550 5.1.1 no such user (in reply to RCPT TO command)')
  })
})

describe('a failed session', () => {
  const before = (failure: SessionFailure, differs: Partial<Policy> = {}) => {
    const transcript: Transcript = { ...transcriptOf({ rcpt: [undefined], end: [] }), mail: undefined, data: undefined, failure }
    const { verdicts, siteStatus, completed } = classify(transcript, PEER, { ...POLICY, ...differs })
    const verdict = verdicts.get(0)
    return [`${verdict?.outcome} ${verdict?.status.status}`, verdict?.elsewhere, siteStatus !== undefined, completed]
  }
  const refused = (stage: Stage, raw: string): SessionFailure => ({ kind: 'refused', stage, reply: replyOf(raw) })

  test.each<[string, SessionFailure, Partial<Policy>, readonly [string, boolean, boolean, boolean]]>([
    ['unreachable', { kind: 'unreachable', why: 'Connection refused' }, {}, ['deferred 4.4.1', true, true, false]],
    ['lost', { kind: 'lost', stage: 'mail' }, {}, ['deferred 4.4.2', true, true, false]],
    ['timed out', { kind: 'timeout', stage: 'greeting' }, {}, ['deferred 4.4.2', true, true, false]],
    ['aborted by the relay', { kind: 'aborted', stage: 'body' }, {}, ['deferred 4.3.2', false, false, false]],
    ['a 5xx greeting', refused('greeting', '554 5.7.1 no'), {}, ['deferred 4.7.1', true, true, false]],
    [
      'a 5xx greeting without smtp_skip_5xx_greeting',
      refused('greeting', '554 5.7.1 no'),
      { skip5xxGreeting: false },
      ['bounced 5.7.1', false, true, false],
    ],
    ['a refused login', refused('auth', '535 5.7.8 no'), {}, ['deferred 4.7.8', true, true, false]],
    [
      'a refused login without smtp_sasl_auth_soft_bounce',
      refused('auth', '535 5.7.8 no'),
      { softAuth: false },
      ['bounced 5.7.8', false, true, false],
    ],
    ['a protocol error', { kind: 'protocol-error', stage: 'mail', what: '999' }, {}, ['deferred 4.5.0', true, true, false]],
    ['a loop at the best host', { kind: 'loop' }, {}, ['bounced 5.4.6', false, true, false]],
    ['a loop at another host', { kind: 'loop' }, { best: false }, ['deferred 4.4.6', true, true, false]],
    ['a failed handshake, opportunistic', { kind: 'tls', why: 'x' }, {}, ['deferred 4.7.5', true, false, true]],
    ['a failed handshake, mandatory', { kind: 'tls', why: 'x' }, { tlsOptional: false }, ['deferred 4.7.5', true, true, false]],
    ['TLS not offered', { kind: 'tls-not-offered' }, {}, ['deferred 4.7.4', true, true, false]],
    ['no SMTPUTF8', { kind: 'no-smtputf8' }, {}, ['bounced 5.6.7', true, false, true]],
    ['too big', { kind: 'too-big', size: 2, limit: 1 }, {}, ['bounced 5.3.4', false, false, true]],
  ])('%s', (_, failure, differs, expected) => expect(before(failure, differs)).toEqual(expected))
})

describe('a login that a configured next hop requires', () => {
  const CONFIGURED = { configured: true, softAuth: false }
  test.each([530, 534, 535, 538])('%i at MAIL or RCPT defers and is a site failure; for a mail exchanger it bounces', (code) => {
    const reply = `${code} 5.7.0 Authentication required`
    const atMail = { mail: reply, rcpt: [undefined], end: [] }
    const atRcpt = { rcpt: [reply], end: [] }
    for (const transcript of [atMail, atRcpt]) {
      expect(classified(transcript, CONFIGURED)).toMatchObject({ of: ['deferred 4.7.0'], siteStatus: { status: '4.7.0' } })
      expect(classified(transcript, {}).of).toEqual(['bounced 5.7.0'])
      expect(classify(transcriptOf(transcript), PEER, { ...POLICY, ...CONFIGURED }).login).toBe('missing')
    }
  })

  test('a refused login never bounces there, whatever smtp_sasl_auth_soft_bounce is', () => {
    const failure = { kind: 'refused', stage: 'auth', reply: replyOf('535 5.7.8 no') } as const
    const transcript: Transcript = { ...transcriptOf({ rcpt: [undefined], end: [] }), mail: undefined, data: undefined, failure }
    const { verdicts, login } = classify(transcript, PEER, { ...POLICY, ...CONFIGURED })
    expect([verdicts.get(0)?.outcome, login]).toEqual(['deferred', 'refused'])
  })

  test('other refusals bounce', () => {
    expect(classified({ rcpt: ['550 5.1.1 no such user'] }, CONFIGURED).of).toEqual(['bounced 5.1.1'])
  })
})

describe('congestion', () => {
  test.each<[Stage, string, boolean]>([
    ['greeting', '421 4.3.2 busy', true],
    ['rcpt', '421 busy', true],
    ['end-of-data', '450 4.3.2 later', true],
    ['data', '451 4.4.5 congestion', true],
    ['mail', '450 4.7.0 slow down', true],
    ['rcpt', '450 4.7.0 slow down', false],
    ['mail', '450 4.7.1 greylisted', false],
    ['rcpt', '550 5.3.2 no', false],
  ])('at %s, %s: %s', (stage, raw, is) => expect(isCongestion(stage, replyOf(raw))).toBe(is))

  test('is early at the greeting and late after it, and no site failure from RCPT on', () => {
    const atGreeting = { kind: 'refused', stage: 'greeting', reply: replyOf('421 4.3.2 busy') } as const
    expect(classified({ rcpt: [undefined], end: [], failure: atGreeting })).toMatchObject({ congestion: 'early' })
    const atRcpt = classified({ rcpt: ['421 4.3.2 busy', undefined], end: [], failure: { kind: 'lost', stage: 'rcpt' } })
    expect(atRcpt).toMatchObject({ congestion: 'late', siteStatus: undefined, of: ['deferred 4.3.2', 'deferred 4.4.2'] })
  })
})
