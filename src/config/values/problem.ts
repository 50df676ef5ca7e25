/** Problems of a configuration with their positions. They are collected, so that the operator sees all of them at once. */

export interface Problem {
  /** `deferd.toml:12`, `environment` or `-o`; empty for a problem with a default. */
  readonly where: string
  readonly text: string
}

/** The text alone when it begins with its position, which is then the name of a parameter. */
export const problemLine = ({ where, text }: Problem): string => (where === '' || text.startsWith(`${where} `) ? text : `${where}: ${text}`)

/** Line of a problem in the file; Infinity for a problem of the environment or the command line, so that it is listed last. */
const lineOf = ({ where }: Problem): number => Number(/:(\d+)$/.exec(where)?.[1] ?? Infinity)

/** Problems in the order of their lines. Problems of one line keep their order. */
export const inLineOrder = <P extends Problem>(problems: readonly P[]): readonly P[] =>
  problems.toSorted((a, b) => (lineOf(a) === lineOf(b) ? 0 : lineOf(a) - lineOf(b)))

/** An invalid configuration (EX_CONFIG). The message has one line per problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** EX_CONFIG. */
  readonly exitCode = 78
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(problemLine).join('\n'))
    this.problems = problems
  }
}

/** Levenshtein distance: the number of letters to insert, delete or replace. */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** `smtp` for parameters of the client, `smtpd` for those of the server; undefined for others. */
const sideOf = (name: string): string | undefined => /^smtpd?(?=_)/.exec(name)?.[0]

/**
 * The known name most similar to `name`; undefined when none is similar, which means that at most 2 letters, or a third of them,
 * differ. A parameter of the SMTP client is never similar to one of the server: `smtp_x` for `smtpd_x` would configure the wrong
 * direction.
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const side = sideOf(name)
  let best: string | undefined
  let least = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    if (side !== undefined && side !== (sideOf(candidate) ?? side)) continue
    const letters = distance(name, candidate)
    if (letters < least) [best, least] = [candidate, letters]
  }
  return best
}
