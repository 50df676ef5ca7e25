/**
 * Random schedules of up to 20 steps against a store: mail comes in, is claimed, settled, given back, held, released,
 * flushed, requeued, deleted, restored, moved, the owner crashes. After each schedule nothing may be stuck: whatever
 * lives is waiting and can be claimed, or parked where an operator or the history put it; what was final stays final.
 */
import { mulberry32 } from '../../src/mail/random.ts'
import { emptyQueue } from '../../src/queue/memory/held.ts'
import { openMemoryStore } from '../../src/queue/memory/memory-store.ts'
import { queueIdOf, type DeliveryRequest, type Message, type MessageId } from '../../src/queue/message.ts'
import type { QueueReader } from '../../src/queue/reader.ts'
import type { Operation, QueueStore, Settled } from '../../src/queue/store.ts'
import { operate } from './operate.ts'

const START = 1_800_000_000_000
const LIFETIME = 1_000_000
const STATUS = { status: '4.2.1', reason: 'busy', stage: 'rcpt' } as const
const PLACES = ['one.example', 'two.example']

export class Schedule {
  readonly #chance: () => number
  readonly #queue = emptyQueue()
  readonly #messages: Message[] = []
  /** Final states that were seen, by recipient. */
  readonly #final = new Map<number, string>()
  #leased: DeliveryRequest[] = []
  #store: QueueStore
  #reader: QueueReader
  #now = START
  steps = 0

  constructor(seed: number) {
    this.#chance = mulberry32(seed)
    const { store, reader } = openMemoryStore(this.#queue)
    this.#store = store
    this.#reader = reader
  }

  /** Runs the schedule; returns what is wrong, or null. */
  async run(): Promise<string | null> {
    await this.#enqueue()
    for (let left = this.#below(20); left > 0; left--) {
      this.steps++
      await this.#step()
      const wrong = this.#look()
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
      body: id,
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
    // What is born leased is its deliverer's until it ends or the owner dies; here that is the next crash or the end.
  }

  async #claim(): Promise<void> {
    const claimed = await this.#store.claimDue({
      destination: this.#any(PLACES) ?? '',
      now: this.#now,
      limit: 1 + this.#below(4),
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
      if (kind === 1) return { recipient: one.id, state: 'bounced', at: this.#now, attempts, last: STATUS, debt: 'failure' }
      return { recipient: one.id, state: 'waiting', dueAt: this.#now + 5000, steps: one.steps + 1, attempts, last: STATUS }
    })
    await this.#store.settle({ message: request.message.id, recipients, attempts: [] })
  }

  async #giveBack(): Promise<void> {
    const request = this.#takeLeased()
    if (request !== undefined) await this.#store.giveBack(request.recipients.map(({ id }) => id))
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
    await this.#store.move([{ recipient: message.id * 131_072, destination, expiresAt: this.#now + LIFETIME }])
  }

  async #pay(): Promise<void> {
    for (const { message, recipients, warnings } of await this.#store.indebted(0, 10)) {
      const paid = recipients.flatMap(({ id, debt }) => (debt === undefined ? [] : [{ recipient: id, debt }]))
      await this.#store.report({ message: message.id, paid, late: [], notices: [], warnings, warnAt: null })
    }
  }

  /** The owner dies and is started again: nobody holds a lease any more. */
  async #crash(): Promise<void> {
    const { store, reader } = openMemoryStore(this.#queue)
    this.#store = store
    this.#reader = reader
    this.#leased = []
  }

  /** What was final stays final. */
  #look(): string | null {
    for (const message of this.#messages) {
      for (const { id, state } of this.#reader.story(queueIdOf(message), this.#now)?.recipients ?? []) {
        const before = this.#final.get(id)
        if (before !== undefined && before !== state) return `recipient ${id} was ${before} and is ${state}`
        if (state === 'delivered' || state === 'bounced' || state === 'expired') this.#final.set(id, state)
      }
    }
    return null
  }

  /** In the end everything that lives can be reached: waiting mail by a claim, parked mail by its operator. */
  async #drain(): Promise<string | null> {
    await this.#crash()
    for (const message of this.#messages)
      for (const kind of ['restore', 'release'] as const) await operate(this.#store, message.id, { kind })
    const far = this.#now + 2 * LIFETIME
    const claimed = new Set<MessageId>()
    for (const destination of PLACES) {
      const { requests, nextDueAt } = await this.#store.claimDue({ destination, now: far, limit: 10_000, recipientLimit: 0 })
      if (nextDueAt !== null) return `mail at ${destination} is due at ${nextDueAt} and was not claimed at ${far}`
      for (const { recipients } of requests) for (const { id } of recipients) claimed.add(id)
    }
    for (let suspect = await this.#store.claimSuspect(far); suspect !== undefined; suspect = await this.#store.claimSuspect(far)) {
      for (const { id } of suspect.recipients) claimed.add(id)
    }
    for (const { message, recipients } of this.#reader.list({}, { after: 0, limit: 1000, now: far })) {
      const stuck = recipients.find(({ id }) => !claimed.has(id))
      if (stuck !== undefined) return `${stuck.state} recipient ${stuck.id} of message ${message.id} cannot be reached`
    }
    return null
  }
}

/** Runs the schedules of the seeds; returns how many steps they took. Throws with the first seed that goes wrong. */
export async function runSchedules(from: number, count: number): Promise<number> {
  let steps = 0
  for (let seed = from; seed < from + count; seed++) {
    const schedule = new Schedule(seed)
    const wrong = await schedule.run()
    if (wrong !== null) throw new Error(`schedule ${seed}: ${wrong}`)
    steps += schedule.steps
  }
  return steps
}
