/**
 * The PostgreSQL server of the bench, and what a load costs it.
 */
import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import type { Duration } from '../../../src/system/clock.ts'
import { startDelayingProxy } from '../../../test/support/delaying-proxy.ts'
import { startPostgres, type PostgresServer } from '../../../test/support/postgres-server.ts'
import { processorSeconds } from '../processor-time.ts'
import type { Setting } from '../figures/subject.ts'

const PARAMETERS = { shared_buffers: '1GB', max_wal_size: '8GB' }

/** Starts a server in a folder, with the queue that is there. It ends with the part. */
export async function startBenchServer({ undo }: Pick<Setting, 'undo'>, parent: string): Promise<PostgresServer> {
  const folder = join(parent, 'postgres')
  mkdirSync(folder, { recursive: true })
  const server = await startPostgres({ folder, settings: PARAMETERS })
  undo.defer(() => server.stop())
  return server
}

/** Gives a server a synchronous standby; bytes between them take `delay` ms longer in each direction. Both end with the part. */
export async function follow({ folder, undo }: Pick<Setting, 'folder' | 'undo'>, server: PostgresServer, delay: Duration): Promise<void> {
  const proxy = await startDelayingProxy(server.port, delay)
  undo.defer(() => proxy.close())
  await server.stop()
  const own = join(folder, 'standby')
  mkdirSync(own)
  const settings = { ...PARAMETERS, primary_conninfo: `host=127.0.0.1 port=${proxy.port} user=postgres application_name=standby` }
  const standby = await startPostgres({ folder: own, copyOf: server, follows: server, settings })
  undo.defer(() => standby.stop())
  await server.start({ synchronous_standby_names: 'standby' })
}

/** CPU seconds of all processes of the server, and bytes of its write-ahead log. */
export interface ServerCost {
  readonly cpu: number
  readonly log: number
}

export async function costOf(server: PostgresServer): Promise<ServerCost> {
  const [row] = await server.query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as log`)
  return { cpu: processorSeconds(server.pid), log: Number(row?.['log']) }
}
