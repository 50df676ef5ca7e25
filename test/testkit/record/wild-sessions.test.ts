/** Any bytes of clients and relays give a script that is read, and no text of a client is in it. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { MINUTE } from '../../../src/system/clock.ts'
import { Masks } from '../../../src/testkit/record/masks.ts'
import type { Observation } from '../../../src/testkit/record/observation.ts'
import { recordedScript } from '../../../src/testkit/record/recorded-script.ts'
import { SessionTap } from '../../../src/testkit/record/session-tap.ts'
import { readScript } from '../../../src/testkit/remote/script.ts'

const LINES = [
  'EHLO private.example',
  'HELO private.example',
  'STARTTLS',
  'AUTH PLAIN AHByaXZhdGUAcHJpdmF0ZQ==',
  'AUTH LOGIN',
  'cHJpdmF0ZQ==',
  'MAIL FROM:<private@private.example> SIZE=9',
  'MAIL FROM:<>',
  'RCPT TO:<private@other-private.example>',
  'RCPT TO:<postmaster>',
  'DATA',
  'BDAT 7 LAST',
  'Subject: private words',
  '.',
  'RSET',
  'NOOP private',
  'QUIT',
]
const REPLIES = [
  '220 mx ESMTP',
  '250 ok',
  '250-mx\r\n250-STARTTLS\r\n250-CHUNKING\r\n250 SIZE 1',
  '354 go',
  '334 ',
  '235 in',
  '450 4.2.1 <private@private.example>: private words',
  '550-private\r\n550 private@other-private.example',
  '421 4.3.2 private.example',
  '999 private',
  'private',
]

type Step =
  | { readonly from: 'client' | 'relay'; readonly bytes: Buffer }
  | { readonly wait: number }
  | { readonly end: 'fin' | 'rst' | 'client' }

const bytes = fc.uint8Array({ maxLength: 12 }).map((octets) => Buffer.from(octets))
const lineOf = (lines: readonly string[]) => fc.constantFrom(...lines).map((line) => Buffer.from(`${line}\r\n`))
const piece = (whole: fc.Arbitrary<Buffer>) =>
  fc.tuple(whole, fc.nat(60)).map(([one, cut]) => one.subarray(0, cut < 50 ? undefined : cut - 50))

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: piece(lineOf(LINES)).map((one) => ({ from: 'client' as const, bytes: one })) },
  { weight: 8, arbitrary: piece(lineOf(REPLIES)).map((one) => ({ from: 'relay' as const, bytes: one })) },
  { weight: 1, arbitrary: bytes.map((one) => ({ from: 'client' as const, bytes: one })) },
  { weight: 1, arbitrary: bytes.map((one) => ({ from: 'relay' as const, bytes: one })) },
  { weight: 2, arbitrary: fc.nat(400_000).map((wait) => ({ wait })) },
  { weight: 1, arbitrary: fc.constantFrom('fin' as const, 'rst' as const, 'client' as const).map((end) => ({ end })) },
)

function recordingOf(sessions: readonly (readonly Step[])[], hasTls: boolean): string {
  let now = 0
  const observations: Observation[] = []
  const masks = new Masks(false)
  for (const steps of sessions) {
    const tap = new SessionTap({
      now: () => now,
      masks,
      hasTls,
      toRelay: () => undefined,
      toClient: () => undefined,
      startTls: () => undefined,
      observe: (one) => observations.push(one),
    })
    for (const one of steps) {
      if ('wait' in one) now += one.wait
      else if ('end' in one && one.end === 'client') tap.clientEnded()
      else if ('end' in one) tap.relayEnded(one.end === 'rst' ? 'rst' : 'fin')
      else if (one.from === 'client') tap.fromClient(one.bytes)
      else tap.fromRelay(one.bytes)
    }
    tap.clientEnded()
  }
  const recording = { relay: 'mx.example:25', startedAt: 0, duration: now, sessions: sessions.length, clients: 1, observations }
  return recordedScript(recording, { hasTls, keepsAddresses: false, maxGap: 5 * MINUTE }).text
}

test('a recording of any session is a script', () => {
  const sessions = fc.array(fc.array(step, { maxLength: 40 }), { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(sessions, fc.boolean(), (steps, hasTls) => {
      const text = recordingOf(steps, hasTls)
      readScript(text, 'session.toml')
    }),
    { numRuns: 200 },
  )
})

/** A session in which the client gives everything that is private before the relay repeats it. */
const FIRST: readonly Step[] = [
  ...['220 mx ESMTP'].map((line) => ({ from: 'relay' as const, bytes: Buffer.from(`${line}\r\n`) })),
  ...['EHLO private.example', 'MAIL FROM:<private@private.example>', 'RCPT TO:<private@other-private.example>'].map((line) => ({
    from: 'client' as const,
    bytes: Buffer.from(`${line}\r\n`),
  })),
]

test('a recording has no text of a client, whatever the replies repeat', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.boolean(), (steps, hasTls) => {
      const whole = steps.filter((one) => !('bytes' in one) || one.from === 'client' || one.bytes.toString().endsWith('\r\n'))
      expect(recordingOf([[...FIRST, ...whole]], hasTls)).not.toContain('private')
    }),
    { numRuns: 200 },
  )
})
