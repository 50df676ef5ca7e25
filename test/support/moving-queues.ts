/** Two queues, and a move between them that is killed at a call of either store, then repeated. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { recipientId, type MessageId } from '../../src/mail/message.ts'
import { moveQueue, type MoveSummary } from '../../src/queue/queue-move.ts'
import { NOTHING_TAKEN } from '../../src/store/membership/taken-back.ts'
import { MemoryMoves } from './memory-moves.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import type { MovedMessage, MoveStore } from '../../src/store/move-store.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { StoreUnavailable, type QueueStore } from '../../src/store/queue-store.ts'
import type { DestinationDue } from '../../src/store/message-operation.ts'
import type { DatabaseUrl } from '../../src/config/values/database-url.ts'
import { visitQueue } from '../../src/store/postgres/visiting-node.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { bounced, contentOf, deferred, delivered, first, queue, settleOne, T0, MIN } from '../conformance/mail.ts'
import { grant } from '../conformance/shared-grants.ts'
import { operate } from './operate.ts'

export interface Opened {
  readonly store: QueueStore
  readonly moves: MoveStore
  readonly reader: QueueReader
  readonly close: () => Promise<void>
}

/** A queue that can be opened again after its owner has died. */
export interface Place {
  readonly name: string
  readonly open: (use?: 'fill') => Promise<Opened>
  readonly remove: () => void
}

export function inMemory(name: string): Place {
  const maps = emptyQueue()
  return {
    name,
    open: async () => ({ ...openMemoryStore(maps), moves: new MemoryMoves(maps), close: async () => undefined }),
    remove: () => undefined,
  }
}

export function onDisk(): Place {
  const name = mkdtempSync(join(tmpdir(), 'deferd-move-'))
  return {
    name,
    open: async () => {
      const { store, reader, close } = await openStore(name, { threads: false, create: true })
      return { store, moves: store, reader, close }
    },
    remove: () => rmSync(name, { recursive: true }),
  }
}

/** A queue in PostgreSQL. Each owner is a node. */
export function inPostgres(name: string, emptied: () => Promise<DatabaseUrl>): Place {
  let url: DatabaseUrl | null = null
  return {
    name,
    open: async (use) => {
      url ??= await emptied()
      const database = { url, durability: 'primary' } as const
      const { store, reader, close } = await visitQueue({ database, name, lease: 60_000, machine: systemClock, queuesMail: use === 'fill' })
      return { store, moves: store, reader, close }
    },
    remove: () => undefined,
  }
}

/** A death of the mover at its n-th call of a store, before or after the call has had its effect. */
export interface Death {
  readonly call: number
  readonly moment: 'before' | 'after'
}

/** The error with which a call fails without effect; null for none. */
type Broken = (method: string, args: readonly unknown[]) => Error | null

/** Counts the calls of both stores. At the death, the call and all later ones fail. */
class Mortal {
  readonly #death: Death | null
  readonly #broken: Broken
  calls = 0
  isDead = false

  constructor(death: Death | null, broken: Broken) {
    this.#death = death
    this.#broken = broken
  }

  of<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (target, name: keyof T & string) => {
        const member: unknown = target[name]
        if (typeof member === 'object' && member !== null) return this.of(member)
        const method = (member as (...args: unknown[]) => unknown).bind(target)
        if (name === 'nextId' || name === 'leaseTerms' || name === 'close') return method
        return async (...args: unknown[]) => {
          const dies = ++this.calls === this.#death?.call
          this.isDead ||= dies && this.#death?.moment === 'before'
          if (this.isDead) throw new StoreUnavailable('the mover is dead')
          const failure = this.#broken(name, args)
          if (failure !== null) throw failure
          const answer = await method(...args)
          this.isDead ||= dies
          if (this.isDead) throw new StoreUnavailable('the mover is dead')
          return answer
        }
      },
    })
  }
}

interface MoveOptions {
  readonly death?: Death | null
  readonly isFinal?: boolean
  readonly broken?: Broken
  readonly returned?: (due: readonly DestinationDue[]) => void
  /** Time by which the clock of the target is ahead, in ms. */
  readonly offset?: number
}

/** Runs a move. Returns null when it died. */
export async function move(
  from: Place,
  to: Place,
  { death = null, isFinal = false, broken = () => null, returned = () => undefined, offset = 0 }: MoveOptions = {},
): Promise<MoveSummary | null> {
  const mortal = new Mortal(death, broken)
  const clock = new VirtualClock({ startsAt: T0 + 60 * MIN })
  const [source, target] = [await from.open(), await to.open()]
  const later = new QueueClock(new VirtualClock({ startsAt: T0 + 60 * MIN }))
  later.resume({ time: T0 + 60 * MIN + offset, offset, uptime: 0, boot: 1 }, 0)
  const alive = ({ store, moves, reader }: Opened) => ({
    clock,
    store: mortal.of(store),
    moves: mortal.of(moves),
    reader: mortal.of(reader),
  })
  try {
    const deps = {
      source: alive(source),
      target: { ...alive(target), clock: later },
      names: { source: from.name, target: to.name },
      sendsNotices: () => false,
      takeBack: async () => NOTHING_TAKEN,
      returned,
      pause: async () => undefined,
      progress: () => undefined,
      control: { close: async () => undefined, reopen: async () => undefined },
      round: 2,
    }
    return await moveQueue({ isFinal, who: 'op' }, deps)
  } catch (error) {
    if (!mortal.isDead) throw error
    return null
  } finally {
    await source.close()
    await target.close()
  }
}

/** Fills a queue with mail in all states in which mail can be while its daemon does not run. */
export async function fill(place: Place): Promise<void> {
  const { store, close } = await place.open('fill')
  await queue(store, { content: [Buffer.from('new')] })
  const tried = await queue(store, { leased: true, to: [{ address: 'a@far.example' }, { address: 'b@slow.example' }] })
  await settleOne(store, tried, deferred(first(tried), T0 + 5 * MIN + 123, { steps: 3, attempts: 4 }), T0 + 1)
  await settleOne(store, tried, delivered(recipientId(tried, 1), T0 + 2), T0 + 2)
  const flushed = await queue(store, { leased: true })
  await settleOne(store, flushed, deferred(first(flushed), T0 + 9 * MIN + 7), T0 + 3)
  await operate(store, flushed, { kind: 'flush', now: T0 + MIN })
  await store.postponeWarning(flushed, T0 + 240 * MIN + 3)
  await queue(store, { hold: true, content: [Buffer.alloc(150_000, 'h')] })
  const deleted = await queue(store)
  await operate(store, deleted, { kind: 'delete', now: T0 + MIN, purge: false })
  const failed = await queue(store, { leased: true })
  await settleOne(store, failed, bounced(first(failed), T0 + 4), T0 + 4)
  const suspension = { by: 'op', until: null, reason: null }
  await store.records.providers.suspend({ provider: 'big', suspension: { ...suspension, until: T0 + 60 * MIN } })
  await store.records.access.set({
    subject: 'sender',
    key: 'a@us.example',
    action: 'HOLD',
    addedAt: T0,
    addedBy: 'op',
    expiresAt: T0 + 90 * MIN,
  })
  const unset = { content: false, destinations: null, expiresAt: null, lastUsedAt: null }
  await store.records.tokens.add({ ...unset, name: 'ci', role: 'viewer', hash: 'aa', addedAt: T0, addedBy: 'op' })
  await store.records.grants.replace('m365', '', grant(1))
  await store.saveDestination({ name: 'slow.example', deadUntil: null, probeInterval: null, suspension, siteStatus: null })
  await close()
}

interface Seen {
  readonly mail: readonly (Omit<MovedMessage, 'why'> & { readonly content: string })[]
  readonly destinations: number
}

/** Everything that the mail of a queue consists of, without ids of contents. */
export async function seen(place: Place): Promise<Seen> {
  const { store, moves, reader, close } = await place.open()
  await moves.claimMoves(null)
  const selection = { target: { identity: '', name: '' }, after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1_000, withNoticesDue: true }
  const { messages } = await moves.beginMove(selection)
  await moves.undoMove(messages.map(({ message }) => message.id))
  const mail = []
  for (const { why: _, ...one } of messages) {
    const content = (await contentOf(store, one.message.contentId)).toString('latin1')
    mail.push({ ...one, message: { ...one.message, contentId: 0 }, content })
  }
  const destinations = (await reader.destinationRecords()).length
  await close()
  return { mail, destinations }
}

/** Access entries, tokens of programs, and refresh tokens. */
export async function accessIn(place: Place) {
  const { reader, close } = await place.open()
  const found = {
    entries: await reader.records.access.all(),
    tokens: await reader.records.tokens.all(),
    grants: await reader.records.grants.all(),
    suspensions: await reader.records.providers.suspensions(),
  }
  await close()
  return found
}

/** Ids of the messages that a queue can deliver or show. */
export async function idsIn(place: Place): Promise<readonly MessageId[]> {
  const { reader, close } = await place.open()
  const listed = [
    ...(await reader.list(ANY_MESSAGE, { after: 0, limit: 1_000 })),
    ...(await reader.list({ ...ANY_MESSAGE, queue: 'trash' }, { after: 0, limit: 1_000 })),
  ]
  await close()
  return listed.map(({ message }) => message.id)
}

/** Kills a move at a call, checks that no message is in both queues, and repeats the move. Returns false when the move did not die. */
export async function killedAndRepeated(from: () => Place, to: () => Place, death: Death): Promise<boolean> {
  const [source, target] = [from(), to()]
  const label = JSON.stringify(death)
  try {
    await fill(source)
    const before = await seen(source)
    if ((await move(source, target, { death })) !== null) return false
    const [left, arrived] = [await idsIn(source), await idsIn(target)]
    expect(
      left.filter((id) => arrived.includes(id)),
      label,
    ).toEqual([])
    await move(source, target)
    expect(await idsIn(source), label).toEqual([])
    expect((await seen(target)).mail, label).toEqual(before.mail)
    return true
  } finally {
    source.remove()
    target.remove()
  }
}
