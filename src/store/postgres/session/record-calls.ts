/** Runs calls of records (records/record-table.ts). */
import { spelledMatches, valueFor, type Caller, type RecordCall, type Statement } from '../../records/record-table.ts'
import { storableText } from './arrays.ts'
import type { Parameter, Statements } from './database-connection.ts'
import { matches } from './patterns.ts'

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
  const spelled = spelledMatches(text.replaceAll('json_each(', 'json_array_elements('), matches)
  return { text: spelled.replaceAll(/:(\w+)/g, (_, name: string) => `$${number(name)}`), names }
}

/** A reader, which has no name in what it reads. */
const READER: Caller = { owner: 0, name: null }

/** Statements of an owner, or of a reader. */
type OwnStatements = Statements & { readonly caller?: Caller }

/** Sends all statements of a call at once. */
export async function runRecord<A extends readonly unknown[], R>(
  statements: OwnStatements,
  call: RecordCall<A, R>,
  ...args: A
): Promise<R> {
  const answers = await Promise.all(call.statements(...args).map((statement) => rowsOf(statements, statement)))
  return call.answer(answers.at(-1) ?? [])
}

function rowsOf(statements: OwnStatements, { text, values }: Statement): Promise<readonly object[]> {
  const spelled = known.get(text) ?? numbered(text)
  known.set(text, spelled)
  const parameters = spelled.names.map((name): Parameter => {
    const value = valueFor(statements.caller ?? READER, values[name] ?? null)
    return typeof value === 'string' ? storableText(value) : value instanceof Uint8Array ? Buffer.from(value) : value
  })
  return statements.query<object>(spelled.text, parameters)
}
