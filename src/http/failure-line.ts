/** Error responses for commands, on the control socket: a JSON object with one sentence and an exit code. */
import { ZodError } from 'zod'
import { errorExitCode, errorMessage } from '../system/caught-error.ts'
import { problemOf } from './problem-details.ts'
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

/** The error response for a command. */
export function failureAnswer(error: unknown): Extract<Answer, { kind: 'json' }> {
  const { kind, headers } = problemOf(error)
  return { kind: 'json', status: kind.status, value: failureOf(error), headers }
}

export function failureOf(error: unknown): Failure {
  const why =
    error instanceof Error && error.cause instanceof ZodError ? `request refused: ${describeProblem(error.cause)}` : errorMessage(error)
  return { kind: 'failed', why, exitCode: errorExitCode(error) ?? SOFTWARE }
}

/** Describes the first problem of a body in one sentence. Unknown or missing members indicate a client of another version. */
export function describeProblem({ issues: [issue] }: ZodError): string {
  if (issue === undefined) return 'the request has another shape than expected'
  const path = issue.path.map(String)
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => JSON.stringify(key)).join(', ')
    return `unknown member ${names}${within(path)}; if this daemon is older than the command, restart it`
  }
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) {
    return `missing member "${path.at(-1) ?? ''}"${within(path.slice(0, -1))}; use a command of the daemon's version`
  }
  return [...(path.length > 0 ? [path.join('.')] : []), issue.message].join(': ')
}

const within = (path: readonly string[]): string => (path.length === 0 ? '' : ` of ${path.join('.')}`)
