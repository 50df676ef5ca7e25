/**
 * The thread that holds the database. It takes everything that waits, commits it together, answers, and looks again.
 * It ends by being asked to: terminating a thread with an open database would be a crash.
 */
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads'
import { Batches, BATCH } from './batches.ts'
import { coreOver, type Call } from './calls.ts'
import { openForWriting, type Database } from './database.ts'
import { failureOf, onWire, type FromWorker, type ToWorker, type WireOutcome } from './protocol.ts'
import { takeUp } from './recovery.ts'
import { BallastFile } from './reserve.ts'

if (parentPort === null) throw new Error('store-worker runs as a worker thread')
serve(parentPort, (workerData as { readonly directory: string }).directory)

function serve(port: MessagePort, directory: string): void {
  const say = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)
  let db: Database
  try {
    db = openForWriting(directory)
  } catch (error) {
    say({ kind: 'refused', failure: failureOf(error instanceof Error ? error : new Error(String(error))) })
    port.close()
    return
  }
  const core = coreOver(db)
  const batches = new Batches(db, core, new BallastFile(directory))
  say({ kind: 'opened', ...takeUp(db, core.corrupt) })

  port.on('message', (first: ToWorker) => {
    const { calls, close } = drain(port, first)
    const answers = batches.run(calls).map(onWire)
    for (const call of calls) forget(call)
    const quarantined = core.corrupt.takeNews()
    if (quarantined.length > 0) say({ kind: 'quarantined', messages: quarantined })
    if (answers.length > 0) say({ kind: 'answers', answers }, answers.flatMap(ownBuffer))
    if (!close) return
    db.close()
    port.close()
  })
}

/** Everything that waits, up to a batch. */
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

/** Contents that are on disk give their memory back at once: the collector would wait until much more had piled up. */
function forget(call: Call): void {
  if (call.method === 'stage') for (const chunk of call.args[2]) (chunk.buffer as ArrayBuffer).transfer(0)
}

/** A part of a content changes threads without being copied. */
function ownBuffer(answer: WireOutcome): ArrayBuffer[] {
  if (!('value' in answer) || !(answer.value instanceof Uint8Array)) return []
  const { buffer, byteLength } = answer.value
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : []
}
