/**
 * Output half of a session: finds the rule for a stage, performs its action on the connection, and reports the reply. It does not
 * depend on SMTP commands.
 */
import type { Socket } from 'node:net'
import { sleep, type Duration, type Timer, type Timers } from '../../system/clock.ts'
import type { RuleFacts } from './rule-facts.ts'
import type { RemoteEvent } from './remote-events.ts'
import type { ReplyAction, Rule, SpokenStage } from './rule.ts'
import { codeSent, DEFAULT_ACTION, stepsOf, type Step } from './reply-steps.ts'
import type { CommandReader } from './command-reader.ts'

export interface RuleSource {
  /**
   * Returns the rule that acts now, if any. Each call counts as an occasion. With `early`, only rules that reply before the
   * command are considered; otherwise, only all other rules.
   */
  decide(facts: RuleFacts, early: boolean): Rule | undefined
  report(event: RemoteEvent): void
}

/** The reply that was sent at a stage. */
export interface ReplySent {
  /** Reply code that the client received; undefined when it received none. */
  readonly code: number | undefined
  readonly rule: Rule | undefined
}

/** The stage that follows each stage. An `early` rule sends the reply of the following stage together with the current one. */
const NEXT: Readonly<Partial<Record<SpokenStage, SpokenStage>>> = {
  greeting: 'ehlo',
  ehlo: 'mail',
  helo: 'mail',
  mail: 'rcpt',
  rcpt: 'data',
  data: 'end-of-data',
  'end-of-data': 'quit',
}

interface FaultInjectorDeps {
  readonly socket: Socket
  readonly reader: CommandReader
  readonly clock: Timers
  readonly rules: RuleSource
  readonly number: number
  /** Returns the facts that are known at a stage. */
  readonly facts: (stage: SpokenStage) => RuleFacts
}

export const actionOf = (rule: Rule | undefined): ReplyAction =>
  rule !== undefined && 'action' in rule.fault ? rule.fault.action : DEFAULT_ACTION

export class FaultInjector {
  socket: Socket
  reader: CommandReader
  readonly #deps: FaultInjectorDeps
  readonly #gone = new AbortController()
  readonly #sentEarly = new Map<SpokenStage, ReplySent>()
  #idle: Timer | undefined
  /** True after a rule has stalled the session: no more replies are sent until the client closes. */
  #stalled = false
  /** Stage at which this side closed the connection, if it did. */
  #closedAt: SpokenStage | undefined

  constructor(deps: FaultInjectorDeps) {
    this.#deps = deps
    this.socket = deps.socket
    this.reader = deps.reader
    deps.socket.once('close', () => this.#gone.abort())
  }

  /** False after this side has closed or stalled the connection, or after the connection has ended. */
  get open(): boolean {
    return this.#closedAt === undefined && !this.#stalled && this.socket.writable
  }

  get closedAt(): SpokenStage | undefined {
    return this.#closedAt
  }

  /**
   * Sends the reply of a stage, unless an early rule has already sent it. `usual`, the default reply, may depend on the rule that
   * was found. Resolves with the reply that was sent.
   */
  async reply(
    stage: SpokenStage,
    usual: readonly string[] | ((rule: Rule | undefined) => readonly string[]),
    command?: string,
  ): Promise<ReplySent> {
    const early = this.#sentEarly.get(stage)
    this.#sentEarly.delete(stage)
    if (early !== undefined) return early
    const rule = this.#deps.rules.decide(this.#deps.facts(stage), false)
    const words = typeof usual === 'function' ? usual(rule) : usual
    const said = await this.perform(stage, rule, words, command)
    if (this.open && isPositive(said.code)) await this.#replyEarly(stage)
    return said
  }

  /** Performs the action of a rule, or sends the default reply when there is no rule. Reports the reply. */
  async perform(stage: SpokenStage, rule: Rule | undefined, usual: readonly string[], command?: string): Promise<ReplySent> {
    const action = actionOf(rule)
    let interrupted = false
    for (const step of stepsOf(action, usual)) {
      interrupted = !this.open
      if (interrupted) break
      await this.#do(step, stage)
    }
    const reply = describe(action, usual)
    if (reply !== '') this.#deps.rules.report({ event: 'reply', session: this.#deps.number, stage, command, reply, rule: rule?.name })
    // An interrupted reply is incomplete, so the client has no code.
    return { code: interrupted ? undefined : codeSent(action, usual), rule }
  }

  /** Sends a reply that rules cannot change, such as that to an unknown command or to one out of sequence. */
  answer(usual: readonly string[]): void {
    for (const step of stepsOf(DEFAULT_ACTION, usual)) if (step.do === 'send' && this.open) this.socket.write(step.bytes)
  }

  /** Starts the timer of an `idle` rule, if one applies. */
  startIdling(): void {
    const rule = this.#deps.rules.decide(this.#deps.facts('idle'), false)
    if (rule?.fault.at !== 'idle') return
    this.#idle = this.#deps.clock.after(rule.fault.after, () => void this.perform('idle', rule, []))
  }

  stopIdling(): void {
    this.#idle?.cancel()
  }

  /** Waits for a duration, or until the client has closed if that is earlier. */
  pause(delay: Duration): Promise<void> {
    return sleep(this.#deps.clock, delay, this.#gone.signal)
  }

  close(how: 'fin' | 'rst', stage: SpokenStage): void {
    this.#closedAt ??= stage
    // RST affects the TCP socket below TLS.
    if (how === 'rst') this.#deps.socket.resetAndDestroy()
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
      case 'stall':
        this.#stalled = true
        return undefined
    }
  }

  async #replyEarly(stage: SpokenStage): Promise<void> {
    const next = NEXT[stage]
    if (next === undefined) return
    const rule = this.#deps.rules.decide(this.#deps.facts(next), true)
    if (rule !== undefined) this.#sentEarly.set(next, await this.perform(next, rule, []))
  }
}

export const isPositive = (code: number | undefined): boolean => code !== undefined && code >= 200 && code < 400

/** Text for the event: the reply, the number of bytes sent if the reply is cut, and the ending. */
function describe(action: ReplyAction, usual: readonly string[]): string {
  const { text } = action
  const words =
    text.kind === 'usual'
      ? usual.join(' / ')
      : text.kind === 'reply'
        ? text.lines.join(' / ')
        : text.kind === 'raw'
          ? JSON.stringify(text.bytes.slice(0, 80))
          : ''
  const after = action.ending === 'stall' ? '(stall)' : action.ending === 'continue' ? '' : `(drop ${action.ending})`
  const part = action.cut === undefined ? '' : `(first ${action.cut} bytes)`
  return [words, part, after].filter((word) => word !== '').join(' ')
}
