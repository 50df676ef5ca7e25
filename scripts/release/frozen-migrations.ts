/**
 * Freezes the migrations of a release: test/upgrade/VERSION/migrations.json has a checksum of each, without comments and layout.
 * `node scripts/release/frozen-migrations.ts` writes that of the version in package.json.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withoutLayout } from '../../src/store/sqlite/file/migrations.ts'
import { MIGRATIONS } from '../../src/store/postgres/migrations.ts'
import { resources } from '../../src/system/packaged-files.ts'
import { VERSION } from '../../src/system/version.ts'

const ENGINES = ['sqlite', 'postgres'] as const

/** SHA-256 of the migrations by engine and file. */
export type Checksums = Readonly<Record<(typeof ENGINES)[number], Readonly<Record<string, string>>>>

/** SQL texts by engine and file. */
export type Migrations = Readonly<Record<(typeof ENGINES)[number], ReadonlyMap<string, string>>>

export const presentMigrations = (): Migrations => ({ sqlite: resources('migrations'), postgres: MIGRATIONS })

const UPGRADE = join(import.meta.dirname, '../../test/upgrade')

/** Folder with the stored files of a release. */
export const releaseFolder = (version: string): string => join(UPGRADE, version)

/** The released versions with stored files, in no order. */
export const releases = (): readonly string[] => readdirSync(UPGRADE).filter((name) => /^\d+\.\d+\.\d+$/.test(name))

const frozenFile = (version: string): string => join(releaseFolder(version), 'migrations.json')

export const frozenMigrations = (version: string): Checksums => JSON.parse(readFileSync(frozenFile(version), 'utf8')) as Checksums

export function checksumsOf(migrations: Migrations): Checksums {
  const [sqlite = {}, postgres = {}] = ENGINES.map((engine) =>
    Object.fromEntries([...migrations[engine]].map(([file, sql]) => [file, createHash('sha256').update(withoutLayout(sql)).digest('hex')])),
  )
  return { sqlite, postgres }
}

/** Differences from the migrations of a release, one sentence each. Migrations with higher numbers are none. */
export function brokenPromises(version: string, released: Checksums, migrations: Migrations): readonly string[] {
  const present = checksumsOf(migrations)
  return ENGINES.flatMap((engine) => {
    const [then, now] = [released[engine], present[engine]]
    const newest = Object.keys(then).toSorted().at(-1)?.slice(0, 4) ?? ''
    const advice = 'write a new migration'
    return [
      ...Object.keys(then).flatMap((file) => {
        if (now[file] === undefined) return [`${engine}: ${file} of ${version} is gone: ${advice}`]
        return now[file] === then[file] ? [] : [`${engine}: ${file} of ${version} was changed: ${advice}`]
      }),
      ...Object.keys(now)
        .filter((file) => then[file] === undefined && file.slice(0, 4) <= newest)
        .map((file) => `${engine}: ${file} is not in ${version}, whose queues have that number already: ${advice} above ${newest}`),
    ]
  })
}

/** Whether the list of a version has all migrations as they are. */
export const isFrozen = (version: string, migrations: Migrations): boolean =>
  existsSync(frozenFile(version)) && JSON.stringify(frozenMigrations(version)) === JSON.stringify(checksumsOf(migrations))

if (import.meta.main) {
  const migrations = presentMigrations()
  const broken = existsSync(frozenFile(VERSION)) ? brokenPromises(VERSION, frozenMigrations(VERSION), migrations) : []
  if (broken.length > 0) {
    process.stderr.write(`${broken.join('\n')}\n`)
    process.exitCode = 1
  } else {
    mkdirSync(releaseFolder(VERSION), { recursive: true })
    writeFileSync(frozenFile(VERSION), `${JSON.stringify(checksumsOf(migrations), null, 2)}\n`)
  }
}
