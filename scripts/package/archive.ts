/** Builds the .deb file of a package with dpkg-deb(1). Root is not needed: all files belong to root in the archive. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { controlText, debName } from './control.ts'
import { FILE_MODE, PROGRAM_MODE, type Entry } from './entry.ts'
import type { Package } from './packages.ts'

export interface ArchiveOptions {
  /** Folder of the paths that entries are copied from. */
  readonly root: string
  /** Folder of the .deb file. */
  readonly out: string
  /** Seconds since the epoch, the time of all files. */
  readonly at: number
  readonly compression: Compression
}

/** gzip makes a larger file in a tenth of the time. */
export const COMPRESSIONS = ['xz', 'gzip'] as const
export type Compression = (typeof COMPRESSIONS)[number]

/** Writes the .deb file and returns its path. Throws when dpkg-deb fails. */
export function buildArchive({ control, entries, conffiles, scripts }: Package, options: ArchiveOptions): string {
  const stage = mkdtempSync(join(tmpdir(), 'deferd-package-'))
  try {
    for (const entry of entries) place(entry, options.root, stage)
    const files = entries.filter(({ kind }) => kind !== 'link').map(({ path }) => path)
    const size = files.reduce((sum, path) => sum + statSync(join(stage, path)).size, 0)
    writeMode(join(stage, 'DEBIAN/control'), controlText(control, size), FILE_MODE)
    writeMode(
      join(stage, 'DEBIAN/md5sums'),
      files
        .toSorted()
        .map((path) => `${md5(join(stage, path))}  ${path}\n`)
        .join(''),
      FILE_MODE,
    )
    if (conffiles.length > 0) writeMode(join(stage, 'DEBIAN/conffiles'), conffiles.map((path) => `/${path}\n`).join(''), FILE_MODE)
    for (const [name, script] of scripts) writeMode(join(stage, 'DEBIAN', name), script, PROGRAM_MODE)
    return pack(stage, join(options.out, debName(control)), options)
  } finally {
    rmSync(stage, { recursive: true })
  }
}

/** Creates a folder and its missing parents with mode 0755, whatever the umask is. */
function makeFolder(path: string, stage: string): void {
  if (path === stage) return
  makeFolder(dirname(path), stage)
  mkdirSync(path, { recursive: true })
  chmodSync(path, PROGRAM_MODE)
}

function place(entry: Entry, root: string, stage: string): void {
  const path = join(stage, entry.path)
  makeFolder(dirname(path), stage)
  switch (entry.kind) {
    case 'link':
      symlinkSync(entry.target, path)
      return
    case 'copy':
      copyFileSync(join(root, entry.from), path)
      chmodSync(path, entry.mode)
      return
    case 'text':
      writeMode(path, entry.text, entry.mode)
  }
}

function writeMode(path: string, content: string | Uint8Array, mode: number): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  chmodSync(path, mode)
}

const md5 = (path: string): string => createHash('md5').update(readFileSync(path)).digest('hex')

/** dpkg-deb gives SOURCE_DATE_EPOCH to every file that is newer, and sorts the files by name. */
function pack(stage: string, file: string, { at, compression }: ArchiveOptions): string {
  chmodSync(stage, PROGRAM_MODE)
  chmodSync(join(stage, 'DEBIAN'), PROGRAM_MODE)
  const level = compression === 'gzip' ? '1' : '6'
  execFileSync('dpkg-deb', ['--root-owner-group', `-Z${compression}`, `-z${level}`, '--build', stage, file], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(at) },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return file
}
