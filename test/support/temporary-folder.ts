/**
 * Directs all temporary files of the tests into one folder, which is removed after the tests. The folder also holds Node's compile
 * cache, which hundreds of threads and processes share.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-test-'))
  process.env['TMPDIR'] = folder
  process.env['NODE_COMPILE_CACHE'] ??= join(folder, 'compile-cache')
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
