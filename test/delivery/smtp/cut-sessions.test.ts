/** Sessions that end after any byte of the server or of the client: delivered exactly when the last reply was received as a whole. */
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'

type Cut = (socket: Socket) => void

/** One delivery to a server that is cut off when so many bytes were sent to the client (`sent`) or received from it. */
async function cutAfter(direction: 'sent' | 'received', bytes: number, cut: Cut) {
  const world = new SmtpAgentHarness({ config: ['relayhost=[192.0.2.1]'] })
  const far = world.host('far.example', '192.0.2.1')
  let [sent, received] = [0, 0]
  world.dialOutcome('192.0.2.1', {
    kind: 'open',
    accept: (socket) => {
      const write = socket.write.bind(socket)
      if (direction === 'received') {
        socket.prependListener('data', (data: Buffer) => {
          received += data.length
          if (received > bytes) cut(socket)
        })
      }
      socket.write = (data: string | Buffer) => {
        const rest = Buffer.from(data).subarray(0, direction === 'sent' ? Math.max(0, bytes - sent) : undefined)
        sent += Buffer.byteLength(data)
        const more = rest.length === 0 || socket.destroyed || write(rest)
        if (direction === 'sent' && sent > bytes) cut(socket)
        return more
      }
      far.accept(socket)
    },
  })
  const result = await world.deliver({ to: ['ann@example.net'] })
  return {
    outcome: result.of().outcome,
    possiblySent: result.possiblySent === true,
    contents: far.sessions[0]?.contents.length ?? 0,
    sent,
    received,
  }
}

const CUTS: readonly (readonly [string, Cut])[] = [
  ['closed', (socket) => void socket.end()],
  ['reset', (socket) => void socket.destroy()],
  ['silent', () => undefined],
]

test.each(CUTS)(
  'a connection %s after any byte of the replies: delivered exactly when the whole last reply was received',
  async (_how, cut) => {
    const whole = await cutAfter('sent', Infinity, () => undefined)
    expect(whole.outcome).toBe('delivered')
    const outcomes: string[] = []
    let doubtful = 0
    for (let bytes = 0; bytes <= whole.sent; bytes++) {
      const { outcome, possiblySent, contents } = await cutAfter('sent', bytes, cut)
      outcomes.push(outcome)
      if (outcome === 'delivered') expect(contents).toBe(1)
      else if (contents === 1) {
        // The remote server has the message, and the reply is missing: it is delivered again, and the log says so.
        expect(possiblySent, `after ${bytes} bytes`).toBe(true)
        doubtful++
      }
    }
    expect(outcomes.join(' ')).toMatch(/^(deferred )+(delivered ?)+$/)
    expect(doubtful).toBeGreaterThan(0)
  },
)

test('a connection reset after any byte of the client: nothing is delivered before the end of the content', async () => {
  const whole = await cutAfter('received', Infinity, () => undefined)
  expect(whole.outcome).toBe('delivered')
  for (let bytes = 0; bytes < whole.received; bytes++) {
    const result = await cutAfter('received', bytes, (socket) => void socket.destroy())
    expect(['delivered', 'deferred'], `after ${bytes} bytes`).toContain(result.outcome)
    if (result.outcome === 'delivered') expect(result.contents).toBe(1)
  }
})
