/** State of a recorded SMTP session: which commands a scripted server would answer by rules, and the addresses that rules can match. */
import { isPositive } from '../remote/fault-injector.ts'
import type { SpokenStage } from '../remote/rule.ts'
import { readMail, readRcpt } from '../remote/server-transaction.ts'
import type { Masks } from './masks.ts'

/** Addresses as the file has them; null where a rule cannot match one. */
export interface Addresses {
  readonly sender: string | null
  readonly recipient: string | null
}

export const NOBODY: Addresses = { sender: null, recipient: null }

export class SessionState {
  readonly #masks: Masks
  #isGreeted = false
  #hasHelo = false
  #hasLogin = false
  #sender: string | null = null
  #recipients: string[] = []
  #previous: Addresses = NOBODY

  constructor(masks: Masks) {
    this.#masks = masks
  }

  get isGreeted(): boolean {
    return this.#isGreeted
  }

  /** Addresses at a stage, of which `line` is the command. Names are given in the order of appearance. */
  addressesAt(stage: SpokenStage | null, line: string): Addresses {
    const sender = this.#sender
    switch (stage) {
      case 'mail':
        return { sender: this.#masks.sender(readMail(line)?.sender ?? ''), recipient: null }
      case 'rcpt':
        return { sender, recipient: this.#masks.recipient(readRcpt(line)?.address ?? '') }
      case 'data':
      case 'body':
      case 'end-of-data':
        return { sender, recipient: this.#recipients[0] ?? null }
      case 'idle':
        return this.#previous
      case null:
      case 'greeting':
      case 'ehlo':
      case 'helo':
      case 'starttls':
      case 'handshake':
      case 'auth':
      case 'rset':
      case 'quit':
        return NOBODY
    }
  }

  /** Follows the reply to a command. Returns false for a command out of sequence, which a scripted server refuses without its rules. */
  answered(stage: SpokenStage | null, code: number | undefined, { sender, recipient }: Addresses): boolean {
    const isGood = isPositive(code)
    switch (stage) {
      case 'greeting':
        this.#isGreeted = true
        return true
      case 'ehlo':
      case 'helo':
        this.#endTransaction()
        this.#hasHelo = isGood
        return true
      case 'auth': {
        const isFirst = !this.#hasLogin
        this.#hasLogin ||= isGood
        return isFirst
      }
      case 'mail': {
        const isFirst = this.#hasHelo && this.#sender === null
        if (isFirst && isGood) this.#sender = sender
        return isFirst
      }
      case 'rcpt':
        if (isGood && recipient !== null) this.#recipients.push(recipient)
        return this.#sender !== null
      case 'data':
        return this.#sender !== null && this.#recipients.length > 0
      case 'end-of-data':
      case 'rset':
        this.#endTransaction()
        return true
      case null:
      case 'starttls':
      case 'handshake':
      case 'body':
      case 'quit':
      case 'idle':
        return true
    }
  }

  /** TLS has begun (RFC 3207 §4.2). */
  secured(): void {
    this.#hasHelo = false
    this.#hasLogin = false
  }

  #endTransaction(): void {
    if (this.#sender !== null) this.#previous = { sender: this.#sender, recipient: this.#recipients[0] ?? null }
    this.#sender = null
    this.#recipients = []
  }
}
