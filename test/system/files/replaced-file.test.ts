import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { replaceFile } from '../../../src/system/files/replaced-file.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'deferd-replaced-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

const TERMS = { mode: 0o600, owner: null }
const modeOf = (path: string): number => statSync(path).mode & 0o777

test('a new file and a replaced one have the text and the mode, and nothing is left beside them', async () => {
  const directory = folder()
  const path = join(directory, 'file')
  await replaceFile(path, 'one', TERMS)
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['one', 0o600])
  const before = statSync(path).ino
  const umask = process.umask(0o077)
  await replaceFile(path, 'two', { mode: 0o640, owner: statSync(path) }).finally(() => process.umask(umask))
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['two', 0o640])
  expect(statSync(path).ino).not.toBe(before)
  expect(readdirSync(directory)).toEqual(['file'])
})

test('a file that a killed process has left, and a link in its place, are removed and not followed', async () => {
  const directory = folder()
  const [path, other] = [join(directory, 'file'), join(directory, 'other')]
  writeFileSync(other, 'untouched')
  symlinkSync(other, `${path}.partial`)
  await replaceFile(path, 'text', TERMS)
  expect([readFileSync(path, 'utf8'), readFileSync(other, 'utf8')]).toEqual(['text', 'untouched'])
  expect(readdirSync(directory).toSorted()).toEqual(['file', 'other'])
})

test('a failure leaves the former file, and no other', async () => {
  const directory = folder()
  await expect(replaceFile(join(directory, 'absent', 'file'), 'text', TERMS)).rejects.toMatchObject({ code: 'ENOENT' })
  const path = join(directory, 'folder')
  mkdirSync(path)
  await expect(replaceFile(path, 'text', TERMS)).rejects.toMatchObject({ code: 'EISDIR' })
  expect(readdirSync(directory)).toEqual(['folder'])
})
