/**
 * A process whose writes are recorded: it queues, defers, delivers, holds and deletes mail, runs checkpoints, closes the queue and opens
 * it again. It writes the state after each step, and later that it is acknowledged: no later power cut may undo it. Arguments: folder, seed,
 * and a fault (recordWriter).
 */
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { recipientId, type MessageId } from '../../../src/mail/message.ts'
import { IdBuffer } from '../../../src/store/id-buffer.ts'
import { Checkpoints } from '../../../src/store/sqlite/file/checkpoints.ts'
import { Durability } from '../../../src/store/sqlite/durability/durability.ts'
import { SyncPace } from '../../../src/store/sqlite/durability/sync-pace.ts'
import { openCore, SYNCS } from '../../../src/store/sqlite/core/open-core.ts'
import { createSqliteReader } from '../../../src/store/sqlite/reading/sqlite-reader.ts'
import { createStoreClient } from '../../../src/store/sqlite/clients/store-client.ts'
import type { Answers, Call, Method, Outcome } from '../../../src/store/methods.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import type { Operation } from '../../../src/store/message-operation.ts'
import { sleep } from '../../../src/system/clock.ts'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { claim, deferred, delivered, mail, settleOne, T0 } from '../../conformance/mail.ts'
import { stateOf } from './queue-state.ts'
import { MARKS } from './recording.ts'

const [directory = '', seed = '1', fault = ''] = process.argv.slice(2)
const chance = seededRandom(Number(seed)).stream('writer')
const marks = openSync(join(directory, MARKS), 'w')

/** On any disk, syncs run beside the next commits. */
class SlowPace extends SyncPace {
  override get waits(): boolean {
    return false
  }
}

const SESSIONS = 3
const STEPS = 40
/** Messages from which on more leave the queue than enter it. */
const MANY = 30

/** Content bytes: mostly one page or less, sometimes more than one chunk. */
const newSize = (): number => Math.floor(chance() < 0.1 ? 60_000 + 80_000 * chance() : 20 + 6_000 * chance())

/** Number of states that were written, and of those that were acknowledged. */
let [written, acknowledged] = [0, 0]

const mark = (text: string): void => void writeSync(marks, `${text}\n`)

/** The store over one connection, without a wait between a call and its commit, and the connection. Its log is synced as that of a daemon. */
function open(pace: SyncPace) {
  const { db, core, batches, log, terms } = openCore(directory, { inThread: false })
  if (log === null) throw new Error('the queue has no log')
  if (fault !== '' && fault !== 'written') db.pragma(fault)
  const durability = new Durability(log, { clock: systemClock, pace, ended: () => report() })
  let answers = 0
  const states: { readonly number: number; readonly answers: number }[] = []
  const report = (): void => {
    if (durability.failure !== null) throw durability.failure
    const durable = fault === 'written' ? answers : durability.durable
    const last = states.findLast((state) => state.answers <= durable)
    if (last === undefined || last.number < acknowledged) return
    acknowledged = last.number + 1
    mark(`durable ${last.number}`)
  }
  const run = (calls: readonly Call[]): readonly Outcome[] => {
    const outcomes = batches.run(calls)
    answers += outcomes.length
    durability.written(outcomes.length, batches.takeChanged())
    return outcomes
  }
  const submit = <M extends Method>(call: Call<M>): Promise<Answers[M]> => {
    const [outcome] = run([call as Call])
    return outcome?.ok === true ? Promise.resolve(outcome.value as Answers[M]) : Promise.reject(outcome?.error)
  }
  /** Records the state of the queue. */
  const stateIs = (state: string): void => {
    mark(`written ${written} ${state}`)
    states.push({ number: written++, answers })
    report()
  }
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      durability.close(() => {
        report()
        db.close()
        resolve()
      })
    })
  const reserve = db.transaction((count: number) => core.run<'nextIds'>({ method: 'nextIds', args: [count] }))
  const ids = new IdBuffer((count) => reserve.immediate(count))
  const store = createStoreClient({ submit, onShares: () => undefined, close, ids, terms })
  return { store, batches, run, stateIs, reader: createSqliteReader(db), checkpoints: new Checkpoints(db) }
}

type Queue = ReturnType<typeof open>

async function enter({ store, run }: Queue): Promise<void> {
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
  for (const outcome of run(calls)) if (!outcome.ok) throw outcome.error
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

const record = ({ reader, stateIs }: Queue): void => stateIs(JSON.stringify(stateOf(reader)))

/** Lets syncs end meanwhile, or not. */
async function pause(): Promise<void> {
  const kind = chance()
  if (kind < 0.3) await eventLoopTurn()
  else if (kind < 0.4) await sleep(systemClock, 5)
}

for (let session = 0; session < SESSIONS; session++) {
  // A fast disk, whose syncs the thread waits for, and slow ones.
  const queue = open(session === 0 && fault === '' ? new SyncPace(SYNCS) : new SlowPace(SYNCS))
  record(queue)
  for (let step = 0; step < STEPS; step++) {
    const ids = stateOf(queue.reader).map(([id]) => id)
    const kind = chance()
    if (kind < 0.12) queue.checkpoints.run()
    else if (ids.length === 0 || kind < (ids.length > MANY ? 0.3 : 0.6)) await enter(queue)
    else await change(queue.store, ids[Math.floor(chance() * ids.length)] ?? 0)
    record(queue)
    await pause()
  }
  await queue.store.close()
}
