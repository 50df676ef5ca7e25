/** SIGTERM in each state of the daemon: it exits with 0 within ten seconds, and the next start delivers everything, once. */
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { perform } from '../support/kill-cycles/parked-mail.ts'
import { KillableRelay } from '../support/killable-relay.ts'

const LIMIT = 10_000

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

interface State {
  readonly name: string
  /** Kind of the recipients. */
  readonly to?: string
  /** The remote server does not send its greeting. */
  readonly isSilent?: boolean
  /** ms until the reply to the content. */
  readonly delay?: number
  /** Messages before the signal. */
  readonly messages: number
  readonly act?: (relay: KillableRelay) => Promise<Socket | void>
}

const STATES: readonly State[] = [
  { name: 'idle', messages: 10, act: async (relay) => void (await relay.drained(LIMIT)) },
  { name: 'while it waits for a greeting', isSilent: true, messages: 30 },
  { name: 'while it waits for the reply to the content', delay: 1_000, messages: 100 },
  { name: 'with deferred mail', to: 'defer', messages: 100, act: () => pause(500) },
  { name: 'while it flushes', to: 'defer', delay: 20, messages: 300, act: flushAll },
  { name: 'with a client in DATA', messages: 20, act: inData },
  { name: 'with thousands of messages in the queue', delay: 300, messages: 3_000 },
]

async function flushAll(relay: KillableRelay): Promise<void> {
  await perform(relay.queueDirectory, 'flush', [...relay.acknowledged.values()])
}

/** A client that has sent half of a message. */
async function inData(relay: KillableRelay): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: relay.load.port ?? 0 })
  socket.on('error', () => undefined)
  for (const line of ['EHLO c', 'MAIL FROM:<a@us.example>', 'RCPT TO:<ann-0@far.example>', 'DATA', 'Subject: half\r\n\r\nhalf']) {
    await new Promise((resolve) => socket.once('data', resolve))
    socket.write(`${line}\r\n`)
  }
  return socket
}

test.each(STATES)('SIGTERM $name', async ({ name, to = 'ann', isSilent = false, delay = 0, messages, act }) => {
  const relay = new KillableRelay()
  try {
    Object.assign(relay.far, { delay, isSilent })
    await relay.open(8, (number) => `${to}-${number}@far.example`)
    await relay.startDaemon()
    await relay.acknowledges(messages)
    relay.load.pace = null
    const client = await act?.(relay)
    const { code, took } = await relay.terminate()
    client?.destroy()
    expect(code).toBe(0)
    expect(took).toBeLessThan(LIMIT)
    Object.assign(relay.far, { delay: 0, isSilent: false })
    await relay.quiet()
    await relay.startDaemon()
    expect(await relay.drained(60_000)).toBe(true)
    expect((await relay.terminate()).code).toBe(0)
    const { delivered } = relay.far
    const lost = [...relay.acknowledged.keys()].filter((number) => !delivered.has(number)).length
    const twice = [...delivered.values()].filter((times) => times !== 1).length
    printFigures(`SIGTERM ${name}`, { messages: relay.acknowledged.size, 'ms to the exit': Math.round(took), lost, twice })
    expect([lost, twice]).toEqual([0, 0])
  } finally {
    await relay.close()
  }
})
