/**
 * Closes the worlds that were left to the end of the test file, and fails a file that leaves another one open: its event loop functions
 * would stay in place for the test files that share the process.
 */
import { afterAll } from 'vitest'
import { closeOpenWorlds } from './open-worlds.ts'

afterAll(async () => {
  await closeOpenWorlds()
  const kept = Object.getOwnPropertyDescriptor(globalThis, 'setImmediate')?.get !== undefined
  if (kept) throw new Error('a world of the test kit is still open: close it, or declare it with `await using`')
})
