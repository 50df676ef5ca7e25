/**
 * Replies sent whole, byte by byte, and in two packets split at each position: the outcome does not depend on the
 * segmentation.
 */
import { describe, expect, test } from 'vitest'
import { SECOND, sleep } from '../../../src/system/clock.ts'
import { CONTENT, SmtpAgentHarness, type Delivered, type FlatOutcome } from '../../support/smtp-agent-harness.ts'
import type { ServerScript } from '../../support/scripted-server.ts'
import { cutAt, segmentations } from '../../support/segments.ts'

type Point = Exclude<keyof ServerScript, 'inContent'>

interface Row {
  readonly id: string
  readonly at: Point
  readonly sends: string
  readonly wanted: Partial<FlatOutcome>
  readonly drops?: true
  /** The rest of the host. */
  readonly host?: ServerScript
  readonly config?: readonly string[]
  readonly to?: string
  readonly places?: readonly number[]
}

const PROTOCOL_ERROR: Partial<FlatOutcome> = { outcome: 'deferred', status: '4.5.0' }
const IN_TURN = { ehlo: '250 far' }
const TLS: ServerScript = { ehlo: '250-far\r\n250 STARTTLS' }
const INSISTING = ['smtp_tls_security_level=encrypt']

const ROWS: readonly Row[] = [
  {
    id: 'a reply that is too long',
    at: 'rcpt',
    sends: `250 ${'x'.repeat(70_000)}\r\n`,
    wanted: PROTOCOL_ERROR,
    places: [1, 4, 65_535, 65_536, 65_537],
  },
  { id: 'a line without an end', at: 'mail', sends: '2'.repeat(70_000), wanted: PROTOCOL_ERROR, places: [1, 4, 65_535, 65_536, 65_537] },
  { id: 'endless reply lines', at: 'ehlo', sends: '250-x\r\n'.repeat(10_000), wanted: PROTOCOL_ERROR, places: [1, 7, 65_535, 65_540] },
  {
    id: 'control characters',
    at: 'rcpt',
    sends: '550 5.1.1 \u001b[2J\u001b]0;pwn\u0007\0 x\r\n',
    wanted: { outcome: 'bounced', status: '5.1.1', reply: '550 5.1.1 ?[2J?]0;pwn?? x' },
  },
  { id: 'STARTTLS refused, opportunistic', at: 'starttls', sends: '454 4.7.0 no\r\n', host: TLS, wanted: { outcome: 'delivered' } },
  {
    id: 'STARTTLS refused, mandatory',
    at: 'starttls',
    sends: '454 4.7.0 no\r\n',
    host: TLS,
    config: INSISTING,
    wanted: { outcome: 'deferred', status: '4.7.0' },
  },
  { id: 'a 554 greeting', at: 'greeting', sends: '554 5.7.1 no\r\n', wanted: { outcome: 'deferred', status: '4.7.1' } },
  { id: 'a 421 greeting', at: 'greeting', sends: '421 4.3.2 busy\r\n', wanted: { outcome: 'deferred', status: '4.3.2' } },
  { id: '220, then a disconnect', at: 'greeting', sends: '220 far\r\n', drops: true, wanted: { outcome: 'deferred', status: '4.4.2' } },
  { id: 'an incomplete greeting', at: 'greeting', sends: '220-far', drops: true, wanted: { outcome: 'deferred', status: '4.4.2' } },
  {
    id: 'EHLO and HELO refused',
    at: 'ehlo',
    sends: '550 5.5.1 no\r\n',
    host: { helo: '550 no' },
    wanted: { outcome: 'bounced', status: '5.0.0' },
  },
  {
    id: 'without SMTPUTF8',
    at: 'ehlo',
    sends: '250-far\r\n250 SIZE\r\n',
    to: 'jürgen@example.net',
    wanted: { outcome: 'bounced', status: '5.6.7' },
  },
  {
    id: 'SMTPUTF8',
    at: 'ehlo',
    sends: '250-far\r\n250-SIZE\r\n250 smtputf8\r\n',
    to: 'jürgen@example.net',
    wanted: { outcome: 'delivered' },
  },
  ...(['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'] as const).flatMap((at) =>
    ['2\r\n', '999 ok\r\n', '\r\n', '250-a\r\n251 b\r\n', 'ok\r\n', '199 x\r\n'].map((sends) => ({
      id: `${JSON.stringify(sends)} at ${at}`,
      at,
      sends,
      host: IN_TURN,
      wanted: PROTOCOL_ERROR,
    })),
  ),
  { id: '250 to DATA', at: 'data', sends: '250 ok\r\n', wanted: PROTOCOL_ERROR },
  { id: '354 to MAIL', at: 'mail', sends: '354 go\r\n', host: IN_TURN, wanted: PROTOCOL_ERROR },
  { id: 'an incomplete reply', at: 'dot', sends: '250 o', drops: true, wanted: { outcome: 'deferred', status: '4.4.2' } },
  {
    id: 'a multiline reply',
    at: 'dot',
    sends: '250-2.0.0 a\r\n250-2.0.0 b\r\n250 2.0.0 c\r\n',
    wanted: { outcome: 'delivered', status: '2.0.0' },
  },
  {
    id: 'a reply with control characters in its text',
    at: 'dot',
    sends: '250 \r\u0007\r\n',
    wanted: { outcome: 'delivered', reply: expect.stringMatching(/^250 [ -~]*$/) as string },
  },
  { id: 'a reply without text', at: 'dot', sends: '250\r\n', wanted: { outcome: 'delivered', status: '2.0.0' } },
]

function deliver({ at, drops, host, config = [], to = 'ann@example.net' }: Row, packets: readonly Buffer[]): Promise<Delivered> {
  const world = new SmtpAgentHarness({ config: ['relayhost=[192.0.2.1]', ...config] })
  world.host('far.example', '192.0.2.1', { ...host, [at]: { packets, drop: drops === true } })
  return world.deliver({ to: [to] })
}

test.each(ROWS)('$id', async (row) => {
  const whole = Buffer.from(row.sends, 'latin1')
  const expected = await deliver(row, [whole])
  expect(expected.of()).toMatchObject(row.wanted)
  const ways =
    row.places === undefined ? [...segmentations(whole)].map(({ packets }) => packets) : row.places.map((place) => cutAt(whole, [place]))
  for (const packets of ways) {
    const { outcomes, feedback, congestion, possiblySent } = await deliver(row, packets)
    expect({ outcomes: [...outcomes.values()], feedback, congestion, possiblySent }).toEqual({
      outcomes: [...expected.outcomes.values()],
      feedback: expected.feedback,
      congestion: expected.congestion,
      possiblySent: expected.possiblySent,
    })
  }
})

test('cleartext after the 220 to STARTTLS is ignored at any segmentation', async () => {
  // In a packet of its own it arrives during the handshake, which it breaks.
  for (const { packets } of segmentations(Buffer.from('220 go\r\n250-far\r\n250 SIZE 1\r\n'))) {
    const ehlo = (_line: string, nth: number) => (nth === 0 ? '250-far\r\n250 STARTTLS' : '250 far')
    const result = await deliver({ id: '', at: 'starttls', sends: '', host: { ehlo }, config: INSISTING, wanted: {} }, packets)
    expect(['2.0.0', '4.7.5']).toContain(result.of().status)
  }
})

describe('success before the content was sent', () => {
  const slowly = (world: SmtpAgentHarness, chunks: readonly Buffer[]) => async (_body: number, index: number) => {
    if (index > 0) await sleep(world.clock, SECOND)
    return chunks[index]
  }

  test.each([
    ['in the same packet as the 354', 0],
    ['in a packet of its own, between chunks', 500],
    ['just before the last chunk', 1_999],
  ])('%s', async (_, after) => {
    const chunks = ['From: a@us.example\r\n\r\n', 'one\r\n', 'two\r\n'].map((text) => Buffer.from(text))
    const world: SmtpAgentHarness = new SmtpAgentHarness({
      config: ['relayhost=[192.0.2.1]'],
      agent: { readChunk: (body, index) => slowly(world, chunks)(body, index) },
    })
    const far = world.host('far.example', '192.0.2.1')
    world.dialOutcome('192.0.2.1', {
      kind: 'open',
      accept: (socket) => {
        far.accept(socket)
        socket.on('data', (bytes: Buffer) => {
          if (bytes.includes('DATA\r\n')) world.clock.after(after, () => socket.write('250 2.0.0 thank you\r\n'))
        })
      },
    })
    const result = await world.deliver({ to: ['ann@example.net'], chunks })
    expect(result.of()).toMatchObject(PROTOCOL_ERROR)
    expect(far.sessions[0]?.contents).toEqual([])
    expect(far.sessions[0]?.closed).toBe(true)
  })
})

test('the content sent does not depend on the chunks it is read in', async () => {
  const bytes = Buffer.from(`${CONTENT}.\r\n..\r\n.a\r\n`)
  const wires = new Set<string | undefined>()
  for (const { packets } of segmentations(bytes)) {
    const world = new SmtpAgentHarness({ config: ['relayhost=[192.0.2.1]'] })
    const far = world.host('far.example', '192.0.2.1')
    expect((await world.deliver({ to: ['ann@example.net'], chunks: packets })).of().outcome).toBe('delivered')
    wires.add(far.sessions[0]?.contents[0])
  }
  expect([...wires]).toEqual([`${CONTENT}..\r\n...\r\n..a\r\n`])
})
