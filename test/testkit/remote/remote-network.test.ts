import * as fc from 'fast-check'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'
import { openRemote } from '../../support/remote-harness.ts'

/** A session with a remote server, in bytes. */
async function talkTo(world: ReturnType<typeof openRemote>, domain = 'them.example') {
  await world.net.lookupMx(domain)
  const found = await world.net.lookupAddresses(`mx.${domain}`, 4)
  const address = found.kind === 'found' ? (found.records[0] ?? '') : ''
  const socket: Socket = await world.net.dial({ address, port: 25, timeout: 1_000 })
  let heard = ''
  socket.on('data', (bytes: Buffer) => (heard += bytes.toString()))
  /** Sends pieces as they are; what was answered. */
  const say = async (...pieces: readonly (string | Uint8Array)[]): Promise<string> => {
    heard = ''
    for (const piece of pieces) {
      socket.write(piece)
      await eventLoopTurn()
    }
    for (let i = 0; i < 3; i++) await eventLoopTurn()
    return heard
  }
  return { socket, say }
}

const PREAMBLE = ['EHLO us.example\r\n', 'MAIL FROM:<a@us.example>\r\n', 'RCPT TO:<b@them.example>\r\n', 'DATA\r\n'] as const

test('pipelined commands each get a reply', async () => {
  const { say } = await talkTo(openRemote())
  const answers = await say(PREAMBLE.join('') + '.\r\nNOOP\r\nXYZZY\r\nQUIT\r\n')
  expect(answers.match(/^\d{3} /gm)).toEqual(['220 ', '250 ', '250 ', '250 ', '354 ', '250 ', '250 ', '502 ', '221 '])
})

test('commands out of sequence get 503, bad syntax 501', async () => {
  const { say } = await talkTo(openRemote())
  expect(await say('MAIL FROM:<a@us.example>\r\n')).toContain('503 ')
  await say('EHLO us.example\r\n')
  expect(await say('RCPT TO:<b@them.example>\r\n')).toMatch(/^503 /)
  expect(await say('DATA\r\n')).toMatch(/^503 /)
  expect(await say('STARTTLS\r\n')).toMatch(/^503 /)
  expect(await say('AUTH PLAIN AAA=\r\n')).toMatch(/^503 /)
  expect(await say('MAIL a@us.example\r\n')).toMatch(/^501 /)
  expect(await say('MAIL FROM:<>\r\n')).toMatch(/^250 /)
  expect(await say('MAIL FROM:<>\r\n')).toMatch(/^503 /)
  expect(await say('RCPT TO:<>\r\n')).toMatch(/^501 /)
  expect(await say('DATA\r\n')).toMatch(/^554 /)
  expect(await say('RSET\r\n')).toMatch(/^250 /)
})

test('after a 5xx greeting only QUIT is accepted', async () => {
  const { say } = await talkTo(openRemote('rule.no = { at = "greeting", reply = "554 5.7.1 no" }'))
  expect(await say('EHLO us.example\r\n')).toMatch(/^554 .*\r\n503 /)
  expect(await say('QUIT\r\n')).toMatch(/^221 /)
})

test('a TLS handshake after a positive reply that is not 220 is never answered, whatever its octets are', async () => {
  const world = openRemote('rule.tls = { extensions = ["STARTTLS"] }\nrule.odd = { at = "starttls", reply = "250 ok" }')
  const { socket, say } = await talkTo(world)
  expect(await say('EHLO us.example\r\nSTARTTLS\r\n')).toMatch(/\r\n250 ok\r\n$/)
  expect(await say(Buffer.from('160301020001000a0d0affffff0d0a', 'hex'))).toBe('')
  socket.destroy()
  for (let i = 0; i < 3; i++) await eventLoopTurn()
  expect(world.events.at(-1)).toMatchObject({ event: 'closed', by: 'client', stage: 'starttls' })
})

test('parameters are kept as they were sent', async () => {
  const world = openRemote()
  const { say } = await talkTo(world)
  await say('EHLO us.example\r\nMAIL FROM:<a@us.example> SIZE=20 RET=HDRS\r\nRCPT TO:<b@Them.Example> NOTIFY=NEVER\r\nDATA\r\nhi\r\n.\r\n')
  expect(world.mails).toMatchObject([
    { mailParameters: 'SIZE=20 RET=HDRS', rcptParameters: ['NOTIFY=NEVER'], recipients: ['b@them.example'] },
  ])
})

test('only CRLF.CRLF ends the content', async () => {
  const world = openRemote()
  const { say } = await talkTo(world)
  await say(...PREAMBLE)
  for (const trap of ['a\n.\nb', 'a\n.\r\nb', 'a\r.\rb', 'a\r\n.\nb']) expect(await say(trap)).toBe('')
  expect(await say('\r\n.\r\n')).toMatch(/^250 /)
})

test('any content at any segmentation is kept to the byte', async () => {
  const bytes = fc.string({ unit: fc.constantFrom('.', '\r\n', '\r', '\n', 'a', '\u00ff', '\u0000'), maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(bytes, fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 30 }), async (text, cuts) => {
      const content = `${text}\r\n`
      const world = openRemote()
      const { say, socket } = await talkTo(world)
      await say(...PREAMBLE)
      const wire = Buffer.from(`${`\r\n${content}`.replaceAll('\r\n.', '\r\n..').slice(2)}.\r\n`, 'latin1')
      let at = 0
      const pieces = cuts.map((length) => wire.subarray(at, (at += length)))
      await say(...pieces, wire.subarray(at))
      expect(world.mails.map((mail) => mail.content.toString('latin1'))).toEqual([content])
      socket.destroy()
    }),
    { numRuns: 150 },
  )
})

test('a reply after the client disconnected is recorded as not sent', async () => {
  const world = openRemote('rule.slow = { at = "end-of-data", delay = "10m" }')
  const { say, socket } = await talkTo(world)
  await say(...PREAMBLE, 'hi\r\n.\r\n')
  socket.destroy()
  await world.driver.runWhile(() => world.clock.pending > 0)
  expect(world.events.filter(({ event }) => event === 'message')).toMatchObject([{ kept: true, reply_code: null }])
})

test('a client stalled in the content is disconnected after an hour', async () => {
  const world = openRemote('rule.hold = { at = "body", stall = true }')
  const { say, socket } = await talkTo(world)
  const broken = new Promise<string>((resolve) => socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? '')))
  await say(...PREAMBLE, 'x'.repeat(200_000))
  await world.driver.runWhile(() => world.clock.pending > 0)
  expect(await broken).toBe('ECONNRESET')
  expect(world.clock.monotonic()).toBe(3_600_000)
})
