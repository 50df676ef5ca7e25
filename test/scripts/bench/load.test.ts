import { once } from 'node:events'
import { createServer, connect, type AddressInfo, type Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { lastCount } from '../../../scripts/bench/load.ts'
import { openSink } from '../../../scripts/bench/own-sink.ts'
import { send } from '../../../scripts/bench/own-source.ts'

let server: Server | null = null
afterEach(() => void server?.close())

async function listening(made: Server): Promise<number> {
  server = made
  await once(made.listen(0, '127.0.0.1'), 'listening')
  return (made.address() as AddressInfo).port
}

test('a sink that defers a recipient refuses DATA without another one', async () => {
  const counts = { arrived: 0, recipients: 0 }
  const port = await listening(
    openSink(
      () => counts.arrived++,
      () => counts.recipients++ % 2 === 0,
    ),
  )
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1')
  let said = ''
  socket.on('data', (text: string) => (said += text))
  const refused = 'MAIL FROM:<>\r\nRCPT TO:<a>\r\nDATA\r\n'
  socket.write(`EHLO a\r\n${refused}RCPT TO:<b>\r\nRCPT TO:<c>\r\nDATA\r\nx\r\n.\r\n${refused.replace('DATA\r\n', 'QUIT\r\n')}`)
  await once(socket, 'close')
  expect(counts).toEqual({ arrived: 1, recipients: 4 })
  expect([...said.matchAll(/^(\d{3}) /gm)].map(([, code]) => code).join(' ')).toBe('220 250 250 450 554 250 450 354 250 250 250 221')
})

test('the last complete count is read', () => {
  expect(lastCount('mesg=1\nmesg=12\nmesg=1')).toBe(12)
  expect(lastCount('')).toBe(0)
})

describe('the source and the sink', () => {
  test.each([
    { messages: 7, sessions: 3, bytes: 2_048, recipients: 1, connections: 'kept' },
    { messages: 7, sessions: 3, bytes: 2_048, recipients: 1, connections: 'new' },
    { messages: 2, sessions: 5, bytes: 300_000, recipients: 50, connections: 'kept' },
    { messages: 1, sessions: 1, bytes: 0, recipients: 1, connections: 'new' },
  ] as const)('count the same: %j', async (sending) => {
    const [sink, counts] = [openSink(() => counts.arrived++), { arrived: 0, connections: 0 }]
    sink.on('connection', () => void counts.connections++)
    await send({ ...sending, port: await listening(sink) })
    const { messages, sessions, connections } = sending
    expect(counts).toEqual({ arrived: messages, connections: connections === 'kept' ? Math.min(sessions, messages) : messages })
  })

  test('take commands and content in any pieces', async () => {
    const counts = { arrived: 0 }
    const port = await listening(openSink(() => counts.arrived++))
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }).resume()
    const dialogue = 'EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<b>\r\nDATA\r\n.\r\nDATA\r\na\r\n..\r\n.b\r\n.\r\nQUIT\r\n'
    for (const byte of dialogue) {
      socket.write(byte)
      await new Promise(setImmediate)
    }
    await once(socket, 'close')
    expect(counts.arrived).toBe(2)
  })

  test('a refusal ends the source with the reply', async () => {
    const port = await listening(createServer((socket) => void socket.end('554 5.3.2 not today\r\n')))
    const sending = { port, messages: 3, sessions: 2, bytes: 10, recipients: 1, connections: 'kept' } as const
    await expect(send(sending)).rejects.toThrow('the relay said: 554 5.3.2 not today')
  })
})
