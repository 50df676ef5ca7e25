import { jsonLine } from '../presentation/text.ts'
import { problemJson, type Problem } from './problem-details.ts'
import type { Answer } from './route-table.ts'

/** The response to a request that failed, in problem details (RFC 9457). */
export const problemAnswer = (problem: Problem, requestId: string): Extract<Answer, { kind: 'text' }> => ({
  kind: 'text',
  status: problem.kind.status,
  contentType: 'application/problem+json',
  text: jsonLine(problemJson(problem, requestId)),
  headers: problem.headers,
})
