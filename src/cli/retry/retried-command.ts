/** Repeats a command under a policy until it succeeds: the work of `deferd retry`. */
import { constants } from 'node:os'
import { retry, type RetryRun } from '../../backoff/retry.ts'
import type { Limit } from '../../backoff/attempts.ts'
import type { RetryPolicy } from '../../backoff/retry-policy.ts'
import type { Timers } from '../../system/clock.ts'
import { EX } from '../shell/exit.ts'
import { ChildRun, type ChildCommand, type ChildEnd } from './child-run.ts'

interface RetriedCommand {
  readonly words: readonly string[]
  /** Servers of which any one may serve a round; null for a command without them. */
  readonly servers: readonly string[] | null
  readonly policy: RetryPolicy
  readonly limit: Limit
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Timers
}

interface RetriedEnd {
  readonly code: number
  /** Sentence for an end that is not the command's own; absent otherwise. */
  readonly text?: string
}

/** Signals that end the repetitions, and those that are only passed on. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
const PASSED = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT'] as const

/** A run that failed. */
class RunFailed extends Error {}

/** Repetitions end at once: the command cannot be started, or a signal came. */
class Ended extends Error {
  readonly end: RetriedEnd

  constructor(end: RetriedEnd) {
    super('ended')
    this.end = end
  }
}

const commandFor = ({ words, env }: RetriedCommand, server: string | null): ChildCommand => {
  const [file = '', ...args] = server === null ? words : words.map((word) => word.replaceAll('{}', server))
  return { file, args, env: server === null ? env : { ...env, DEFERD_SERVER: server } }
}

export class Repetition {
  readonly #command: RetriedCommand
  readonly #ending = new AbortController()
  #current: ChildRun | null = null
  /** Exit code of the last run that ended by itself. */
  #last: number | null = null
  /** Exit code of the last signal that ends the repetitions. */
  #received: number | null = null

  constructor(command: RetriedCommand) {
    this.#command = command
  }

  async run(): Promise<RetriedEnd> {
    const { policy, limit, clock } = this.#command
    const [end, pass] = [(signal: NodeJS.Signals) => this.#signalled(signal), (signal: NodeJS.Signals) => this.#current?.kill(signal)]
    for (const signal of ENDING) process.on(signal, end)
    for (const signal of PASSED) process.on(signal, pass)
    try {
      await retry((run) => this.#round(run), { policy, until: limit, clock, signal: this.#ending.signal })
      return { code: 0 }
    } catch (error) {
      await this.#current?.ended
      if (error instanceof Ended) return error.end
      if (this.#last !== null) return { code: this.#last }
      return { code: EX.temporary, text: 'no run ended before the end of --for' }
    } finally {
      for (const signal of ENDING) process.off(signal, end)
      for (const signal of PASSED) process.off(signal, pass)
    }
  }

  /** Runs the command, for each server until it succeeds. */
  async #round({ signal }: RetryRun): Promise<void> {
    for (const server of this.#command.servers ?? [null]) {
      const ended = await this.#runOnce(server, signal)
      if (ended.kind === 'not-found') {
        this.#end({ code: EX.unavailable, text: `cannot start ${this.#command.words[0] ?? ''}: ${ended.why}` })
        throw new RunFailed()
      }
      if (this.#received !== null) this.#end({ code: ended.code })
      if (signal.aborted) throw new RunFailed()
      this.#last = ended.code
      if (ended.code === 0) return
    }
    throw new RunFailed()
  }

  async #runOnce(server: string | null, signal: AbortSignal): Promise<ChildEnd> {
    const run = new ChildRun(commandFor(this.#command, server), this.#command.clock)
    this.#current = run
    const stop = (): void => void run.terminate()
    signal.addEventListener('abort', stop, { once: true })
    const ended = await run.ended
    signal.removeEventListener('abort', stop)
    this.#current = null
    return ended
  }

  #signalled(signal: NodeJS.Signals): void {
    this.#received = 128 + constants.signals[signal]
    if (this.#current === null) this.#end({ code: this.#received })
    else this.#current.kill(signal)
  }

  #end(end: RetriedEnd): void {
    this.#ending.abort(new Ended(end))
  }
}
