/**
 * The speaking half of a session: asks the rules what to do at a stage, does it on the connection, and tells what was
 * said. It knows nothing of SMTP's commands.
 */
import type { Socket } from 'node:net'
import { sleep, type Clock, type Duration, type Timer } from '../../mail/clock.ts'
import type { Circumstances } from './circumstances.ts'
import type { FarEvent } from './events.ts'
import type { Manner, Rule, SpokenStage } from './rule.ts'
import { codeSaid, PLAINLY, speak, type Step } from './speech.ts'
import type { WireReader } from './wire-reader.ts'

/** What a session needs of the far side it belongs to. */
export interface Judge {
  /** The rule that acts now, if any; being asked is an occasion. `early`: only rules that speak before they are asked. */
  decide(facts: Circumstances, early: boolean): Rule | undefined
  tell(event: FarEvent): void
}

/** What was said at a stage. */
export interface Said {
  /** As the client can read it; undefined when it cannot. */
  readonly code: number | undefined
  readonly rule: Rule | undefined
}

/** The stage whose reply may come too early, with the reply of the one before it. */
const NEXT: Readonly<Partial<Record<SpokenStage, SpokenStage>>> = {
  greeting: 'ehlo',
  ehlo: 'mail',
  helo: 'mail',
  mail: 'rcpt',
  rcpt: 'data',
  data: 'end-of-data',
  'end-of-data': 'quit',
}

export interface ConversationParts {
  readonly socket: Socket
  readonly reader: WireReader
  readonly clock: Clock
  readonly judge: Judge
  readonly number: number
  /** What is known now, for a stage. */
  readonly facts: (stage: SpokenStage) => Circumstances
}

export const mannerOf = (rule: Rule | undefined): Manner => (rule !== undefined && 'manner' in rule.fault ? rule.fault.manner : PLAINLY)

export class Conversation {
  socket: Socket
  reader: WireReader
  readonly #parts: ConversationParts
  readonly #gone = new AbortController()
  readonly #saidEarly = new Map<SpokenStage, Said>()
  #idle: Timer | undefined
  /** We say nothing any more, and wait for the client to leave. */
  #hushed = false
  /** Where we hung up, if we did. */
  #closedAt: SpokenStage | undefined

  constructor(parts: ConversationParts) {
    this.#parts = parts
    this.socket = parts.socket
    this.reader = parts.reader
    parts.socket.once('close', () => this.#gone.abort())
  }

  /** Is there anything more to be said, as far as we are concerned? */
  get open(): boolean {
    return this.#closedAt === undefined && !this.#hushed && this.socket.writable
  }

  get closedAt(): SpokenStage | undefined {
    return this.#closedAt
  }

  /** Says what is to be said at a stage; `usual` may depend on the rule that was found. */
  async say(
    stage: SpokenStage,
    usual: readonly string[] | ((rule: Rule | undefined) => readonly string[]),
    command?: string,
  ): Promise<Said> {
    const early = this.#saidEarly.get(stage)
    this.#saidEarly.delete(stage)
    if (early !== undefined) return early
    const rule = this.#parts.judge.decide(this.#parts.facts(stage), false)
    const words = typeof usual === 'function' ? usual(rule) : usual
    const said = await this.perform(stage, rule, words, command)
    if (this.open && isPositive(said.code)) await this.#speakTooEarly(stage)
    return said
  }

  /** Does what a rule says, or the usual when there is none, and tells of it. */
  async perform(stage: SpokenStage, rule: Rule | undefined, usual: readonly string[], command?: string): Promise<Said> {
    const manner = mannerOf(rule)
    let interrupted = false
    for (const step of speak(manner, usual)) {
      interrupted = !this.open
      if (interrupted) break
      await this.#do(step, stage)
    }
    const reply = inWords(manner, usual)
    if (reply !== '') this.#parts.judge.tell({ event: 'reply', session: this.#parts.number, stage, command, reply, rule: rule?.name })
    // Who has left in the meantime was told nothing.
    return { code: interrupted ? undefined : codeSaid(manner, usual), rule }
  }

  /** A reply that no rule can change: to what is out of sequence, or not understood. */
  answer(usual: readonly string[]): void {
    for (const step of speak(PLAINLY, usual)) if (step.do === 'send' && this.open) this.socket.write(step.bytes)
  }

  /** Nothing is asked for the moment: a rule may end that. */
  startIdling(): void {
    const rule = this.#parts.judge.decide(this.#parts.facts('idle'), false)
    if (rule?.fault.at !== 'idle') return
    this.#idle = this.#parts.clock.after(rule.fault.after, () => void this.perform('idle', rule, []))
  }

  stopIdling(): void {
    this.#idle?.cancel()
  }

  /** Waits on the clock, or until the client has gone. */
  pause(delay: Duration): Promise<void> {
    return sleep(this.#parts.clock, delay, this.#gone.signal)
  }

  close(how: 'fin' | 'rst', stage: SpokenStage): void {
    this.#closedAt ??= stage
    // RST is TCP's, below any TLS.
    if (how === 'rst') this.#parts.socket.resetAndDestroy()
    else this.socket.end()
  }

  async #do(step: Step, stage: SpokenStage): Promise<void> {
    switch (step.do) {
      case 'wait':
        return this.pause(step.for)
      case 'send':
        this.socket.write(step.bytes)
        return undefined
      case 'close':
        return this.close(step.how, stage)
      case 'hush':
        this.#hushed = true
        return undefined
    }
  }

  async #speakTooEarly(stage: SpokenStage): Promise<void> {
    const next = NEXT[stage]
    if (next === undefined) return
    const rule = this.#parts.judge.decide(this.#parts.facts(next), true)
    if (rule !== undefined) this.#saidEarly.set(next, await this.perform(next, rule, []))
  }
}

export const isPositive = (code: number | undefined): boolean => code !== undefined && code >= 200 && code < 400

/** For the event: what was said, and what was done besides. */
function inWords(manner: Manner, usual: readonly string[]): string {
  const { say } = manner
  const words =
    say.kind === 'usual'
      ? usual.join(' / ')
      : say.kind === 'reply'
        ? say.lines.join(' / ')
        : say.kind === 'raw'
          ? JSON.stringify(say.bytes.slice(0, 80))
          : ''
  const deed = manner.ending === 'hush' ? '(stall)' : manner.ending === 'go-on' ? '' : `(drop ${manner.ending})`
  const part = manner.cut === undefined ? '' : `(first ${manner.cut} bytes)`
  return [words, part, deed].filter((word) => word !== '').join(' ')
}
