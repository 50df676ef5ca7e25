/**
 * A thread that is asked and answers, in that order: for work on many messages at which the event loop should not
 * stand still.
 */
import { parentPort, Worker, type WorkerOptions } from 'node:worker_threads'

/** The file of a thread beside the one that starts it: sources in a checkout, emitted JavaScript in the package. */
export const threadFile = (beside: string, name: string): URL => new URL(`./${name}${beside.endsWith('.ts') ? '.ts' : '.js'}`, beside)

export class AskedThread<Question, Answer> {
  readonly #worker: Worker
  readonly #waiting: PromiseWithResolvers<Answer>[] = []
  /** Why nobody answers any more. */
  #failure: Error | null = null

  constructor(file: URL, options: WorkerOptions) {
    this.#worker = new Worker(file, options)
    this.#worker.on('message', (answer: Answer) => this.#waiting.shift()?.resolve(answer))
    this.#worker.on('error', (error: Error) => this.#fail(error))
    this.#worker.on('exit', () => this.#fail(new Error('the thread has ended')))
  }

  /** Rejects when the thread failed, at this question or at one before. */
  ask(question: Question): Promise<Answer> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    const answer = Promise.withResolvers<Answer>()
    // Whoever waits for the first of several answers hears of the failure; the others must not be unhandled.
    answer.promise.catch(() => undefined)
    this.#waiting.push(answer)
    this.#say(question)
    return answer.promise
  }

  /** Lets it answer what it was asked, and end. It is never terminated: it must close what it has opened itself. */
  async end(): Promise<void> {
    if (this.#failure !== null) return
    // Not by events.once, which would fail with the thread: whoever asked has heard of that.
    const ended = new Promise<void>((resolve) => void this.#worker.once('exit', () => resolve()))
    this.#say(null)
    await ended
  }

  #say(word: Question | null): void {
    this.#worker.postMessage(word, [])
  }

  #fail(error: Error): void {
    this.#failure ??= error
    for (const one of this.#waiting.splice(0)) one.reject(this.#failure)
  }
}

/** The other end of it: gives an answer, with the memory that goes along, to every question, and closes when told to end. */
export function answering(
  answer: (question: never) => { readonly answer: unknown; readonly transfer: ArrayBuffer[] },
  close: () => void,
): void {
  if (parentPort === null) throw new Error('this is for a worker thread')
  const port = parentPort
  port.on('message', (question: unknown) => {
    if (question !== null) {
      const given = answer(question as never)
      port.postMessage(given.answer, given.transfer)
      return
    }
    close()
    port.close()
  })
}
