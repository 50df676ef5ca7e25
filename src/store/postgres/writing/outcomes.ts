/**
 * Records the outcomes of deliveries, in one of three ways. Where one call leased all recipients of a message and all of them are
 * final, one statement removes the message. Recipients that wait again are changed by one statement. All others take a second round
 * trip, which removes the message when none of its other recipients is live.
 */
import { messageOf, type MessageId, type OwnerId, type Recipient, type RecipientId } from '../../../mail/message.ts'
import type { RecipientEvent } from '../../../events/kept-event.ts'
import type { QueueTime } from '../../../system/clock.ts'
import type { Shard } from '../../membership/shards.ts'
import type { AttemptRecord, Settled, Settlement, SettleResult } from '../../recorded-outcomes.ts'
import { goesOn, isFinal, isOver, settledMail, type FinalOutcome, type LiveOutcome } from '../../decisions/settlement.ts'
import type { Happened } from '../../decisions/series-notes.ts'
import { fromStatus } from '../../stored-values.ts'
import { KEEP_SESSION, type StoredSession } from '../../records/stored-session.ts'
import { runRecord } from '../session/record-calls.ts'
import { isReturned } from '../../returned-mail.ts'
import { int4s, int8s, texts } from '../session/arrays.ts'
import { leftAt, recordOf, removeUnkept } from './departures.ts'
import type { OwnLeases, WholeMessage } from './own-leases.ts'
import * as sql from './queries.ts'
import type { Send, Transaction } from './write-transaction.ts'

/** A settlement without the recipients that this node does not lease. */
interface Applied {
  readonly message: MessageId
  readonly isOwn: boolean
  readonly settled: readonly Settled[]
  readonly attempts: readonly AttemptRecord[]
  readonly warnAt: QueueTime | null | undefined
  readonly keepUntil: QueueTime | undefined
  readonly events: readonly RecipientEvent[]
  readonly sessions: readonly StoredSession[]
  /** The message, when it leaves with this settlement for certain. */
  readonly whole: WholeMessage | undefined
}

const UNCHANGED: SettleResult = { removed: false, noticeDue: false }
const REMOVED: SettleResult = { removed: true, noticeDue: false }

const idOf = ({ recipient }: { readonly recipient: RecipientId }): RecipientId => recipient

export class Outcomes {
  readonly #owner: OwnerId
  readonly #leases: OwnLeases

  constructor(owner: OwnerId, leases: OwnLeases) {
    this.#owner = owner
    this.#leases = leases
  }

  settle: Send<'settle'> = (tx, calls) => {
    const all = calls.map(([settlement]) => this.#applied(settlement)).toSorted((a, b) => a.message - b.message)
    tx.onCommit(() => this.#leases.end(all.flatMap(({ settled }) => settled.map(idOf))))
    for (const one of all) tx.traffic.note(...this.#counted(one))
    for (const { events } of all) tx.events.note(events)
    const kept = Promise.all(all.flatMap(({ sessions }) => sessions.map((one) => runRecord(tx, KEEP_SESSION, one))))
    const [whole, changed] = [all.filter((one) => one.whole !== undefined), all.filter((one) => one.isOwn && one.whole === undefined)]
    const left = new Set(whole.map(({ message }) => message))
    const answers = Promise.all([this.#removeWhole(tx, whole), this.#change(tx, changed), kept]).then(([, { removed, due }]) =>
      calls.map(([{ message }]) => (left.has(message) || removed.has(message) ? REMOVED : { ...UNCHANGED, noticeDue: due.has(message) })),
    )
    return { answers, isLast: changed.every(({ settled }) => settled.every(goesOn)) }
  }

  #applied({ owner, message, recipients, attempts, warnAt, keepUntil, events = [], sessions = [] }: Settlement): Applied {
    const isOwn = owner === this.#owner
    const mine = isOwn ? recipients.filter(({ recipient: id }) => messageOf(id) === message && this.#leases.has(id)) : []
    const settled = [...new Map(mine.map((one) => [one.recipient, one])).values()].toSorted((a, b) => a.recipient - b.recipient)
    const ids = settled.map(idOf)
    const isKept = keepUntil !== undefined && isReturned(settled)
    const whole = settled.length > 0 && settled.every(isOver) && !isKept ? this.#leases.wholeOf(message, ids) : undefined
    const isOf = ({ recipient }: { readonly recipient: RecipientId }): boolean => ids.includes(recipient)
    return {
      message,
      isOwn,
      settled,
      attempts: attempts.filter(isOf),
      warnAt,
      keepUntil,
      events: events.filter(isOf),
      sessions: settled.length > 0 ? sessions : [],
      whole,
    }
  }

  #counted({ settled, attempts }: Applied): readonly Happened[] {
    const [first] = settled
    const path = first === undefined ? undefined : this.#leases.pathOf(first.recipient)
    return path === undefined ? [] : settledMail(path, settled, attempts)
  }

  async #removeWhole(tx: Transaction, leaving: readonly Applied[]): Promise<void> {
    if (leaving.length === 0) return
    const records = leaving.flatMap((one) => {
      if (one.whole === undefined) return []
      const departure = departureOf(one, one.whole)
      tx.events.removed(one.whole.message, departure.at)
      tx.shares.left(one.whole.message, 'queued')
      return [departure]
    })
    const tried = leaving.flatMap(({ whole }) => whole?.attempts.map(idOf) ?? [])
    await Promise.all([
      tx.query(sql.settleWhole, [
        this.#owner,
        int8s(leaving.map(({ message }) => message)),
        int8s(records.map(({ at }) => at)),
        texts(records.map(({ record }) => record)),
        int8s(leaving.flatMap(({ settled }) => settled.map(idOf))),
      ]),
      tried.length === 0 ? [] : tx.query(sql.deleteAttemptsOf, [int8s(tried)]),
    ])
  }

  async #change(
    tx: Transaction,
    changed: readonly Applied[],
  ): Promise<{ readonly removed: ReadonlySet<MessageId>; readonly due: ReadonlySet<MessageId> }> {
    if (changed.length === 0) return { removed: new Set(), due: new Set() }
    const settled = changed.flatMap((one) => one.settled)
    const ending = changed.filter((one) => one.settled.some(isFinal)).map(({ message }) => message)
    const recorded = Promise.all([
      this.#settleLive(tx, settled.filter(goesOn)),
      this.#settleFinal(tx, settled.filter(isFinal)),
      insertAttempts(
        tx,
        changed.flatMap(({ attempts }) => attempts),
      ),
      setWarnAt(tx, changed),
      ending.length === 0 ? [] : tx.query(sql.lockMessages, [int8s(ending)]),
    ])
    const removal = ending.length === 0 ? [] : removeUnkept(tx, this.#owner, ending, keptBy(changed))
    // Without final outcomes, all statements are sent before the first answer.
    const due =
      ending.length === 0
        ? this.#noticesDue(tx, changed)
        : Promise.resolve(removal).then((gone) => this.#noticesDue(tx, without(changed, gone)))
    const [, removed, owing] = await Promise.all([recorded, removal, due])
    return { removed: new Set(removed), due: owing }
  }

  async #noticesDue(tx: Transaction, changed: readonly Applied[]): Promise<ReadonlySet<MessageId>> {
    if (changed.length === 0) return new Set()
    const warned = changed.flatMap(({ message, settled, warnAt }) => (typeof warnAt === 'number' && settled.length > 0 ? [message] : []))
    const rows = await tx.query<{ id: MessageId; due: boolean; told: readonly Shard[] }>(sql.noticesDueAmong, [
      this.#owner,
      int8s(changed.map(({ message }) => message)),
      int8s(warned),
    ])
    tx.told((rows[0]?.told ?? []).map((shard) => ({ shard })))
    return new Set(rows.filter(({ due }) => due).map(({ id }) => id))
  }

  async #settleLive(tx: Transaction, settled: readonly LiveOutcome[]): Promise<void> {
    if (settled.length === 0) return
    const [result] = await tx.query<{ told: readonly Shard[] }>(sql.settleLive, [
      this.#owner,
      int8s(settled.map(idOf)),
      int8s(settled.map(({ dueAt }) => dueAt)),
      int4s(settled.map(({ steps }) => steps)),
      int4s(settled.map(({ attempts }) => attempts)),
      texts(settled.map(({ last }) => fromStatus(last))),
      texts(settled.map(({ noticeDue }) => noticeDue ?? null)),
    ])
    tx.told((result?.told ?? []).map((shard) => ({ shard })))
  }

  async #settleFinal(tx: Transaction, settled: readonly FinalOutcome[]): Promise<void> {
    if (settled.length === 0) return
    await tx.query(sql.settleFinal, [
      this.#owner,
      int8s(settled.map(idOf)),
      texts(settled.map(({ state }) => state)),
      int8s(settled.map(({ at }) => at)),
      int4s(settled.map(({ attempts }) => attempts)),
      texts(settled.map(({ last }) => fromStatus(last))),
      texts(settled.map(({ noticeDue }) => noticeDue ?? null)),
    ])
  }
}

const without = (changed: readonly Applied[], gone: readonly MessageId[]): readonly Applied[] =>
  changed.filter(({ message }) => !gone.includes(message))

const keptBy = (changed: readonly Applied[]): ReadonlyMap<MessageId, QueueTime> =>
  new Map(changed.flatMap(({ message, keepUntil }) => (keepUntil === undefined ? [] : [[message, keepUntil]])))

function departureOf({ settled, attempts }: Applied, whole: WholeMessage): { readonly at: QueueTime; readonly record: string } {
  const outcomes = new Map(settled.filter(isFinal).map((one) => [one.recipient, one]))
  const recipients = whole.recipients.map((one): Recipient => {
    const outcome = outcomes.get(one.id)
    return outcome === undefined
      ? one
      : { ...one, state: outcome.state, settledAt: outcome.at, attempts: outcome.attempts, last: outcome.last }
  })
  const { message } = whole
  const history = [...whole.attempts, ...attempts].toSorted((a, b) => a.at - b.at)
  return { at: leftAt(recipients), record: recordOf({ message, forcedExpire: false, warnings: 0, recipients, history }) }
}

/** Records attempts, in the order of the list. */
export async function insertAttempts(tx: Transaction, attempts: readonly AttemptRecord[]): Promise<void> {
  if (attempts.length === 0) return
  await tx.query(sql.insertAttempts, [
    int8s(attempts.map(idOf)),
    int8s(attempts.map(({ at }) => at)),
    texts(attempts.map(({ relay }) => relay)),
    texts(attempts.map(({ outcome }) => outcome)),
    texts(attempts.map(({ status }) => JSON.stringify(status))),
    texts(attempts.map(({ delays }) => JSON.stringify(delays))),
    texts(attempts.map(({ session = null }) => session)),
  ])
}

async function setWarnAt(tx: Transaction, changed: readonly Applied[]): Promise<void> {
  const warned = changed.flatMap(({ message, settled, warnAt }) =>
    warnAt === undefined || settled.length === 0 ? [] : [{ message, warnAt }],
  )
  if (warned.length === 0) return
  await tx.query(sql.setWarnAt, [int8s(warned.map(({ message }) => message)), int8s(warned.map(({ warnAt }) => warnAt))])
}
