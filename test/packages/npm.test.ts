/** The npm package, installed into an empty folder without install scripts. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { text } from '../../scripts/package/entry.ts'
import { gzipped, tarOf } from '../../scripts/package/tar.ts'
import { VERSION } from '../../src/system/version.ts'
import { InstalledDeferd, labWorks, relayWorks } from './installed-deferd.ts'
import { command, must, root, type Result } from './tools.ts'

const MINUTES = 60_000

const folder = mkdtempSync(join(tmpdir(), 'deferd-npm-'))
const installed = join(folder, 'installed')
let deferd: InstalledDeferd
let tarball = ''

/** Not part of the sources: made by commands in the checkout. */
const MADE = ['.git', 'dist', 'node_modules', 'single', 'deb']

/** The sources beside the checkout, because the build writes `dist`. */
function copyOfCheckout(): string {
  const copy = join(folder, 'checkout')
  mkdirSync(copy)
  for (const name of readdirSync(root)) if (!MADE.includes(name)) cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

beforeAll(async () => {
  // The copy has no commit, whose time a build has otherwise.
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1795365161' }
  const npm = (...args: readonly string[]): Promise<string> => must('npm', args, env)
  await npm('pack', copyOfCheckout(), '--pack-destination', folder, '--silent')
  tarball = join(folder, `deferd-${VERSION}.tgz`)
  mkdirSync(installed)
  writeFileSync(join(installed, 'package.json'), '{}')
  await npm('install', '--prefix', installed, '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', tarball)
  deferd = new InstalledDeferd(process.execPath, join(installed, 'node_modules/deferd/bin/deferd.js'))
}, 10 * MINUTES)

afterAll(async () => {
  await deferd?.close()
  rmSync(folder, { recursive: true })
})

test('the program prints its version', async () => {
  expect(await deferd.run(['--version'])).toEqual({ code: 0, out: `${VERSION}\n`, err: '' })
})

/** Runs the script in a process of its own: vitest resolves modules by other conditions. */
const examined = (file: string): Promise<Result> => command(process.execPath, ['scripts/package/npm-faults.ts', file])

test(
  'the package has nothing that publint and Are the types wrong object to',
  async () => {
    expect(await examined(tarball)).toEqual({ code: 0, stdout: '', stderr: '' })
  },
  5 * MINUTES,
)

test(
  'an entry that is not there is a fault',
  async () => {
    const manifest = { name: 'a', version: '1.0.0', type: 'module', exports: { '.': { types: './a.d.ts', default: './none.js' } } }
    const entries = [text('package/package.json', JSON.stringify(manifest)), text('package/a.d.ts', 'export declare const a: 1\n')]
    const file = join(folder, 'a-1.0.0.tgz')
    writeFileSync(file, gzipped(tarOf({ entries, folders: null }, { root: folder, at: 1 }), 6))
    expect(await examined(file)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^publint: .*FILE_DOES_NOT_EXIST/m) })
  },
  5 * MINUTES,
)

test('a lab runs', () => labWorks(deferd), 5 * MINUTES)

test('a relay and its commands run', () => relayWorks(deferd), 5 * MINUTES)
