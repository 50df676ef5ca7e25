/** The import of Postfix's mail into a queue in PostgreSQL, and the commands that a queue there does not have. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { queueAccess } from '../../src/cli/queue-client/queue-access.ts'
import { BuiltSpool } from '../support/built-spool.ts'
import { NOW, Operator } from '../support/operator.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'

const arrival = `${NOW / 1000 - 3600} 250000`

describe.skipIf(WITHOUT_POSTGRES.skip)(`a queue in PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()
  let spool: BuiltSpool
  let operator: Operator
  beforeEach(async () => {
    await emptyQueue()
    spool = new BuiltSpool()
    operator = new Operator()
  })
  afterEach(() => {
    spool.remove()
    operator.leave()
  })

  const run = (...args: readonly string[]) => {
    const database = [`queue_database=${server().url()}`, 'queue_database_durability=primary', 'node_name=mx1']
    const access = queueAccess({ clock: operator.clock, warn: expect.unreachable })
    return operator.run([...args, ...database.flatMap((one) => ['-o', one])], { access })
  }

  test('the mail of a spool is queued once, with its schedule, and the import leaves no node', async () => {
    spool.add('deferred', 'A1B2C3D4E5', { arrival })
    spool.add('hold', 'A1B2C3D4E6', { arrival })
    const importMail = () => run('import', 'postfix', '--config-dir', spool.config)
    const first = await importMail()
    expect([first.code, first.err]).toEqual([0, ''])
    expect(first.out).toContain('2 messages with 2 recipients taken over')
    const again = await importMail()
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('0 messages with 0 recipients taken over')])
    const listing = await run('queue', 'list', '--json')
    expect(listing.err).toBe('')
    const listed = listing.out.trim().split('\n')
    expect(listed.map((line) => JSON.parse(line) as object)).toMatchObject([
      { queue_name: 'deferred', arrival_time: NOW / 1000 - 3600 },
      { queue_name: 'hold' },
    ])
    expect((await run('audit')).out).toMatch(/import postfix .*\(2 changes, id \d+, at mx1\)/)
    expect(await server().query('select name from node')).toEqual([])
  })

  test('an upgrade is finished when no older node runs; backup, restore and the check of a file name the tools of PostgreSQL', async () => {
    const backup = await run('backup', '/nowhere')
    expect([backup.code, backup.err]).toEqual([64, expect.stringContaining('pg_dump')])
    const restored = await run('restore', '/nowhere')
    expect([restored.code, restored.err]).toEqual([64, expect.stringContaining('pg_restore')])
    const salvaged = await run('salvage', server().url(), '/nowhere')
    expect([salvaged.code, salvaged.err]).toEqual([64, expect.stringContaining('pg_dump')])
    expect((await run('queue', 'upgrade', '--finish')).out).toMatch(/^the tables have version \d+; no upgrade waits for its end\n$/)
    const [{ version = 0 } = {}] = await server().query('select version from queue')
    // The state before the end of the upgrade 0006: the former index beside the new one.
    await server().query('alter index recipient_due rename to recipient_due_by_band')
    await server().query('create index recipient_due on recipient (id)')
    await server().query(`update queue set oldest_known = 0`)
    expect((await run('queue', 'upgrade')).out).toContain('deferd queue upgrade --finish ends the upgrade')
    await server().query(`insert into node (id, name, program, settings, knows) values (9, 'mx2', '0.9.0', 'x', 0)`)
    const early = await run('queue', 'upgrade', '--finish')
    expect([early.code, early.err]).toEqual([
      75,
      'deferd: an older deferd runs at mx2 (deferd 0.9.0): upgrade each node first, then finish\n',
    ])
    await server().query('delete from node')
    const finished = JSON.parse((await run('queue', 'upgrade', '--finish', '--json')).out) as object
    expect(finished).toEqual({ schema: version, oldest_usable: version, finished: true })
    const inFolder = await operator.run(['queue', 'upgrade', '--finish'])
    expect([inFolder.code, inFolder.err]).toEqual([69, expect.stringContaining('is upgraded by the start of its daemon')])
    const full = await run('check', '--full')
    expect(full.out).toMatch(/queue +.*(amcheck|checksum)/)
  })
})
