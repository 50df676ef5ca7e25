/**
 * The BDAT commands of one mail transaction (RFC 3030): syntax, order and size. The octets of a refused chunk are skipped, so that
 * client and server stay in step; after a refusal, all chunks are refused until LAST or RSET (Postfix smtpd bdat_cmd).
 */
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import * as replies from './replies.ts'

/** A chunk of content that follows its command. */
export interface Chunk {
  readonly octets: number
  /** True when the chunk ends the content. */
  readonly last: boolean
  /** Reply when the chunk is refused. Its octets are skipped before the reply is sent. */
  readonly refusal?: SmtpReply | undefined
}

/** Facts about the mail transaction that decide whether a chunk is accepted. */
interface ChunkFacts {
  readonly inTransaction: boolean
  /** Number of accepted recipients. */
  readonly accepted: number
  /** message_size_limit in octets; 0 for no limit. */
  readonly sizeLimit: number
}

export class ChunkSequence {
  #state: 'none' | 'open' | 'failed' = 'none'
  /** Octets of the accepted chunks. */
  #octets = 0

  /** True between the first chunk and LAST or RSET. MAIL, RCPT and DATA are then out of sequence. */
  get inProgress(): boolean {
    return this.#state !== 'none'
  }

  /** True when a chunk was accepted and the last chunk is still missing. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  reset(): void {
    this.#state = 'none'
    this.#octets = 0
  }

  /** Parses the argument of BDAT and records whether the chunk is accepted. Undefined when malformed: the chunk's end is then unknown. */
  next(argument: string, facts: ChunkFacts): Chunk | undefined {
    const match = /^(\d+)(?:\s+(LAST))?$/i.exec(argument)
    const octets = Number(match?.[1])
    if (match === null || !Number.isSafeInteger(octets)) return undefined
    const last = match[2] !== undefined
    const refusal = this.#refusal(octets, last, facts)
    if (refusal !== undefined) this.fail(last)
    else {
      this.#state = 'open'
      this.#octets += octets
    }
    return { octets, last, refusal }
  }

  /** Records that a chunk was refused. */
  fail(last: boolean): void {
    if (last) this.reset()
    else this.#state = 'failed'
  }

  #refusal(octets: number, last: boolean, { inTransaction, accepted, sizeLimit }: ChunkFacts): SmtpReply | undefined {
    if (octets === 0 && !last) return replies.NULL_CHUNK
    if (this.#state === 'failed') return replies.discarded(octets)
    if (this.#state === 'none' && accepted === 0) {
      return inTransaction ? replies.NO_VALID_RECIPIENTS : replies.badSequence('need RCPT command')
    }
    return sizeLimit > 0 && octets > sizeLimit - this.#octets ? replies.CHUNK_TOO_BIG : undefined
  }
}
