import { expect, test } from 'vitest'
import { eventLoopTurn, quietTurn } from '../../src/system/event-loop.ts'

/** Runs a turn of the event loop that takes `ms`. */
function spend(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Number of turns until the promise resolves; `during` runs in each of them. */
async function turnsUntil(promise: Promise<void>, during: () => void): Promise<number> {
  const state = { isOver: false }
  const over = promise.then(() => (state.isOver = true))
  let turns = 0
  for (; !state.isOver; turns++) {
    during()
    await eventLoopTurn()
  }
  await over
  return turns
}

test('an idle event loop has a quiet turn soon', async () => {
  const turns = await turnsUntil(quietTurn(10_000), () => {})
  expect(turns).toBeGreaterThanOrEqual(2)
  // Other processes interrupt turns, but not thousands in a row.
  expect(turns).toBeLessThan(10_000)
})

test('a busy event loop has no quiet turn: the limit of turns ends the wait', async () => {
  const busy = () => spend(1)
  expect(await turnsUntil(quietTurn(7), busy)).toBe(7)
  expect(await turnsUntil(quietTurn(1), busy)).toBe(1)
})
