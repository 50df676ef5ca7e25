/** The content of a message that is being received, in chunks. Long content is staged in the store while the client sends it. */
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { Chunker } from '../../store/chunks.ts'
import type { Intake } from './intake.ts'

/**
 * Maximum number of complete chunks of a content that is committed with its message. A longer content is staged while it is received; while some
 * of its chunks are on their way to the store, the next ones are received.
 */
const HELD_CHUNKS = 4

interface StagedContentDeps {
  readonly intake: Pick<Intake, 'stageFrom' | 'stage' | 'unstage'>
  readonly id: Parameters<Intake['stage']>[0]
  /** Size that the client declared, in bytes; 0 for none. */
  readonly declaredSize: number
  readonly refuse: (reply: SmtpReply) => void
  /** Called when the store has failed to keep chunks. */
  readonly failed: (error: unknown) => void
}

export class StagedContent {
  readonly #deps: StagedContentDeps
  readonly #chunker = new Chunker()
  #staged = 0
  #stagedBytes = 0
  #staging: Promise<void> | null = null

  constructor(deps: StagedContentDeps) {
    this.#deps = deps
  }

  /** Number of bytes added, including staged ones. */
  get size(): number {
    return this.#chunker.bytes
  }

  get isStaged(): boolean {
    return this.#staged > 0
  }

  /** Settles when the store has the chunks that were given to it, or has failed to keep them; null when none are on their way. */
  get staging(): Promise<void> | null {
    return this.#staging
  }

  /** Adds bytes, which must not change before the content is committed. */
  add(bytes: Uint8Array): void {
    this.#chunker.add(bytes)
  }

  /** Stages complete chunks, if there are many. When a promise is returned, the caller should add nothing until the promise resolves. */
  makeRoom(): Promise<void> | undefined {
    const { full } = this.#chunker
    if (full <= HELD_CHUNKS || (this.#staged > 0 && full < this.#deps.intake.stageFrom)) return undefined
    if (this.#staging !== null) return this.#staging.then(() => this.makeRoom())
    this.#staging = this.#stage().finally(() => (this.#staging = null))
    return undefined
  }

  /** Takes the chunks that are not staged. */
  takeAll(): readonly Uint8Array[] {
    return this.#chunker.takeAll()
  }

  /** Discards all bytes that are not staged. */
  clear(): void {
    this.#chunker.clear()
  }

  /** Discards the content, and deletes what the store has of it. */
  async discard(): Promise<void> {
    this.clear()
    await this.#staging
    if (this.#staged === 0) return
    this.#staged = 0
    await this.#deps.intake.unstage(this.#deps.id)
  }

  async #stage(): Promise<void> {
    const { intake, id, declaredSize, refuse, failed } = this.#deps
    const chunks = this.#chunker.takeFull()
    const from = this.#staged
    const left = Math.max(declaredSize, this.#chunker.bytes) - this.#stagedBytes
    this.#staged += chunks.length
    for (const chunk of chunks) this.#stagedBytes += chunk.byteLength
    try {
      const refusal = await intake.stage(id, from, chunks, left)
      if (refusal !== undefined) refuse(refusal)
    } catch (error) {
      failed(error)
    }
  }
}
