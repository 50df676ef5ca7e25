/** Times and limits of attempts cost mail without them no statement: counted at SQLite, from the submission to the delivery or the return. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createWorld } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/world-options.ts'

let statements = 0
beforeEach(() => {
  const db = new Database(':memory:')
  const made = Object.getPrototypeOf(db.prepare('select 1')) as Record<'run' | 'get' | 'all', (...values: unknown[]) => unknown>
  db.close()
  for (const name of ['run', 'get', 'all'] as const) {
    const call = made[name]
    vi.spyOn(made, name).mockImplementation(function (this: unknown, ...values) {
      statements++
      return call.apply(this, values)
    })
  }
})
afterEach(() => vi.restoreAllMocks())

/** Statements for the second of two equal messages, which needs nothing that is made once. */
async function statementsWith(config: WorldOptions['config']): Promise<number> {
  await using world = await createWorld({ config: config ?? {}, store: { directory: mkdtempSync(join(tmpdir(), 'deferd-statements-')) } })
  world.destination('busy.example').defers('*', '450 4.2.1 busy')
  const story = async (): Promise<number> => {
    const before = statements
    await world.submit({ to: ['ann@far.example', 'eve@busy.example'] })
    await world.advance('20m')
    return statements - before
  }
  await story()
  return await story()
}

test('mail that uses none of them makes the same statements with the parameters set as without', async () => {
  const off = await statementsWith({})
  expect(off).toBeGreaterThan(5)
  expect(await statementsWith({ smtpd_future_release_limit: '7d' })).toBe(off)
  expect(await statementsWith({ maximal_delivery_attempts: 9 })).toBe(off)
})
