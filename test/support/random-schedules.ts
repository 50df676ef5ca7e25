/**
 * Random schedules of up to 20 steps against a store: mail is queued, claimed, settled, given back, held, released, flushed,
 * requeued, deleted, restored and moved, and the owner crashes. After each schedule every live recipient must be waiting and
 * claimable, or parked by an operation or as corrupt; final states must not change.
 */
import { mulberry32 } from '../../src/system/random.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { queueIdOf, recipientId, type DeliveryRequest, type Message, type MessageId } from '../../src/mail/message.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { Operation } from '../../src/store/message-operation.ts'
import type { Settled } from '../../src/store/recorded-outcomes.ts'
import { operate } from './operate.ts'

const START = 1_800_000_000_000
const LIFETIME = 1_000_000
const STATUS = { status: '4.2.1', reason: 'busy', stage: 'rcpt' } as const
const PLACES = ['one.example', 'two.example']

interface Opened {
  readonly store: QueueStore
  readonly reader: QueueReader
}

/** The queue of one schedule. */
export interface Place {
  /** Opens the queue as its next owner. */
  open(): Promise<Opened>
  /** Check after each step; returns the violation, or null. */
  check?(store: QueueStore, reader: QueueReader): Promise<string | null>
}

class Schedule {
  readonly #chance: () => number
  readonly #place: Place
  readonly #messages: Message[] = []
  /** Observed final states, by recipient. */
  readonly #final = new Map<number, string>()
  #leased: DeliveryRequest[] = []
  #store: QueueStore
  #reader: QueueReader
  #now = START
  steps = 0

  constructor(seed: number, place: Place, { store, reader }: Opened) {
    this.#chance = mulberry32(seed)
    this.#place = place
    this.#store = store
    this.#reader = reader
  }

  /** Runs the schedule; returns the violation, or null. */
  async run(): Promise<string | null> {
    await this.#enqueue()
    for (let left = this.#below(20); left > 0; left--) {
      this.steps++
      await this.#step()
      const wrong = (await this.#look()) ?? (await this.#check())
      if (wrong !== null) return wrong
    }
    return this.#drain()
  }

  #below(n: number): number {
    return Math.floor(this.#chance() * n)
  }

  #any<T>(list: readonly T[]): T | undefined {
    return list[this.#below(list.length)]
  }

  async #step(): Promise<void> {
    this.#now += this.#below(3) * 1000
    const deeds = [
      () => this.#enqueue(),
      () => this.#claim(),
      () => this.#claim(),
      () => this.#settle(),
      () => this.#settle(),
      () => this.#giveBack(),
      () => this.#operate(),
      () => this.#operate(),
      () => this.#move(),
      () => this.#suspend(),
      () => this.#crash(),
      () => this.#expire(),
      () => this.#pay(),
    ]
    await deeds[this.#below(deeds.length)]?.()
  }

  async #enqueue(): Promise<void> {
    const id = this.#store.nextId()
    const message: Message = {
      id,
      createdAt: this.#now,
      arrivedAt: this.#now,
      sender: 'app@us.example',
      size: 1,
      contentId: id,
      smtputf8: false,
    }
    const leased = this.#below(2) === 0
    const schedule = { dueAt: this.#now, expiresAt: this.#now + LIFETIME, leased }
    const recipients = Array.from({ length: 1 + this.#below(3) }, (_, i) => ({
      address: `ann${i}@far.example`,
      destination: this.#any(PLACES) ?? '',
      ...schedule,
    }))
    await this.#store.enqueue({ message, recipients, content: [Buffer.from('x')] })
    this.#messages.push(message)
    // A recipient queued with a lease remains leased until it is settled or the owner crashes; here, the next crash or the end.
  }

  async #claim(): Promise<void> {
    const claimed = await this.#store.claimDue({
      destination: this.#any(PLACES) ?? '',
      now: this.#now,
      bands: [{ band: 0, limit: 1 + this.#below(4) }],
      recipientLimit: 2,
    })
    this.#leased.push(...claimed.requests)
  }

  async #expire(): Promise<void> {
    this.#leased.push(...(await this.#store.claimExpired(this.#now, 2)))
  }

  #takeLeased(): DeliveryRequest | undefined {
    return this.#leased.splice(this.#below(this.#leased.length), 1)[0]
  }

  async #settle(): Promise<void> {
    const request = this.#takeLeased()
    if (request === undefined) return
    const recipients = request.recipients.map((one): Settled => {
      const attempts = one.attempts + 1
      const kind = this.#below(4)
      if (kind === 0) return { recipient: one.id, state: 'delivered', at: this.#now, attempts, last: STATUS }
      if (kind === 1) return { recipient: one.id, state: 'bounced', at: this.#now, attempts, last: STATUS, noticeDue: 'failure' }
      return { recipient: one.id, state: 'waiting', dueAt: this.#now + 5000, steps: one.steps + 1, attempts, last: STATUS }
    })
    await this.#store.settle({ owner: request.lease.owner, message: request.message.id, recipients, attempts: [] })
  }

  async #giveBack(): Promise<void> {
    const request = this.#takeLeased()
    if (request !== undefined)
      await this.#store.giveBack(
        request.recipients.map(({ id }) => id),
        request.lease.owner,
      )
  }

  async #operate(): Promise<void> {
    const message = this.#any(this.#messages)
    if (message === undefined) return
    const newId = this.#store.nextId()
    const operations: Operation[] = [
      { kind: 'flush', now: this.#now },
      { kind: 'hold' },
      { kind: 'release' },
      { kind: 'expire' },
      { kind: 'requeue', now: this.#now, newId, expiresAt: this.#now + LIFETIME },
      { kind: 'delete', now: this.#now, purge: this.#below(4) === 0 },
      { kind: 'restore' },
    ]
    const operation = operations[this.#below(operations.length)] ?? { kind: 'release' }
    const { changed } = await operate(this.#store, message.id, operation)
    if (changed && operation.kind === 'requeue') this.#messages.push({ ...message, id: newId, createdAt: this.#now })
  }

  async #move(): Promise<void> {
    const message = this.#any(this.#messages)
    if (message === undefined) return
    const [destination = ''] = PLACES
    await this.#store.move([{ recipient: recipientId(message.id, 0), destination, expiresAt: this.#now + LIFETIME }])
  }

  async #suspend(): Promise<void> {
    const suspension = this.#below(2) === 0 ? { by: 'root', until: this.#below(2) === 0 ? this.#now : null, reason: null } : null
    await this.#store.saveDestination({
      name: this.#any(PLACES) ?? '',
      deadUntil: null,
      probeInterval: null,
      suspension,
      siteStatus: null,
    })
  }

  async #pay(): Promise<void> {
    for (const { message, recipients, warnings } of await this.#store.messagesWithNoticesDue(0, 10)) {
      const noticesSettled = recipients.flatMap(({ id, noticeDue }) => (noticeDue === undefined ? [] : [{ recipient: id, noticeDue }]))
      await this.#store.report({ message: message.id, noticesSettled, late: [], notices: [], warnings, warnAt: null })
    }
  }

  /** Crashes the owner and starts it again, which clears all leases. */
  async #crash(): Promise<void> {
    await this.close()
    const { store, reader } = await this.#place.open()
    this.#store = store
    this.#reader = reader
    this.#leased = []
  }

  /** Checks that final states have not changed. */
  async #look(): Promise<string | null> {
    for (const message of this.#messages) {
      for (const { id, state } of (await this.#reader.details(queueIdOf(message)))?.recipients ?? []) {
        const before = this.#final.get(id)
        if (before !== undefined && before !== state) return `recipient ${id} was ${before} and is ${state}`
        if (state === 'delivered' || state === 'bounced' || state === 'expired') this.#final.set(id, state)
      }
    }
    return null
  }

  /** Violation in the store after a step, or null. */
  #check(): Promise<string | null> {
    return this.#place.check?.(this.#store, this.#reader) ?? Promise.resolve(null)
  }

  async close(): Promise<void> {
    await this.#store.close()
  }

  /** Checks at the end that each live recipient can be reached: waiting mail by a claim, parked mail by an operation. */
  async #drain(): Promise<string | null> {
    await this.#crash()
    for (const message of this.#messages)
      for (const kind of ['restore', 'release'] as const) await operate(this.#store, message.id, { kind })
    const far = this.#now + 2 * LIFETIME
    const claimed = new Set<MessageId>()
    for (const destination of PLACES) {
      const { requests, next } = await this.#store.claimDue({
        destination,
        now: far,
        bands: [{ band: 0, limit: 10_000 }],
        recipientLimit: 0,
      })
      const [due] = next
      if (due !== undefined) return `mail at ${destination} is due at ${due.dueAt} and was not claimed at ${far}`
      for (const { recipients } of requests) for (const { id } of recipients) claimed.add(id)
    }
    for (let suspect = await this.#store.claimSuspect(far); suspect !== undefined; suspect = await this.#store.claimSuspect(far)) {
      for (const { id } of suspect.recipients) claimed.add(id)
    }
    for (const { message, recipients } of await this.#reader.list(ANY_MESSAGE, { after: 0, limit: 1000 })) {
      const stuck = recipients.find(({ id }) => !claimed.has(id))
      if (stuck !== undefined) return `${stuck.state} recipient ${stuck.id} of message ${message.id} cannot be reached`
    }
    return null
  }
}

const inMemory = (): Place => {
  const queue = emptyQueue()
  return { open: async () => openMemoryStore(queue) }
}

/** Runs the schedules of the seeds; returns the number of steps. Throws at the first seed with a violation. */
export async function runSchedules(from: number, count: number, newPlace = inMemory): Promise<number> {
  let steps = 0
  for (let seed = from; seed < from + count; seed++) {
    const place = newPlace()
    const schedule = new Schedule(seed, place, await place.open())
    const wrong = await schedule.run()
    if (wrong !== null) throw new Error(`schedule ${seed}: ${wrong}`)
    await schedule.close()
    steps += schedule.steps
  }
  return steps
}
