/**
 * Background tasks that a stop waits for. An error of a task is passed to `failed`. An error thrown by `failed` is not handled,
 * so it ends the process like any bug.
 */
export class TaskSet {
  readonly #tasks = new Set<Promise<void>>()
  readonly #failed: (error: unknown) => void

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  add(task: Promise<void>): void {
    const ended = (): void => void this.#tasks.delete(tracked)
    const tracked = task.then(ended, (error: unknown) => {
      ended()
      this.#failed(error)
    })
    this.#tasks.add(tracked)
  }

  /** Resolves when no task is running. Tasks added in the meantime are awaited too. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks)
  }
}
