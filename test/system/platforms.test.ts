/** Differences of macOS and Windows from Linux, simulated here. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, describe, expect, test } from 'vitest'
import { socketPathLimit } from '../../src/daemon/admin/socket-path.ts'
import { settle } from '../../src/store/sqlite/file/database.ts'
import { Operator } from '../support/operator.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-platforms-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('macOS', () => {
  test.each(['darwin', 'linux'] as const)('commits and checkpoints reach the disk itself: %s', (platform) => {
    const db = new Database(join(folder, `${platform}.db`))
    settle(db, platform)
    const on = platform === 'darwin' ? 1 : 0
    expect(['fullfsync', 'checkpoint_fullfsync'].map((name) => db.pragma(name, { simple: true }))).toEqual([on, on])
    expect(db.pragma('synchronous', { simple: true })).toBe(2)
    db.close()
  })

  test('the path of a socket has four bytes less than on Linux', () => {
    expect([socketPathLimit('darwin'), socketPathLimit('linux')]).toEqual([103, 107])
  })
})

describe('Windows', () => {
  test('the relay is refused in one sentence, and other commands run', async () => {
    const operator = new Operator()
    const { code, err } = await operator.run(['start'], { platform: 'win32' })
    expect(code).toBe(69)
    expect(err).toMatch(/^deferd: the relay does not run on Windows, [^\n]*WSL 2[^\n]*\n$/)
    expect(await operator.run(['config', 'mail_name'], { platform: 'win32' })).toMatchObject({ code: 0, out: 'mail_name = Deferd\n' })
  })
})
