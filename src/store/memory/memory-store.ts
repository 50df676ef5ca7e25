/**
 * Implements QueueStore with maps, for tests without a disk and as a readable reference. The parts are those of the other engines. Each
 * method runs in one turn of the event loop, so it is atomic as the port requires.
 */
import { Intake } from './enqueue.ts'
import { departedMailOf } from './held-departures.ts'
import { HeldMail } from './held-mail.ts'
import { Housekeeping } from './housekeeping.ts'
import { Leases } from './leases.ts'
import { MemoryEvents } from './memory-events.ts'
import { MemoryReader } from './memory-reader.ts'
import { MemoryShares } from './memory-shares.ts'
import { tallyOf } from './memory-tally.ts'
import { upkeepOf } from './memory-upkeep.ts'
import { NoticesDue } from './notices-due.ts'
import { Operating } from './operating.ts'
import { QueueOwner } from './queue-owner.ts'
import { emptyQueue, type MemoryQueue } from './queue-state.ts'
import { recover, type RecoveryReport } from './recovery.ts'
import { Outcomes } from './outcomes.ts'
import type { OwnerId } from '../../mail/message.ts'
import { intercepted, methodsOf } from '../methods.ts'
import type { QueueReader } from '../queue-reader.ts'
import { Fenced, type QueueStore } from '../queue-store.ts'
import { directReader } from '../reader-methods.ts'
import type { ProviderChange } from '../records/provider-state.ts'
import { recordCall, recordsOver, type SentRecordCall } from '../records/records.ts'

/** Opens an empty queue, or recovers an existing one and returns the report of the recovery. */
export function openMemoryStore(queue: MemoryQueue = emptyQueue()): {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly recovery: RecoveryReport
} {
  const recovery = recover(queue)
  const id = ++queue.openings
  queue.nodes.clear()
  queue.nodes.set(id, {
    id,
    name: '',
    program: '',
    settings: '',
    hostname: '',
    draining: false,
    beat: 0,
    beatAt: 0,
    joinedAt: 0,
    hint: () => undefined,
  })
  return { ...openFor(queue, new QueueOwner(queue, id, 'sole')), recovery }
}

/** Opens a queue for one of several nodes, which has joined it. */
export const openShared = (
  queue: MemoryQueue,
  node: OwnerId,
  joined: () => void = () => undefined,
): { readonly store: QueueStore; readonly reader: QueueReader } => openFor(queue, new QueueOwner(queue, node, 'shared', joined))

function openFor(queue: MemoryQueue, owner: QueueOwner): { readonly store: QueueStore; readonly reader: QueueReader } {
  return { store: fenced(queue, owner), reader: directReader(new MemoryReader(queue)) }
}

/** The store, whose transactions reject once the queue was taken from its owner. */
function fenced(queue: MemoryQueue, owner: QueueOwner): QueueStore {
  const shares = new MemoryShares(queue)
  return intercepted(storeOf(queue, owner, shares), (_method, _args, perform) => {
    if (owner.isFenced) return Promise.reject(new Fenced(`node ${owner.id} was taken over`))
    return queue.countsShares ? perform().finally(() => shares.tell()) : perform()
  })
}

function storeOf(queue: MemoryQueue, owner: QueueOwner, shares: MemoryShares): QueueStore {
  const mail = new HeldMail(queue, owner)
  const intake = new Intake(queue, owner, mail)
  const leases = new Leases(queue, owner, mail)
  const housekeeping = new Housekeeping(queue, owner, mail)
  const nextId = () => ++queue.lastId
  return {
    ...methodsOf(
      intake,
      leases,
      new Outcomes(queue, owner, mail),
      new NoticesDue({ queue, owner, mail, intake }),
      housekeeping,
      new Operating({ queue, owner, mail, housekeeping }),
    ),
    nextId,
    nextIds: async (count) => Array.from({ length: count }, nextId),
    leaseTerms: () => leases.terms,
    outbox: new MemoryEvents(queue, owner),
    shares,
    upkeep: upkeepOf(queue),
    departed: departedMailOf(queue, (entry) => intake.enter(entry, queue.bodies.get(entry.message.contentId))),
    records: recordsOver(async (...call) => madeRecord(queue, owner, call)),
    tally: async (largest) => tallyOf(queue, largest),
    close: async () => undefined,
  }
}

function madeRecord(queue: MemoryQueue, owner: QueueOwner, sent: SentRecordCall): unknown {
  const call = recordCall(sent)
  const answer = call.held({ ...queue.records, caller: { owner: owner.id, name: null } }, ...sent[2])
  if (call.tells !== undefined) owner.provider(sent[2][0] as ProviderChange)
  return answer
}
