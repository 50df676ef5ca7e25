/**
 * A thread for matches of patterns that take many steps, started with the first such match. It runs one match at a time; a match that
 * exceeds its time limit has the thread terminated.
 */
import type { Worker } from 'node:worker_threads'
import type { Duration, Timer, Timers } from '../system/clock.ts'
import { eventLoopTurn } from '../system/event-loop.ts'
import { thread } from '../system/packaged-files.ts'
import type { Groups } from './pattern.ts'
import type { MatchRequest } from './pattern-table.ts'
import type { ThreadMatch } from './pattern-worker.ts'

const MATCH_LIMIT: Duration = 100

type Outcome = Groups | null | 'too long'

interface Job {
  readonly match: ThreadMatch
  readonly answer: PromiseWithResolvers<Outcome>
}

export class PatternThread {
  readonly #clock: Timers
  readonly #waiting: Job[] = []
  #running: Job | null = null
  #limit: Timer | null = null
  /** Resolves when the thread is ready; null without a thread. */
  #thread: { readonly worker: Worker; readonly ready: Promise<void> } | null = null

  constructor(clock: Timers) {
    this.#clock = clock
  }

  /** Resolves with `too long` at the time limit. Rejects when the thread fails, which is a bug. */
  match({ pattern, octets, withGroups }: MatchRequest): Promise<Outcome> {
    const job: Job = { match: { expression: pattern.expression, octets, withGroups }, answer: Promise.withResolvers() }
    this.#waiting.push(job)
    this.#runNext()
    return job.answer.promise
  }

  async close(): Promise<void> {
    await this.#thread?.worker.terminate()
  }

  #runNext(): void {
    if (this.#running !== null) return
    const job = this.#waiting.shift()
    if (job === undefined) return
    this.#running = job
    this.#thread ??= this.#start()
    const { worker, ready } = this.#thread
    // The time in which a thread starts does not count.
    void ready.then(() => {
      if (this.#running !== job) return
      this.#limit = this.#clock.after(MATCH_LIMIT, () => void this.#exceeded(job))
      worker.postMessage(job.match, [])
    })
  }

  #start(): { readonly worker: Worker; readonly ready: Promise<void> } {
    const worker = thread('patterns/pattern-worker')
    worker.unref()
    const ready = Promise.withResolvers<void>()
    worker.on('message', (answer: Groups | null | 'ready') => (answer === 'ready' ? ready.resolve() : this.#end(worker, answer)))
    worker.on('error', (error) => this.#fail(worker, error))
    worker.on('exit', () => this.#fail(worker, new Error('the thread for patterns has ended')))
    return { worker, ready: ready.promise }
  }

  /** Ends a match at its time limit. An answer that has arrived meanwhile is taken first. */
  async #exceeded(job: Job): Promise<void> {
    await eventLoopTurn()
    if (this.#running !== job || this.#thread === null) return
    const { worker } = this.#thread
    this.#thread = null
    this.#settle((answer) => answer.resolve('too long'))
    await worker.terminate()
  }

  #end(worker: Worker, answer: Groups | null): void {
    if (this.#thread?.worker === worker) this.#settle((one) => one.resolve(answer))
  }

  #fail(worker: Worker, error: Error): void {
    if (this.#thread?.worker !== worker) return
    this.#thread = null
    this.#settle((answer) => answer.reject(error))
  }

  #settle(answer: (one: PromiseWithResolvers<Outcome>) => void): void {
    const job = this.#running
    this.#running = null
    this.#limit?.cancel()
    if (job !== null) answer(job.answer)
    this.#runNext()
  }
}
