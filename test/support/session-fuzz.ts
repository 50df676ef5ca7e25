/** Random sessions; used by the short and the long test. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { HOUR } from '../../src/system/clock.ts'
import { openSmtpd, OUTSIDER, type SmtpdHarness } from './smtpd-harness.ts'
import { cutAt, cuts } from './segments.ts'

const COMMANDS = [
  'EHLO x',
  'HELO x',
  'MAIL FROM:<a@b.example>',
  'MAIL FROM:<> SIZE=10 BODY=8BITMIME',
  'MAIL FROM:<ü@b.example> SMTPUTF8',
  'RCPT TO:<ann@far.example>',
  'RCPT TO:<bob@far.example> NOTIFY=NEVER ORCPT=rfc822;x',
  'RCPT TO:<eve@elsewhere.example>',
  'DATA',
  'RSET',
  'NOOP',
  'VRFY x',
  'QUIT',
  'FOO',
  'Subject: x',
  'From x',
  'Received: x',
  '',
  '.',
  '..',
  ' x',
  'x'.repeat(3000),
]

const line = fc
  .tuple(
    fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...COMMANDS) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
    ),
    fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r\r\n', '\0\r\n'),
  )
  .map(([text, end]) => Buffer.from(text + end))

const BEGINNING = ['EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>', 'DATA', 'hello']

/** Session with a valid beginning, so that later stages are reached; some contents are complete. */
const lines = fc
  .tuple(fc.nat(5), fc.array(line, { maxLength: 12 }), fc.boolean(), fc.array(line, { maxLength: 12 }))
  .map(([good, rest, ends, more]) => [
    ...BEGINNING.slice(0, good).map((text) => Buffer.from(`${text}\r\n`)),
    ...rest,
    ...(ends ? [Buffer.from('\r\n.\r\n')] : []),
    ...more,
  ])

interface Outcome {
  readonly heard: string
  readonly closed: boolean
  readonly messages: readonly string[]
}

/** Result of a session, without queue ids. */
async function play(world: SmtpdHarness, packets: readonly Buffer[]): Promise<Outcome> {
  const first = world.intake.taken.length
  const client = await world.connect(OUTSIDER)
  await client.send(...packets)
  const { closed } = client
  client.socket.destroy()
  await world.wait(0)
  const messages = world.intake.taken.slice(first).map((taken) => taken.original)
  return { heard: client.heard.replace(/queued as \w+/g, 'queued'), closed, messages }
}

const queuedIn = (heard: string): number => heard.match(/^250 2\.0\.0 Ok: queued/gm)?.length ?? 0

/** Lines of a text that may contain line ends: each is sent after the reply to the previous one. */
const oneLine = (bytes: Buffer): Buffer[] =>
  cutAt(
    bytes,
    [...bytes.keys()].filter((place) => bytes[place - 1] === 0x0a),
  )

/** Expects that a session does not depend on the segmentation of its lines, and that a message is kept only if the reply accepts it. */
export async function sessionsAreTheSameHoweverCut(runs: number, seed?: number): Promise<void> {
  const world = await openSmtpd({ relay_domains: ['far.example'], smtpd_soft_error_limit: 1000, smtpd_hard_error_limit: 1000 })
  let taken = 0
  const property = fc.asyncProperty(lines, cuts, async (sent, places) => {
    const expected = await play(world, sent.flatMap(oneLine))
    const cut = sent.flatMap(oneLine).flatMap((packet) => cutAt(packet, places))
    expect(await play(world, cut)).toEqual(expected)
    expect(queuedIn(expected.heard)).toBe(expected.messages.length)
    taken += expected.messages.length
  })
  await fc.assert(property, { numRuns: runs, ...(seed === undefined ? {} : { seed }) })
  expect(taken).toBeGreaterThan(runs / 20)
  expect(world.of('note')).toEqual([])
}

/** Expects that a session sent at once causes no internal error and ends within an hour. */
export async function nothingBreaks(runs: number, seed?: number): Promise<void> {
  const world = await openSmtpd({ relay_domains: ['far.example'] })
  const messy = fc.tuple(lines, fc.uint8Array({ maxLength: 60 }), cuts)
  const property = fc.asyncProperty(messy, async ([sent, noise, places]) => {
    const first = world.intake.taken.length
    const client = await world.connect(OUTSIDER)
    await client.send(...cutAt(Buffer.concat([...sent, noise]), places))
    await world.wait(HOUR)
    expect(client.closed).toBe(true)
    expect(queuedIn(client.heard)).toBe(world.intake.taken.length - first)
    expect(client.heard).toMatch(/^(?:[245]\d\d[ -][\x20-\x7e]*\r\n|354 [\x20-\x7e]*\r\n)*$/)
  })
  await fc.assert(property, { numRuns: runs, ...(seed === undefined ? {} : { seed }) })
  expect(world.of('note')).toEqual([])
  expect(world.of('disconnected')).toHaveLength(world.of('connected').length)
  expect(world.clock.pending).toBe(0)
}
