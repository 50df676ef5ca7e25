/**
 * Counts of a client's commands and errors. Errors delay replies (smtpd_soft_error_limit) and end the session
 * (smtpd_hard_error_limit); an accepted message resets them (Postfix smtpd).
 */
import type { Config } from '../../config/options.ts'
import type { Duration } from '../../system/clock.ts'

export type CommandStatsSettings = Pick<
  Config,
  'smtpd_soft_error_limit' | 'smtpd_hard_error_limit' | 'smtpd_error_sleep_time' | 'smtpd_junk_command_limit'
>

/** Commands, in the order in which the log lists them. */
const COMMANDS = [
  'helo',
  'ehlo',
  'starttls',
  'auth',
  'mail',
  'rcpt',
  'data',
  'bdat',
  'rset',
  'noop',
  'vrfy',
  'etrn',
  'quit',
  'xclient',
  'xforward',
  'unknown',
] as const

export type CommandName = (typeof COMMANDS)[number]

const JUNK: ReadonlySet<CommandName> = new Set(['helo', 'ehlo', 'rset', 'noop', 'vrfy', 'etrn'])

export class CommandStats {
  readonly #settings: CommandStatsSettings
  readonly #counts = new Map<CommandName, [ok: number, all: number]>()
  #errors = 0
  /** Errors before the reply that was counted last. */
  #errorsBefore = 0
  #junk = 0

  constructor(settings: CommandStatsSettings) {
    this.#settings = settings
  }

  /** Counts the reply to a command. `excused` marks a refusal that is not an error of the client. */
  count(name: CommandName, code: number, excused = false): void {
    this.#errorsBefore = this.#errors
    const counts = this.#counts.get(name)
    const ok = code < 400 && name !== 'unknown' ? 1 : 0
    if (counts === undefined) this.#counts.set(name, [ok, 1])
    else {
      counts[0] += ok
      counts[1]++
    }
    if (ok === 0 && !excused) this.#errors++
    // The command after the limit is still free, as in Postfix, which compares before it counts.
    if (JUNK.has(name) && this.#junk++ > this.#settings.smtpd_junk_command_limit) this.#errors++
  }

  /** Counts an error of the client that is no command. */
  countError(): void {
    this.#errorsBefore = this.#errors
    this.#errors++
  }

  /** Changes the last success of a command into a failure, when its result is known after its reply. */
  failed(name: CommandName): void {
    const counts = this.#counts.get(name)
    if (counts !== undefined) counts[0]--
  }

  /** Resets the error counts, as after an accepted message. */
  reset(): void {
    this.#errors = 0
    this.#errorsBefore = 0
    this.#junk = 0
  }

  /** Delay in ms of the reply that was counted last. Earlier errors count, its own does not (Postfix smtpd_chat_reply). */
  get delay(): Duration {
    return this.#delayAfter(this.#errorsBefore)
  }

  /** Delay in ms of the next reply. */
  get nextDelay(): Duration {
    return this.#delayAfter(this.#errors)
  }

  get isExhausted(): boolean {
    return this.#errors >= this.#settings.smtpd_hard_error_limit
  }

  /** Counts of accepted commands and of all commands, by name. */
  get commands(): Readonly<Record<string, readonly [ok: number, all: number]>> {
    const commands: Record<string, readonly [number, number]> = {}
    for (const name of COMMANDS) {
      const counts = this.#counts.get(name)
      if (counts !== undefined) commands[name] = counts
    }
    return commands
  }

  #delayAfter(errors: number): Duration {
    return errors >= this.#settings.smtpd_soft_error_limit ? this.#settings.smtpd_error_sleep_time : 0
  }
}
