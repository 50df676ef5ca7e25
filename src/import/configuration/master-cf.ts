/** Reads Postfix's master.cf (master(5)). Pure. */
import { logicalLines } from './main-cf.ts'

export interface MasterService {
  readonly name: string
  /** `inet`, `unix`, `pass`, … */
  readonly type: string
  /** The program, such as smtpd. */
  readonly command: string
  /** Maximum number of processes; null for default_process_limit, and 0 for no limit. */
  readonly processLimit: number | null
  /** Overrides of main.cf (`-o name=value`), unexpanded. */
  readonly overrides: ReadonlyMap<string, string>
}

export interface MasterCf {
  readonly services: readonly MasterService[]
  /** Numbers of lines that are not services. */
  readonly malformed: readonly number[]
}

/** Fields before the command, of which the last is the process limit. */
const FIELD_COUNT = 7

export function parseMasterCf(text: string): MasterCf {
  const services: MasterService[] = []
  const malformed: number[] = []
  for (const line of logicalLines(text)) {
    const words = wordsOf(line.text)
    const [name, type] = words
    const command = words[FIELD_COUNT]
    if (name === undefined || type === undefined || command === undefined) malformed.push(line.number)
    else
      services.push({
        name,
        type,
        command,
        processLimit: limitIn(words[FIELD_COUNT - 1]),
        overrides: overridesIn(words.slice(FIELD_COUNT + 1)),
      })
  }
  return { services, malformed }
}

const limitIn = (word: string | undefined): number | null => (/^\d+$/.test(word ?? '') ? Number(word) : null)

/** Words of a line. Text in braces is one word, without the braces. */
const wordsOf = (line: string): readonly string[] =>
  [...line.matchAll(/\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}(?=\s|$)|\S+/g)].map(([word, inner]) => inner?.trim() ?? word)

/** `-o name=value`, `-oname=value` and `-o { name = value }`. */
function overridesIn(words: readonly string[]): ReadonlyMap<string, string> {
  const overrides = new Map<string, string>()
  words.forEach((word, i) => {
    const text = word === '-o' ? words[i + 1] : /^-o(.+)$/s.exec(word)?.[1]
    const [, name, value] = /^\s*([\w-]+)\s*=\s*(.*)$/s.exec(text ?? '') ?? []
    if (name !== undefined && value !== undefined) overrides.set(name, value)
  })
  return overrides
}
