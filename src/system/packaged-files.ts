/**
 * The files that belong to deferd: texts, the code of threads, and the library of SQLite. In a checkout and in the npm package they lie beside the
 * code, and in the executable of one file they are inside it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { addonFile, addonFolder, loadAddon } from './addon-file.ts'

/** The code of threads by its path in `src`, without ending. */
export const THREADS = [
  'cli/queue-client/listing-worker',
  'patterns/pattern-worker',
  'store/sqlite/clients/reader-worker',
  'store/sqlite/clients/worker-main',
  'store/sqlite/file/backup-worker',
] as const
type ThreadName = (typeof THREADS)[number]

export const RESOURCE_FOLDERS = ['migrations', 'migrations/postgres', 'page/browser'] as const
type ResourceFolder = (typeof RESOURCE_FOLDERS)[number]

/** File with the licences of the software that deferd is given away with. */
export const NOTICES = 'THIRD-PARTY-NOTICES'

/** Name of the library of SQLite in the executable of one file. */
export const ADDON = 'better_sqlite3.node'

/** The module of Node that reads the executable of one file; null without one. An old Node has no such module, and cannot import it. */
const executable = ((sea) => (sea?.isSea() ? sea : null))(process.getBuiltinModule?.('node:sea'))

/** Name of the code of a thread in the executable of one file. */
export const threadAsset = (name: ThreadName): string => `threads/${name}.cjs`

/** `page` is part of the code, in `src` or `dist`. */
const urlOf = (name: string): URL => new URL(name.startsWith('page/') ? `../${name}` : `../../${name}`, import.meta.url)

/** Text of a file. */
export const resource = (name: 'package.json' | typeof NOTICES | `${ResourceFolder}/${string}`): string =>
  executable === null ? readFileSync(urlOf(name), 'utf8') : executable.getAsset(name, 'utf8')

/** SQL texts of the files `NUMBER_NAME.sql` of a folder by name, sorted by name. */
export function resources(folder: 'migrations' | 'migrations/postgres'): ReadonlyMap<string, string> {
  const names =
    executable === null
      ? readdirSync(urlOf(folder))
      : executable.getAssetKeys().flatMap((key) => (key.startsWith(`${folder}/`) ? [key.slice(folder.length + 1)] : []))
  return new Map(
    names
      .filter((name) => /^\d{4}_[^/]*\.sql$/.test(name))
      .toSorted()
      .map((name) => [name, resource(`${folder}/${name}`)]),
  )
}

/** Starts a thread. */
export const thread = (name: ThreadName, options: WorkerOptions = {}): Worker =>
  executable === null
    ? // The file has the ending of this one: `.ts` in a checkout.
      new Worker(new URL(`../${name}${import.meta.url.slice(-3)}`, import.meta.url), options)
    : new Worker(executable.getAsset(threadAsset(name), 'utf8'), { ...options, eval: true })

/**
 * The library of SQLite of the executable of one file, which is written to a folder first: the system loads a library from a file only. Elsewhere
 * better-sqlite3 finds it by itself. Throws AddonUnusable.
 */
export function sqliteAddon(): object {
  if (executable === null) throw new Error('sqliteAddon is called outside of the executable of one file')
  const library = { exports: {} }
  loadAddon(addonFile(new Uint8Array(executable.getRawAsset(ADDON)), addonFolder(process.env)), library)
  return library.exports
}
