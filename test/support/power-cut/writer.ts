/**
 * A process whose writes are recorded: it queues, defers, delivers, holds and deletes mail, runs checkpoints, closes the queue and opens
 * it again, and after each step writes the state that no later power cut may undo. Arguments: folder, seed, and a pragma that
 * plants a fault.
 */
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { recipientId, type MessageId } from '../../../src/mail/message.ts'
import { IdBuffer } from '../../../src/store/id-buffer.ts'
import { Checkpoints } from '../../../src/store/sqlite/file/checkpoints.ts'
import { openCore } from '../../../src/store/sqlite/open-core.ts'
import { createSqliteReader } from '../../../src/store/sqlite/sqlite-reader.ts'
import { createStoreClient } from '../../../src/store/sqlite/store-client.ts'
import type { Answers, Call, Method } from '../../../src/store/methods.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import type { Operation } from '../../../src/store/message-operation.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { claim, deferred, delivered, mail, settleOne, T0 } from '../../conformance/mail.ts'
import { stateOf } from './queue-state.ts'
import { MARKS } from './recording.ts'

const [directory = '', seed = '1', fault = ''] = process.argv.slice(2)
const chance = seededRandom(Number(seed)).stream('writer')
const marks = openSync(join(directory, MARKS), 'w')

const SESSIONS = 3
const STEPS = 40
/** Messages from which on more leave the queue than enter it. */
const MANY = 30

/** Content bytes: mostly one page or less, sometimes more than one chunk. */
const newSize = (): number => Math.floor(chance() < 0.1 ? 60_000 + 80_000 * chance() : 20 + 6_000 * chance())

/** The store over one connection, without a wait between a call and its commit, and the connection. */
function open() {
  const { db, core, batches, terms } = openCore(directory, { guarded: false })
  if (fault !== '') db.pragma(fault)
  const submit = <M extends Method>(call: Call<M>): Promise<Answers[M]> => {
    const [outcome] = batches.run([call as Call])
    return outcome?.ok === true ? Promise.resolve(outcome.value as Answers[M]) : Promise.reject(outcome?.error)
  }
  const reserve = db.transaction((count: number) => core.run<'nextIds'>({ method: 'nextIds', args: [count] }))
  const ids = new IdBuffer((count) => reserve.immediate(count))
  const store = createStoreClient({ submit, onShares: () => undefined, close: async () => void db.close(), ids, terms })
  return { store, batches, reader: createSqliteReader(db), checkpoints: new Checkpoints(db) }
}

type Queue = ReturnType<typeof open>

async function enter({ store, batches }: Queue): Promise<void> {
  if (chance() < 0.15) {
    // A long content, staged before its message as while it arrives.
    const entry = mail(store, { content: [Buffer.alloc(150_000, 'x')] })
    const [first, ...rest] = entry.content
    await store.stage(entry.message.contentId, 0, first === undefined ? [] : [first])
    return store.enqueue({ ...entry, content: rest })
  }
  const calls = Array.from({ length: 1 + Math.floor(3 * chance()) }, (): Call => ({
    method: 'enqueue',
    args: [mail(store, { content: [Buffer.alloc(newSize(), 'y')] })],
  }))
  for (const outcome of batches.run(calls)) if (!outcome.ok) throw outcome.error
}

async function change(store: QueueStore, message: MessageId): Promise<void> {
  const kind = chance()
  if (kind < 0.7) {
    await claim(store, T0 + 2_000)
    const recipient = recipientId(message, 0)
    await settleOne(store, message, kind < 0.35 ? deferred(recipient, T0 + Math.floor(1_000 * chance())) : delivered(recipient, T0))
  } else {
    const operations: readonly Operation[] = [{ kind: 'delete', now: T0, purge: true }, { kind: 'hold' }, { kind: 'release' }]
    const operation = operations[Math.floor(chance() * operations.length)]
    if (operation !== undefined) await store.operate([{ message, operation }])
  }
}

const acknowledge = ({ reader }: Queue): void => void writeSync(marks, `${JSON.stringify(stateOf(reader))}\n`)

for (let session = 0; session < SESSIONS; session++) {
  const queue = open()
  acknowledge(queue)
  for (let step = 0; step < STEPS; step++) {
    const ids = stateOf(queue.reader).map(([id]) => id)
    const kind = chance()
    if (kind < 0.12) queue.checkpoints.run()
    else if (ids.length === 0 || kind < (ids.length > MANY ? 0.3 : 0.6)) await enter(queue)
    else await change(queue.store, ids[Math.floor(chance() * ids.length)] ?? 0)
    acknowledge(queue)
  }
  await queue.store.close()
}
