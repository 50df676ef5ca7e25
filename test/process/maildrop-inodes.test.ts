/** Local users can use up the inodes of the disk through the maildrop. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SpareFiles } from '../../src/store/folder/spare-files.ts'

const SHORTAGE = join(import.meta.dirname, '../support/inode-shortage.ts')
const hasNamespaces = spawnSync('unshare', ['-Urm', 'true']).status === 0
if (!hasNamespaces) console.warn('no user namespaces here: a disk without inodes is not tried')

const inFolder = (use: (folder: string) => void): void => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-inodes-'))
  try {
    use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test.runIf(hasNamespaces)('without free inodes the daemon runs on, stops and starts again', () => {
  inFolder((folder) => {
    const { stdout, stderr } = spawnSync('unshare', ['-Urm', process.execPath, SHORTAGE, folder], { encoding: 'utf8' })
    expect([stderr, JSON.parse(stdout || 'null')]).toEqual(['', { left: [0, 0, 0], exits: [0, 0, 0], errors: [] }])
  })
})

test('spare files are created in a folder of their own, released and restored; elsewhere nothing is created', () => {
  inFolder((folder) => {
    const spare = new SpareFiles(folder)
    spare.restore()
    expect(readdirSync(folder)).toEqual([])
    spare.prepare()
    expect(readdirSync(join(folder, 'spare'))).toHaveLength(8)
    spare.release()
    expect(readdirSync(join(folder, 'spare'))).toEqual([])
    spare.restore()
    expect(existsSync(join(folder, 'spare', '7'))).toBe(true)
  })
})
