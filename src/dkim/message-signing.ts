/**
 * Signs messages when they are queued, and again for a next hop that receives another header. Logs, at most once a minute, that a
 * message of one of our own clients has no signature for its From domain.
 */
import type { Config } from '../config/options.ts'
import { settingsUnder } from '../config/destination-settings.ts'
import { MINUTE, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import type { RawField } from '../mail/headers.ts'
import { withPrepended, digestField, type StoredSignatures } from './stored-signature.ts'
import { MessageDigest, sentFields, splitContent } from './message-digest.ts'
import { timeOfSignature, type Signer } from './signer.ts'
import { releasedAt, type Message } from '../mail/message.ts'

interface MessageSigningDeps {
  readonly signer: Signer
  readonly config: Pick<Config, 'smtp_line_length_limit' | 'smtp_generic_maps' | 'smtp_header_checks'>
  readonly clock: Pick<Clock, 'wall' | 'monotonic'>
  readonly note: (text: string) => void
  /** Called for each message that is queued. */
  readonly signed: (result: SigningResult) => void
}

/** Signatures that a queued message got, or the reason why it got none. */
export type SigningResult =
  | { readonly domain: string; readonly algorithms: readonly string[]; readonly unsigned: null }
  | { readonly unsigned: 'from' | 'no-table' | 'present' }

/** The digest of a message that arrives. `end` resolves with the header fields to prepend; empty for none. */
export interface ArrivingMessage {
  header(piece: Uint8Array): void
  body(piece: Uint8Array): void
  /** The signatures of a message that is sent from a time on. */
  end(releasedAt: QueueTime): Promise<string>
}

export function signsAnywhere(config: Config): boolean {
  if (config.dkim.size === 0) return false
  return [null, ...config.destination.keys()].some((table) => settingsUnder(config, table).dkim_sign)
}

export class MessageSigning {
  readonly #deps: MessageSigningDeps
  #notedAt: Duration = -Infinity

  constructor(deps: MessageSigningDeps) {
    this.#deps = deps
  }

  begin(queueId: string): ArrivingMessage {
    const digest = new MessageDigest(this.#deps.config.smtp_line_length_limit)
    const { wall } = this.#deps.clock
    return {
      header: (piece) => digest.header(piece),
      body: (piece) => digest.body(piece),
      end: (at) => this.#sign(queueId, digest.fields(), { bodyHash: digest.bodyHash(), signedAt: timeOfSignature(wall.of(at)) }),
    }
  }

  /** A complete message with its signatures. */
  async signed(queueId: string, message: Message, content: readonly Uint8Array[]): Promise<Message> {
    const arriving = this.begin(queueId)
    const { header, body } = splitContent(Buffer.concat(content))
    arriving.header(header)
    arriving.body(body)
    return withPrepended(message, await arriving.end(releasedAt(message)))
  }

  /**
   * The digest with the time of the release, when the message is sent at another time than that for which it was signed: a signature of the future
   * is refused, and an old one may have expired. Null when its signatures are right.
   */
  retimed(message: Message, { digest }: Pick<StoredSignatures, 'digest'>): StoredSignatures['digest'] {
    if (message.notBefore === undefined || digest === null) return null
    const signedAt = timeOfSignature(this.#deps.clock.wall.of(releasedAt(message)))
    return signedAt === digest.signedAt ? null : { ...digest, signedAt }
  }

  /** Signatures for a header that differs from the queued one; empty without a table for its From. */
  async again(header: Uint8Array, digest: NonNullable<StoredSignatures['digest']>, lineLimit: number): Promise<string> {
    const fields = sentFields([header], lineLimit)
    const signatory = this.#deps.signer.signatory(fields)
    return 'domain' in signatory ? this.#deps.signer.sign({ fields, ...digest }, signatory.domain) : ''
  }

  async #sign(queueId: string, fields: readonly RawField[], digest: NonNullable<StoredSignatures['digest']>): Promise<string> {
    const { signer, config, signed } = this.#deps
    const signatory = signer.signatory(fields)
    if ('domain' in signatory) {
      const signatures = await signer.sign({ fields, ...digest }, signatory.domain)
      if (signatures !== '') {
        const algorithms = signer.signingKeys(fields, signatory.domain).map(({ algorithm }) => algorithm)
        signed({ domain: signatory.domain.domain, algorithms, unsigned: null })
        return signatures
      }
      signed({ unsigned: 'present' })
    } else {
      if (signatory.why === 'from') this.#noteUnsigned(queueId)
      signed({ unsigned: signatory.why })
    }
    return config.smtp_generic_maps.length > 0 || config.smtp_header_checks.length > 0 ? digestField(digest) : ''
  }

  #noteUnsigned(queueId: string): void {
    const now = this.#deps.clock.monotonic()
    if (now - this.#notedAt < MINUTE) return
    this.#notedAt = now
    this.#deps.note(`${queueId}: not signed with DKIM, because its header has not exactly one From address; noted once a minute`)
  }
}
