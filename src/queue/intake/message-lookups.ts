/** Address lookups for one message. The first that fails is reported, and the message is refused for now. */
import type { Envelope } from '../../mail/envelope.ts'
import type { Completion } from '../../mail/header-addresses.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import { ExpansionFailed } from '../../rewriting/virtual-aliases.ts'
import type { Rewriting } from '../../rewriting/rewriting.ts'

/** Reply when a lookup has no usable result. */
export const LOOKUP_FAILED: SmtpReply = { code: 451, status: '4.3.0', text: 'Error: address lookup failed' }

/** Reply when an alias exceeds a limit, as that of Postfix. */
const EXPANSION_FAILED: SmtpReply = { code: 451, status: '4.6.0', text: 'Error: Alias expansion error' }

export class MessageLookups {
  readonly #rewriting: Rewriting
  readonly #report: (reason: string) => void
  #failure: SmtpReply | null = null
  #refuse: (reply: SmtpReply) => void = () => undefined

  constructor(rewriting: Rewriting, report: (reason: string) => void) {
    this.#rewriting = rewriting
    this.#report = report
  }

  /** The rewritten envelope; the given one after a failure. */
  envelope(envelope: Envelope): Envelope {
    return this.#try(() => this.#rewriting.envelope(envelope)) ?? envelope
  }

  /** The completion of header addresses, with the maps that apply to them. */
  completion(completion: Completion): Completion {
    const { header } = this.#rewriting
    return header === undefined ? completion : { ...completion, map: (address, role) => this.#try(() => header(address, role)) ?? address }
  }

  /** Calls `refuse` at the first failure; at once when it has happened. */
  onFailure(refuse: (reply: SmtpReply) => void): void {
    this.#refuse = refuse
    if (this.#failure !== null) refuse(this.#failure)
  }

  #try<T>(look: () => T): T | undefined {
    try {
      return look()
    } catch (error) {
      if (!(error instanceof LookupFailed)) throw error
      this.#fail(error)
      return undefined
    }
  }

  #fail(error: LookupFailed): void {
    if (this.#failure !== null) return
    this.#failure = error instanceof ExpansionFailed ? EXPANSION_FAILED : LOOKUP_FAILED
    this.#report(error.message)
    this.#refuse(this.#failure)
  }
}
