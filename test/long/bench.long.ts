/** A small run of the bench: each case comes to its end, and has its measures. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CASES } from '../../scripts/bench/cases.ts'
import { runRelays, type Result } from '../../scripts/bench/relays.ts'
import { reasonAgainstClient } from '../../scripts/bench/smtp-source.ts'
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
  const possible = CASES.filter((load) => reasonAgainstClient(load) === null)
  const names = possible.map(({ name }) => name)
  expect(turnsOf('tree').map((turn) => turn.case)).toEqual(names)
  const omitted = result.omitted.filter((one) => one.name === 'without-store').map((one) => one.case)
  expect(omitted.filter((name) => names.some((one) => one === name))).toEqual(['5-MB', '20-MB', 'deferred', 'bounced', 'drain', 'store'])
  expect(turnsOf('without-store').map((turn) => turn.case)).toEqual(names.filter((name) => !omitted.includes(name)))
  for (const turn of result.turns) expect(turn.rate, turn.case).toBeGreaterThan(0)

  const casesWith = (measure: 'accept99' | 'deliver99' | 'loop99') =>
    turnsOf('tree').flatMap((turn) => (turn[measure] === null ? [] : turn.case))
  const withoutMail = ['drain', 'store']
  const timed = possible.filter(({ client }) => client === 'own').map(({ name }) => name)
  expect(casesWith('accept99')).toEqual(timed.filter((name) => !withoutMail.includes(name)))
  expect(casesWith('deliver99')).toEqual(casesWith('accept99').filter((name) => name !== 'accepted' && name !== 'deferred'))
  expect(casesWith('loop99')).toEqual(['paced'])
  expect(goalsOf(result.turns)).toHaveLength(4)
  expect(performancePage(publish({ relays: [], parts: [] }, [{ name: json, content: result }]))).toContain('| `drain` |')
})
