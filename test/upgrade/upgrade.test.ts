/** Stored queues of each release, upgraded by the program of now: an upgrade that is interrupted at any statement changes nothing. */
import Database from 'better-sqlite3'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { frozenMigrations, releases } from '../../scripts/release/frozen-migrations.ts'
import { migrate as migratePostgres, MIGRATIONS, newestIn, schemaOf, type SqlFiles } from '../../src/store/postgres/migrations.ts'
import type { Connection } from '../../src/store/postgres/session/database-connection.ts'
import type * as sqlite from '../../src/store/sqlite/file/migrations.ts'
import { Interrupted, interruptedAt } from '../support/interrupted-migration.ts'
import { nextRelease } from '../support/nodes/next-release.ts'
import { connectTo, urlOf, usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import { storedFile } from '../support/released-queue.ts'

const MINUTES = 60_000
const RELEASES = releases()

const next = () => {
  const release = nextRelease()
  onTestFinished(() => release.remove())
  return release
}

describe.each(RELEASES)('a queue of %s in a folder', (version) => {
  test('is as it was after an upgrade that was interrupted at any statement', async () => {
    // The migrations of a next release too: those of now may have none above the release.
    const { migrate, versionOf, currentVersion } = (await import(
      join(next().folder, 'src/store/sqlite/file/migrations.ts')
    )) as typeof sqlite
    const content = storedFile(version, 'queue.db.gz')
    const reopened = () => {
      const db = new Database(content)
      onTestFinished(() => void db.close())
      return db
    }
    const complete = interruptedAt(reopened(), Infinity)
    const from = versionOf(complete.db)
    expect(from).toBe(Object.keys(frozenMigrations(version).sqlite).length)
    migrate(complete.db)
    expect(complete.count()).toBeGreaterThan(2)
    for (let nth = 1; nth <= complete.count(); nth++) {
      const db = reopened()
      expect(() => migrate(interruptedAt(db, nth).db)).toThrow(Interrupted)
      expect([versionOf(db), db.prepare('select count(*) from message').pluck().get()]).toEqual([from, expect.any(Number)])
      migrate(db)
      expect([versionOf(db), db.pragma('integrity_check', { simple: true })]).toEqual([currentVersion(), 'ok'])
    }
  })
})

/** A session that is lost before its n-th statement, as when the node is killed. */
function lostAt(connection: Connection, nth: number): { readonly connection: Connection; readonly count: () => number } {
  let count = 0
  const proxy = new Proxy(connection, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      if (name !== 'query' && name !== 'command') return value.bind(target) as unknown
      return (...args: unknown[]): unknown => {
        if (++count === nth) target.destroy()
        return (value as (...given: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  return { connection: proxy, count: () => count }
}

describe.skipIf(WITHOUT_POSTGRES.skip)(`in PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { server } = usePostgres()

  const restored = async (version: string, name: string) => {
    const url = await server().createDatabase(name)
    const direct = await connectTo(urlOf(url))
    onTestFinished(() => direct.end())
    await direct.command(storedFile(version, 'pg.sql.gz').toString())
    await direct.command('set search_path to default')
    return { url, direct }
  }

  test.each(RELEASES)(
    'a queue of %s is as it was after an upgrade that was lost at any statement',
    { timeout: 5 * MINUTES },
    async (version) => {
      const { url, direct } = await restored(version, 'interrupted')
      const above = String(newestIn(MIGRATIONS) + 1).padStart(4, '0')
      const files: SqlFiles = new Map([...MIGRATIONS, [`${above}_example.sql`, 'alter table message add column example text']])
      const from = await schemaOf(direct, files)
      const mail = await direct.query('select count(*)::int as count from message')
      for (let nth = 1; ; nth++) {
        const { connection, count } = lostAt(await connectTo(urlOf(url)), nth)
        const lost = await migratePostgres(connection, files).then(
          () => false,
          () => true,
        )
        connection.destroy()
        if (!lost) {
          expect(count()).toBeGreaterThan(5)
          break
        }
        expect(await schemaOf(direct, files)).toEqual(from)
      }
      expect([await schemaOf(direct, files), await direct.query('select count(*)::int as count from message')]).toEqual([
        { version: newestIn(files), oldestKnown: from.oldestKnown },
        mail,
      ])
    },
  )
})
