/** A small run of the bench: each case comes to its end, and has its measures. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CASES } from '../../scripts/bench/cases.ts'
import { runRelays, type Result } from '../../scripts/bench/relays.ts'
import { goalsOf } from '../../scripts/performance/goals.ts'
import { performancePage } from '../../scripts/performance/performance-page.ts'
import { publish } from '../../scripts/performance/published.ts'

test('each case is measured by all contestants that can run it', async () => {
  await using undo = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'deferd-bench-test-'))
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))
  const json = join(folder, 'result.json')
  const args = ['--only', 'tree,without-store', '--rounds', '1', '--messages', '100', '--drained', '500', '--json', json]
  await runRelays(args, { signal: new AbortController().signal, say: console.log })
  const result = JSON.parse(readFileSync(json, 'utf8')) as Result

  const turnsOf = (contestant: string) => result.turns.filter((turn) => turn.contestant === contestant)
  expect(turnsOf('tree').map((turn) => turn.case)).toEqual(CASES.map(({ name }) => name))
  const omitted = result.omitted.map((one) => one.case)
  expect(omitted).toEqual(['5-MB', 'deferred', 'bounced', 'drain', 'store'])
  expect(turnsOf('without-store').map((turn) => turn.case)).toEqual(CASES.map(({ name }) => name).filter((name) => !omitted.includes(name)))
  for (const turn of result.turns) expect(turn.rate, turn.case).toBeGreaterThan(0)

  const casesWith = (measure: 'accept99' | 'deliver99' | 'loop99') =>
    turnsOf('tree').flatMap((turn) => (turn[measure] === null ? [] : turn.case))
  const withoutMail = ['drain', 'store']
  expect(casesWith('accept99')).toEqual(CASES.map(({ name }) => name).filter((name) => !withoutMail.includes(name)))
  expect(casesWith('deliver99')).toEqual(casesWith('accept99').filter((name) => name !== 'accepted' && name !== 'deferred'))
  expect(casesWith('loop99')).toEqual(['paced'])
  expect(goalsOf(result.turns)).toHaveLength(4)
  expect(performancePage(publish({ relays: [], parts: [] }, [{ name: json, content: result }]), '')).toContain('| `drain` |')
})
