/**
 * The PostgreSQL server of the bench, and what a load costs it.
 */
import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
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

/** CPU seconds of all processes of the server, and bytes of its write-ahead log. */
export interface ServerCost {
  readonly cpu: number
  readonly log: number
}

export async function costOf(server: PostgresServer): Promise<ServerCost> {
  const [row] = await server.query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as log`)
  return { cpu: processorSeconds(server.pid), log: Number(row?.['log']) }
}
