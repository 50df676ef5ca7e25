/**
 * Closing of HTTP connections in stages (RFC 9112 §9.6): the server ends its direction after the last response, reads and discards what the
 * client still sends, and closes when the client has ended, or at a limit. A connection that is closed with unread bytes is reset: the
 * writes of the client fail, and it loses a response that it has not read.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { seconds, type Duration, type Timers } from '../system/clock.ts'
import { eventLoopTurn } from '../system/event-loop.ts'

/** Limits of what is discarded. */
export interface DiscardLimits {
  /** Time without bytes from the client, in real time. */
  readonly silence: Duration
  /** Time since the last response was written. */
  readonly time: Duration
  readonly bytes: number
}

const LIMITS: DiscardLimits = { silence: seconds(2), time: seconds(30), bytes: 32 * 1024 * 1024 }

const closing = new WeakSet<Socket>()

/** True when the last response of a connection has been written. Nothing that its client sends then is a request. */
export const isClosing = (socket: Socket): boolean => closing.has(socket)

/** Makes a response the last one of its connection, which is then closed in stages. Called before its header is written. */
export function closeAfter(response: ServerResponse, clock: Timers, limits?: DiscardLimits): void {
  const { socket } = response.req
  response.setHeader('connection', 'close')
  // node:http calls `destroySoon` after the last response.
  socket.destroySoon = () => closeInStages(socket, clock, limits)
}

/** Closes a connection whose last response has been written. */
export function closeInStages(socket: Socket, clock: Timers, { silence, time, bytes }: DiscardLimits = LIMITS): void {
  if (socket.destroyed || closing.has(socket)) return
  closing.add(socket)
  const begun = clock.monotonic()
  let discarded = 0
  // The parser of node:http would pass on the requests that follow.
  socket.removeAllListeners('data')
  socket.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > bytes || clock.monotonic() - begun > time) socket.destroy()
  })
  socket.resume()
  // The parser read without the stream, which waits for bytes since the beginning: an empty piece makes it read again.
  socket.push('')
  // A client that reads a long response slowly is not limited.
  socket.end(() => {
    // node:http would close at once.
    socket.removeAllListeners('timeout')
    socket.setTimeout(silence).on('timeout', () => void destroyIfSilent(socket))
  })
}

/** Timers come before bytes in a turn: after a time in which the process stood still, bytes that arrived meanwhile are not read yet. */
async function destroyIfSilent(socket: Socket): Promise<void> {
  const before = socket.bytesRead
  await eventLoopTurn()
  if (socket.bytesRead === before) socket.destroy()
}
