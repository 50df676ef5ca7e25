/** A content on its way in: counted as it comes, so that a rule can strike in the middle of it. */
import { HOUR, SECOND, type Duration } from '../../mail/clock.ts'
import { HeaderScan } from '../../mail/headers.ts'
import { mannerOf, type Conversation, type Said } from './conversation.ts'
import type { Rule } from './rule.ts'

/** How long a client that is held back in the content may stay: it could not be seen to leave. */
const HOLD_LIMIT: Duration = HOUR

export class Incoming {
  readonly #talk: Conversation
  readonly #rule: Rule | undefined
  #count = 0
  #said: Said | undefined

  constructor(talk: Conversation, rule: Rule | undefined) {
    this.#talk = talk
    this.#rule = rule
  }

  /** A reply that was given before the content had ended: it stands for the one at the end. */
  get said(): Said | undefined {
    return this.#said
  }

  /** The content; null when the connection ended in it. */
  async read(): Promise<Buffer | null> {
    const content = await this.#talk.reader.content((bytes) => this.#progress(bytes))
    return this.#talk.open ? content : null
  }

  /** So many more bytes came in; says whether to read on. */
  async #progress(bytes: number): Promise<boolean> {
    this.#count += bytes
    const fault = this.#rule?.fault
    if (fault?.at !== 'body' || this.#count < fault.after) return this.#talk.open
    if (fault.readRate !== undefined) await this.#talk.pause((bytes * SECOND) / Math.max(1, fault.readRate))
    const { ending, say } = mannerOf(this.#rule)
    if (ending === 'hush') {
      await Promise.race([this.#talk.reader.ended, this.#talk.pause(HOLD_LIMIT)])
      this.#talk.close('rst', 'body')
    } else if (this.#said === undefined && say.kind !== 'usual') {
      this.#said = await this.#talk.perform('body', this.#rule, [])
    }
    return this.#talk.open
  }
}

/** What rules can know of a content. */
export interface ContentFacts {
  readonly size: number
  readonly header: (name: string) => readonly string[]
}

export function factsOf(content: Buffer): ContentFacts {
  const scan = new HeaderScan()
  scan.scan(content, true)
  const header = (name: string): readonly string[] =>
    scan.fields
      .filter((field) => field.name === name)
      .map(({ valueStart, end }) => content.toString('utf8', valueStart, end).replace(/\s+/g, ' ').trim())
  return { size: content.length, header }
}
