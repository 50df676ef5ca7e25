/**
 * The start of a daemon, until it has accepted a message.
 */
import { send } from '../own-source.ts'
import type { BenchDaemon } from './bench-daemon.ts'

const START_LIMIT = 30_000

/** Starts a daemon, and returns the time from the start of its process to the reply to its first message, in ms. Ends the daemon. */
export async function firstAccept(start: () => Promise<BenchDaemon>): Promise<number> {
  const began = performance.now()
  const { port, child } = await start()
  // A node refuses mail with 451 until its first beat.
  while (!(await accepts(port))) if (performance.now() - began > START_LIMIT) throw new Error(`no mail is accepted: ${child.lastWords()}`)
  const took = performance.now() - began
  await child.stop()
  return took
}

const accepts = (port: number): Promise<boolean> =>
  send({ port, messages: 1, sessions: 1, bytes: 2_048, recipients: 1, connections: 'new' }).then(
    () => true,
    () => false,
  )
