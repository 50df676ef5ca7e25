/** Queues new mail in memory: its content, and the message with its schedule. */
import { NO_CLASS } from '../../config/values/mail-classes.ts'
import { recipientId } from '../../mail/message.ts'
import { assertChunks } from '../chunks.ts'
import { accepted } from '../decisions/series-notes.ts'
import { MOVED_AWAY } from '../move-store.ts'
import type { NewMessage } from '../new-message.ts'
import { StoreUnavailable } from '../queue-store.ts'
import { KEEP_REQUEST, repeated } from '../records/audit-records.ts'
import { CHARGE_QUOTAS } from '../records/quota-count.ts'
import type { HeldMail } from './held-mail.ts'
import type { QueueOwner } from './queue-owner.ts'
import { newMessage, noteTraffic, type MemoryQueue } from './queue-state.ts'
import { enter } from './recipient-states.ts'

export class Intake {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner
  readonly #mail: HeldMail

  constructor(queue: MemoryQueue, owner: QueueOwner, mail: HeldMail) {
    this.#queue = queue
    this.#owner = owner
    this.#mail = mail
  }

  async stage(body: number, from: number, chunks: readonly Uint8Array[], keeps = false): Promise<void> {
    const kept = this.#queue.bodies.get(body) ?? []
    if (kept.length !== from) throw new Error(`content ${body} continues at chunk ${kept.length}, not at ${from}`)
    this.#queue.staged.set(body, this.#owner.id)
    assertChunks(chunks)
    this.#queue.bodies.set(body, [...kept, ...(keeps ? chunks.map(copied) : chunks)])
  }

  async unstage(body: number): Promise<void> {
    if (this.#queue.staged.delete(body)) this.#queue.bodies.delete(body)
  }

  async enqueue(entry: NewMessage): Promise<void> {
    this.enter(entry)
  }

  async maildropFiles(): Promise<readonly string[]> {
    return [...this.#queue.maildropFiles].toSorted()
  }

  async forgetMaildropFiles(files: readonly string[]): Promise<void> {
    for (const file of files) this.#queue.maildropFiles.delete(file)
  }

  async readChunk(body: number, index: number): Promise<Uint8Array | undefined> {
    const chunk = this.#queue.bodies.get(body)?.[index]
    return chunk === undefined ? undefined : new Uint8Array(chunk)
  }

  /** Queues a message with the content that is given, or that the queue has. */
  enter(
    {
      message,
      band = NO_CLASS,
      recipients,
      content,
      givesContent,
      hold = false,
      maildropFile,
      request,
      warnings = 0,
      charges,
      events,
    }: NewMessage,
    kept?: Uint8Array[],
  ): void {
    if (this.#queue.movedTo !== null) throw new StoreUnavailable(MOVED_AWAY)
    if (recipients.length === 0) throw new Error('a message without recipients cannot be queued')
    if (this.#queue.messages.has(message.id)) throw new Error(`message ${message.id} is queued already`)
    if (maildropFile !== undefined && this.#queue.maildropFiles.has(maildropFile)) throw new Error(`${maildropFile} is queued already`)
    assertChunks(content)
    if (request !== undefined && !KEEP_REQUEST.held(this.#queue.records, { ...request, at: message.createdAt })) throw repeated(request.key)
    const entered = recipients.map((one, position) => enter(recipientId(message.id, position), one, hold, this.#owner.id))
    const staged = this.#queue.staged.delete(message.contentId) ? (this.#queue.bodies.get(message.contentId) ?? []) : []
    this.#queue.bodies.set(message.contentId, kept ?? [...staged, ...(givesContent === true ? content : content.map(copied))])
    if (maildropFile !== undefined) this.#queue.maildropFiles.add(maildropFile)
    noteTraffic(this.#queue, ...accepted(message, recipients))
    if (charges !== undefined) CHARGE_QUOTAS.held({ ...this.#queue.records, caller: { owner: this.#owner.id, name: null } }, charges)
    this.#queue.messages.set(message.id, { ...newMessage(message, entered, hold ? 'hold' : 'queued'), band, warnings })
    for (const one of entered) this.#mail.tellDue(one)
    this.#queue.outbox.keep(events)
  }
}

const copied = (chunk: Uint8Array): Uint8Array => new Uint8Array(chunk)
