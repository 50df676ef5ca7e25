/** The README: its size, its pictures, and the figures that it states, which are those of RELIABILITY.md and docs/performance.json. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Published } from '../../scripts/performance/published.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const readme = read('README.md')

const WORDS: Readonly<Record<number, string>> = { 4: 'four', 5: 'five', 6: 'six', 7: 'seventh', 9: 'ninth', 10: 'tenth' }

test('the README has at most 120 lines of at most 120 columns', () => {
  const lines = readme.trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(120)
  expect(lines.filter((line) => line.length > 120)).toEqual([])
})

test('the numbers of faults are those of RELIABILITY.md', () => {
  const row = (name: string): string =>
    read('RELIABILITY.md')
      .split('\n')
      .find((line) => line.startsWith(`| ${name} `)) ?? ''
  const [kills, cuts, syncs] = ['SIGKILL', 'power cuts', 'failed syncs'].map((name) => /\| ([\d,]+) /.exec(row(name))?.[1])
  expect(readme.replaceAll(/\s+/g, ' ')).toContain(
    `${kills} kills, ${cuts} simulated power cuts and ${syncs} failed syncs lost no acknowledged message`,
  )
  expect(row('SIGKILL')).toContain(' 0 lost')
  expect(row('power cuts')).toContain(' 0 with a lost change')
  expect(row('failed syncs')).toContain(' 0 lost')
})

test('the ratios to Postfix are those of docs/performance.json', () => {
  const { relays } = JSON.parse(read('docs/performance.json')) as Published
  const ratio = (name: string, of: 'cpuRatio' | 'rateRatio'): number => {
    const found = relays.flatMap(({ summaries }) => summaries).find((one) => one.case === name && one.contestant === 'postfix')?.[of]
    if (found === undefined || found === null) throw new Error(`docs/performance.json has no ${of} of ${name} beside Postfix`)
    return found.median
  }
  const cpu = (name: string): string => WORDS[Math.floor(ratio(name, 'cpuRatio') + 0.1)] ?? ''
  const rates = ['kept', 'new', 'smtp-source-kept', 'smtp-source-new'].map((name) => 1 / ratio(name, 'rateRatio'))
  const claim = readme.replaceAll(/\s+/g, ' ')
  expect(claim).toContain(`**A ${cpu('kept')} of Postfix's CPU time per message** over kept connections, a ${cpu('new')} with a new`)
  expect(claim).toContain(
    `${WORDS[Math.floor(Math.min(...rates))]} to ${WORDS[Math.floor(Math.max(...rates))]} times as many messages a second`,
  )
})

test('docs/README.md leads to every page', () => {
  const list = read('docs/README.md')
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md')
  // Generated chapters are reached from the page whose chapter they are.
  const chapters = new Set(['relay-events.md'])
  expect(pages.filter((name) => !chapters.has(name) && !list.includes(`](${name})`))).toEqual([])
})
