/** An SMTP session with a relay, line by line. */
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import type { World } from '../../src/testkit/world.ts'

/** Sends the lines to a port, each after the reply to the one before. Returns all lines of the replies but the greeting. */
export async function dialogue(world: World, lines: readonly string[], port = 2525): Promise<readonly string[]> {
  return spoken(await world.net.dialFrom('127.0.0.1', { address: '127.0.0.1', port }), lines)
}

/** The same with a daemon at a port of 127.0.0.1. */
export const dialogueAt = (port: number, lines: readonly string[]): Promise<readonly string[]> =>
  spoken(connect({ host: '127.0.0.1', port }), lines)

async function spoken(socket: Duplex, lines: readonly string[]): Promise<readonly string[]> {
  let text = ''
  let wake = (): void => undefined
  socket.on('data', (piece: Buffer) => {
    text += piece.toString()
    wake()
  })
  const replied = async (from: number): Promise<void> => {
    while (!/(?:^|\n)\d{3}(?: [^\n]*)?\r\n$/.test(text.slice(from))) await new Promise<void>((resolve) => (wake = resolve))
  }
  await replied(0)
  const greeting = text.length
  for (const line of lines) {
    const from = text.length
    socket.write(`${line}\r\n`)
    await replied(from)
  }
  socket.destroy()
  return text.slice(greeting).trimEnd().split('\r\n')
}
