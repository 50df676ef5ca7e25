/**
 * Queues new mail. A batch of messages takes two statements, and more only for contents of several chunks, mail that waits and
 * maildrop files.
 */
import { NO_CLASS, type Band } from '../../../config/values/mail-classes.ts'
import { crc32 } from '../../../system/crc32.ts'
import {
  recipientId,
  RECIPIENTS_PER_MESSAGE,
  type ContentId,
  type DestinationName,
  type OwnerId,
  type Recipient,
} from '../../../mail/message.ts'
import type { KeptRequest } from '../../records/audit-log.ts'
import { CHARGE_QUOTAS, type QuotaCharge } from '../../records/quota-count.ts'
import { assertChunks, CHUNKS_PER_CONTENT } from '../../chunks.ts'
import { shardOf, type Shard } from '../../membership/shards.ts'
import type { NewMessage, NewRecipient } from '../../new-message.ts'
import { accepted } from '../../decisions/series-notes.ts'
import { fromNotify, fromStatus } from '../../stored-values.ts'
import { byteas, int2s, int4s, int8s, texts } from '../session/arrays.ts'
import { runRecord } from '../session/record-calls.ts'
import { messageArrays } from './message-columns.ts'
import type { OwnLeases } from './own-leases.ts'
import * as sql from './queries.ts'
import { sent, type Send, type Transaction } from './write-transaction.ts'

export interface IntakeDeps {
  readonly owner: OwnerId
  /** Parameter `node_name`, by which maildrop files are kept. */
  readonly name: string
  readonly leases: OwnLeases
}

interface Entered {
  readonly entry: NewMessage
  readonly home: Shard
  /** The content, when it is kept in the row of the message. */
  readonly inline: Uint8Array | null
}

/** A content, or the part of it that was not staged. */
interface CompletedContent {
  readonly contentId: ContentId
  readonly content: readonly Uint8Array[]
}

interface EnteredRecipient extends NewRecipient {
  readonly id: number
  readonly sender: string
  readonly shard: Shard
  readonly home: Shard
  readonly band: Band
  readonly state: 'waiting' | 'leased' | 'parked'
}

/** Throws for a message that cannot be queued. */
export function assertEntry({ recipients, content }: NewMessage): void {
  if (recipients.length === 0) throw new Error('a message without recipients cannot be queued')
  if (recipients.length > RECIPIENTS_PER_MESSAGE) throw new Error(`a message with ${recipients.length} recipients cannot be queued`)
  assertChunks(content)
  if (content.length > CHUNKS_PER_CONTENT) throw new Error('a content of more than 4 GB cannot be queued')
}

export class Intake {
  readonly #deps: IntakeDeps
  /** Contents that this node has begun to stage. */
  readonly #staged = new Set<ContentId>()

  constructor(deps: IntakeDeps) {
    this.#deps = deps
  }

  enqueue: Send<'enqueue'> = (tx, calls) => {
    const entries = calls.map(([entry]) => entry)
    return sent(this.enter(tx, entries).then(() => entries.map(() => undefined)))
  }

  /** Sends the statements that queue messages. */
  async enter(tx: Transaction, entries: readonly NewMessage[]): Promise<void> {
    const all = entries.map((entry) => this.#prepared(entry))
    const recipients = all.flatMap((entered) => recipientsOf(tx, entered))
    for (const { entry } of all) tx.traffic.note(...accepted(entry.message, entry.recipients))
    for (const { message, hold = false } of entries) tx.shares.entered(message, hold ? 'hold' : 'queued')
    for (const { events } of entries) tx.events.note(events)
    tx.onCommit(() => this.#committed(all, recipients))
    await Promise.all([
      insertMessages(tx, all),
      insertRecipients(tx, recipients, this.#deps.owner),
      continueTries(tx, recipients),
      continueWarnings(tx, entries),
      this.#insertChunks(tx, all),
      this.#tellOwners(tx, recipients),
      this.#insertMaildropFiles(tx, entries),
      keepRequests(tx, requestsOf(entries)),
      chargeQuotas(
        tx,
        entries.flatMap(({ charges = [] }) => charges),
      ),
    ])
  }

  stage: Send<'stage'> = (tx, calls) => {
    for (const [content] of calls) this.#staged.add(content)
    const rows = calls.flatMap(([content, from, chunks]) => chunks.map((data, n) => ({ content, number: from + n, data })))
    if (rows.some(({ number }) => number >= CHUNKS_PER_CONTENT)) throw new Error('a content of more than 4 GB cannot be queued')
    const marked = tx.query(sql.markStaged, [this.#deps.owner, int8s(calls.map(([content]) => content))])
    const stored = tx.query(sql.stageChunks, chunkParameters(rows))
    return sent(Promise.all([marked, stored]).then(() => calls.map(() => undefined)))
  }

  unstage: Send<'unstage'> = (tx, calls) => {
    const contents = calls.map(([content]) => content)
    return sent(this.dropStaged(tx, contents).then(() => calls.map(() => undefined)))
  }

  forgetMaildropFiles: Send<'forgetMaildropFiles'> = (tx, calls) =>
    sent(
      tx.query(sql.forgetMaildropFiles, [this.#deps.name, texts(calls.flatMap(([files]) => files))]).then(() => calls.map(() => undefined)),
    )

  #prepared(entry: NewMessage): Entered {
    const { message, content, recipients } = entry
    const isInline = content.length === 1 && message.contentId === message.id && !this.#staged.has(message.id)
    return { entry, home: shardOf(recipients[0]?.destination ?? ''), inline: isInline ? (content[0] ?? null) : null }
  }

  async #insertChunks(tx: Transaction, all: readonly Entered[]): Promise<void> {
    const entries = all.flatMap(({ entry, inline }) => (inline === null ? [entry] : []))
    await this.completeContents(
      tx,
      entries.map(({ message, content }) => ({ contentId: message.contentId, content })),
    )
  }

  /** Stores contents, each after its chunks that were staged. They are kept from now on. */
  async completeContents(tx: Transaction, contents: readonly CompletedContent[]): Promise<void> {
    if (contents.length === 0) return
    const rows = contents.flatMap(({ contentId, content }) => content.map((data, number) => ({ content: contentId, number, data })))
    const ids = contents.map(({ contentId }) => contentId)
    tx.onCommit(() => ids.forEach((id) => this.#staged.delete(id)))
    await Promise.all([
      rows.length === 0 ? [] : tx.query(sql.insertChunks, chunkParameters(rows)),
      tx.query(sql.unmarkStaged, [int8s(ids)]),
    ])
  }

  /** Deletes staged contents. */
  async dropStaged(tx: Transaction, contents: readonly ContentId[]): Promise<void> {
    tx.onCommit(() => contents.forEach((content) => this.#staged.delete(content)))
    await tx.query(sql.deleteStaged, [int8s(contents)])
  }

  /** Tells the owners of the earliest mail for each destination. */
  async #tellOwners(tx: Transaction, recipients: readonly EnteredRecipient[]): Promise<void> {
    const earliest = new Map<DestinationName, EnteredRecipient>()
    for (const one of recipients)
      if (one.state === 'waiting' && one.dueAt < (earliest.get(one.destination)?.dueAt ?? Infinity)) earliest.set(one.destination, one)
    if (earliest.size === 0) return
    const shards = int2s(Array.from(earliest.values(), ({ shard }) => shard))
    const due = [texts([...earliest.keys()]), int8s(Array.from(earliest.values(), ({ dueAt }) => dueAt))]
    tx.told(await tx.query<{ shard: Shard }>(sql.tellOwnersOfNew, [this.#deps.owner, shards, ...due]))
  }

  async #insertMaildropFiles(tx: Transaction, entries: readonly NewMessage[]): Promise<void> {
    const files = entries.flatMap(({ maildropFile }) => (maildropFile === undefined ? [] : [maildropFile]))
    if (files.length > 0) await tx.query(sql.insertMaildropFiles, [this.#deps.name, texts(files)])
  }

  #committed(all: readonly Entered[], recipients: readonly EnteredRecipient[]): void {
    const { leases } = this.#deps
    leases.add(recipients.flatMap(({ id, state, sender, destination }) => (state === 'leased' ? [{ id, sender, destination }] : [])))
    for (const { entry, inline } of all) {
      const isFresh = entry.warnings === undefined && entry.recipients.every(({ leased, tried }) => leased && tried === undefined)
      const isWhole = inline !== null && entry.hold !== true && isFresh
      if (isWhole) leases.addWhole({ message: entry.message, recipients: untried(entry), attempts: [] })
    }
  }
}

/** The requests that queue messages. */
const requestsOf = (entries: readonly NewMessage[]): readonly KeptRequest[] =>
  entries.flatMap(({ message, request }) => (request === undefined ? [] : [{ ...request, at: message.createdAt }]))

/** Keeps requests. Fails at a key that is kept, which the writer reports as RequestRepeated. */
async function keepRequests(tx: Transaction, requests: readonly KeptRequest[]): Promise<void> {
  if (requests.length === 0) return
  await tx.query(sql.insertRequests, [
    texts(requests.map(({ key }) => key)),
    texts(requests.map(({ digest }) => digest)),
    int8s(requests.map(({ at }) => at)),
    texts(requests.map(({ answer }) => answer)),
  ])
}

async function chargeQuotas(tx: Transaction, charges: readonly QuotaCharge[]): Promise<void> {
  if (charges.length > 0) await runRecord(tx, CHARGE_QUOTAS, charges)
}

function recipientsOf(
  tx: Transaction,
  { entry: { message, band = NO_CLASS, recipients, hold = false }, home }: Entered,
): readonly EnteredRecipient[] {
  return recipients.map((one, position) => ({
    ...one,
    id: recipientId(message.id, position),
    sender: message.sender,
    shard: tx.shardOf(one.destination),
    home,
    band,
    state: hold ? 'parked' : one.leased ? 'leased' : 'waiting',
  }))
}

/** The recipients of a message that is queued with leases, as its history shows them. */
function untried({ message, recipients }: NewMessage): readonly Recipient[] {
  const fresh = { state: 'leased', steps: 0, attempts: 0, deliveryStarts: 1, last: null } as const
  return recipients.map(({ address, notify, orcpt, destination, dueAt, expiresAt }, position) => {
    const id = recipientId(message.id, position)
    return { ...fresh, id, address, notify, orcpt, destination, dueAt, expiresAt }
  })
}

const insertMessages = (tx: Transaction, all: readonly Entered[]): Promise<unknown> =>
  tx.query(sql.insertMessages, [
    ...messageArrays(all.map(({ entry }) => entry.message)),
    int8s(all.map(({ inline }) => (inline === null ? null : crc32(inline)))),
    int4s(all.map(({ entry }) => entry.recipients.length)),
    int2s(all.map(({ home }) => home)),
    texts(all.map(({ entry }) => (entry.hold === true ? 'hold' : 'queued'))),
    byteas(all.map(({ inline }) => inline)),
  ])

const insertRecipients = (tx: Transaction, recipients: readonly EnteredRecipient[], owner: OwnerId): Promise<unknown> =>
  tx.query(sql.insertRecipients, [
    owner,
    int8s(recipients.map(({ id }) => id)),
    int8s(recipients.map(({ dueAt }) => dueAt)),
    int8s(recipients.map(({ expiresAt }) => expiresAt)),
    int2s(recipients.map(({ shard }) => shard)),
    int2s(recipients.map(({ home }) => home)),
    int2s(recipients.map(({ band }) => band)),
    texts(recipients.map(({ state }) => state)),
    texts(recipients.map(({ destination }) => destination)),
    texts(recipients.map(({ address }) => address)),
    texts(recipients.map(({ notify }) => fromNotify(notify))),
    texts(recipients.map(({ orcpt }) => orcpt ?? null)),
  ])

/** Continues the schedules of mail that another mail system has tried. */
async function continueTries(tx: Transaction, recipients: readonly EnteredRecipient[]): Promise<void> {
  const tried = recipients.flatMap((one) => (one.tried === undefined ? [] : [{ id: one.id, ...one.tried }]))
  if (tried.length === 0) return
  await tx.query(sql.continueTries, [
    int8s(tried.map(({ id }) => id)),
    int4s(tried.map(({ steps }) => steps)),
    int4s(tried.map(({ attempts }) => attempts)),
    texts(tried.map(({ last }) => fromStatus(last))),
  ])
}

async function continueWarnings(tx: Transaction, entries: readonly NewMessage[]): Promise<void> {
  const warned = entries.filter(({ warnings = 0 }) => warnings > 0)
  if (warned.length === 0) return
  const [ids, counts] = [warned.map(({ message }) => message.id), warned.map(({ warnings = 0 }) => warnings)]
  await tx.query(sql.continueWarnings, [int8s(ids), int4s(counts)])
}

interface ChunkRow {
  readonly content: ContentId
  readonly number: number
  readonly data: Uint8Array
}

const chunkParameters = (rows: readonly ChunkRow[]): Buffer[] => [
  int8s(rows.map(({ content }) => content)),
  int4s(rows.map(({ number }) => number)),
  int8s(rows.map(({ data }) => crc32(data))),
  byteas(rows.map(({ data }) => data)),
]
