/** Calls to a worker thread, which answers them in order. Used for work on many messages that would block the event loop. */
import { parentPort, type Worker } from 'node:worker_threads'
import { errorExitCode } from './caught-error.ts'
import { seconds, sleep, type Duration } from './clock.ts'
import { systemClock } from './system-clock.ts'

/** Time limit for the end of a thread. One that runs JavaScript ends within milliseconds, one in a system call when that returns. */
const END_LIMIT: Duration = seconds(1.2)

/** Ends a thread at once. Resolves with false when it has not ended within END_LIMIT. */
export const terminated = (worker: Worker): Promise<boolean> =>
  Promise.race([worker.terminate().then(() => true), sleep(systemClock, END_LIMIT).then(() => false)])

/** An error in the form in which it is sent between threads. Structured cloning would lose its class and its exit code. */
export interface ThreadFailure {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly exitCode: number | undefined
  readonly cause: string | undefined
}

export const failureOf = (error: Error): ThreadFailure => ({
  name: error.name,
  message: error.message,
  stack: error.stack,
  exitCode: errorExitCode(error),
  cause: error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : undefined,
})

/** Recreates the error with its name and exit code, as a plain Error. */
export function errorOf({ name, message, stack, exitCode, cause }: ThreadFailure): Error {
  const error = new Error(message, cause === undefined ? {} : { cause: new Error(cause) })
  if (stack !== undefined) error.stack = stack
  return Object.assign(error, { name, ...(exitCode === undefined ? {} : { exitCode }) })
}

type Reply<Answer> = { readonly answer: Answer } | { readonly failure: ThreadFailure }

export class WorkerClient<Question, Answer> {
  readonly #worker: Worker
  readonly #recreate: (failure: ThreadFailure) => Error
  readonly #waiting: PromiseWithResolvers<Answer>[] = []
  readonly #gone = Promise.withResolvers<void>()
  #answered = 0
  #isEnding = false
  /** Set when the thread has failed or has ended. */
  #failure: Error | null = null

  /** `recreate` gives an error of the thread the class that callers know. */
  constructor(worker: Worker, recreate: (failure: ThreadFailure) => Error = errorOf) {
    this.#worker = worker
    this.#recreate = recreate
    this.#worker.on('message', (reply: Reply<Answer>) => this.#settle(reply))
    this.#worker.on('error', (error: Error) => this.#fail(error))
    this.#worker.on('exit', () => {
      this.#fail(new Error('the thread has ended'))
      this.#gone.resolve()
    })
  }

  /** Number of questions that the thread has answered. */
  get answered(): number {
    return this.#answered
  }

  /** True while a question waits for its answer, and from `end` on until the thread has ended. */
  get isWaiting(): boolean {
    return this.#failure === null && (this.#waiting.length > 0 || this.#isEnding)
  }

  get hasEnded(): boolean {
    return this.#failure !== null
  }

  /** Asks a question. Rejects with the error of this question, or when the thread has ended. */
  ask(question: Question): Promise<Answer> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    const answer = Promise.withResolvers<Answer>()
    // A caller with several questions may await only the first answer. Rejections of the others must not count as unhandled.
    answer.promise.catch(() => undefined)
    this.#waiting.push(answer)
    this.#post(question)
    return answer.promise
  }

  /** Resolves when the thread has answered all questions and ended, after it has closed its files. */
  async end(): Promise<void> {
    if (this.#failure !== null) return
    this.#isEnding = true
    this.#post(null)
    await this.#gone.promise
  }

  /** Ends the thread at once: its questions reject with `why`. Resolves with false when the thread cannot be ended. */
  abandon(why: Error): Promise<boolean> {
    this.#fail(why)
    this.#gone.resolve()
    return terminated(this.#worker)
  }

  #post(question: Question | null): void {
    this.#worker.postMessage(question, [])
  }

  #settle(reply: Reply<Answer>): void {
    const waiting = this.#waiting.shift()
    this.#answered++
    if ('failure' in reply) waiting?.reject(this.#recreate(reply.failure))
    else waiting?.resolve(reply.answer)
  }

  #fail(error: Error): void {
    this.#failure ??= error
    for (const one of this.#waiting.splice(0)) one.reject(this.#failure)
  }
}

/** An answer, with the buffers to transfer to the other thread instead of copying them. */
interface Given {
  readonly answer: unknown
  readonly transfer: ArrayBuffer[]
}

/** Runs in the thread. Answers the questions in order, and calls `close` after the last. */
export function answering(answer: (question: never) => Given | Promise<Given>, close: () => void | Promise<void>): void {
  if (parentPort === null) throw new Error('this module runs in a worker thread only')
  const port = parentPort
  const reply = async (question: unknown): Promise<void> => {
    try {
      const given = await answer(question as never)
      port.postMessage({ answer: given.answer }, given.transfer)
    } catch (error) {
      port.postMessage({ failure: failureOf(error instanceof Error ? error : new Error(String(error))) })
    }
  }
  let last = Promise.resolve()
  port.on('message', (question: unknown) => {
    last = last.then(async () => {
      if (question !== null) return reply(question)
      await close()
      port.close()
    })
  })
}
