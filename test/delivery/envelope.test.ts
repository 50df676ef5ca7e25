/** What is said to a host, and what it means for the destination. */
import { describe, expect, test } from 'vitest'
import { CONTENT, DeliveryWorld, type Told } from '../support/delivery-world.ts'
import type { FarScript } from '../support/far-server.ts'

const FULL: FarScript = { ehlo: '250-far\r\n250-PIPELINING\r\n250-SIZE 1000000\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 DSN' }
const BARE: FarScript = { ehlo: '250 far' }

async function said(script: FarScript, told: Told): Promise<string[]> {
  const world = new DeliveryWorld().mx('example.net', [10, 'mx'])
  world.host('mx', '192.0.2.1', script)
  await world.deliver(told)
  return world.sessions[0]?.commands.filter((line) => /^(?:MAIL|RCPT)/.test(line)) ?? []
}

const to = [
  { address: 'ann@example.net', notify: ['success', 'failure'] as const, orcpt: 'rfc822;Ann+x@old.example' },
  { address: 'bob@example.net', notify: 'never' as const },
  { address: 'eve@example.net' },
]
const message = { ret: 'hdrs', envid: 'QQ 314+159', bodyType: '8bitmime' } as const

test('every recipient keeps its own DSN parameters', async () => {
  expect(await said(FULL, { to, message })).toEqual([
    `MAIL FROM:<app@us.example> SIZE=${CONTENT.length} BODY=8BITMIME RET=HDRS ENVID=QQ+20314+2B159`,
    'RCPT TO:<ann@example.net> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;Ann+2Bx@old.example',
    'RCPT TO:<bob@example.net> NOTIFY=NEVER',
    'RCPT TO:<eve@example.net>',
  ])
})

test('a host that announced nothing is told nothing', async () => {
  expect(await said(BARE, { to, message })).toEqual([
    'MAIL FROM:<app@us.example>',
    'RCPT TO:<ann@example.net>',
    'RCPT TO:<bob@example.net>',
    'RCPT TO:<eve@example.net>',
  ])
})

test('an internationalized original recipient stays in ASCII', async () => {
  const lines = await said(FULL, { to: [{ address: 'a@example.net', orcpt: 'utf-8;jürgen+1@x.example' }] })
  expect(lines[1]).toBe(String.raw`RCPT TO:<a@example.net> ORCPT=utf-8;j\x{FC}rgen\x{2B}1@x.example`)
})

test('SMTPUTF8 asked for, but nothing in UTF-8: any host will do', async () => {
  expect(await said(BARE, { to: ['a@example.net'], message: { smtputf8: true } })).toHaveLength(2)
  expect(await said(BARE, { to: ['a@example.net'], message: { smtputf8: true }, content: 'Subject: hi\r\n\r\nwörld\r\n' })).toHaveLength(2)
  expect(await said(BARE, { to: ['a@example.net'], message: { smtputf8: true, size: 18 }, content: 'Subject: wörld\r\n\r\n' })).toEqual([])
})

test('keywords count, not words in the greeting of EHLO or inside other keywords', async () => {
  const lines = await said({ ehlo: '250-far SIZE DSN\r\n250-XDSN\r\n250-X-SIZE 5\r\n250 8BITMIMEX' }, { to, message })
  expect(lines[0]).toBe('MAIL FROM:<app@us.example>')
})

test('success reports become the business of a host that knows DSN', async () => {
  for (const [script, passedOn] of [
    [FULL, true],
    [BARE, undefined],
  ] as const) {
    const world = new DeliveryWorld().mx('example.net', [10, 'mx'])
    world.host('mx', '192.0.2.1', script)
    const result = await world.deliver({ to })
    expect(to.map(({ address }) => result.of(address).dsnPassedOn)).toEqual([passedOn, undefined, undefined])
  }
})

test('the content is sent whole and dot-stuffed, in as many pieces as it has', async () => {
  const world = new DeliveryWorld().mx('example.net', [10, 'mx'])
  const server = world.host('mx', '192.0.2.1')
  const chunks = ['Subject: x\r\n\r\n.', '\r\n..\r\nend', ' without newline'].map((text) => Buffer.from(text))
  await world.deliver({ to: ['a@example.net'], chunks })
  expect(server.sessions[0]?.contents).toEqual(['Subject: x\r\n\r\n..\r\n...\r\nend without newline\r\n'])
})

test.each([
  ['998 octets at most', [], 998],
  ['smtp_line_length_limit', ['smtp_line_length_limit=100'], 100],
  ['no limit', ['smtp_line_length_limit=0'], 2_500],
])('a line that is too long goes on in a new one: %s', async (_, config, longest) => {
  const world = new DeliveryWorld({ config: ['relayhost=[192.0.2.1]', ...config] })
  const far = world.host('far.example', '192.0.2.1')
  const body = 'x'.repeat(2_500)
  await world.deliver({ to: ['ann@example.net'], content: `Subject: hi\r\n\r\n${body}\r\n` })
  const [sent = ''] = far.sessions[0]?.contents ?? []
  expect(Math.max(...sent.split('\r\n').map(({ length }) => length))).toBe(longest)
  expect(sent.replaceAll('\r\n ', '')).toContain(body)
})

describe('congestion', () => {
  const cases: [string, FarScript, 'early' | 'late' | undefined, 'positive' | 'negative'][] = [
    ['421 as greeting', { greeting: '421 busy' }, 'early', 'negative'],
    ['450 4.3.2 as greeting', { greeting: '450 4.3.2 shutting down' }, 'early', 'negative'],
    ['450 4.7.0 as greeting', { greeting: '450 4.7.0 slow down' }, 'early', 'negative'],
    ['450 4.7.1 as greeting', { greeting: '450 4.7.1 who are you' }, undefined, 'negative'],
    ['554 4.7.0 as greeting', { greeting: '554 4.7.0 no' }, undefined, 'negative'],
    ['421 to EHLO', { ehlo: '421 4.7.0 slow down' }, 'late', 'negative'],
    ['421 to MAIL', { mail: '421 4.7.0 slow down' }, 'late', 'negative'],
    ['451 4.7.0 to MAIL', { mail: '451 4.7.0 slow down' }, 'late', 'negative'],
    ['451 4.7.1 to MAIL', { mail: '451 4.7.1 greylisted' }, undefined, 'positive'],
    ['450 4.7.0 to RCPT', { rcpt: '450 4.7.0 greylisted' }, undefined, 'positive'],
    ['450 4.4.5 to RCPT', { rcpt: '450 4.4.5 system busy' }, 'late', 'positive'],
    ['421 to RCPT', { rcpt: '421 4.7.28 rate' }, 'late', 'positive'],
    ['421 to DATA', { data: '421 4.3.0 no' }, 'late', 'positive'],
    ['452 4.3.2 to the dot', { dot: '452 4.3.2 later' }, 'late', 'positive'],
    ['450 "too many" to RCPT', { rcpt: '450 4.2.1 too many connections, slow down' }, undefined, 'positive'],
  ]
  test.each(cases)('%s', async (_what, script, congestion, feedback) => {
    const world = new DeliveryWorld().mx('example.net', [10, 'mx'])
    world.host('mx', '192.0.2.1', script)
    const result = await world.deliver({ to: ['a@example.net'] })
    expect(result.congestion).toBe(congestion)
    expect(result.feedback).toBe(feedback)
    expect(result.of().outcome).toBe('deferred')
    expect(result.hopStatus === undefined).toBe(feedback === 'positive')
  })

  test('87: a session that ended well, then an exchanger that refuses: no blame', async () => {
    const world = new DeliveryWorld().mx('example.net', [10, 'a'], [20, 'b']).addresses('b', '192.0.2.2')
    world.host('a', '192.0.2.1', { rcpt: '450 4.2.0 later' })
    const result = await world.deliver({ to: ['x@example.net'] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.1' })
    expect(result).toMatchObject({ feedback: 'positive', hopStatus: undefined })
  })
})

test('the times of an attempt: taken, MAIL, end', async () => {
  const world = new DeliveryWorld().mx('example.net', [10, 'mx'])
  world.host('mx', '192.0.2.1', { ehlo: '250 far', dot: null })
  const result = await world.deliver({ to: ['x@example.net'] })
  expect(result.times.endedAt - result.times.transmittingAt).toBe(600_000)
  expect(result.times.transmittingAt).toBe(result.times.startedAt)
})
