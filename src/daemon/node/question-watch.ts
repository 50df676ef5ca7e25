/** Answers the questions of commands to this node: its destinations, and its status. */
import { SECOND, withTimeout, type Clock, type Duration, type Timer } from '../../system/clock.ts'
import { TaskSet } from '../../system/task-set.ts'
import type { QuestionTable } from '../../store/membership/questions.ts'
import { StoreUnavailable } from '../../store/queue-store.ts'

/** Time for which the command that asked waits, and the end of the watch for its last answer. */
const PATIENCE: Duration = SECOND

export interface QuestionWatchDeps {
  readonly clock: Clock
  readonly table: QuestionTable
  /** Answers by the first word of a question; they get the rest of it. An unknown question is answered with null. */
  readonly answers: Readonly<Record<string, (rest: string) => unknown>>
}

export class QuestionWatch {
  readonly #deps: QuestionWatchDeps
  readonly #tasks = new TaskSet((error) => {
    // The command that asked stops waiting after PATIENCE.
    if (!(error instanceof StoreUnavailable)) throw error
  })
  #timer: Timer | null = null
  #running = false
  /** True when a hint came during a look. */
  #hinted = false
  #stopped = false

  constructor(deps: QuestionWatchDeps) {
    this.#deps = deps
    deps.table.onQuestion(() => {
      this.#hinted = true
      this.#look()
    })
    this.#look()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await withTimeout(this.#tasks.settled(), this.#deps.clock, PATIENCE, new AbortController().signal)
  }

  #look(): void {
    if (this.#running || this.#stopped) return
    this.#running = true
    this.#hinted = false
    this.#timer?.cancel()
    const again = (): void => {
      this.#running = false
      if (!this.#stopped) this.#timer = this.#deps.clock.after(this.#hinted ? 0 : SECOND, () => this.#look())
    }
    this.#tasks.add(this.#answerAll().finally(again))
  }

  async #answerAll(): Promise<void> {
    const { table, answers } = this.#deps
    for (const question of await table.questions()) {
      const [, word = '', rest = ''] = /^(\S*) ?(.*)$/s.exec(question.what) ?? []
      const answer = await answers[word]?.(rest)
      await table.answer(question, JSON.stringify(answer ?? null))
    }
  }
}
