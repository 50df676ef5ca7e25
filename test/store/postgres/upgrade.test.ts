/** Upgrades of a shared queue, node by node, from the migrations of this deferd to those of a made-up next release. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { QueueTooNew } from '../../../src/store/errors.ts'
import { finishUpgrade, migrate, MIGRATIONS, newestIn, schemaOf, type SqlFiles } from '../../../src/store/postgres/migrations.ts'
import { joinNode, leaveNode } from '../../../src/store/postgres/node.ts'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { VERSION, versionNumber } from '../../../src/system/version.ts'
import { realClock } from '../../support/real-clock.ts'
import { queue } from '../../conformance/mail.ts'
import { connectTo, urlOf, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const OLD = newestIn(MIGRATIONS)
const NEW = OLD + 1
const number = String(NEW).padStart(4, '0')
const next: SqlFiles = new Map([
  ...MIGRATIONS,
  [`${number}_example.finish.sql`, 'alter table message drop column why cascade'],
  [`${number}_example.sql`, 'alter table message add column example text'],
])
const labels = (name: string, program: string) => ({ name, program, settings: 'x', hostname: '', draining: false })

describe.skipIf(WITHOUT_POSTGRES.skip)(`upgrades${WITHOUT_POSTGRES.why}`, () => {
  const { server } = usePostgres()

  test('a node that starts waits for one that creates the tables', async () => {
    const url = urlOf(await server().createDatabase('created'))
    const creating = await connectTo(url)
    onTestFinished(() => creating.end())
    await creating.command('begin')
    await creating.query('select pg_advisory_xact_lock($1)', [0x64656664])
    const opening = openPostgresStore({ url, durability: 'primary', labels: labels('n1', '1.0.0'), clock: realClock })
    onTestFinished(async () => (await opening).destroy())
    // Longer than lock_timeout.
    await new Promise((resolve) => void setTimeout(resolve, 2_000))
    await creating.command('commit')
    expect(await opening).toMatchObject({ created: true })
  })

  test('old and new nodes share the queue until the upgrade is finished, which waits for the last old node', async () => {
    const url = urlOf(await server().createDatabase('upgraded'))
    const direct = await connectTo(url)
    onTestFinished(() => direct.end())
    const open = async (name: string, migrations: SqlFiles) => {
      const program = migrations === next ? '2.0.0' : '1.0.0'
      const opened = await openPostgresStore({ url, durability: 'primary', labels: labels(name, program), clock: realClock, migrations })
      onTestFinished(() => opened.destroy())
      return opened
    }
    const first = await open('n1', MIGRATIONS)
    await queue(first.store)
    await open('n2', next)
    expect(await schemaOf(direct, next)).toEqual({ version: NEW, oldestKnown: OLD })
    await queue(first.store)
    const again = await open('n3', MIGRATIONS)
    await queue(again.store)

    expect(await finishUpgrade(direct, next)).toEqual({
      older: [
        { name: 'n1', program: '1.0.0' },
        { name: 'n3', program: '1.0.0' },
      ],
    })
    await expect(finishUpgrade(direct)).rejects.toThrow(QueueTooNew)
    expect(await schemaOf(direct)).toEqual({ version: NEW, oldestKnown: OLD })
    for (const { node } of [first, again]) await leaveNode(direct, node)
    expect(await finishUpgrade(direct, next)).toEqual({ version: NEW })
    expect(await finishUpgrade(direct, next)).toEqual({ version: NEW })
    const columns = await direct.query<{ name: string }>(
      `select column_name as name from information_schema.columns where table_name = 'message' and column_name in ('example', 'why')`,
    )
    expect(columns).toEqual([{ name: 'example' }])

    await expect(open('n1', MIGRATIONS)).rejects.toMatchObject({ name: 'QueueTooNew', exitCode: 78 })
    // A node that examined the tables before the end of the upgrade.
    await expect(joinNode(direct, labels('n1', '1.0.0'), OLD)).rejects.toThrow(QueueTooNew)
  })

  test('a queue has the version of the deferd that opened it last, which the refusal of a newer queue names', async () => {
    const direct = await connectTo(urlOf(await server().createDatabase('written_by')))
    onTestFinished(() => direct.end())
    await migrate(direct, next)
    expect(await direct.query('select written_by from queue')).toEqual([{ written_by: versionNumber(VERSION) }])
    await direct.query('update queue set written_by = $1', [versionNumber('2.13.4')])
    await expect(migrate(direct)).rejects.toThrow('use deferd 2.13.4, which wrote it, or a newer one')
    await migrate(direct, next)
    expect(await direct.query('select written_by from queue')).toEqual([{ written_by: versionNumber(VERSION) }])
  })

  test('a new queue has nothing to finish', async () => {
    const direct = await connectTo(urlOf(await server().createDatabase('new')))
    onTestFinished(() => direct.end())
    expect(await migrate(direct, next)).toEqual({ created: true })
    expect(await schemaOf(direct, next)).toEqual({ version: NEW, oldestKnown: NEW })
  })
})
