import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { writeRefreshToken } from '../../src/oauth/refresh-token-file.ts'

test('a refresh token is written for its owner alone, also in place of a file that others may read', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-login-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'token')
  for (const token of ['first', 'second']) {
    await writeRefreshToken(path, token, null)
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual([`${token}\n`, 0o600])
    writeFileSync(path, 'other')
    chmodSync(path, 0o644)
  }
  expect(readdirSync(directory)).toEqual(['token'])
  await expect(writeRefreshToken(join(path, 'below'), 'third', null)).rejects.toMatchObject({ code: 'ENOTDIR' })
})
