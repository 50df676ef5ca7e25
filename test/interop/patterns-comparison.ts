/** Generated patterns in a regexp: table, and what deferd and postmap(1) find by them. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { lookUpAtOnce } from '../../src/patterns/matching.ts'
import { PatternTable } from '../../src/patterns/pattern-table.ts'
import { seededRandom } from '../../src/system/random.ts'
import { reasonToSkip } from '../support/required.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

const SIMPLE = ['a', 'b', 'c', 'A', 'x', '-', ' ', '.', '1', '\u00e9', '\u00c9']
const LISTS = [
  '[abc]',
  '[^a]',
  '[[:alpha:]]',
  '[a-c1]',
  '[]a]',
  '[^]b]',
  String.raw`[a\.]`,
  '[[:upper:]x]',
  '[.-]',
  '[\u00e9]',
  '[^\u00e9]',
]
const ESCAPES = [String.raw`\.`, String.raw`\w`, String.raw`\W`, String.raw`\s`, String.raw`\b`, '^', '$', String.raw`\$`, '*']
const TIMES = ['*', '+', '?', '{2}', '{1,2}', '{,2}', '*?', '{0,1}+', '{1']
const LETTERS = 'aabbccABx-. 1$\u00e9\u00c9'.split('')

class Patterns {
  readonly #draw: () => number
  #drawn = 0

  constructor(seed: number) {
    const random = seededRandom(seed)
    this.#draw = () => random.draw(`pattern ${this.#drawn++}`)
  }

  /** A rule whose result is the whole match, and keys for it, one character per octet. */
  rule(): { readonly rule: string; readonly keys: readonly string[] } {
    const keys = this.#many(30, () =>
      this.#many(1 + Math.floor(this.#draw() * 9), () => this.#of(LETTERS))
        .join('')
        .trim(),
    )
    return {
      rule: `/(${this.#alternatives(0)})/${this.#of(['', '', 'i', 'm'])} [$1]`,
      keys: [...new Set(keys)].filter((key) => key !== ''),
    }
  }

  #alternatives(depth: number): string {
    const branch = () => this.#many(1 + Math.floor(this.#draw() * 4), () => this.#piece(depth)).join('')
    return this.#draw() < 0.7 ? branch() : `${branch()}|${this.#draw() < 0.1 ? '' : branch()}`
  }

  #piece(depth: number): string {
    return this.#atom(depth) + (this.#draw() < 0.35 ? this.#of(TIMES) : '')
  }

  #atom(depth: number): string {
    const kind = this.#draw()
    if (kind < 0.45) return this.#of(SIMPLE)
    if (kind < 0.55) return this.#of(LISTS)
    if (kind < 0.62) return this.#of(ESCAPES)
    return depth > 2 ? 'a' : `(${this.#alternatives(depth + 1)})`
  }

  #many<T>(count: number, make: () => T): readonly T[] {
    return Array.from({ length: count }, make)
  }

  #of<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#draw() * choices.length)] as T
  }
}

type Found = ReadonlyMap<string, string> | 'refused'

function foundByDeferd(rule: string, keys: readonly string[]): Found {
  try {
    const table = new PatternTable('regexp', [{ where: 'rule', text: rule }], { substitutes: true })
    return new Map(keys.flatMap((key) => [lookUpAtOnce(table.lookUp(key))].flatMap((value) => (value === undefined ? [] : [[key, value]]))))
  } catch {
    return 'refused'
  }
}

function foundByPostfix(path: string, keys: readonly string[]): Promise<Found> {
  return new Promise((resolve) => {
    // With -u, keys and values are octets.
    const args = ['-o', '-u', '-q', '-', `regexp:${path}`]
    const child = execFile('postmap', args, { encoding: 'latin1' }, (_error, out, warnings) => {
      if (warnings.includes('skipping this rule') || warnings.includes('warning: regexp map')) return resolve('refused')
      const pairs = out.split('\n').flatMap((line) => [/^([^\t]*)\t([^]*)$/.exec(line)?.slice(1) ?? []])
      resolve(new Map(pairs.flatMap(([key, value]) => (key === undefined || value === undefined ? [] : [[key, value]]))))
    })
    child.stdin?.end(Buffer.from(keys.map((key) => `${key}\n`).join(''), 'latin1'))
  })
}

/** Describes a test of generated patterns. */
export function comparePatterns(count: number): void {
  describe.skipIf(reason !== null)(`patterns in deferd and Postfix${reason === null ? '' : ` (not run: ${reason})`}`, () => {
    test(`${count} patterns have equal matches, or are refused by both`, { timeout: 600_000 }, async () => {
      const folder = mkdtempSync('/tmp/deferd-patterns-')
      const patterns = new Patterns(1)
      const refused = { deferd: 0, matches: 0 }
      try {
        for (let n = 0; n < count; n++) {
          const { rule, keys } = patterns.rule()
          const path = join(folder, 'table')
          writeFileSync(path, Buffer.from(`${rule}\n`, 'latin1'))
          const [ours, theirs] = [foundByDeferd(rule, keys), await foundByPostfix(path, keys)]
          expect({ rule, found: ours }).toEqual({ rule, found: theirs })
          if (ours === 'refused') refused.deferd++
          else refused.matches += ours.size
        }
      } finally {
        rmSync(folder, { recursive: true })
      }
      expect(refused.deferd).toBeLessThan(count / 2)
      expect(refused.matches).toBeGreaterThan(count)
    })
  })
}
