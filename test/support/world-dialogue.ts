/** An SMTP session with the relay of a world, line by line. */
import type { World } from '../../src/testkit/world.ts'

/** Sends the lines, each after the reply to the one before. Returns all lines of the replies but the greeting. */
export async function dialogue(world: World, lines: readonly string[]): Promise<readonly string[]> {
  const socket = await world.net.dialFrom('127.0.0.1', { address: '127.0.0.1', port: 2525 })
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
