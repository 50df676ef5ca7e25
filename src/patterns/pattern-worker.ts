/** The thread of PatternThread: matches one expression at a time. Compiled expressions are kept. */
import { parentPort } from 'node:worker_threads'
import { Pattern, type Expression } from './pattern.ts'

export interface ThreadMatch {
  readonly expression: Expression
  readonly octets: string
  readonly withGroups: boolean
}

const MOST_KEPT_EXPRESSIONS = 1_000
const compiled = new Map<string, Pattern>()

function patternOf(expression: Expression): Pattern {
  const key = `${expression.flags} ${expression.text}`
  const known = compiled.get(key)
  if (known !== undefined) return known
  if (compiled.size >= MOST_KEPT_EXPRESSIONS) compiled.clear()
  const pattern = new Pattern(expression)
  compiled.set(key, pattern)
  return pattern
}

parentPort?.on('message', ({ expression, octets, withGroups }: ThreadMatch) => {
  parentPort?.postMessage(patternOf(expression).match(octets, withGroups), [])
})
// Compiles the code of the matcher before the first match, whose time is limited.
new Pattern({ text: String.raw`^(\w+)+\b$`, flags: 0 }).match(`${'a'.repeat(20_000)}!`, true)
parentPort?.postMessage('ready', [])
