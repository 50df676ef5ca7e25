/**
 * How a client behaves: which commands it gave and how many errors it made. Errors slow it down and in the end show it
 * out; an accepted message makes up for all of them (postfix smtpd_soft_error_limit, smtpd_hard_error_limit).
 */
import type { Config } from '../config/options.ts'
import type { Duration } from '../mail/clock.ts'

export type ConductSettings = Pick<
  Config,
  'smtpd_soft_error_limit' | 'smtpd_hard_error_limit' | 'smtpd_error_sleep_time' | 'smtpd_junk_command_limit'
>

/** In the order in which the log names them. */
const COMMANDS = ['helo', 'ehlo', 'starttls', 'auth', 'mail', 'rcpt', 'data', 'rset', 'noop', 'vrfy', 'quit', 'unknown'] as const

export type CommandName = (typeof COMMANDS)[number]

const JUNK: ReadonlySet<CommandName> = new Set(['helo', 'ehlo', 'rset', 'noop', 'vrfy'])

export class Conduct {
  readonly #settings: ConductSettings
  readonly #counts = new Map<CommandName, [ok: number, all: number]>()
  #errors = 0
  #junk = 0

  constructor(settings: ConductSettings) {
    this.#settings = settings
  }

  /** A command was answered. `excused`: refused, but nothing to reproach the client with. */
  count(name: CommandName, code: number, excused = false): void {
    const counts = this.#counts.get(name)
    const ok = code < 400 ? 1 : 0
    if (counts === undefined) this.#counts.set(name, [ok, 1])
    else {
      counts[0] += ok
      counts[1]++
    }
    if (ok === 0 && !excused) this.#errors++
    if (JUNK.has(name) && ++this.#junk > this.#settings.smtpd_junk_command_limit) this.#errors++
  }

  /** A message was accepted. */
  forgive(): void {
    this.#errors = 0
    this.#junk = 0
  }

  /** How long to keep the client waiting for its next reply. */
  get delay(): Duration {
    return this.#errors >= this.#settings.smtpd_soft_error_limit ? this.#settings.smtpd_error_sleep_time : 0
  }

  get isExhausted(): boolean {
    return this.#errors >= this.#settings.smtpd_hard_error_limit
  }

  /** Commands by name, those answered well and all of them. */
  get commands(): Readonly<Record<string, readonly [ok: number, all: number]>> {
    const commands: Record<string, readonly [number, number]> = {}
    for (const name of COMMANDS) {
      const counts = this.#counts.get(name)
      if (counts !== undefined) commands[name] = counts
    }
    return commands
  }
}
