/**
 * Worker thread with the connection to the database. It takes all pending calls, commits them together, answers them, and
 * repeats; their changes become durable meanwhile (durability). The thread ends on request, because terminating it with an open database has the effect of a crash: the end of the daemon does so
 * only to a thread that does not answer.
 */
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads'
import { errorMessage } from '../../../system/caught-error.ts'
import type { Call, Outcome } from '../../methods.ts'
import { StoreFailed } from '../../queue-store.ts'
import { BATCH } from '../core/batches.ts'
import { Durability } from '../durability/durability.ts'
import type { SyncedLog } from '../durability/synced-log.ts'
import { SyncPace } from '../durability/sync-pace.ts'
import { openCore, runRepairing, SYNCS, type OpenedCore } from '../core/open-core.ts'
import { systemClock } from '../../../system/system-clock.ts'
import { failureOf } from '../../../system/worker-rpc.ts'
import { onWire, type FromWorker, type ToWorker, type WireOutcome } from './worker-protocol.ts'

if (parentPort === null) throw new Error('worker-main must run as a worker thread')
serve(parentPort, (workerData as { readonly directory: string }).directory)

function serve(port: MessagePort, directory: string): void {
  const say = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)
  let opened: OpenedCore
  try {
    opened = openCore(directory, { inThread: true })
  } catch (error) {
    say({ kind: 'refused', failure: failureOf(error instanceof Error ? error : new Error(String(error))) })
    port.close()
    return
  }
  const durability = new Durability(logOf(opened), { clock: systemClock, pace: new SyncPace(SYNCS), ended: () => report() })
  const report = (): void => {
    if (durability.failure !== null) return fail(durability.failure)
    say({ kind: 'durable', durable: durability.durable })
  }
  const fail = (failure: StoreFailed): void => {
    opened.batches.fail(failure)
    say({ kind: 'failed', failure: failureOf(failure) })
  }
  say({ kind: 'opened', terms: opened.terms, recovery: opened.recovery })

  const run = (calls: readonly Call[]): Outcome[] => {
    try {
      const ran = runRepairing(directory, opened, calls)
      if (ran.opened !== opened) {
        if (ran.opened.recovery.repair !== null) say({ kind: 'repaired', repair: ran.opened.recovery.repair })
        opened = ran.opened
        durability.reopened(logOf(opened))
      }
      return ran.outcomes
    } catch (cause) {
      const failure = new StoreFailed(errorMessage(cause), { cause })
      return calls.map(() => ({ ok: false, error: failure }))
    }
  }

  port.on('message', (first: ToWorker) => {
    const { calls, close } = drain(port, first)
    const answers = run(calls).map(onWire)
    for (const call of calls) freeChunks(call)
    const { db, core, batches } = opened
    const quarantined = core.corrupt.takeQuarantined()
    if (quarantined.length > 0) say({ kind: 'quarantined', messages: quarantined })
    durability.written(answers.length, batches.takeChanged())
    const { durable } = durability
    if (answers.length > 0) say({ kind: 'answers', answers, shares: core.usage.takeChanges(), durable }, answers.flatMap(ownBuffer))
    const failure = durability.failure ?? batches.checkpoint()
    if (failure !== null) fail(failure)
    if (!close) return
    durability.close(() => {
      report()
      db.close()
      port.close()
    })
  })
}

function logOf({ log }: OpenedCore): SyncedLog {
  if (log === null) throw new Error('a queue in memory has no thread')
  return log
}

/** Takes pending calls until there are at least BATCH of them, or until the request to close. */
function drain(port: MessagePort, first: ToWorker): { readonly calls: readonly Call[]; readonly close: boolean } {
  const calls: Call[] = []
  let message: ToWorker | undefined = first
  while (message !== undefined) {
    if (message.kind === 'close') return { calls, close: true }
    calls.push(...message.calls)
    if (calls.length >= BATCH) break
    message = receiveMessageOnPort(port)?.message
  }
  return { calls, close: false }
}

/** Frees the memory of the chunks that are on disk. Garbage collection would free it much later. */
function freeChunks(call: Call): void {
  if (call.method === 'stage') for (const chunk of call.args[2]) (chunk.buffer as ArrayBuffer).transfer(0)
}

/** Buffers of an answer that are transferred to the other thread, not copied: the buffer of a chunk; none for other answers. */
function ownBuffer(answer: WireOutcome): ArrayBuffer[] {
  if (!('value' in answer) || !(answer.value instanceof Uint8Array)) return []
  const { buffer, byteLength } = answer.value
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : []
}
