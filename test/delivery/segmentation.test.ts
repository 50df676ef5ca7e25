/** What hosts say, each whole, byte by byte and cut in two at every place: the outcome does not depend on packets. */
import { describe, expect, test } from 'vitest'
import type { RecipientOutcome } from '../../src/delivery/delivery-agent.ts'
import { SECOND, sleep } from '../../src/mail/clock.ts'
import { CONTENT, DeliveryWorld, type Delivered } from '../support/delivery-world.ts'
import type { FarScript } from '../support/far-server.ts'
import { cutAt, segmentations } from '../support/segments.ts'

type Point = Exclude<keyof FarScript, 'inContent'>

interface Row {
  readonly id: string
  readonly at: Point
  readonly says: string
  readonly wanted: Partial<RecipientOutcome>
  readonly drops?: true
  /** The rest of the host. */
  readonly host?: FarScript
  readonly config?: readonly string[]
  readonly to?: string
  readonly places?: readonly number[]
}

const NONSENSE: Partial<RecipientOutcome> = { outcome: 'deferred', status: '4.5.0' }
const IN_TURN = { ehlo: '250 far' }
const TLS: FarScript = { ehlo: '250-far\r\n250 STARTTLS' }
const INSISTING = ['smtp_tls_security_level=encrypt']

const ROWS: readonly Row[] = [
  {
    id: 'S57: a reply that is too long',
    at: 'rcpt',
    says: `250 ${'x'.repeat(70_000)}\r\n`,
    wanted: NONSENSE,
    places: [1, 4, 65_535, 65_536, 65_537],
  },
  { id: 'S57: a line without end', at: 'mail', says: '2'.repeat(70_000), wanted: NONSENSE, places: [1, 4, 65_535, 65_536, 65_537] },
  { id: 'S57: lines without end', at: 'ehlo', says: '250-x\r\n'.repeat(10_000), wanted: NONSENSE, places: [1, 7, 65_535, 65_540] },
  {
    id: 'S56: control characters',
    at: 'rcpt',
    says: '550 5.1.1 \u001b[2J\u001b]0;pwn\u0007\0 x\r\n',
    wanted: { outcome: 'bounced', status: '5.1.1', reply: '550 5.1.1 ?[2J?]0;pwn?? x' },
  },
  { id: 'S62: STARTTLS refused, and welcome only', at: 'starttls', says: '454 4.7.0 no\r\n', host: TLS, wanted: { outcome: 'delivered' } },
  {
    id: 'S62: STARTTLS refused, and needed',
    at: 'starttls',
    says: '454 4.7.0 no\r\n',
    host: TLS,
    config: INSISTING,
    wanted: { outcome: 'deferred', status: '4.7.0' },
  },
  { id: 'S77: a 554 greeting', at: 'greeting', says: '554 5.7.1 no\r\n', wanted: { outcome: 'deferred', status: '4.7.1' } },
  { id: 'S77: a 421 greeting', at: 'greeting', says: '421 4.3.2 busy\r\n', wanted: { outcome: 'deferred', status: '4.3.2' } },
  { id: 'S77: 220, then nobody', at: 'greeting', says: '220 far\r\n', drops: true, wanted: { outcome: 'deferred', status: '4.4.2' } },
  { id: 'S77: half a greeting', at: 'greeting', says: '220-far', drops: true, wanted: { outcome: 'deferred', status: '4.4.2' } },
  {
    id: 'S77: EHLO and HELO refused',
    at: 'ehlo',
    says: '550 5.5.1 no\r\n',
    host: { helo: '550 no' },
    wanted: { outcome: 'bounced', status: '5.0.0' },
  },
  {
    id: 'S78: no SMTPUTF8',
    at: 'ehlo',
    says: '250-far\r\n250 SIZE\r\n',
    to: 'jürgen@example.net',
    wanted: { outcome: 'bounced', status: '5.6.7' },
  },
  {
    id: 'S78: SMTPUTF8',
    at: 'ehlo',
    says: '250-far\r\n250-SIZE\r\n250 smtputf8\r\n',
    to: 'jürgen@example.net',
    wanted: { outcome: 'delivered' },
  },
  ...(['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'] as const).flatMap((at) =>
    ['2\r\n', '999 ok\r\n', '\r\n', '250-a\r\n251 b\r\n', 'ok\r\n', '199 x\r\n'].map((says) => ({
      id: `S79: ${JSON.stringify(says)} at ${at}`,
      at,
      says,
      host: IN_TURN,
      wanted: NONSENSE,
    })),
  ),
  { id: 'S79: 250 to DATA', at: 'data', says: '250 ok\r\n', wanted: NONSENSE },
  { id: 'S79: 354 to MAIL', at: 'mail', says: '354 go\r\n', host: IN_TURN, wanted: NONSENSE },
  { id: 'S79: a reply that never ends', at: 'dot', says: '250 o', drops: true, wanted: { outcome: 'deferred', status: '4.4.2' } },
  {
    id: 'a reply in several lines',
    at: 'dot',
    says: '250-2.0.0 a\r\n250-2.0.0 b\r\n250 2.0.0 c\r\n',
    wanted: { outcome: 'delivered', status: '2.0.0' },
  },
  {
    id: 'a reply with controls in its text',
    at: 'dot',
    says: '250 \r\u0007\r\n',
    wanted: { outcome: 'delivered', reply: expect.stringMatching(/^250 [ -~]*$/) as string },
  },
  { id: 'a reply without a word', at: 'dot', says: '250\r\n', wanted: { outcome: 'delivered', status: '2.0.0' } },
]

function deliver({ at, drops, host, config = [], to = 'ann@example.net' }: Row, packets: readonly Buffer[]): Promise<Delivered> {
  const world = new DeliveryWorld({ config: ['relayhost=[192.0.2.1]', ...config] })
  world.host('far.example', '192.0.2.1', { ...host, [at]: { packets, drop: drops === true } })
  return world.deliver({ to: [to] })
}

test.each(ROWS)('$id', async (row) => {
  const whole = Buffer.from(row.says, 'latin1')
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

test('S61: what is said in the clear after the 220 is not believed, wherever it is cut', async () => {
  // In a packet of its own it comes in the middle of the handshake, which it breaks.
  for (const { packets } of segmentations(Buffer.from('220 go\r\n250-far\r\n250 SIZE 1\r\n'))) {
    const ehlo = (_line: string, nth: number) => (nth === 0 ? '250-far\r\n250 STARTTLS' : '250 far')
    const result = await deliver({ id: '', at: 'starttls', says: '', host: { ehlo }, config: INSISTING, wanted: {} }, packets)
    expect(['2.0.0', '4.7.5']).toContain(result.of().status)
  }
})

describe('S79: success before the content has gone', () => {
  const slowly = (world: DeliveryWorld, chunks: readonly Buffer[]) => async (_body: number, index: number) => {
    if (index > 0) await sleep(world.clock, SECOND)
    return chunks[index]
  }

  test.each([
    ['along with the 354', 0],
    ['in a packet of its own, while we read on', 500],
    ['just before the last part', 1_999],
  ])('%s', async (_, after) => {
    const chunks = ['From: a@us.example\r\n\r\n', 'one\r\n', 'two\r\n'].map((text) => Buffer.from(text))
    const world: DeliveryWorld = new DeliveryWorld({
      config: ['relayhost=[192.0.2.1]'],
      agent: { readBody: (body, index) => slowly(world, chunks)(body, index) },
    })
    const far = world.host('far.example', '192.0.2.1')
    world.door('192.0.2.1', {
      kind: 'open',
      accept: (socket) => {
        far.accept(socket)
        socket.on('data', (bytes: Buffer) => {
          if (bytes.includes('DATA\r\n')) world.clock.after(after, () => socket.write('250 2.0.0 thank you\r\n'))
        })
      },
    })
    const result = await world.deliver({ to: ['ann@example.net'], chunks })
    expect(result.of()).toMatchObject(NONSENSE)
    expect(far.sessions[0]?.contents).toEqual([])
    expect(far.sessions[0]?.closed).toBe(true)
  })
})

test('the same content is sent whether it is read in one part or in many', async () => {
  const bytes = Buffer.from(`${CONTENT}.\r\n..\r\n.a\r\n`)
  const wires = new Set<string | undefined>()
  for (const { packets } of segmentations(bytes)) {
    const world = new DeliveryWorld({ config: ['relayhost=[192.0.2.1]'] })
    const far = world.host('far.example', '192.0.2.1')
    expect((await world.deliver({ to: ['ann@example.net'], chunks: packets })).of().outcome).toBe('delivered')
    wires.add(far.sessions[0]?.contents[0])
  }
  expect([...wires]).toEqual([`${CONTENT}..\r\n...\r\n..a\r\n`])
})
