/** MAIL and RCPT as sent to a host, and the feedback for its destination. */
import { describe, expect, test } from 'vitest'
import { CONTENT, SmtpAgentHarness, type TestDelivery } from '../../support/smtp-agent-harness.ts'
import type { ServerScript } from '../../support/scripted-server.ts'

const FULL: ServerScript = { ehlo: '250-far\r\n250-PIPELINING\r\n250-SIZE 1000000\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 DSN' }
const BARE: ServerScript = { ehlo: '250 far' }

async function commandsSent(script: ServerScript, delivery: TestDelivery): Promise<string[]> {
  const world = new SmtpAgentHarness().mx('example.net', [10, 'mx'])
  world.host('mx', '192.0.2.1', script)
  await world.deliver(delivery)
  return world.sessions[0]?.commands.filter((line) => /^(?:MAIL|RCPT)/.test(line)) ?? []
}

const to = [
  { address: 'ann@example.net', notify: ['success', 'failure'] as const, orcpt: 'rfc822;Ann+x@old.example' },
  { address: 'bob@example.net', notify: 'never' as const },
  { address: 'eve@example.net' },
]
const message = { ret: 'hdrs', envid: 'QQ 314+159', bodyType: '8bitmime' } as const

test('every recipient keeps its own DSN parameters', async () => {
  expect(await commandsSent(FULL, { to, message })).toEqual([
    `MAIL FROM:<app@us.example> SIZE=${CONTENT.length} BODY=8BITMIME RET=HDRS ENVID=QQ+20314+2B159`,
    'RCPT TO:<ann@example.net> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;Ann+2Bx@old.example',
    'RCPT TO:<bob@example.net> NOTIFY=NEVER',
    'RCPT TO:<eve@example.net>',
  ])
})

test('no ESMTP parameters for a host without extensions', async () => {
  expect(await commandsSent(BARE, { to, message })).toEqual([
    'MAIL FROM:<app@us.example>',
    'RCPT TO:<ann@example.net>',
    'RCPT TO:<bob@example.net>',
    'RCPT TO:<eve@example.net>',
  ])
})

test('an internationalized original recipient stays in ASCII', async () => {
  const lines = await commandsSent(FULL, { to: [{ address: 'a@example.net', orcpt: 'utf-8;jürgen+1@x.example' }] })
  expect(lines[1]).toBe(String.raw`RCPT TO:<a@example.net> ORCPT=utf-8;j\x{FC}rgen\x{2B}1@x.example`)
})

test('a message with SMTPUTF8 but no UTF-8 needs no SMTPUTF8 host', async () => {
  expect(await commandsSent(BARE, { to: ['a@example.net'], message: { smtputf8: true } })).toHaveLength(2)
  expect(
    await commandsSent(BARE, { to: ['a@example.net'], message: { smtputf8: true }, content: 'Subject: hi\r\n\r\nwörld\r\n' }),
  ).toHaveLength(2)
  expect(
    await commandsSent(BARE, { to: ['a@example.net'], message: { smtputf8: true, size: 18 }, content: 'Subject: wörld\r\n\r\n' }),
  ).toEqual([])
})

test('only EHLO keywords count, not text in the first line or inside other keywords', async () => {
  const lines = await commandsSent({ ehlo: '250-far SIZE DSN\r\n250-XDSN\r\n250-X-SIZE 5\r\n250 8BITMIMEX' }, { to, message })
  expect(lines[0]).toBe('MAIL FROM:<app@us.example>')
})

test('success reports are left to a host with DSN', async () => {
  for (const [script, passedOn] of [
    [FULL, true],
    [BARE, undefined],
  ] as const) {
    const world = new SmtpAgentHarness().mx('example.net', [10, 'mx'])
    world.host('mx', '192.0.2.1', script)
    const result = await world.deliver({ to })
    expect(to.map(({ address }) => result.of(address).dsnPassedOn)).toEqual([passedOn, undefined, undefined])
  }
})

test('the content is sent complete and dot-stuffed, in any number of chunks', async () => {
  const world = new SmtpAgentHarness().mx('example.net', [10, 'mx'])
  const server = world.host('mx', '192.0.2.1')
  const chunks = ['Subject: x\r\n\r\n.', '\r\n..\r\nend', ' without newline'].map((text) => Buffer.from(text))
  await world.deliver({ to: ['a@example.net'], chunks })
  expect(server.sessions[0]?.contents).toEqual(['Subject: x\r\n\r\n..\r\n...\r\nend without newline\r\n'])
})

test.each([
  ['998 octets at most', [], 998],
  ['smtp_line_length_limit', ['smtp_line_length_limit=100'], 100],
  ['no limit', ['smtp_line_length_limit=0'], 2_500],
])('a line above the limit is folded: %s', async (_, config, longest) => {
  const world = new SmtpAgentHarness({ config: ['relayhost=[192.0.2.1]', ...config] })
  const far = world.host('far.example', '192.0.2.1')
  const body = 'x'.repeat(2_500)
  await world.deliver({ to: ['ann@example.net'], content: `Subject: hi\r\n\r\n${body}\r\n` })
  const [sent = ''] = far.sessions[0]?.contents ?? []
  expect(Math.max(...sent.split('\r\n').map(({ length }) => length))).toBe(longest)
  expect(sent.replaceAll('\r\n ', '')).toContain(body)
})

describe('congestion', () => {
  const cases: [string, ServerScript, 'early' | 'late' | undefined, 'positive' | 'negative'][] = [
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
    const world = new SmtpAgentHarness().mx('example.net', [10, 'mx'])
    world.host('mx', '192.0.2.1', script)
    const result = await world.deliver({ to: ['a@example.net'] })
    expect(result.congestion).toBe(congestion)
    expect(result.feedback).toBe(feedback)
    expect(result.of().outcome).toBe('deferred')
    expect(result.siteStatus === undefined).toBe(feedback === 'positive')
  })

  test('a completed session, then an MX host that refuses: positive feedback', async () => {
    const world = new SmtpAgentHarness().mx('example.net', [10, 'a'], [20, 'b']).addresses('b', '192.0.2.2')
    world.host('a', '192.0.2.1', { rcpt: '450 4.2.0 later' })
    const result = await world.deliver({ to: ['x@example.net'] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.2.0' })
    expect(result).toMatchObject({ feedback: 'positive', siteStatus: undefined })
  })
})

test('the times of an attempt: start, MAIL, end', async () => {
  const world = new SmtpAgentHarness().mx('example.net', [10, 'mx'])
  world.host('mx', '192.0.2.1', { ehlo: '250 far', dot: null })
  const result = await world.deliver({ to: ['x@example.net'] })
  expect(result.times.endedAt - result.times.transmittingAt).toBe(600_000)
  expect(result.times.transmittingAt).toBe(result.times.startedAt)
})
