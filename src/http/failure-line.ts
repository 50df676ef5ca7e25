/** Error responses for commands, on the control socket: a JSON object with one sentence and an exit code. */
import type { InvalidMember } from '../presentation/checked-value.ts'
import { errorExitCode, errorMessage } from '../system/caught-error.ts'
import { problemOf } from './problem-details.ts'
import { OtherShape } from './request-body.ts'
import type { Answer } from './route-table.ts'

/** Body of an error response. Also the last line of an NDJSON response that failed after its start. */
export interface Failure {
  readonly kind: 'failed'
  readonly why: string
  /** Exit code for a command (sysexits(3)). */
  readonly exitCode: number
}

/** EX_SOFTWARE, for errors without an exit code. */
const SOFTWARE = 70

export function failureAnswer(error: unknown): Extract<Answer, { kind: 'json' }> {
  const { kind, headers } = problemOf(error)
  return { kind: 'json', status: kind.status, value: failureOf(error), headers }
}

export function failureOf(error: unknown): Failure {
  const why =
    error instanceof Error && error.cause instanceof OtherShape
      ? `request refused: ${describeProblem(error.cause.invalid)}`
      : errorMessage(error)
  return { kind: 'failed', why, exitCode: errorExitCode(error) ?? SOFTWARE }
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
