/** Failures of requests, for commands: one sentence and an exit code. */
import type { InvalidMember } from '../presentation/checked-value.ts'
import { jsonLine } from '../presentation/text.ts'
import { errorExitCode, errorMessage } from '../system/caught-error.ts'
import { exitCodeOf, SOFTWARE } from './command-protocol.ts'
import { Problem, problemJson, problemOf } from './problem-details.ts'
import { OtherShape } from './request-body.ts'
import type { Answer } from './route-table.ts'

interface CommandFailure {
  readonly detail: string
  /** As of sysexits(3). */
  readonly exit_code: number
}

/** The members that a request has too many or too few, since the command is of another version. Values are those of the operator. */
const isOfOtherVersion = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof OtherShape && error.cause.invalid[0]?.kind !== 'invalid'

function exitCode(error: unknown): number {
  if (isOfOtherVersion(error)) return SOFTWARE
  const own = errorExitCode(error) ?? (error instanceof Error ? errorExitCode(error.cause) : undefined)
  return own ?? (error instanceof Problem ? exitCodeOf(error.kind) : SOFTWARE)
}

export const commandFailure = (error: unknown): CommandFailure => ({
  detail:
    error instanceof Error && error.cause instanceof OtherShape
      ? `request refused: ${describeProblem(error.cause.invalid)}`
      : errorMessage(error),
  exit_code: exitCode(error),
})

/** The answer to a refused or failed request of a local command: problem details, with the exit code. */
export function commandProblem(error: unknown, requestId: string): Extract<Answer, { kind: 'text' }> {
  const problem = problemOf(error)
  return {
    kind: 'text',
    status: problem.kind.status,
    contentType: 'application/problem+json',
    text: jsonLine({ ...problemJson(problem, requestId), ...commandFailure(error) }),
    headers: problem.headers,
  }
}

/** Describes the first problem of a body in one sentence. Unknown or missing members indicate a client of another version. */
export function describeProblem(invalid: readonly InvalidMember[]): string {
  const [first] = invalid
  if (first === undefined) return 'the request has another shape than expected'
  const { kind, path, detail } = first
  const parent = path.slice(0, -1).map(String)
  switch (kind) {
    case 'unknown': {
      const names = invalid.filter((one) => one.kind === 'unknown' && one.path.slice(0, -1).join('.') === parent.join('.'))
      const shownNames = names.map((one) => JSON.stringify(one.path.at(-1))).join(', ')
      return `unknown member ${shownNames}${within(parent)}; if this daemon is older than the command, restart it`
    }
    case 'missing':
      return `missing member ${JSON.stringify(path.at(-1) ?? '')}${within(parent)}; use a command of the daemon's version`
    case 'invalid':
      return [...(path.length > 0 ? [path.map(String).join('.')] : []), detail].join(': ')
  }
}

const within = (path: readonly string[]): string => (path.length === 0 ? '' : ` of ${path.join('.')}`)
