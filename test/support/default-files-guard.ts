/**
 * Fails a test that reads the configuration of the machine on which it runs. Child processes get an empty file through
 * `DEFERD_CONFIG` (vitest.config.ts), which has precedence over the default files.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname } from 'node:path'
import { DEFAULT_FILES } from '../../src/config/values/sources.ts'

const GUARD = Symbol.for('deferd default files guard')
const folder = dirname(DEFAULT_FILES.system)
const read: typeof fs.readFileSync & { readonly [GUARD]?: true } = fs.readFileSync

// Runs once per test file, in a process that several test files share.
if (read[GUARD] === undefined) {
  const guarded = (...given: Parameters<typeof read>) => {
    if (String(given[0]).startsWith(folder)) throw new Error('tests do not read the configuration of this machine')
    return read(...given)
  }
  fs.readFileSync = Object.assign(guarded, { [GUARD]: true }) as typeof read
  syncBuiltinESMExports()
}
