import { once } from 'node:events'
import { createServer, connect, type AddressInfo, type Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { openSink } from '../../../scripts/bench/own-sink.ts'
import { send } from '../../../scripts/bench/own-source.ts'
import { lastCounts } from '../../../scripts/bench/sink.ts'
import { CERTIFICATE, KEY } from '../../support/certificates.ts'

let server: Server | null = null
afterEach(() => void server?.close())

async function listening(made: Server): Promise<number> {
  server = made
  await once(made.listen(0, '127.0.0.1'), 'listening')
  return (made.address() as AddressInfo).port
}

test('a sink that defers a recipient refuses DATA without another one', async () => {
  const counts = { arrived: 0, recipients: 0 }
  const port = await listening(openSink({ arrived: () => counts.arrived++, defers: () => counts.recipients++ % 2 === 0 }))
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1')
  let said = ''
  socket.on('data', (text: string) => (said += text))
  const refused = 'MAIL FROM:<>\r\nRCPT TO:<a>\r\nDATA\r\n'
  socket.write(`EHLO a\r\n${refused}RCPT TO:<b>\r\nRCPT TO:<c>\r\nDATA\r\nx\r\n.\r\n${refused.replace('DATA\r\n', 'QUIT\r\n')}`)
  await once(socket, 'close')
  expect(counts).toEqual({ arrived: 1, recipients: 4 })
  expect([...said.matchAll(/^(\d{3}) /gm)].map(([, code]) => code).join(' ')).toBe('220 250 250 450 554 250 450 354 250 250 250 221')
})

test('the last complete counts are read', () => {
  expect(lastCounts('mesg=1 refused=0\nmesg=12 refused=3\nmesg=1')).toEqual({ arrived: 12, refused: 3 })
  expect(lastCounts('')).toEqual({ arrived: 0, refused: 0 })
})

test.each([
  { tls: 'full', resumes: true, resumed: [false, false, false] },
  { tls: 'resumed', resumes: true, resumed: [false, true, true] },
  { tls: 'resumed', resumes: false, resumed: [false, false, false] },
] as const)('handshakes: $tls, a sink with tickets: $resumes', async ({ tls, resumes, resumed }) => {
  const found: boolean[] = []
  const port = await listening(
    openSink({ arrived: () => undefined, secured: (one) => found.push(one) }, { cert: CERTIFICATE, key: KEY, resumes }),
  )
  const sent = await send({ port, messages: 3, sessions: 1, bytes: 100, recipients: 1, connections: 'new', tls })
  expect([sent.length, found]).toEqual([3, resumed])
})

describe('the source and the sink', () => {
  test.each([
    { messages: 7, sessions: 3, bytes: 2_048, recipients: 1, connections: 'kept' },
    { messages: 7, sessions: 3, bytes: 2_048, recipients: 1, connections: 'new' },
    { messages: 2, sessions: 5, bytes: 300_000, recipients: 50, connections: 'kept' },
    { messages: 1, sessions: 1, bytes: 0, recipients: 1, connections: 'new' },
  ] as const)('count the same: %j', async (sending) => {
    const [sink, counts] = [openSink({ arrived: () => counts.arrived++ }), { arrived: 0, connections: 0 }]
    sink.on('connection', () => void counts.connections++)
    await send({ ...sending, port: await listening(sink) })
    const { messages, sessions, connections } = sending
    expect(counts).toEqual({ arrived: messages, connections: connections === 'kept' ? Math.min(sessions, messages) : messages })
  })

  test('take commands and content in any pieces', async () => {
    const counts = { arrived: 0 }
    const port = await listening(openSink({ arrived: () => counts.arrived++ }))
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }).resume()
    const dialogue = 'EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<b>\r\nDATA\r\n.\r\nDATA\r\na\r\n..\r\n.b\r\n.\r\nQUIT\r\n'
    for (const byte of dialogue) {
      socket.write(byte)
      await new Promise(setImmediate)
    }
    await once(socket, 'close')
    expect(counts.arrived).toBe(2)
  })

  test('know the number of each message', async () => {
    const arrived: (number | null)[] = []
    const port = await listening(openSink({ arrived: (number) => arrived.push(number) }))
    const sent = await send({ port, messages: 4, sessions: 2, bytes: 10, recipients: 1, connections: 'kept', first: 7 })
    expect(new Set(arrived)).toEqual(new Set([7, 8, 9, 10]))
    expect(new Set(sent.map(({ number }) => number))).toEqual(new Set([7, 8, 9, 10]))
    for (const { dot, reply } of sent) expect(reply).toBeGreaterThanOrEqual(dot)
  })

  test('keep a rate', async () => {
    const port = await listening(openSink({ arrived: () => undefined }))
    const began = performance.now()
    await send({ port, messages: 6, sessions: 3, bytes: 10, recipients: 1, connections: 'kept', rate: 100 })
    expect(performance.now() - began).toBeGreaterThan(45)
  })

  test.each([
    ['deferred', 1, 'the relay said: 450 4.2.1'],
    ['deferred once', 1, 'the relay said: 450 4.2.0'],
    ['half bounced', 2, 'the relay said: 550 5.1.1'],
  ] as const)('agree about mail that is to be %s', async (fate, messages, refusal) => {
    const port = await listening(openSink({ arrived: () => undefined }))
    const sending = { port, sessions: 1, bytes: 10, recipients: 1, connections: 'kept', fate } as const
    await expect(send({ ...sending, messages })).rejects.toThrow(refusal)
  })

  test('a sink refuses recipients, and content without any', async () => {
    const counts = { arrived: 0, refused: 0 }
    const port = await listening(openSink({ arrived: () => counts.arrived++, refused: () => counts.refused++ }))
    const socket = connect({ port, host: '127.0.0.1' }).setEncoding('latin1')
    let replies = ''
    socket.on('data', (text: string) => (replies += text))
    const ask = (sender: string, recipient: string): string => `MAIL FROM:<${sender}@a>\r\nRCPT TO:<${recipient}@b>\r\nDATA\r\n`
    socket.write(
      `${ask('s1', 'greylisted0')}${ask('s2', 'greylisted0')}${ask('s1', 'greylisted0')}X\r\n.\r\n${ask('s3', 'bounced0')}QUIT\r\n`,
    )
    await once(socket, 'close')
    const [refused, taken] = ['250 450 554 ', '250 250 354 250 ']
    expect(replies.replaceAll(/^(\d{3}) .*\r\n/gm, '$1 ')).toBe(`220 ${refused}${refused}${taken}250 550 554 221 `)
    expect(counts).toEqual({ arrived: 1, refused: 3 })
  })

  test('a refusal ends the source with the reply', async () => {
    const port = await listening(createServer((socket) => void socket.end('554 5.3.2 not today\r\n')))
    const sending = { port, messages: 3, sessions: 2, bytes: 10, recipients: 1, connections: 'kept' } as const
    await expect(send(sending)).rejects.toThrow('the relay said: 554 5.3.2 not today')
  })
})
