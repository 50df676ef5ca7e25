/**
 * Model of the queue, computed from the commits: the contract of the store in its simplest form. Invariants read the model, and a
 * listing of the real queue must equal it.
 */
import type { Duration, QueueTime } from '../../src/system/clock.ts'
import {
  isLive,
  messageOf,
  recipientId,
  SHARED_STARTS_UNTIL_CORRUPT,
  STARTS_UNTIL_CORRUPT,
  type NoticeDue,
  type DestinationName,
  type Message,
  type MessageId,
  type Placement,
  type RecipientId,
} from '../../src/mail/message.ts'
import type { NewRecipient } from '../../src/store/new-message.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'
import type { MessageOperation, Operation } from '../../src/store/message-operation.ts'
import type { Settled } from '../../src/store/recorded-outcomes.ts'
import type { Commit, CommittedClaim, EntryFacts } from './record.ts'

export interface ModelRecipient {
  readonly id: RecipientId
  readonly address: string
  readonly notify: NewRecipient['notify']
  readonly destination: DestinationName
  readonly expiresAt: QueueTime
  state: 'waiting' | 'leased' | 'parked' | 'delivered' | 'bounced' | 'expired' | 'removed'
  dueAt: QueueTime
  /** Due time before an operator flushed the recipient. */
  keptDueAt: QueueTime | null
  steps: number
  attempts: number
  deliveryStarts: number
  /** Number of the node that leases the recipient; 0 for the only relay. */
  leasedBy: number
  noticeDue: NoticeDue | undefined
  reply: string | undefined
  /** Start of the current state, on the monotonic clock. */
  since: Duration
}

export interface ModelMessage {
  readonly message: Message
  readonly recipients: readonly ModelRecipient[]
  placement: Placement
  forcedExpire: boolean
  warnings: number
  deletedForGood: boolean
  /** Whether it was on hold when it was deleted. */
  wasHeld: boolean
}

export class QueueModel {
  /** All messages, including those that have left the queue. */
  readonly messages = new Map<MessageId, ModelMessage>()
  /** Dead and suspended destinations as stored. */
  readonly remembered = new Map<DestinationName, DestinationRecord>()
  /** Number of leased recipients. */
  leased = 0
  /** Time of the commit, on the monotonic clock. */
  at: Duration = 0

  recipient(id: RecipientId): ModelRecipient | undefined {
    return this.messages.get(messageOf(id))?.recipients.find((one) => one.id === id)
  }

  *live(): Generator<readonly [ModelRecipient, ModelMessage]> {
    for (const held of this.messages.values()) for (const one of held.recipients) if (isLive(one)) yield [one, held]
  }

  /** True while the message has a live recipient or a due notice. */
  static keeps({ recipients }: ModelMessage): boolean {
    return recipients.some((one) => isLive(one) || one.noticeDue !== undefined)
  }

  /** Applies a crash of the relay, or the takeover of a node: its leases end. */
  crash(node = 0): void {
    const limit = node === 0 ? STARTS_UNTIL_CORRUPT : SHARED_STARTS_UNTIL_CORRUPT
    for (const held of this.messages.values()) {
      const left = held.recipients.filter(({ state, leasedBy }) => state === 'leased' && leasedBy === node)
      for (const one of left) this.#move(one, held.placement === 'queued' ? 'waiting' : 'parked')
      if (left.some(({ deliveryStarts }) => deliveryStarts >= limit)) this.#setAside(held, 0)
    }
  }

  apply(commit: Commit & { readonly node?: number }): void {
    const { node = 0 } = commit
    switch (commit.method) {
      case 'enqueue':
        return this.#enter(commit, node)
      case 'claimDue':
      case 'claimExpired':
      case 'claimSuspect':
        return commit.requests.forEach((request) => this.#lease(request, node))
      case 'giveBack':
        return commit.recipients.forEach((id) => this.#giveBack(id, node))
      case 'settle':
        return commit.settlement.recipients.forEach((settled) => this.#settle(settled, node))
      case 'quarantine': {
        const held = this.messages.get(commit.message)
        if (held !== undefined) this.#setAside(held, node)
        return
      }
      case 'markDelayNoticeDue':
        return commit.recipients.forEach((id) => {
          const one = this.recipient(id)
          if (one !== undefined && isLive(one)) one.noticeDue ??= 'delay'
        })
      case 'report': {
        if (!commit.entered) return
        const held = this.messages.get(commit.message)
        for (const notice of commit.notices) this.#enter(notice, node)
        for (const { recipient, noticeDue } of commit.noticesSettled) {
          const one = this.recipient(recipient)
          if (one?.noticeDue === noticeDue) one.noticeDue = undefined
        }
        if (held !== undefined) held.warnings = commit.warnings
        return
      }
      case 'operate':
        return commit.operations.forEach((one) => this.#operate(one))
      case 'saveDestination':
        this.remembered.set(commit.record.name, commit.record)
        return
      case 'joinProvider':
    }
  }

  #enter({ message, recipients, hold }: EntryFacts, node: number): void {
    const entered = recipients.map(({ address, notify, destination, dueAt, expiresAt, leased }, position): ModelRecipient => {
      const state = hold ? 'parked' : leased ? 'leased' : 'waiting'
      if (state === 'leased') this.leased++
      const fresh = { keptDueAt: null, steps: 0, attempts: 0, noticeDue: undefined, reply: undefined, since: this.at }
      return {
        id: recipientId(message.id, position),
        address,
        notify,
        destination,
        expiresAt,
        state,
        dueAt,
        deliveryStarts: state === 'leased' ? 1 : 0,
        leasedBy: node,
        ...fresh,
      }
    })
    const placement = hold ? 'hold' : 'queued'
    this.messages.set(message.id, {
      message,
      recipients: entered,
      placement,
      forcedExpire: false,
      warnings: 0,
      deletedForGood: false,
      wasHeld: false,
    })
  }

  #lease({ recipients }: CommittedClaim, node: number): void {
    for (const { id } of recipients) {
      const one = this.recipient(id)
      if (one === undefined) continue
      this.#move(one, 'leased')
      one.deliveryStarts++
      one.leasedBy = node
    }
  }

  #giveBack(id: RecipientId, node: number): void {
    const one = this.recipient(id)
    if (one?.state !== 'leased' || one.leasedBy !== node) return
    this.#move(one, this.#placeOf(one) === 'queued' ? 'waiting' : 'parked')
    one.deliveryStarts = 0
  }

  #settle(settled: Settled, node: number): void {
    const one = this.recipient(settled.recipient)
    if (one?.state !== 'leased' || one.leasedBy !== node) return
    one.attempts = settled.attempts
    one.keptDueAt = null
    one.deliveryStarts = 0
    if (settled.last !== null) one.reply = settled.last.reply
    if (settled.state === 'waiting') {
      this.#move(one, this.#placeOf(one) === 'queued' ? 'waiting' : 'parked')
      one.dueAt = settled.dueAt
      one.steps = settled.steps
      one.noticeDue = settled.noticeDue ?? one.noticeDue
    } else {
      this.#move(one, settled.state)
      one.noticeDue = settled.noticeDue
    }
  }

  #placeOf(one: ModelRecipient): Placement | undefined {
    return this.messages.get(messageOf(one.id))?.placement
  }

  #move(one: ModelRecipient, state: ModelRecipient['state']): void {
    if (one.state === 'leased') this.leased--
    if (state === 'leased') this.leased++
    if (one.state !== state) one.since = this.at
    one.state = state
  }

  /** Moves a message to `corrupt`. Leases of other nodes than `node` go on. */
  #setAside(held: ModelMessage, node: number): void {
    held.placement = 'corrupt'
    for (const one of held.recipients) {
      if (one.state === 'leased' && one.leasedBy !== node) continue
      if (one.state === 'leased') one.deliveryStarts = 0
      if (isLive(one)) this.#move(one, 'parked')
    }
  }

  #operate({ message: id, operation }: MessageOperation): void {
    const held = this.messages.get(id)
    if (held === undefined) return
    switch (operation.kind) {
      case 'flush':
        for (const one of held.recipients) {
          if (one.state !== 'waiting' || one.keptDueAt !== null) continue
          one.keptDueAt = one.dueAt
          one.dueAt = Math.min(one.dueAt, operation.now)
          one.since = this.at
        }
        return
      case 'hold':
        return this.#place(held, 'hold')
      case 'release':
        return this.#place(held, 'queued')
      case 'restore':
        return this.#place(held, held.wasHeld ? 'hold' : 'queued')
      case 'expire':
        held.forcedExpire = true
        return
      case 'requeue':
        return this.#requeue(held, operation)
      case 'reschedule':
      case 'reclass':
      case 'cancel':
        throw new Error(`the simulation orders no ${operation.kind}`)
      case 'delete':
        return operation.purge ? this.#purge(held) : this.#discard(held)
    }
  }

  #place(held: ModelMessage, placement: Placement): void {
    held.placement = placement
    for (const one of held.recipients) {
      if (placement === 'queued' && one.state === 'parked') {
        this.#move(one, 'waiting')
        one.deliveryStarts = 0
      } else if (placement !== 'queued' && one.state === 'waiting') this.#move(one, 'parked')
    }
  }

  #requeue(held: ModelMessage, { newId, now, expiresAt }: Extract<Operation, { kind: 'requeue' }>): void {
    const moving = held.recipients.filter(({ state }) => state === 'waiting' || state === 'parked')
    const recipients = moving.map(({ address, notify, destination }): NewRecipient => ({
      address,
      notify,
      destination,
      dueAt: now,
      expiresAt,
      leased: false,
    }))
    this.#enter({ message: { ...held.message, id: newId, createdAt: now }, recipients, hold: false }, 0)
    const entered = this.messages.get(newId)
    if (entered !== undefined) entered.warnings = held.warnings
    for (const one of moving) this.#remove(one)
  }

  #discard(held: ModelMessage): void {
    if (held.placement !== 'trash') held.wasHeld = held.placement === 'hold'
    this.#place(held, 'trash')
    for (const one of held.recipients) if (one.noticeDue === 'delay') one.noticeDue = undefined
  }

  #purge(held: ModelMessage): void {
    held.deletedForGood = true
    this.#discard(held)
    if (held.recipients.some(({ state }) => state === 'leased')) return
    for (const one of held.recipients) if (isLive(one)) this.#remove(one)
    held.placement = 'queued'
  }

  #remove(one: ModelRecipient): void {
    this.#move(one, 'removed')
    one.noticeDue = undefined
  }
}
