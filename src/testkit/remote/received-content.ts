/** Receives the content of a message and counts its bytes, so that a rule can act after a number of bytes. */
import { HOUR, SECOND, type Duration } from '../../system/clock.ts'
import { fieldsOf } from '../../mail/headers.ts'
import { actionOf, type FaultInjector, type ReplySent } from './fault-injector.ts'
import type { Rule } from './rule.ts'

/** Maximum duration of a stall in the content. While the socket is paused, the end of the connection is not noticed. */
const HOLD_LIMIT: Duration = HOUR

export class Incoming {
  readonly #talk: FaultInjector
  readonly #rule: Rule | undefined
  #count = 0
  #sent: ReplySent | undefined

  constructor(talk: FaultInjector, rule: Rule | undefined) {
    this.#talk = talk
    this.#rule = rule
  }

  /** Reply sent before the end of the content. It replaces the reply to the final dot. */
  get sent(): ReplySent | undefined {
    return this.#sent
  }

  /** Reads the content; null if the connection ended before the final dot. */
  async read(): Promise<Buffer | null> {
    const content = await this.#talk.reader.content((bytes) => this.#progress(bytes))
    return this.#talk.open ? content : null
  }

  /** Counts bytes and applies the rule. Resolves with false to stop reading. */
  async #progress(bytes: number): Promise<boolean> {
    this.#count += bytes
    const fault = this.#rule?.fault
    if (fault?.at !== 'body' || this.#count < fault.after) return this.#talk.open
    if (fault.readRate !== undefined) await this.#talk.pause((bytes * SECOND) / Math.max(1, fault.readRate))
    const { ending, text } = actionOf(this.#rule)
    if (ending === 'stall') {
      await Promise.race([this.#talk.reader.ended, this.#talk.pause(HOLD_LIMIT)])
      this.#talk.close('rst', 'body')
    } else if (this.#sent === undefined && text.kind !== 'usual') {
      this.#sent = await this.#talk.perform('body', this.#rule, [])
    }
    return this.#talk.open
  }
}

/** Facts about a content that rules can test. */
export interface ContentFacts {
  readonly size: number
  readonly header: (name: string) => readonly string[]
}

export function factsOf(content: Buffer): ContentFacts {
  const fields = [...fieldsOf(content)]
  const header = (name: string): readonly string[] => fields.filter((field) => field.name === name).map(({ value }) => value)
  return { size: content.length, header }
}
