/** The drain: deferred mail that is made due when the next hop takes it again. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { fillBacklog } from '../../test/support/backlog.ts'
import type { Case } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { queueOf, relayhostOf } from './deferd.ts'
import type { Field, NewRelay } from './field.ts'
import { copyQueue } from './figures/filled-queue.ts'
import { awaitGoal, measure, secondsAtRest, secondsOf, type Bench } from './load.ts'
import { residentOfTree } from './processor-time.ts'
import { ONLY_SPEED, type Measure } from './statistics.ts'

const HOUR = 3_600_000

export interface Drain {
  readonly bench: Bench
  readonly field: Field
  readonly contestant: Contestant
  readonly load: Case
  readonly messages: number
}

/** Defers the messages, makes them due, and measures until all are at the sink. The rate is counted from the first one. */
export async function measureDrain(drain: Drain): Promise<Measure> {
  const { bench, messages } = drain
  const { sink, signal } = bench
  await using relay = await relayWithDeferred(drain)
  const goal = { arrived: sink.counts().arrived + messages }
  const position = sink.position()
  const before = secondsOf([relay])
  await relay.flush()
  await awaitGoal(bench, { relays: [relay], sources: [], goal, messages })
  const after = await secondsAtRest([relay], signal)
  const times = sink.arrivalsSince(position).map(({ at }) => at)
  const took = (times.at(-1) ?? 0) - (times[0] ?? 0)
  return {
    ...ONLY_SPEED,
    cpu: Number((((after - before) * 1_000) / messages).toFixed(4)),
    rate: Number((((times.length - 1) * 1_000) / took).toFixed(1)),
    rss: Math.round(residentOfTree(relay.child.pid)),
  }
}

async function relayWithDeferred({ bench, field, contestant, load, messages }: Drain): Promise<NewRelay> {
  if (contestant.hasStore) {
    const filled = await filledQueue(bench, load, messages)
    return field.fresh(contestant, load.setUp, (folder) => copyQueue(filled, queueOf(folder)))
  }
  const relay = await field.fresh(contestant, load.setUp)
  try {
    // The first attempts are refused.
    await measure(bench, relay, load, messages)
    return relay
  } catch (error) {
    await relay[Symbol.asyncDispose]()
    throw error
  }
}

/** A queue directory with deferred messages, made at the first call, each of which had one attempt. */
async function filledQueue({ folder, sink }: Bench, { bytes }: Case, messages: number): Promise<string> {
  const filled = join(folder, `filled-${messages}`)
  if (existsSync(filled)) return filled
  mkdirSync(filled)
  const line = `${'X'.repeat(78)}\r\n`
  const content = Buffer.from(`Subject: bench\r\n\r\n${line.repeat(Math.ceil(bytes / line.length))}`)
  const { store, close } = await openStore(filled, { threads: false, create: true })
  try {
    await fillBacklog(store, {
      messages,
      now: Date.now(),
      destinationOf: () => relayhostOf(sink.port),
      recipientOf: (n) => `rcpt${n}@sink.test`,
      senderOf: () => 'sender@load.test',
      contentOf: () => content,
      dueIn: () => 10 * HOUR,
    })
  } finally {
    await close()
  }
  return filled
}
