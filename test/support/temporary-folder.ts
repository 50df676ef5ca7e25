/**
 * All that tests put into the folder for temporary files goes into one of their own, which goes when they are over. So
 * does what Node makes of the sources: hundreds of threads and processes are started, and need not make it again.
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
