/** The table of the long tests: every suite is in it, and every run of a suite is in one part. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MOST_MINUTES, nameOf, PARTS, partsOf, selectedParts, shardOf, SUBJECTS, suiteOf, type SubjectName } from './parts.ts'
import { portion } from './portion.ts'

const subjects = Object.keys(SUBJECTS) as SubjectName[]
const files = globSync(join(import.meta.dirname, '*.long.ts'))

test('every suite has its subjects', () => {
  expect([...new Set(subjects.map(suiteOf))].toSorted()).toEqual(files.map((file) => basename(file)).toSorted())
})

test('a suite asks for its portion of each subject that is divided, or is one of several', () => {
  for (const subject of subjects.filter((name) => name.includes('/') || SUBJECTS[name].runs !== null)) {
    const text = readFileSync(join(import.meta.dirname, suiteOf(subject)), 'utf8')
    const asks = text.includes(`'${subject}'`) || text.includes(`\`${subject.replace(/[^/]+$/, '')}\${`)
    expect([subject, asks]).toEqual([subject, true])
  }
})

test('no part takes more minutes than allowed', () => {
  expect(PARTS.filter(({ minutes }) => minutes > MOST_MINUTES)).toEqual([])
})

test('the ranges of a subject are its runs, without gap or overlap', () => {
  const numbers = fc.integer({ min: 1, max: 60 })
  fc.assert(
    fc.property(numbers, numbers, (count, each) => {
      const parts = partsOf('simulation/dense', { minutes: 1, runs: { of: 'seeds', count, each } })
      const runs = parts.flatMap(({ range }) =>
        range === null ? [] : Array.from({ length: range.to - range.from + 1 }, (_, n) => range.from + n),
      )
      expect(runs).toEqual(Array.from({ length: count }, (_, n) => n + 1))
    }),
    { numRuns: 40 },
  )
})

test('the shards of any selection have each part once, in about equal times', () => {
  for (const count of [1, 2, 5, 100]) {
    const shards = Array.from({ length: count }, (_, n) => shardOf(PARTS, { n: n + 1, of: count }))
    expect(shards.flat().map(nameOf).toSorted()).toEqual(PARTS.map(nameOf).toSorted())
    const times = shards.map((parts) => parts.reduce((sum, { minutes }) => sum + minutes, 0))
    expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(MOST_MINUTES)
  }
})

test('test:reliability has every suite that RELIABILITY.md names as the proof of a promise', () => {
  const read = (name: string): string => readFileSync(join(import.meta.dirname, '../..', name), 'utf8')
  const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> }
  const filters = scripts['test:reliability']?.split(' ').slice(2)
  const rows = read('RELIABILITY.md').matchAll(/^\| [^|]*\| ([^|]*test\/long\/[^|]*)\|/gm)
  const named = [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/test\/long\/([a-z-]+\.long\.ts)/g)].map(([, suite]) => suite))
  expect(named.length).toBeGreaterThan(10)
  expect(selectedParts(filters ?? []).map(({ subject }) => suiteOf(subject))).toEqual(expect.arrayContaining(named))
})

describe('a filter', () => {
  test('is a text in the names', () => {
    expect(selectedParts(['killed']).map(nameOf)).toEqual(PARTS.map(nameOf).filter((name) => name.includes('killed')))
    expect(selectedParts(['killed', 'killed-daemon'])).toEqual(selectedParts(['killed']))
  })

  test('may be a range of a subject', () => {
    expect(selectedParts(['simulation/dense:3-4']).map(nameOf)).toEqual(['simulation/dense:3-4'])
  })

  test.each(['nothing', 'simulation/dense:0-4', 'simulation/dense:5-4', 'bench:1-2'])('that selects no part is refused: %s', (filter) => {
    expect(() => selectedParts([filter])).toThrow(`no part has the name "${filter}"`)
  })
})

describe('the portion of a suite', () => {
  test('is the range of the part, and nothing of other subjects', () => {
    for (const part of PARTS) {
      const { from, to } = part.range ?? { from: 1, to: 1 }
      expect(portion(part.subject, nameOf(part))).toEqual({ isIncluded: true, from, to })
      expect(subjects.filter((subject) => portion(subject, nameOf(part)).isIncluded)).toEqual([part.subject])
    }
  })

  test('is all of it without a part', () =>
    expect(portion('simulation/dense', undefined)).toEqual({ isIncluded: true, from: 1, to: 10_000 }))

  test('of an unknown part is refused', () => expect(() => portion('bench', 'bnech')).toThrow('"bnech" names no part'))
})
