/** Budgets of memory, in a daemon: a twentieth of `npm run bench -- memory`. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isReached } from '../../scripts/bench/figures/figure.ts'
import { MEMORY } from '../../scripts/bench/memory/memory-subject.ts'

const SIZE = 0.05

test.each(MEMORY.parts)('memory of $name is within its budget', async ({ measure }) => {
  await using undo = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'deferd-memory-'))
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))
  const filled = join(folder, 'filled')
  mkdirSync(filled)
  const sized = (full: number): number => Math.round(full * SIZE)
  const signal = new AbortController().signal
  const figures = await measure({ folder, filled, signal, undo, rounds: 1, say: console.log, sized })
  const judged = figures.filter(({ target }) => target !== null)
  expect(judged.length).toBeGreaterThan(0)
  for (const figure of judged) expect(isReached(figure), `${figure.name}: ${figure.values.join()} ${figure.unit}`).toBe(true)
})
