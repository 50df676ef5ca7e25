/** Archives, read by tar(1). */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { copy, link, text } from '../../../scripts/package/entry.ts'
import { tarOf } from '../../../scripts/package/tar.ts'

const options = { root: import.meta.dirname, at: 1_795_365_161 }

const listed = (archive: Buffer): readonly string[] =>
  execFileSync('tar', ['--list', '--verbose', '--numeric-owner', '--utc', '--full-time', '--file=-'], { input: archive, encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.replaceAll(/ +/g, ' '))

test('an archive has files, links and folders with owners, modes and one time, in the order of their names', () => {
  const long = `${'folder/'.repeat(18)}file-with-a-name-of-its-own`
  const archive = tarOf(
    {
      entries: [link('usr/bin/b', '../lib/b'), text('etc/a', 'text\n', 0o600), copy('tar.test.ts', long)],
      folders: [
        { path: 'tmp', mode: 0o1777, owner: 0 },
        { path: 'var/q', mode: 0o711, owner: 65532 },
      ],
    },
    options,
  )
  const lines = listed(archive)
  const date = '2026-11-22 16:32:41'
  expect(lines).toEqual(
    expect.arrayContaining([
      `drwxr-xr-x 0/0 0 ${date} etc/`,
      `-rw------- 0/0 5 ${date} etc/a`,
      expect.stringContaining(` ${date} ${long}`),
      `drwxrwxrwt 0/0 0 ${date} tmp/`,
      `lrwxrwxrwx 0/0 0 ${date} usr/bin/b -> ../lib/b`,
      `drwx--x--x 65532/65532 0 ${date} var/q/`,
    ]),
  )
  expect(execFileSync('tar', ['--extract', '--to-stdout', '--file=-', 'etc/a'], { input: archive, encoding: 'utf8' })).toBe('text\n')
})

test('equal entries give equal archives, in any order', () => {
  const [a, b] = [text('a', '1'), text('b/c', '2')]
  expect(tarOf({ entries: [a, b], folders: [] }, options)).toEqual(tarOf({ entries: [b, a], folders: [] }, options))
})

test('a path that is there twice, or does not fit, is refused', () => {
  expect(() => tarOf({ entries: [text('a', ''), text('a', '')], folders: [] }, options)).toThrow('a is twice')
  expect(() => tarOf({ entries: [text('a'.repeat(101), '')], folders: [] }, options)).toThrow('too long')
  expect(() => tarOf({ entries: [link('a', 'b'.repeat(101))], folders: [] }, options)).toThrow('too long')
})
