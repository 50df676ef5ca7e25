import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { addonFile, addonFolder, loadAddon } from '../../src/system/addon-file.ts'

const CONTENT = Buffer.from('the library')

let root = ''
beforeEach(() => (root = mkdtempSync(join(realpathSync(tmpdir()), 'deferd-addon-'))))
afterEach(() => rmSync(root, { recursive: true }))

const cache = (): string => join(root, '.cache/deferd')
const modeOf = (path: string): number => statSync(path).mode & 0o777

/** The sentence and the exit code of the refusal. */
function refusal(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    expect(error).toMatchObject({ name: 'AddonUnusable', exitCode: 78 })
    return (error as Error).message.replaceAll(root, 'ROOT')
  }
  throw new Error('nothing was refused')
}

test('the file is of this user only, has a name by its content, and is written once', () => {
  const path = addonFile(CONTENT, cache())
  expect(readdirSync(cache())).toEqual([expect.stringMatching(/^better_sqlite3-[\da-f]{16}\.node$/)])
  expect(readFileSync(path)).toEqual(CONTENT)
  expect([modeOf(cache()), modeOf(path)]).toEqual([0o700, 0o600])
  const { ino } = statSync(path)
  expect(addonFile(CONTENT, cache())).toBe(path)
  expect(statSync(path).ino).toBe(ino)
  expect(addonFile(Buffer.from('another'), cache())).not.toBe(path)
})

describe('refused with one sentence', () => {
  const planted = (plant: (path: string) => void): string => {
    plant(addonFile(CONTENT, cache()))
    return refusal(() => addonFile(CONTENT, cache())).replace(/-[\da-f]{16}/, '-HASH')
  }
  const SENTENCE =
    'ROOT/.cache/deferd/better_sqlite3-HASH.node is of another user, or is not the library of SQLite that deferd has written, and is not loaded: remove it'

  test('a file with other content', () => {
    expect(planted((path) => writeFileSync(path, 'another one'))).toBe(SENTENCE)
  })

  test('a file that others may change', () => {
    expect(planted((path) => chmodSync(path, 0o620))).toBe(SENTENCE)
  })

  test('a link', () => {
    const elsewhere = join(root, 'elsewhere')
    writeFileSync(elsewhere, CONTENT)
    expect(planted((path) => (rmSync(path), symlinkSync(elsewhere, path)))).toBe(SENTENCE)
  })

  test.skipIf(process.getuid?.() !== 0)('a file of another user', () => {
    expect(planted((path) => chownSync(path, 1, 1))).toBe(SENTENCE)
  })

  test('a folder in which others may write', () => {
    addonFile(CONTENT, cache())
    chmodSync(cache(), 0o770)
    expect(refusal(() => addonFile(CONTENT, cache()))).toBe(
      'ROOT/.cache/deferd is of another user, or others may write there, so that no library is loaded from it: set DEFERD_NATIVE_DIR to a folder of this user',
    )
  })

  test('a folder that cannot be made', () => {
    writeFileSync(join(root, '.cache'), '')
    expect(refusal(() => addonFile(CONTENT, cache()))).toMatch(
      /^cannot write the library of SQLite to ROOT\/\.cache\/deferd: ENOTDIR.*; set DEFERD_NATIVE_DIR to a folder of this user$/,
    )
  })

  test('a file that the system does not load', () => {
    const path = addonFile(CONTENT, cache())
    expect(refusal(() => loadAddon(path, { exports: {} }))).toMatch(
      /^cannot load the library of SQLite from ROOT.*\.node: .*; set DEFERD_NATIVE_DIR/,
    )
  })
})

test('the folder is that of DEFERD_NATIVE_DIR, else one in the home folder', () => {
  expect(addonFolder({ DEFERD_NATIVE_DIR: '/var/cache/deferd' })).toBe('/var/cache/deferd')
  expect(addonFolder({ DEFERD_NATIVE_DIR: '' })).toBe(join(homedir(), '.cache/deferd'))
})

test('a folder that exists is used as it is, when others may only read it', () => {
  mkdirSync(cache(), { recursive: true, mode: 0o755 })
  expect(readFileSync(addonFile(CONTENT, cache()))).toEqual(CONTENT)
})
