/** Answers the questions of commands to this node: its destinations, and its status. */
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import type { QuestionTable } from '../../store/membership/questions.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'

/** The asking command waits for this time, and so does the end of the watch for the last answer. */
const ANSWER_LIMIT: Duration = SECOND

interface QuestionWatchDeps {
  readonly clock: Clock
  readonly table: QuestionTable
  /** Answers by the first word of a question; each gets the rest of the question. An unknown question is answered with null. */
  readonly answers: Readonly<Record<string, (rest: string) => unknown>>
}

/** Reads the questions once a second, and at each notification of the table. */
export function answerQuestions({ clock, table, answers }: QuestionWatchDeps): PeriodicTask {
  const answerAll = async (): Promise<void> => {
    for (const question of await table.questions()) {
      const [, word = '', rest = ''] = /^(\S*) ?(.*)$/s.exec(question.what) ?? []
      const answer = await answers[word]?.(rest)
      await table.answer(question, JSON.stringify(answer ?? null))
    }
  }
  const task = every(clock, SECOND, answerAll, { immediate: true, failed: rethrowUnlessUnavailable, stopLimit: ANSWER_LIMIT })
  table.onQuestion(() => task.wake())
  return task
}
