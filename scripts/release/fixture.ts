/**
 * Writes the queues of a release to test/upgrade/VERSION, once before its tag: queue.db.gz, pg.sql.gz, and the listings of that release. A daemon of the
 * release is driven by SMTP and commands until it has mail in all states, and killed while it delivers.
 * `node scripts/release/fixture.ts [--program bin/deferd.js]`; for the queue in PostgreSQL, pg_dump(1) and its server of version 15 or newer.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { startPostgres, postgresTools } from '../../test/support/postgres-server.ts'
import { VERSION } from '../../src/system/version.ts'
import { DrivenRelease, type Engine } from './driven-release.ts'
import { releaseFolder } from './frozen-migrations.ts'

/** Listings by name, as the release prints them. */
const LISTINGS: Readonly<Record<string, readonly string[]>> = {
  queue: ['queue', 'list', '--json'],
  trash: ['queue', 'list', '--queue', 'trash', '--json'],
  history: ['history', 'list', '--json'],
  destinations: ['destination', 'list', '--json'],
  webhooks: ['webhook', 'list', '--json'],
  tokens: ['token', 'list', '--json'],
  access: ['access', 'list', '--json'],
  suppressions: ['suppression', 'list', '--json'],
}

/** Drives a release, and returns what it lists after its daemon was killed. */
async function listingsOf(release: DrivenRelease): Promise<Readonly<Record<string, unknown>>> {
  await release.fill()
  return Object.fromEntries(
    Object.entries(LISTINGS).map(([name, args]) => [
      name,
      release
        .run(...args)
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as unknown),
    ]),
  )
}

const stored = (listings: object): string => `${JSON.stringify(listings, null, 2)}\n`

async function sqlite(program: string, work: string, out: string): Promise<void> {
  await using release = await DrivenRelease.open(program, join(work, 'sqlite'))
  writeFileSync(join(out, 'sqlite.json'), stored(await listingsOf(release)))
  const backup = join(work, 'queue.db')
  release.run('backup', backup)
  writeFileSync(join(out, 'queue.db.gz'), gzipSync(readFileSync(backup), { level: 9 }))
}

async function postgres(program: string, work: string, out: string): Promise<void> {
  const binaries = postgresTools()
  if (binaries === null) throw new Error('there is no pg_dump with a server of its version in /usr/lib/postgresql: install postgresql')
  const server = await startPostgres({ binaries })
  try {
    const url = await server.createDatabase('deferd')
    const engine: Engine = { queue_database: url, queue_database_durability: 'primary', node_name: 'n1' }
    await using release = await DrivenRelease.open(program, join(work, 'postgres'), engine)
    writeFileSync(join(out, 'postgres.json'), stored(await listingsOf(release)))
    const dump = execFileSync(join(binaries, 'pg_dump'), ['--inserts', '--no-owner', '--no-privileges', url], {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    })
    writeFileSync(join(out, 'pg.sql.gz'), gzipSync(dump.replaceAll(/^\\.*$/gm, ''), { level: 9 }))
  } finally {
    await server.remove()
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { program: { type: 'string', default: 'bin/deferd.js' } } })
  const program = resolve(values.program)
  const work = mkdtempSync(join(tmpdir(), 'deferd-fixture-'))
  try {
    await sqlite(program, work, releaseFolder(VERSION))
    await postgres(program, work, releaseFolder(VERSION))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
