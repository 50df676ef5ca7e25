/**
 * Contents that have just been committed and are about to be sent: kept in memory for their first delivery, so that it
 * need not read them back. A saving only: whatever is not here is read from the store.
 */
import type { BodyId, Message } from './message.ts'

/** Bytes kept at most. */
const BUDGET = 64 * 1024 * 1024

export class WarmBodies {
  readonly #bodies = new Map<BodyId, readonly Uint8Array[]>()
  #bytes = 0

  keep({ body, size }: Message, content: readonly Uint8Array[]): void {
    const whole = content.reduce((sum, part) => sum + part.byteLength, 0)
    // A content that was staged in part is not here as a whole.
    if (whole !== size || this.#bytes + whole > BUDGET) return
    this.#bodies.set(body, content)
    this.#bytes += whole
  }

  get({ body }: Message): readonly Uint8Array[] | undefined {
    return this.#bodies.get(body)
  }

  drop({ body, size }: Message): void {
    if (this.#bodies.delete(body)) this.#bytes -= size
  }
}
