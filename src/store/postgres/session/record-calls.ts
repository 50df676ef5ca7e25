/** Runs calls of records (records/record-table.ts). */
import type { RecordCall, Statement } from '../../records/record-table.ts'
import { storableText } from './arrays.ts'
import type { Parameter, Statements } from './database-connection.ts'

interface Numbered {
  readonly text: string
  /** Names of the parameters, in order. */
  readonly names: readonly string[]
}

const known = new Map<string, Numbered>()

/** A text with numbered parameters. */
export function numbered(text: string): Numbered {
  const names: string[] = []
  const number = (name: string): number => (names.includes(name) ? names.indexOf(name) + 1 : names.push(name))
  return { text: text.replaceAll(/:(\w+)/g, (_, name: string) => `$${number(name)}`), names }
}

/** Sends all statements of a call at once. */
export async function runRecord<A extends readonly unknown[], R>(statements: Statements, call: RecordCall<A, R>, ...args: A): Promise<R> {
  const answers = await Promise.all(call.statements(...args).map((statement) => rowsOf(statements, statement)))
  return call.answer(answers.at(-1) ?? [])
}

function rowsOf(statements: Statements, { text, values }: Statement): Promise<readonly object[]> {
  const spelled = known.get(text) ?? numbered(text)
  known.set(text, spelled)
  const parameters = spelled.names.map((name): Parameter => {
    const value = values[name] ?? null
    return typeof value === 'string' ? storableText(value) : value
  })
  return statements.query<object>(spelled.text, parameters)
}
