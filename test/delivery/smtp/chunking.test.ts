/** BDAT by the SMTP client (RFC 3030): commands, content, replies, segmentation, and connections that end within a chunk. */
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/system/clock.ts'
import type { Act, ServerScript } from '../../support/scripted-server.ts'
import { segmentations } from '../../support/segments.ts'
import { CONTENT, SmtpAgentHarness, type Delivered, type TestDelivery, type WorldOptions } from '../../support/smtp-agent-harness.ts'

const ANN = 'ann@example.net'
const PIPELINED: ServerScript = { ehlo: '250-far\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 CHUNKING' }
const IN_TURN: ServerScript = { ehlo: '250-far\r\n250-8BITMIME\r\n250 chunking' }
const SCRIPTS = [
  ['with PIPELINING', PIPELINED],
  ['without PIPELINING', IN_TURN],
] as const

function world(script: ServerScript, options: WorldOptions = {}): SmtpAgentHarness {
  const made = new SmtpAgentHarness({ ...options, config: ['relayhost=[192.0.2.1]', ...(options.config ?? [])] })
  made.host('far.example', '192.0.2.1', script)
  return made
}

const THREE = ['From: a@us.example\r\n\r\none\r\n', '.\r\n..two\r\n', 'three\r\n'].map((text) => Buffer.from(text))
const three: TestDelivery = { to: [ANN], chunks: THREE }
const commands = (far: SmtpAgentHarness) => far.sessions.flatMap((session) => session.commands)
const verbs = (far: SmtpAgentHarness) => commands(far).map((line) => line.split(/[ :]/)[0])

describe.each(SCRIPTS)('a host %s', (_name, script) => {
  test('gets the content in chunks, without DATA and without doubled dots', async () => {
    const far = world(script)
    const result = await far.deliver(three)
    expect(result.of()).toMatchObject({ outcome: 'delivered', status: '2.0.0', reason: '250 2.0.0 Ok: queued as FAR1' })
    const [first, second, last] = THREE
    expect(commands(far).slice(1)).toEqual([
      'MAIL FROM:<app@us.example>',
      `RCPT TO:<${ANN}>`,
      `BDAT ${first?.length}`,
      `BDAT ${second?.length}`,
      `BDAT ${last?.length} LAST`,
      'QUIT',
    ])
    expect(far.sessions[0]?.contents).toEqual([Buffer.concat(THREE).toString()])
  })

  test('that refuses all recipients gets no content, and the connection is used again after RSET', async () => {
    const far = world({ ...script, rcpt: ['550 5.1.1 no such user', '250 2.1.5 Ok'] })
    expect((await far.deliver({ to: [ANN], keep: true })).of()).toMatchObject({ outcome: 'bounced', status: '5.1.1' })
    const second = await far.deliver({ to: [ANN], keep: true })
    expect(second.of().outcome).toBe('delivered')
    expect(second.connectionUse).toBe(2)
    expect(verbs(far)).toEqual(['EHLO', 'MAIL', 'RCPT', 'RSET', 'MAIL', 'RCPT', 'BDAT'])
  })

  test('that refuses MAIL gets neither DATA nor BDAT', async () => {
    const far = world({ ...script, mail: '550 5.7.1 no' })
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.7.1', stage: 'mail' })
    expect(verbs(far)).not.toContain('BDAT')
    expect(verbs(far)).not.toContain('DATA')
  })

  test('that refuses some recipients gets the content for the others', async () => {
    const far = world({ ...script, rcpt: (line) => (line.includes('bob') ? '450 4.2.1 busy' : '250 2.1.5 Ok') })
    const result = await far.deliver({ to: ['bob@example.net', ANN] })
    expect(result.of('bob@example.net')).toMatchObject({ outcome: 'deferred', status: '4.2.1', stage: 'rcpt' })
    expect(result.of(ANN)).toMatchObject({ outcome: 'delivered' })
    expect(far.sessions[0]?.contents).toEqual([CONTENT])
  })

  test('that refuses a chunk gets no further one, and the next message after RSET', async () => {
    const far = world({ ...script, bdat: ['250 2.0.0 Ok', '452 4.3.1 full', '250 2.0.0 Ok'] })
    const result = await far.deliver({ ...three, keep: true })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.3.1',
      reason: 'host 192.0.2.1[192.0.2.1] said: 452 4.3.1 full (in reply to BDAT command)',
      stage: 'end-of-data',
    })
    expect(result.possiblySent).toBeUndefined()
    expect((await far.deliver({ ...three, keep: true })).of().outcome).toBe('delivered')
    expect(verbs(far)).toEqual(['EHLO', 'MAIL', 'RCPT', 'BDAT', 'BDAT', 'RSET', 'MAIL', 'RCPT', 'BDAT', 'BDAT', 'BDAT'])
    expect(far.sessions[0]?.contents).toEqual([Buffer.concat(THREE).toString()])
  })

  test.each([
    ['552 5.3.4 too big', 'bounced', '5.3.4'],
    ['421 4.3.2 closing', 'deferred', '4.3.2'],
    ['500 5.5.1 unknown command', 'deferred', '4.5.1'],
    ['502 5.5.1 not implemented', 'deferred', '4.5.1'],
    ['354 go on', 'deferred', '4.5.0'],
    ['what', 'deferred', '4.5.0'],
  ])('%j to the first chunk or to the last', async (reply, outcome, status) => {
    for (const at of ['bdat', 'dot'] as const) {
      const far = world({ ...script, [at]: reply })
      const result = await far.deliver(three)
      expect(result.of(), at).toMatchObject({ outcome, status })
      expect(verbs(far).filter((verb) => verb === 'BDAT')).toHaveLength(at === 'bdat' ? 1 : 3)
    }
  })

  test('two replies to one chunk are a protocol error, and the last chunk is not sent', async () => {
    const far = world({ ...script, bdat: '250 2.0.0 Ok\r\n250 2.0.0 Ok' })
    expect((await far.deliver(three)).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
    expect(commands(far).some((line) => line.endsWith('LAST'))).toBe(false)
  })

  test('that is silent after a chunk or after the last one: time limits, and only the last may have arrived', async () => {
    const chunk = await world({ ...script, bdat: null }).deliver(three)
    expect(chunk.of()).toMatchObject({ outcome: 'deferred', status: '4.4.2', stage: 'body' })
    expect([chunk.took, chunk.possiblySent]).toEqual([3 * MINUTE, undefined])
    const last = await world({ ...script, dot: null }).deliver(three)
    expect(last.of()).toMatchObject({ outcome: 'deferred', status: '4.4.2', stage: 'end-of-data' })
    expect([last.took, last.possiblySent]).toEqual([10 * MINUTE, true])
  })

  test('whose connection ends in one of the chunks: deferred, and possibly sent only when it was the last', async () => {
    for (const [after, arrived] of [
      [1, false],
      [30, false],
      [40, true],
    ] as const) {
      const far = world({ ...script, inContent: { after, act: { drop: true } } })
      const result = await far.deliver(three)
      expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.2' })
      expect(far.sessions[0]?.contents).toHaveLength(arrived ? 1 : 0)
      expect(result.possiblySent === true).toBe(arrived)
    }
  })

  test('does not get LAST when the content cannot be read to its end', async () => {
    const far = world(script)
    const result = await far.deliver({ to: [ANN], chunks: [THREE[0], undefined], message: { size: 100 } })
    expect(result.unreadable).toContain('not whole')
    expect(far.sessions).toMatchObject([{ contents: [], closed: true }])
    expect(verbs(far)).toEqual(['EHLO', 'MAIL', 'RCPT', 'BDAT'])
  })
})

describe('the content', () => {
  const received = async (texts: readonly string[], ...config: string[]) => {
    const far = world(PIPELINED, { config })
    const chunks = texts.map((text) => Buffer.from(text, 'latin1'))
    expect((await far.deliver({ to: [ANN], chunks, message: { bodyType: '8bitmime' } })).of().outcome).toBe('delivered')
    expect(commands(far)[1]).toBe('MAIL FROM:<app@us.example> BODY=8BITMIME')
    return far.sessions[0]?.contents[0]
  }

  test('has its 8-bit octets and dots unchanged, also at the borders of chunks', async () => {
    const texts = ['a: b\r\n\r\n\u00e4\u00ff\u0080\r', '\n.', '\r\n.\r\n', '..\r\n\u00f6\r\n']
    expect(await received(texts)).toBe(texts.join(''))
  })

  test('has lines with CR LF, at most smtp_line_length_limit long, and a last line with its end', async () => {
    expect(await received(['a: b\n\r', '.c\r', 'd'])).toBe('a: b\r\n\r\n.c\r\nd\r\n')
    expect(await received(['a: b\r\n\r\n', '0123456789'], 'smtp_line_length_limit=6')).toBe('a: b\r\n\r\n012345\r\n 6789\r\n')
  })

  test('that is empty is one empty chunk', async () => {
    const far = world(PIPELINED)
    expect((await far.deliver({ to: [ANN], chunks: [] })).of().outcome).toBe('delivered')
    expect(commands(far)).toContain('BDAT 0 LAST')
  })
})

describe('DATA is used', () => {
  const usesData = async (far: SmtpAgentHarness) => {
    expect((await far.deliver(three)).of().outcome).toBe('delivered')
    expect(verbs(far)).toContain('DATA')
    expect(verbs(far)).not.toContain('BDAT')
  }
  test('by hosts without CHUNKING', () => usesData(world({ ehlo: '250-far\r\n250 PIPELINING' })))
  test('with smtp_discard_ehlo_keywords = chunking', () =>
    usesData(world(PIPELINED, { config: ['smtp_discard_ehlo_keywords=silent-discard, CHUNKING'] })))
  test('for a destination whose table discards the keyword', () =>
    usesData(
      world(PIPELINED, {
        tables: {
          transport_maps: new Map(),
          destination: new Map([['example.net', { smtp_discard_ehlo_keywords: ['chunking'] as const }]]),
        },
      }),
    ))
  test('by LMTP, which replies once for each recipient', async () => {
    const tables = { transport_maps: new Map([['example.net', 'lmtp:[192.0.2.5]']]), destination: new Map() }
    const far = new SmtpAgentHarness({ tables })
    far.host('store', '192.0.2.5', { lhlo: '250-store\r\n250-PIPELINING\r\n250 CHUNKING' }, 24)
    await usesData(far)
  })
})

test('smtp_discard_ehlo_keywords discards the other extensions too', async () => {
  const ehlo = '250-far\r\n250-PIPELINING\r\n250-SIZE 10\r\n250-DSN\r\n250-AUTH PLAIN\r\n250 STARTTLS'
  const far = world({ ehlo, starttls: '220 2.0.0 Ready' }, { config: ['smtp_discard_ehlo_keywords=size, dsn, starttls, pipelining'] })
  const result = await far.deliver({ to: [{ address: ANN, notify: ['success'] }] })
  expect(result.of().outcome).toBe('delivered')
  expect(commands(far)).toEqual(['EHLO relay.us.example', 'MAIL FROM:<app@us.example>', `RCPT TO:<${ANN}>`, 'DATA', 'QUIT'])
  const insisting = world(
    { ehlo, starttls: '220 2.0.0 Ready' },
    {
      config: ['smtp_discard_ehlo_keywords=starttls', 'smtp_tls_security_level=encrypt'],
    },
  )
  expect((await insisting.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.7.4' })
})

describe('segmentation and cuts', () => {
  const replies = [
    ['bdat', '250-2.0.0 a\r\n250 2.0.0 b\r\n'],
    ['bdat', '452 4.3.1 full\r\n'],
    ['bdat', '250 2.0.0 Ok\r\n250 2.0.0 Ok\r\n'],
    ['dot', '250 2.0.0 Ok\r\n'],
    ['dot', '451 4.3.0 no\r\n'],
  ] as const
  test.each(replies)('the outcome does not depend on the segmentation of %s %j', async (at, sends) => {
    const summary = ({ outcomes, feedback, possiblySent }: Delivered) => ({ outcomes: [...outcomes.values()], feedback, possiblySent })
    let expected: ReturnType<typeof summary> | undefined
    for (const { packets } of segmentations(Buffer.from(sends))) {
      const act: Act = { packets }
      const result = summary(await world({ ...PIPELINED, [at]: act }).deliver(three))
      expected ??= result
      expect(result).toEqual(expected)
    }
  })

  async function cutAfter(direction: 'sent' | 'received', bytes: number) {
    const far = new SmtpAgentHarness({ config: ['relayhost=[192.0.2.1]'] })
    const host = far.host('far.example', '192.0.2.1', PIPELINED)
    let [sent, received] = [0, 0]
    const accept = (socket: Socket) => {
      const write = socket.write.bind(socket)
      socket.prependListener('data', (data: Buffer) => {
        received += data.length
        if (direction === 'received' && received > bytes) socket.destroy()
      })
      socket.write = (data: string | Buffer) => {
        const rest = Buffer.from(data).subarray(0, direction === 'sent' ? Math.max(0, bytes - sent) : undefined)
        sent += Buffer.byteLength(data)
        if (rest.length > 0 && !socket.destroyed) write(rest)
        if (direction === 'sent' && sent > bytes) socket.destroy()
        return true
      }
      host.accept(socket)
    }
    far.dialOutcome('192.0.2.1', { kind: 'open', accept })
    const result = await far.deliver(three)
    const { outcome } = result.of()
    return { outcome, possiblySent: result.possiblySent === true, contents: host.sessions[0]?.contents.length ?? 0, sent, received }
  }

  test('a connection reset after any byte of the client: delivered only with the whole content', async () => {
    const whole = await cutAfter('received', Infinity)
    expect(whole.outcome).toBe('delivered')
    for (let bytes = 0; bytes < whole.received; bytes++) {
      const { outcome, contents } = await cutAfter('received', bytes)
      if (outcome === 'delivered') expect(contents, `after ${bytes} bytes`).toBe(1)
    }
  })

  test('a connection reset after any byte of the replies: a message that arrived is delivered or possibly sent', async () => {
    const whole = await cutAfter('sent', Infinity)
    let doubtful = 0
    for (let bytes = 0; bytes <= whole.sent; bytes++) {
      const { outcome, possiblySent, contents } = await cutAfter('sent', bytes)
      expect(outcome === 'delivered' || possiblySent, `after ${bytes} bytes`).toBe(contents === 1)
      if (possiblySent) doubtful++
    }
    expect(doubtful).toBeGreaterThan(0)
  })
})
