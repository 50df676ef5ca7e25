/**
 * What is wrong with a configuration, and where it says so. Problems are collected, so that an operator sees all of
 * them at once.
 */

export interface Problem {
  /** `deferd.toml:12`, `environment` or `-o`. */
  readonly where: string
  readonly text: string
}

/** The configuration cannot be used; every reason is in it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** EX_CONFIG. */
  readonly exitCode = 78
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ where, text }) => `${where}: ${text}`).join('\n'))
    this.problems = problems
  }
}

/** How many letters must be added, dropped or changed to make one word of the other (Levenshtein). */
function distance(a: string, b: string): number {
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

/** The known name that was probably meant; undefined when none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const letters = distance(name, candidate)
    if (letters < least) [best, least] = [candidate, letters]
  }
  return best
}
