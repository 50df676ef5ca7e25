/**
 * Notifies the daemon of mail in the maildrop, and asks for its outcome. Without a notification, the daemon takes mail in once a minute.
 */
import { connect, type Socket } from 'node:net'
import { pickupPath } from '../../daemon/admin/socket-path.ts'
import { errorCode } from '../../system/caught-error.ts'
import { SECOND, sleep, type Duration, type Timers } from '../../system/clock.ts'

const NOTIFICATION_LIMIT: Duration = SECOND
export const OUTCOME_LIMIT: Duration = 10 * SECOND
/** Time for which connecting to a missing socket is repeated: the daemon closes its socket for half a second after many connections. */
const MISSING_SOCKET_LIMIT: Duration = SECOND
const RETRY: Duration = 100

/** Outcome of a submission, as far as it is known in time. */
export type Outcome =
  /** One line for each file of the submission. */
  | { readonly kind: 'settled'; readonly lines: readonly string[] }
  /** No daemon has the socket open. */
  | { readonly kind: 'no daemon' }
  /** The daemon has not answered for all files within OUTCOME_LIMIT. */
  | { readonly kind: 'waiting' }

/** Notifies the daemon. Resolves within a second, also when the daemon does not answer. */
export async function wakeDaemon(queueDirectory: string, clock: Timers): Promise<void> {
  await ask(queueDirectory, [], { clock, until: clock.monotonic() + NOTIFICATION_LIMIT })
}

/** Notifies the daemon and resolves with the outcome of the files. */
export async function outcomeOf(queueDirectory: string, names: readonly string[], clock: Timers): Promise<Outcome> {
  const began = clock.monotonic()
  const until = began + OUTCOME_LIMIT
  for (;;) {
    const answer = await ask(queueDirectory, names, { clock, until })
    if (typeof answer !== 'string') return { kind: 'settled', lines: answer }
    const passed = clock.monotonic() - began
    if (answer === 'ECONNREFUSED' || (answer === 'ENOENT' && passed >= MISSING_SOCKET_LIMIT)) return { kind: 'no daemon' }
    if (passed >= OUTCOME_LIMIT) return { kind: 'waiting' }
    await sleep(clock, RETRY)
  }
}

interface Limit {
  readonly clock: Timers
  readonly until: Duration
}

/**
 * Resolves with a line for each name, or with an error code: ETIMEDOUT at the time limit, EPIPE when the daemon has closed the connection.
 */
function ask(queueDirectory: string, names: readonly string[], { clock, until }: Limit): Promise<readonly string[] | string> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ path: pickupPath(queueDirectory) })
    const end = (answer: readonly string[] | string): void => {
      timer.cancel()
      socket.destroy()
      resolve(answer)
    }
    const timer = clock.after(Math.max(0, until - clock.monotonic()), () => end('ETIMEDOUT'))
    let text = ''
    socket.setEncoding('utf8')
    socket.on('error', (error) => end(errorCode(error)))
    socket.on('close', () => end('EPIPE'))
    socket.on('connect', () => {
      if (names.length === 0) return end([])
      socket.write(names.map((name) => `${name}\n`).join(''))
    })
    socket.on('data', (chunk: string) => {
      text += chunk
      const lines = text.split('\n')
      if (lines.length > names.length) end(lines.slice(0, -1))
    })
  })
}
