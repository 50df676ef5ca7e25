/** Answers the questions of commands to this node: its destinations, and its status. */
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import type { QuestionTable } from '../../store/membership/questions.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'

/** Time for which the command that asked waits, and the end of the watch for its last answer. */
const PATIENCE: Duration = SECOND

export interface QuestionWatchDeps {
  readonly clock: Clock
  readonly table: QuestionTable
  /** Answers by the first word of a question; they get the rest of it. An unknown question is answered with null. */
  readonly answers: Readonly<Record<string, (rest: string) => unknown>>
}

/** Looks for questions once a second, and after each hint of the table. */
export function answerQuestions({ clock, table, answers }: QuestionWatchDeps): PeriodicTask {
  const answerAll = async (): Promise<void> => {
    for (const question of await table.questions()) {
      const [, word = '', rest = ''] = /^(\S*) ?(.*)$/s.exec(question.what) ?? []
      const answer = await answers[word]?.(rest)
      await table.answer(question, JSON.stringify(answer ?? null))
    }
  }
  const task = every(clock, SECOND, answerAll, { immediate: true, failed: rethrowUnlessUnavailable, stopLimit: PATIENCE })
  table.onQuestion(() => task.wake())
  return task
}
