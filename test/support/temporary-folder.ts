/**
 * Directs all temporary files of the tests into one folder, which is removed after the tests. The folder also holds what
 * many tests share: Node's compile cache, and a new cluster of PostgreSQL.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-test-'))
  // When root runs the tests, PostgreSQL runs as another user, who has to reach the folder of its server.
  if (process.getuid?.() === 0) chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  process.env['DEFERD_TEST_POSTGRES_TEMPLATE'] = join(folder, 'postgres-template')
  process.env['NODE_COMPILE_CACHE'] ??= join(folder, 'compile-cache')
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
