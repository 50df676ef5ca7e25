import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultConfig } from '../../../src/config/load.ts'
import { RelayPolicy } from '../../../src/smtpd/dialogue/relay-policy.ts'
import { ClientCounts, ClientLimits } from '../../../src/smtpd/dialogue/client-limits.ts'
import type { Response } from '../../../src/smtpd/dialogue/commands.ts'
import { Session } from '../../../src/smtpd/dialogue/session.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const { config } = defaultConfig('relay.example')

const context = {
  settings: config,
  access: new RelayPolicy(config),
  events: new Events(() => 0),
  limits: new ClientLimits(config, new ClientCounts(new VirtualClock())),
  refusal: () => undefined,
  flushDomain: () => true,
  deadEnds: { refusalOf: () => undefined },
  suppressions: undefined,
  restrictions: { isIdle: true, decide: () => Promise.reject(new Error('no restriction is configured')) },
  recipientRefusal: () => undefined,
  classes: () => null,
  clock: new VirtualClock(),
  nextInstance: () => 'x',
}

const newSession = () => new Session(context, { name: 'unknown', address: '127.0.0.1' }, { tls: 'none', auth: 'none', class: '' })

function answer(session: Session, line: string): Response {
  const given = session.command(line)
  if (given instanceof Promise || given === 'auth-exchange' || 'chunk' in given) throw new Error(`${line}: expected an answer at once`)
  return given
}

const COMMANDS = {
  ehlo: 'EHLO x',
  mail: 'MAIL FROM:<a@b.example>',
  rcpt: 'RCPT TO:<ann@far.example>',
  badRcpt: 'RCPT TO:<ann@>',
  data: 'DATA',
  rset: 'RSET',
  noop: 'NOOP',
  foo: 'FOO',
} as const

type Word = keyof typeof COMMANDS

/** The order of commands by RFC 5321 §4.1.4, in a minimal form. */
class Model {
  #stage: 'idle' | 'mail' | 'rcpt' = 'idle'

  code(word: Word): number {
    switch (word) {
      case 'ehlo':
      case 'rset':
        this.#stage = 'idle'
        return 250
      case 'noop':
        return 250
      case 'foo':
        return 500
      case 'mail':
        if (this.#stage !== 'idle') return 503
        this.#stage = 'mail'
        return 250
      case 'rcpt':
        if (this.#stage === 'idle') return 503
        this.#stage = 'rcpt'
        return 250
      case 'badRcpt':
        if (this.#stage === 'idle') return 503
        return 501
      case 'data':
        if (this.#stage === 'idle') return 503
        if (this.#stage === 'mail') return 554
        this.#stage = 'idle'
        return 354
    }
  }
}

describe('a session', () => {
  test('replies to each sequence of commands as RFC 5321 requires', () => {
    const words = fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Word[])), { maxLength: 12, size: 'max' })
    fc.assert(
      fc.property(words, (sequence) => {
        const session = newSession()
        const model = new Model()
        for (const word of sequence) {
          const { reply, next } = answer(session, COMMANDS[word])
          expect([word, reply.code]).toEqual([word, model.code(word)])
          if (next === 'content') session.concluded({ kind: 'queued', queueId: 'x' }, { queueId: 'x', octets: 1 })
        }
      }),
      { numRuns: 5000 },
    )
  })

  test('replies to each of the 262,144 sequences of six commands as RFC 5321 requires', () => {
    const words = Object.keys(COMMANDS) as Word[]
    const wrong: string[] = []
    for (let order = 0; order < words.length ** 6; order++) {
      const session = newSession()
      const model = new Model()
      for (let place = 0, rest = order; place < 6; place++, rest = Math.floor(rest / words.length)) {
        const word = words[rest % words.length] ?? 'noop'
        const { code } = answer(session, COMMANDS[word]).reply
        if (code === 354) session.concluded({ kind: 'queued', queueId: 'Q' }, { queueId: 'Q', octets: 1 })
        if (code !== model.code(word)) wrong.push(`${order}: ${word} was answered ${code}`)
      }
    }
    expect(wrong).toEqual([])
  })

  test('announces its extensions', () => {
    const { reply, keywords } = answer(newSession(), 'EHLO client.example')
    expect(reply).toEqual({ code: 250, status: undefined, text: 'relay.example' })
    expect(keywords).toEqual([
      'PIPELINING',
      'SIZE 10240000',
      'VRFY',
      'ETRN',
      'ENHANCEDSTATUSCODES',
      '8BITMIME',
      'DSN',
      'SMTPUTF8',
      'CHUNKING',
    ])
    expect(answer(newSession(), 'HELO client.example').keywords).toBeUndefined()
  })

  test('counts commands as the log names them', () => {
    const session = newSession()
    for (const line of ['EHLO x', 'MAIL FROM:<>', 'RCPT TO:<a@>', 'RCPT TO:<a@b.example>', 'WIZ', 'DATA']) answer(session, line)
    session.concluded({ kind: 'queued', queueId: 'x' }, { queueId: 'x', octets: 1 })
    answer(session, 'QUIT')
    expect(session.stats.commands).toEqual({ ehlo: [1, 1], mail: [1, 1], rcpt: [1, 2], data: [1, 1], quit: [1, 1], unknown: [0, 1] })
    expect(Object.keys(session.stats.commands)).toEqual(['ehlo', 'mail', 'rcpt', 'data', 'quit', 'unknown'])
  })

  test('replaces control characters of the HELO name in the Received field', () => {
    const session = newSession()
    for (const line of ['EHLO x\x1b[2J', 'MAIL FROM:<>', 'RCPT TO:<a@b.example>']) answer(session, line)
    expect(session.submission().client).toMatchObject({ helo: 'x?[2J' })
  })

  test('masks every character of the HELO name that has a meaning in a Received field', () => {
    // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
    const plain = /^[^\u0000-\u001f\u007f-\u009f <>()\\";@]*$/u
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 60, unit: 'binary' }), (name) => {
        const session = newSession()
        session.greet(name, true)
        for (const line of ['MAIL FROM:<>', 'RCPT TO:<a@b.example>']) answer(session, line)
        const { client } = session.submission()
        expect('helo' in client ? client.helo : '').toMatch(plain)
      }),
    )
    const forged = newSession()
    for (const line of ['EHLO good.example (forged [192.0.2.1]) by evil', 'MAIL FROM:<>', 'RCPT TO:<a@b.example>']) answer(forged, line)
    expect(forged.submission().client).toMatchObject({ helo: 'good.example??forged?[192.0.2.1]??by?evil' })
  })
})
