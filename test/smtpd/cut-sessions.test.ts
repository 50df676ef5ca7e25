/** Sessions that end after any byte of the client: a message is taken exactly when its end was received. */
import { expect, test } from 'vitest'
import { MINUTE } from '../../src/system/clock.ts'
import { openSmtpd, type RawClient } from '../support/smtpd-harness.ts'

const PIECES = [
  'EHLO client.example\r\n',
  'MAIL FROM:<app@us.example>\r\n',
  'RCPT TO:<ann@far.example>\r\nRCPT TO:<bob@far.example>\r\n',
  'DATA\r\n',
  'Subject: hi\r\n\r\nHello.\r\n..\r\n.\r\n',
  'RSET\r\n',
]
const BYTES = PIECES.join('').length
/** Bytes up to and with the end of the content. */
const COMPLETE = PIECES.slice(0, 5).join('').length

async function sendFirst(client: RawClient, bytes: number): Promise<void> {
  let left = bytes
  for (const piece of PIECES) {
    if (left <= 0) return
    await client.send(piece.slice(0, left))
    left -= piece.length
  }
}

test.each([
  ['closes the connection', (client: RawClient) => void client.socket.end(), 0],
  ['resets the connection', (client: RawClient) => void client.socket.destroy(), 0],
  ['is silent', () => undefined, 10 * MINUTE],
])('a client that %s after any byte: a message is taken exactly when its end was received', async (_how, cut, time) => {
  const { connect, intake, wait, of } = await openSmtpd()
  for (let bytes = 0; bytes <= BYTES; bytes++) {
    const before = intake.taken.length
    const client = await connect()
    await sendFirst(client, bytes)
    cut(client)
    await wait(time)
    expect(intake.taken.length - before, `after ${bytes} bytes`).toBe(bytes >= COMPLETE ? 1 : 0)
    expect(client.closed, `after ${bytes} bytes`).toBe(true)
    if (client.heard.includes('queued as')) expect(bytes).toBeGreaterThanOrEqual(COMPLETE)
  }
  expect(intake.staged.size).toBe(0)
  expect(of('note').filter(({ level }) => level === 'error')).toEqual([])
})
