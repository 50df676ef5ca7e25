/**
 * Parses text files of lookup tables (Postfix postmap(1), type texthash): lines of key and value, comments that begin with `#`,
 * and lines that begin with a blank and continue the one before. Pure.
 */

/** The entries of a file by folded key, and a sentence for each line that is ignored. */
interface Texthash {
  readonly entries: ReadonlyMap<string, string>
  readonly ignored: readonly string[]
}

/** A line with those that continue it. */
export interface LogicalLine {
  readonly text: string
  /** Number of the first line, counted from 1. */
  readonly number: number
}

export function parseTexthash(text: string): Texthash {
  const entries = new Map<string, string>()
  const ignored: string[] = []
  for (const line of logicalLines(text)) {
    const pair = splitLine(line.text)
    if (pair === null) ignored.push(`line ${line.number}: expected a key, a blank and a value; the line is ignored`)
    else if (entries.has(pair.key)) ignored.push(`line ${line.number}: the key ${pair.key} is repeated; its first line counts`)
    else entries.set(pair.key, pair.value)
  }
  return { entries, ignored }
}

/** The lines of a table without comments. A line that begins with a blank continues the one before. */
export function logicalLines(text: string): readonly LogicalLine[] {
  const lines: { text: string; number: number }[] = []
  text.split('\n').forEach((line, i) => {
    if (/^\s*(?:#|$)/.test(line)) return
    const last = lines.at(-1)
    if (/^\s/.test(line) && last !== undefined) last.text += line
    else lines.push({ text: line, number: i + 1 })
  })
  return lines
}

/** Key, folded, and value. The key ends at the first blank outside quotes. Null when one of them is missing. */
function splitLine(text: string): { readonly key: string; readonly value: string } | null {
  const [, key = '', value = ''] = /^((?:[^\s"\\]|\\[^]|"(?:[^"\\]|\\[^])*")+)\s+(\S[^]*?)\s*$/.exec(text) ?? []
  return key === '' ? null : { key: key.toLowerCase(), value }
}
