/**
 * Stalls one thread of a running daemon through Node's inspector, as a system call that does not return would: the thread waits and uses no
 * CPU time. The daemon runs with `INSPECTED` in its environment.
 */
import { once } from 'node:events'
import type { StartedProcess } from './started-daemon.ts'

export const INSPECTED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

export type ThreadName = 'main' | 'reader-worker' | 'worker-main'

interface Told {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly sessionId: string; readonly workerInfo?: { readonly url: string } }
}

/** Pause before the thread waits, in which it answers the inspector. */
const PAUSE = 50

/** Stalls a thread for a time in ms. */
export async function stall(daemon: StartedProcess, name: ThreadName, time: number): Promise<void> {
  const url = [...daemon.err.matchAll(/ws:\/\/\S+/g)].at(-1)?.[0]
  if (url === undefined) throw new Error('the daemon does not run with INSPECTED')
  const socket = new WebSocket(url)
  await once(socket, 'open')
  const heard = (isAwaited: (told: Told) => boolean): Promise<Told> =>
    new Promise((resolve) => {
      socket.addEventListener('message', ({ data }) => {
        const told = JSON.parse(String(data)) as Told
        if (isAwaited(told)) resolve(told)
      })
    })
  const send = (id: number, method: string, params: object): void => socket.send(JSON.stringify({ id, method, params }))
  const expression = `void setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${time}), ${PAUSE})`
  if (name === 'main') {
    send(1, 'Runtime.evaluate', { expression })
    await heard(({ id }) => id === 1)
  } else {
    const attached = heard(
      ({ method, params }) => method === 'NodeWorker.attachedToWorker' && params?.workerInfo?.url.includes(name) === true,
    )
    send(1, 'NodeWorker.enable', { waitForDebuggerOnStart: false })
    const sessionId = (await attached).params?.sessionId
    const answered = heard(({ method, params }) => method === 'NodeWorker.receivedMessageFromWorker' && params?.sessionId === sessionId)
    send(2, 'NodeWorker.sendMessageToWorker', {
      sessionId,
      message: JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } }),
    })
    await answered
  }
  // The end of a process waits for its debuggers.
  socket.close()
  await once(socket, 'close')
}
