/** Sessions with a real server: where they are opened, and the servers that are refused. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseDatabaseUrl } from '../../../src/config/values/database-url.ts'
import { openSession } from '../../../src/store/postgres/session/client.ts'
import { DatabaseAway, DatabaseUnusable } from '../../../src/store/membership/database-errors.ts'
import type { Durability } from '../../../src/store/membership/queue-database.ts'
import { portBelowEphemeral } from '../../support/ports.ts'
import { reasonWithoutPostgres, startPostgres, type PostgresServer } from '../../support/postgres-server.ts'
import { startStartupFilter } from '../../support/startup-filter.ts'

const reason = reasonWithoutPostgres()

async function open(text: string, durability: Durability = 'primary', settings: Readonly<Record<string, string>> = {}) {
  const url = parseDatabaseUrl(text)
  if (url === null) throw new Error(`${text} is no URL`)
  return openSession({ url, durability, application: 'deferd 7 w', settings })
}

/** The error of an opening that must fail. */
async function errorOf(opening: Promise<{ end(): Promise<void> }>): Promise<unknown> {
  try {
    await (await opening).end()
    return null
  } catch (error) {
    return error
  }
}

describe.skipIf(reason !== null)(`sessions${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await startPostgres()
  })

  afterAll(() => server.remove())

  /** Restarts the server with a setting, and after the test with the former one. */
  async function withSettings(
    settings: Readonly<Record<string, string>>,
    former: Readonly<Record<string, string>>,
    body: () => Promise<void>,
  ) {
    await server.stop()
    await server.start(settings)
    try {
      await body()
    } finally {
      await server.stop()
      await server.start(former)
    }
  }

  test('a session has a name, its settings, and bigint as numbers', async () => {
    const session = await open(server.url(), 'primary', { statement_timeout: '15s' })
    const { rows } = await session.query(
      "select current_setting('application_name') as name, current_setting('statement_timeout') as wait, 9007199254740991::bigint as id",
    )
    expect(rows).toEqual([{ name: 'deferd 7 w', wait: '15s', id: Number.MAX_SAFE_INTEGER }])
    await expect(session.query('select 9007199254740993::bigint')).rejects.toThrow('no safe integer')
    await session.end()
  })

  test('the first host that answers is used', async () => {
    const closed = await portBelowEphemeral()
    const session = await open(`postgresql://postgres@127.0.0.1:${closed},127.0.0.1:${server.port}/postgres`)
    await session.end()
  })

  test('a server that is away is an error of the moment, and names all hosts', async () => {
    const closed = await portBelowEphemeral()
    const error = await errorOf(open(`postgresql://postgres@127.0.0.1:${closed},localhost:${closed}/postgres`))
    expect(error).toBeInstanceOf(DatabaseAway)
    expect(error).toMatchObject({ exitCode: 75 })
    expect(String(error)).toMatch(new RegExp(`127.0.0.1:${closed}.*ECONNREFUSED.*localhost:${closed}`))
  })

  test('an unknown database is an error of the configuration, without the password in its text', async () => {
    const error = await errorOf(open(`postgresql://postgres:secret@127.0.0.1:${server.port}/nowhere`))
    expect(error).toBeInstanceOf(DatabaseUnusable)
    expect(error).toMatchObject({ exitCode: 78 })
    expect(String(error)).toContain('database "nowhere" does not exist')
    expect(String(error)).not.toContain('secret')
  })

  test('a server without a synchronous standby is refused, unless its storage is declared safe', async () => {
    const error = await errorOf(open(server.url(), 'replicated'))
    expect(error).toMatchObject({ exitCode: 78, message: expect.stringContaining('synchronous_standby_names is empty') })
    await (await open(server.url(), 'primary')).end()
  })

  test.each([
    ['fsync', 'fsync', 'off', 'on'],
    ['full_page_writes', 'full_page_writes', 'off', 'on'],
    ['synchronous_commit', 'synchronous_commit', 'off', 'on'],
    ['synchronous_commit', 'synchronous_commit', 'local', 'on'],
    ['default_transaction_isolation', 'default_transaction_isolation', 'serializable', 'read committed'],
  ])('a server is refused with a sentence about %s (%s = %s)', async (named, setting, value, former) => {
    await withSettings({ [setting]: value }, { [setting]: former }, async () => {
      expect(await errorOf(open(server.url()))).toMatchObject({ exitCode: 78, message: expect.stringContaining(named) })
    })
  })

  test('a database in another encoding is refused', async () => {
    await server.query(`create database latin encoding 'LATIN1' template template0`)
    expect(await errorOf(open(server.url('latin')))).toMatchObject({ exitCode: 78, message: expect.stringContaining('server_encoding') })
  })

  test('a pooler, which keeps session settings for itself, is refused', async () => {
    const pooler = await startStartupFilter(server.port)
    const error = await errorOf(open(`postgresql://postgres@127.0.0.1:${pooler.port}/postgres`))
    expect(error).toMatchObject({ exitCode: 78, message: expect.stringContaining('pooler') })
    await pooler.close()
  })

  test('a standby is refused, and passed over for the primary', async () => {
    await server.stop()
    const standby = await startPostgres({ copyOf: server, follows: server })
    await server.start()
    const alone = await errorOf(open(standby.url()))
    expect(alone).toMatchObject({ exitCode: 78, message: expect.stringContaining('is a standby') })
    const session = await open(`postgresql://postgres@127.0.0.1:${standby.port},127.0.0.1:${server.port}/postgres`)
    const { rows } = await session.query("select current_setting('port') as port")
    expect(rows).toEqual([{ port: String(server.port) }])
    await session.end()
    await standby.remove()
  })

  test('a session that the server ends rejects its statements and nothing else', async () => {
    const session = await open(server.url())
    const sleeping = session.query('select pg_sleep(60)').catch((error: unknown) => error)
    await server.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'deferd 7 w'")
    expect(await sleeping).toBeInstanceOf(Error)
  })
})
