import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultConfig } from '../../src/config/load.ts'
import { RelayAccess } from '../../src/smtpd/relay-access.ts'
import { ClientLimits } from '../../src/smtpd/client-limits.ts'
import type { Said } from '../../src/smtpd/commands.ts'
import { Session } from '../../src/smtpd/session.ts'
import { Events } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual-clock.ts'

const { config } = defaultConfig('relay.example')

const desk = {
  settings: config,
  access: new RelayAccess(config),
  events: new Events(() => 0),
  limits: new ClientLimits(config, new VirtualClock()),
  refusal: () => undefined,
}

const newSession = () => new Session(desk, { name: 'unknown', address: '127.0.0.1' }, { tls: 'none', auth: 'none' })

function answer(session: Session, line: string): Said {
  const given = session.command(line)
  if (given instanceof Promise || given === 'dialogue') throw new Error(`${line}: expected an answer at once`)
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

/** The order of commands by RFC 5321 §4.1.4, as short as it can be said. */
class Model {
  #stage: 'idle' | 'mail' | 'refused' | 'rcpt' = 'idle'

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
        if (this.#stage === 'mail') this.#stage = 'refused'
        return 501
      case 'data':
        if (this.#stage === 'refused') return 554
        if (this.#stage !== 'rcpt') return 503
        this.#stage = 'idle'
        return 354
    }
  }
}

describe('a session', () => {
  test('answers every order of commands by the book (S24)', () => {
    const words = fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Word[])), { maxLength: 12, size: 'max' })
    fc.assert(
      fc.property(words, (said) => {
        const session = newSession()
        const model = new Model()
        for (const word of said) {
          const { reply, next } = answer(session, COMMANDS[word])
          expect([word, reply.code]).toEqual([word, model.code(word)])
          if (next === 'content') session.concluded({ kind: 'queued', queueId: 'x' }, 'x')
        }
      }),
      { numRuns: 5000 },
    )
  })

  test('answers each of the 262,144 orders of six commands by the book (S24)', () => {
    const words = Object.keys(COMMANDS) as Word[]
    const wrong: string[] = []
    for (let order = 0; order < words.length ** 6; order++) {
      const session = newSession()
      const model = new Model()
      for (let place = 0, rest = order; place < 6; place++, rest = Math.floor(rest / words.length)) {
        const word = words[rest % words.length] ?? 'noop'
        const { code } = answer(session, COMMANDS[word]).reply
        if (code === 354) session.concluded({ kind: 'queued', queueId: 'Q' }, 'Q')
        if (code !== model.code(word)) wrong.push(`${order}: ${word} was answered ${code}`)
      }
    }
    expect(wrong).toEqual([])
  })

  test('offers what it can do', () => {
    const { reply, keywords } = answer(newSession(), 'EHLO client.example')
    expect(reply).toEqual({ code: 250, status: undefined, text: 'relay.example' })
    expect(keywords).toEqual(['PIPELINING', 'SIZE 10240000', 'ENHANCEDSTATUSCODES', '8BITMIME', 'DSN', 'SMTPUTF8'])
    expect(answer(newSession(), 'HELO client.example').keywords).toBeUndefined()
  })

  test('counts commands as the log names them', () => {
    const session = newSession()
    for (const line of ['EHLO x', 'MAIL FROM:<>', 'RCPT TO:<a@>', 'RCPT TO:<a@b.example>', 'WIZ', 'DATA']) answer(session, line)
    session.concluded({ kind: 'queued', queueId: 'x' }, 'x')
    answer(session, 'QUIT')
    expect(session.conduct.commands).toEqual({ ehlo: [1, 1], mail: [1, 1], rcpt: [1, 2], data: [1, 1], quit: [1, 1], unknown: [0, 1] })
    expect(Object.keys(session.conduct.commands)).toEqual(['ehlo', 'mail', 'rcpt', 'data', 'quit', 'unknown'])
  })

  test('takes a name with control characters apart for the trace', () => {
    const session = newSession()
    for (const line of ['EHLO x\x1b[2J', 'MAIL FROM:<>', 'RCPT TO:<a@b.example>']) answer(session, line)
    expect(session.submission().client).toMatchObject({ helo: 'x?[2J' })
  })
})
