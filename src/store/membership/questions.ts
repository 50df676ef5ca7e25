/** Questions of commands to running nodes, which any machine with access to the queue may ask. */

/** A question of a command to one node. */
export interface Question {
  readonly id: number
  readonly what: string
}

/** The table of questions of a shared queue. */
export interface QuestionTable {
  /** Questions to this node without an answer. */
  questions(): Promise<readonly Question[]>
  answer(question: Question, text: string): Promise<void>
  /** Calls `listener` when questions may be waiting. May miss some. */
  onQuestion(listener: () => void): void
}
