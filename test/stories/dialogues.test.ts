/** Dialogues of failed attempts: what they tell at each stage, how many are kept, and how long. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RelayParameters } from '../../src/config/values/relay-parameters.ts'
import { SessionRecordings } from '../../src/sessions/session-recordings.ts'
import type { RuleText } from '../../src/testkit/remote/rule-keys.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'

const TO = 'ann@far.example'

async function failing(rule: RuleText, config: RelayParameters = {}): Promise<World> {
  const world = await createWorld({ config })
  world.destination('far.example').fails(rule)
  return world
}

/** The dialogue of a first attempt, without its heading. */
async function told(world: World, wait = '1s'): Promise<readonly string[]> {
  const id = await world.submit({ to: TO, text: 'words of the body' })
  await world.advance(wait)
  return ((await world.dialogue(id)) ?? '').trimEnd().split('\n').slice(1)
}

const CONNECTED = '      0 * connected from 127.0.0.1'
/** Size of the content, with the time of its end. */
const CONTENT = expect.stringMatching(/^ {6}0 C \[3\d\d bytes\]$/) as string

describe('a failure at each stage', () => {
  test('at connect', async () => {
    await using world = await failing({ at: 'connect', connect: 'timeout' })
    expect(await told(world, '1m')).toEqual(['  30000 * cannot connect: Connection timed out'])
  })

  test('a refusal in the greeting, and one of MAIL after 7 s', async () => {
    await using refused = await failing({ at: 'greeting', reply: '554 5.7.1 not you' })
    expect(await told(refused)).toEqual([CONNECTED, '      0 S 554 5.7.1 not you'])
    await using slow = await failing({ at: 'mail', reply: '451 4.3.0 no', delay: '7s' })
    const lines = await told(slow, '1m')
    expect(lines.slice(0, 3)).toEqual([CONNECTED, '      0 S 220 mx.far.example ESMTP', '      0 C EHLO deferd.example'])
    expect(lines).toContain('   7000 S 451 4.3.0 no')
  })

  test('a reset of the connection', async () => {
    await using world = await failing({ at: 'data', drop: 'rst' })
    const lines = await told(world)
    expect(lines).toContain('      0 C DATA')
    expect(lines.at(-2)).toBe('      0 * Connection reset by peer')
    expect(lines.at(-1)).toMatch(/^ {6}0 \* connection lost in \w+$/)
  })

  test('TLS that fails, and a certificate that is refused', async () => {
    await using broken = await createWorld({ config: { smtp_tls_security_level: 'encrypt' } })
    broken.destination('far.example').offersTls().fails({ at: 'handshake', drop: 'rst' })
    expect((await told(broken)).at(-1)).toBe('      0 * TLS failed: read ECONNRESET')
    await using expired = await createWorld({ config: { smtp_tls_security_level: 'secure' } })
    expired.destination('far.example').offersTls('expired')
    expect((await told(expired)).at(-1)).toBe('      0 * certificate refused: certificate has expired')
  })

  test('a 4xx reply to MAIL after TLS', async () => {
    await using world = await createWorld({ config: { smtp_tls_security_level: 'encrypt' } })
    world.destination('far.example').offersTls().fails({ at: 'mail', reply: '450 4.7.1 greylisted' })
    const lines = await told(world)
    expect(lines).toContain('      0 * TLSv1.3 with TLS_AES_256_GCM_SHA384, certificate trusted')
    expect(lines).toContain('      0 S 450 4.7.1 greylisted')
  })

  test('a 5xx reply to RCPT', async () => {
    await using world = await failing({ at: 'rcpt', reply: '550 5.1.1 no such user' })
    expect((await told(world)).slice(-5)).toEqual([
      '      0 C RCPT TO:<ann@far.example>',
      '      0 C DATA',
      '      0 S 250 2.1.0 Ok',
      '      0 S 550 5.1.1 no such user',
      '      0 S 554 5.5.1 Error: no valid recipients',
    ])
  })

  test('a refusal of the content, and a timeout of the reply to it', async () => {
    await using refused = await failing({ at: 'end-of-data', reply: '552 5.2.2 full', delay: '90s' })
    const lines = await told(refused, '5m')
    expect(lines.slice(-2)).toEqual([CONTENT, '  90000 S 552 5.2.2 full'])
    expect(lines.join('\n')).not.toContain('words of the body')
    await using silent = await failing({ at: 'end-of-data', stall: true })
    expect((await told(silent, '11m')).slice(-2)).toEqual([CONTENT, ' 600000 * timeout in end-of-data'])
  })
})

describe.each(['memory', 'file'] as const)('with a queue in %s', (kind) => {
  const open = (config: RelayParameters = {}) =>
    createWorld({ config, store: kind === 'memory' ? kind : { directory: mkdtempSync(join(tmpdir(), 'deferd-dialogues-')) } })

  const use = (world: World) => world.reader.records.sessions.use()

  test('attempts of one destination, cause and minute share a dialogue, which remains when the message is returned', async () => {
    await using world = await open()
    world.destination('far.example').rejects()
    world.destination('other.example').rejects()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push(await world.submit({ to: [`a${n}@far.example`, `b${n}@far.example`, `c${n}@other.example`] }))
    await world.advance('10s')
    expect(await use(world)).toMatchObject({ count: 2 })
    for (const id of ids) expect(await world.dialogue(id)).toMatch(/^# deferd session, smtp to mx\.(?:far|other)\.example/)
    const [event] = await world.events({ types: ['recipient.bounced'] })
    const details = await world.reader.details(ids[0] ?? '')
    const named = details?.history.find(({ recipient }) => recipient === details.recipients[0]?.id)?.session
    expect(event?.data).toMatchObject({ recipient: details?.recipients[0]?.address, session: named })
    await world.advance('1m')
    await world.submit({ to: 'd@far.example' })
    await world.advance('1s')
    expect(await use(world)).toMatchObject({ count: 3 })
  })

  test('a delivered message has none, and with "all" each has one', async () => {
    await using failed = await open()
    const id = await failed.submit({ to: 'ann@good.example' })
    await failed.advance('1s')
    expect(await failed.dialogue(id)).toBeNull()
    await using all = await open({ session_transcripts: 'all' })
    const ids = [await all.submit({ to: 'ann@good.example' }), await all.submit({ to: 'bob@good.example' })]
    await all.advance('1s')
    for (const one of ids) expect(await all.dialogue(one)).toContain('S 250 2.0.0 Ok')
    expect(await use(all)).toMatchObject({ count: 2 })
  })

  test('with "no", nothing is recorded and nothing stored', async () => {
    const begins = vi.spyOn(SessionRecordings.prototype, 'begin')
    onTestFinished(() => begins.mockRestore())
    await using world = await open({ session_transcripts: 'no' })
    world.destination('far.example').rejects()
    const id = await world.submit({ to: TO })
    await world.advance('1s')
    expect(await world.dialogue(id)).toBeNull()
    expect(await use(world)).toEqual({ count: 0, bytes: 0 })
    const [session, ...others] = new Set(begins.mock.results.map(({ value }) => value as unknown))
    expect([session, others]).toEqual([null, []])
  })
})
