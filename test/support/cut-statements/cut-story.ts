/** Runs the story of a store through a proxy that breaks its writing session. */
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { SHARDS } from '../../../src/store/membership/shards.ts'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { takeShards } from '../../../src/store/postgres/session/node-queries.ts'
import { realClock } from '../real-clock.ts'
import { connectTo, urlOf } from '../postgres-queue.ts'
import { startStatementCutter, type Cut } from './statement-cutter.ts'
import { holds, tell } from './store-story.ts'

export interface CutStory {
  /** Name and answer of each call. */
  readonly answers: Awaited<ReturnType<typeof tell>>
  /** Rows of the queue at the end. */
  readonly rows: readonly string[]
  /** Number of statements after the last break. */
  readonly statements: number
  readonly breaks: number
}

const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }

/** Rejects when a call fails: the store repeats all of them until they are answered. */
export async function cutStory(
  { url, port }: { readonly url: DatabaseUrl; readonly port: number },
  cuts: readonly Cut[],
): Promise<CutStory> {
  const direct = await connectTo(url)
  const cutter = await startStatementCutter(port)
  const through = urlOf(`postgresql://postgres@127.0.0.1:${cutter.port}/postgres`)
  const opened = await openPostgresStore({ url: through, durability: 'primary', labels, clock: realClock, tallyKeptFor: 0 })
  try {
    await direct.query(takeShards, [opened.node, SHARDS])
    await opened.store.upkeep.ping()
    cutter.arm(cuts)
    const answers = await tell(opened.store)
    return { answers, rows: await holds(direct), statements: cutter.statements, breaks: cutter.breaks }
  } finally {
    await opened.destroy()
    await direct.end()
    await cutter.close()
  }
}
