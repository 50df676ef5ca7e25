/** A made-up next release of deferd, with a migration of each engine. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { MIGRATIONS, newestIn } from '../../../src/store/postgres/migrations.ts'
import { currentVersion } from '../../../src/store/sqlite/file/migrations.ts'

const ROOT = resolve(import.meta.dirname, '../../..')

export interface NextRelease {
  readonly version: string
  /** Its bin/deferd.js. */
  readonly program: string
  /** Folder of its sources. */
  readonly folder: string
  /** Number of its migration in PostgreSQL. */
  readonly migration: number
  readonly remove: () => void
}

/** Copies the sources. The migration adds a column at the start of the first node, and removes one at the end of the upgrade. */
export function nextRelease(version = '99.0.0'): NextRelease {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-next-'))
  for (const part of ['bin', 'src', 'migrations', 'package.json']) cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...about, version }))
  const migration = newestIn(MIGRATIONS) + 1
  const file = join(folder, 'migrations/postgres', `${String(migration).padStart(4, '0')}_example`)
  writeFileSync(`${file}.sql`, 'alter table message add column example text')
  writeFileSync(`${file}.finish.sql`, 'alter table message drop column example')
  const queueFile = `${String(currentVersion() + 1).padStart(4, '0')}_example.sql`
  const changes = ['alter table message add column example text', 'create index message_example on message (example)']
  writeFileSync(join(folder, 'migrations', queueFile), `${changes.join(';\n')};\n`)
  return {
    version,
    folder,
    program: join(folder, 'bin/deferd.js'),
    migration,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
